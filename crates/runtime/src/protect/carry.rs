//! Removing a hostile tree, with a bounded copy of it to another file system.
//!
//! Each name is taken away before, or as soon as, its content has been opened, so that the protected path is gone even
//! while a large file is still being copied. Nothing is followed, and every open happens below a descriptor.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::node;
use super::quarantine::make_writable;

const MOST_BYTES: u64 = 256 * 1024 * 1024;
const MOST_COPIED: u32 = 10_000;
/// So many names are removed in one go; a command that makes new ones as fast must not hold the host.
const MOST_REMOVED: u32 = 500_000;
/// Deeper folders are moved up within the tree, so that descriptors and stack stay bounded.
const DEEPEST: usize = 64;
/// How often a folder is looked at again because something new is in it.
const MOST_PASSES: u32 = 10_000;

/// How much of a tree was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    Whole,
    TooLarge,
    /// There was nothing that could have been copied.
    Nothing,
}

/// Removes a name, and copies it to `to` if given.
pub(super) fn carry(folder: &OwnedFd, name: &OsStr, to: Option<(BorrowedFd<'_>, &OsStr)>) -> Result<Carried, Errno> {
    let mut load = Load {
        bytes: MOST_BYTES,
        copied: MOST_COPIED,
        removed: MOST_REMOVED,
        too_large: false,
        kept: false,
        moved_up: 0,
    };
    let top = node::kind_at(folder, name)?;
    load.take(folder, name, top, to, None, 0)?;
    Ok(match load {
        Load { too_large: true, .. } => Carried::TooLarge,
        Load { kept: true, .. } => Carried::Whole,
        _ => Carried::Nothing,
    })
}

struct Load {
    bytes: u64,
    copied: u32,
    removed: u32,
    too_large: bool,
    kept: bool,
    moved_up: u32,
}

impl Load {
    fn take(
        &mut self,
        folder: &OwnedFd,
        name: &OsStr,
        kind: FileType,
        to: Option<(BorrowedFd<'_>, &OsStr)>,
        top: Option<&OwnedFd>,
        level: usize,
    ) -> Result<(), Errno> {
        self.removed = self.removed.checked_sub(1).ok_or(Errno::BUSY)?;
        let to = match self.copied.checked_sub(1) {
            Some(left) if to.is_some() => {
                self.copied = left;
                to
            }
            _ => {
                self.too_large |= to.is_some();
                None
            }
        };
        match kind {
            FileType::Directory => self.take_folder(folder, name, to, top, level),
            FileType::RegularFile => self.take_file(folder, name, to),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new());
                rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
                if let (Ok(target), Some((kept, kept_name))) = (target, to) {
                    self.kept |= rustix::fs::symlinkat(target, kept, kept_name).is_ok();
                }
                Ok(())
            }
            _ => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
        }
    }

    fn take_file(&mut self, folder: &OwnedFd, name: &OsStr, to: Option<(BorrowedFd<'_>, &OsStr)>) -> Result<(), Errno> {
        let open = || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::openat(folder, name, flags, Mode::empty())
        };
        let file = match (to, open()) {
            (None, _) => None,
            (Some(_), Err(Errno::ACCESS)) => make_writable(folder, name).and_then(|()| open()).ok(),
            (Some(_), opened) => opened.ok(),
        };
        rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
        let (Some(file), Some((kept, kept_name))) = (file, to) else {
            return Ok(());
        };
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        if u64::try_from(stat.st_size).map_or(true, |size| size > self.bytes) {
            self.too_large = true;
            return Ok(());
        }
        // The name is gone already, so a copy that fails leaves less to keep, and nothing to undo.
        match self.copy(&file, kept, kept_name) {
            Ok(()) => self.kept = true,
            Err(_) => self.too_large = true,
        }
        Ok(())
    }

    fn copy(&mut self, file: &OwnedFd, kept: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = rustix::fs::openat(kept, name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match rustix::io::read(file, &mut buffer) {
                Ok(0) => return Ok(()),
                Err(Errno::INTR) => continue,
                read => read?,
            };
            // Somebody who holds the file open may make it grow.
            self.bytes = self.bytes.checked_sub(count as u64).ok_or(Errno::FBIG)?;
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                match rustix::io::write(&copy, rest) {
                    Err(Errno::INTR) => {}
                    written => rest = &rest[written?..],
                }
            }
        }
    }

    fn take_folder(
        &mut self,
        folder: &OwnedFd,
        name: &OsStr,
        to: Option<(BorrowedFd<'_>, &OsStr)>,
        top: Option<&OwnedFd>,
        level: usize,
    ) -> Result<(), Errno> {
        if let (Some(top), true) = (top, level > DEEPEST) {
            self.too_large |= to.is_some();
            self.moved_up += 1;
            let _ = make_writable(folder, name);
            return rustix::fs::renameat(folder, name, top, format!("{}.{}", std::process::id(), self.moved_up));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = rustix::fs::openat(folder, name, flags, Mode::empty());
        let unwritable = |folder: &OwnedFd| {
            rustix::fs::fstat(folder).is_ok_and(|stat| !Mode::from_raw_mode(stat.st_mode).contains(Mode::RWXU))
        };
        if opened.as_ref().map_or_else(|errno| *errno == Errno::ACCESS, unwritable) {
            make_writable(folder, name)?;
            opened = rustix::fs::openat(folder, name, flags, Mode::empty());
        }
        let opened = opened?;
        let kept = to.and_then(|(kept, kept_name)| {
            rustix::fs::mkdirat(kept, kept_name, Mode::RWXU).ok()?;
            rustix::fs::openat(kept, kept_name, flags, Mode::empty()).ok()
        });
        self.kept |= kept.is_some();
        self.too_large |= kept.is_none() && to.is_some();
        for _ in 0..MOST_PASSES {
            match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                removed => return removed,
            }
            let mut names: Vec<(OsString, FileType)> = Vec::new();
            // A fresh descriptor, so that the listing starts at the beginning.
            let listing = rustix::fs::openat(&opened, ".", flags, Mode::empty())?;
            // The bound is for memory only: the next pass goes on.
            let _ = node::list(&listing, |name, kind, _| {
                names.push((OsStr::from_bytes(name).to_owned(), kind));
                if names.len() == 4096 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            for (inside, kind) in names {
                let to = kept.as_ref().map(|kept| (kept.as_fd(), inside.as_os_str()));
                match self.take(&opened, &inside, kind, to, top.or(Some(&opened)), level + 1) {
                    // It went away, or became something else since the listing: the next pass sees what it is.
                    Err(Errno::NOENT | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP) => {}
                    taken => taken?,
                }
            }
        }
        Err(Errno::BUSY)
    }
}
