//! Taking a name out of a folder that a sandbox writes, while the sandbox may still be at it.
//!
//! Only the folder's descriptor and the name are used, and no link is followed: whatever the name is at that moment is what
//! goes away, and nothing else can.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinfold_model::protected::Group;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::carry::{Carried, carry};
use super::node;

/// A protected name that the command made, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    pub path: PathBuf,
    /// The lift of this group would have allowed it.
    pub group: Group,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is kept here, as it was.
    Moved { to: PathBuf },
    /// Files, folders and links are kept here; the quarantine is on another file system, which cannot take the rest.
    Copied { to: PathBuf },
    /// It could not be kept.
    Removed { why: String },
    /// It is still there: the sandbox has to be stopped, or the person told to remove it.
    Stuck { errno: Errno },
}

impl std::fmt::Display for Quarantined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, group, fate } = self;
        write!(f, "The command made {path:?}, which is protected. {} ", group.reason())?;
        match fate {
            Fate::Moved { to } => write!(f, "It was moved to {to:?}. ")?,
            Fate::Copied { to } => write!(f, "It was removed, and a copy is at {to:?}. ")?,
            Fate::Removed { why } => write!(f, "It was removed, since {why}. ")?,
            Fate::Stuck { errno } => write!(f, "It could not be removed ({errno}): remove it by hand. ")?,
        }
        if group.may_be_lifted() {
            write!(f, "hint: lift the group `{}` to allow it.", group.name())
        } else {
            f.write_str("hint: a rule of yours, or Pinfold itself, keeps this name; no group lifts it.")
        }
    }
}

/// Where the names of one sandbox go. The folder is made when the first one comes.
#[derive(Debug)]
pub(super) struct Quarantine {
    path: PathBuf,
    folder: Option<Arc<OwnedFd>>,
    next: u32,
}

impl Quarantine {
    pub(super) fn new(root: &Path, sandbox: &str) -> Self {
        Self {
            path: root.join(escape(sandbox.as_bytes())),
            folder: None,
            next: 1,
        }
    }

    /// Takes a name out of a folder; none if it is not there any more.
    pub(super) fn take(&mut self, folder: &OwnedFd, path: PathBuf, group: Group) -> Option<Quarantined> {
        let name = path.file_name()?.to_owned();
        let mut taken = self.take_name(folder, &name);
        if taken == Err(Errno::NOENT) {
            node::kind_at(folder, &name).ok()?;
            // Then it is the quarantine folder that is gone.
            self.folder = None;
            taken = self.take_name(folder, &name);
        }
        let fate = taken.unwrap_or_else(|errno| Fate::Stuck { errno });
        Some(Quarantined { path, group, fate })
    }

    fn take_name(&mut self, folder: &OwnedFd, name: &OsStr) -> Result<Fate, Errno> {
        match self.move_or_carry(folder, name) {
            // Moving a folder changes its entry `..`, so one without write permission stays where it is, and nothing can be
            // taken out of a folder without it. The owner can always get it back.
            Err(Errno::ACCESS | Errno::PERM) => {
                let _ = make_writable(folder, name);
                let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode);
                let changed = rustix::fs::fchmod(folder, mode | Mode::RWXU);
                let taken = self.move_or_carry(folder, name);
                if changed.is_ok() {
                    let _ = rustix::fs::fchmod(folder, mode);
                }
                taken
            }
            taken => taken,
        }
    }

    fn move_or_carry(&mut self, folder: &OwnedFd, name: &OsStr) -> Result<Fate, Errno> {
        let kept = match self.open() {
            Ok(kept) => kept,
            Err(errno) => {
                carry(folder, name, None)?;
                let why = format!("the quarantine folder {:?} cannot be used ({errno})", self.path);
                return Ok(Fate::Removed { why });
            }
        };
        loop {
            let target = OsString::from(format!("{}-{}", self.next, escape(name.as_bytes())));
            let to = self.path.join(&target);
            let moved = rename(folder, name, kept.as_fd(), &target);
            match moved {
                Ok(()) => {
                    self.next += 1;
                    return Ok(Fate::Moved { to });
                }
                Err(Errno::EXIST) => self.next += 1,
                Err(Errno::XDEV) => {
                    // Known before anything is copied, so that nothing is copied twice.
                    let needed = Access::WRITE_OK | Access::EXEC_OK;
                    rustix::fs::accessat(folder, ".", needed, AtFlags::EACCESS)?;
                    self.next += 1;
                    return Ok(match carry(folder, name, Some((kept.as_fd(), &target)))? {
                        Carried::Whole => Fate::Copied { to },
                        Carried::TooLarge => Fate::Removed {
                            why: format!("it could not be copied to another file system; what could be is at {to:?}"),
                        },
                        Carried::Nothing => Fate::Removed {
                            why: "it is neither a file, a folder nor a link".to_owned(),
                        },
                    });
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    fn open(&mut self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(folder) = &self.folder {
            return Ok(Arc::clone(folder));
        }
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path);
        made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.path, flags, Mode::empty())?;
        if rustix::fs::fstat(&folder)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
        Ok(Arc::clone(self.folder.insert(Arc::new(folder))))
    }
}

fn rename(folder: &OwnedFd, name: &OsStr, kept: BorrowedFd<'_>, target: &OsStr) -> Result<(), Errno> {
    match rustix::fs::renameat_with(folder, name, kept, target, RenameFlags::NOREPLACE) {
        // A file system that does not know the flag; the numbered name in a private folder is free.
        Err(Errno::INVAL) => rustix::fs::renameat(folder, name, kept, target),
        renamed => renamed,
    }
}

/// Gives the owner all rights on a folder, or the right to read on a file; a link is not followed.
pub(super) fn make_writable(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let node = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let mode = match FileType::from_raw_mode(rustix::fs::fstat(&node)?.st_mode) {
        FileType::Directory => Mode::RWXU,
        FileType::RegularFile => Mode::RUSR | Mode::WUSR,
        _ => return Err(Errno::ACCESS),
    };
    // A path descriptor cannot be changed itself, but its link in /proc leads to exactly this inode.
    rustix::fs::chmod(format!("/proc/self/fd/{}", node.as_raw_fd()), mode)
}

/// A file name that shows any bytes in plain letters, short enough to get a number.
fn escape(name: &[u8]) -> String {
    let mut plain = String::new();
    for (at, byte) in name.iter().enumerate() {
        let first_dot = at == 0 && *byte == b'.' && (name == b"." || name == b"..");
        if (byte.is_ascii_alphanumeric() || b"._-".contains(byte)) && !first_dot {
            plain.push(char::from(*byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(plain, "%{byte:02X}");
        }
        if plain.len() > 200 {
            break;
        }
    }
    plain
}
