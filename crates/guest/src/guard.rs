//! Keeps read-only covers and masks in place.
//!
//! When a process on the host renames a new file over a covered one (as an editor does), the kernel drops the cover in every
//! other mount namespace and the new file would be writable inside. The kernel announces each change of the mounts; the guest
//! then looks which covers are gone and makes them again. Nothing is announced when a removed file comes back, so the guest
//! looks for those by itself.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::plan::{Access, Node, Plan, Step};
use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::time::Timespec;

use crate::failure::During;
use crate::view::{self, Masks};

/// Bytes of mount table that are read at most; a sandbox cannot make mounts, so it cannot grow the table.
const MAX_TABLE: usize = 64 << 20;

/// A file that is removed as often as it is looked at is not looked at for ever.
const TRIES: usize = 100;

/// Between two looks for a covered path that the host has removed.
const AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

#[derive(Clone, Copy)]
enum Cover {
    ReadOnly,
    Mask,
}

pub(crate) struct Guard {
    table: OwnedFd,
    root: OwnedFd,
    covers: Vec<(Vec<u8>, Node, Cover)>,
    masks: Masks,
    /// A covered path is not there.
    missing: bool,
}

impl Guard {
    /// Watches the covers of the plan. Called in the finished view.
    pub(crate) fn new(plan: &Plan, masks: Masks) -> Result<Self, Failure> {
        let step = || "watch the mount table".to_owned();
        let open = |path: &str, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let table = open("/proc/self/mountinfo", OFlags::RDONLY).during(Layer::Mounts, step)?;
        let root = open("/", OFlags::PATH | OFlags::DIRECTORY).during(Layer::Mounts, step)?;
        let covers = plan
            .view
            .iter()
            .filter_map(|step| match step {
                Step::Bind {
                    target,
                    access: Access::ReadOnly,
                    node,
                    ..
                }
                | Step::Rebind {
                    target,
                    access: Access::ReadOnly,
                    node,
                    ..
                } => Some((target.to_vec(), *node, Cover::ReadOnly)),
                Step::Mask { target, node } => Some((target.to_vec(), *node, Cover::Mask)),
                _ => None,
            })
            .collect();
        Ok(Self {
            table,
            root,
            covers,
            masks,
            missing: false,
        })
    }

    /// When to call [`Guard::restore`] although the kernel announces nothing.
    pub(crate) fn due(&self) -> Option<Timespec> {
        self.missing.then_some(AGAIN)
    }

    /// Covers again what has lost its cover; returns the paths.
    pub(crate) fn restore(&mut self) -> Result<Vec<Vec<u8>>, Errno> {
        let mounted = self.mount_points()?;
        let mut restored = Vec::new();
        self.missing = false;
        for (path, node, cover) in self.covers.iter().filter(|(path, ..)| !mounted.contains(path)) {
            if self.cover(path, *node, *cover)? {
                restored.push(path.clone());
            } else {
                self.missing = true;
            }
        }
        Ok(restored)
    }

    /// Covers a path; false when nothing is there.
    fn cover(&self, path: &[u8], node: Node, cover: Cover) -> Result<bool, Errno> {
        for _ in 0..TRIES {
            let found = match view::locate_in(self.root.as_fd(), path, node) {
                Ok(found) => found,
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
                Err(errno) => return Err(errno),
            };
            let covered = match cover {
                Cover::ReadOnly => view::cover(found.as_fd()),
                Cover::Mask => self.masks.hide(found.as_fd(), node),
            };
            match covered {
                // Removed since it was found: another one may be there.
                Err(Errno::NOENT) => {}
                other => return other.map(|()| true),
            }
        }
        Err(Errno::BUSY)
    }

    fn mount_points(&self) -> Result<HashSet<Vec<u8>>, Errno> {
        rustix::fs::seek(&self.table, rustix::fs::SeekFrom::Start(0))?;
        let mut text = Vec::new();
        let mut chunk = vec![0_u8; 64 * 1024];
        loop {
            match rustix::io::read(&self.table, &mut chunk)? {
                0 => break,
                read => text.extend_from_slice(&chunk[..read]),
            }
            if text.len() > MAX_TABLE {
                return Err(Errno::FBIG);
            }
        }
        Ok(text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
            .map(unescape)
            .collect())
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.table.as_fd()
    }
}

/// Decodes the octal escapes of a mount table (proc_pid_mountinfo(5)).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            digits.iter().try_fold(0_u32, |value, digit| match digit {
                b'0'..=b'7' => Some(value * 8 + u32::from(digit - b'0')),
                _ => None,
            })
        });
        match octal.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn octal_escapes_are_decoded_and_other_bytes_kept() {
        for (field, expected) in [
            (b"/a\\040b".as_slice(), b"/a b".as_slice()),
            (b"/a\\134\\012", b"/a\\\n"),
            (b"/plain\xff", b"/plain\xff"),
            (b"/short\\04", b"/short\\04"),
            (b"/\\999", b"/\\999"),
        ] {
            assert_eq!(unescape(field), expected);
        }
    }
}
