//! Where the path of a rule leads.
//!
//! Nothing is followed by the kernel: every look opens a path that must hold no links, so what is found at the end is what the
//! path names, and a link on the way is read from its own descriptor.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat};
use rustix::io::Errno;

use super::mounts::Mounts;

/// As the kernel counts (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Bytes of the longest name that a file system takes.
const LONGEST_NAME: usize = 255;
pub(super) const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landing {
    /// Absolute and without links; of a missing target, where it would be.
    pub(super) path: PathBuf,
    pub(super) end: End,
    /// The links passed on the way, each at its own place.
    pub(super) links: Vec<PathBuf>,
    /// The path itself is a link, not only something on its way.
    pub(super) is_link: bool,
    /// A link leads through something missing and back (`missing/../x`): nothing can be opened by this path now, but could be
    /// as soon as that something is there.
    pub(super) broken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Dir,
    File,
    CharDevice,
    Missing,
    /// `nearest` is the folder above that can be looked at, or the mount that does not answer.
    Unreachable {
        nearest: PathBuf,
        why: Unreachable,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreachable {
    #[error("{}", std::io::Error::from(*.0))]
    Refused(Errno),
    #[error("its file system does not answer")]
    Silent,
}

/// Why nobody can say where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    /// The last of too many links.
    Cycle { link: PathBuf },
    /// A link in the process file system, which leads elsewhere for each process.
    PerProcess { link: PathBuf },
    /// The machine is out of something, or the kernel too old.
    System { errno: Errno },
}

/// What is at a path that holds no links but possibly is one.
#[derive(Clone, Debug)]
enum Look {
    Is(FileType),
    Link(PathBuf),
    Nothing,
    CrossesLink,
    Refused(Errno),
    Silent(PathBuf),
}

/// Follows paths, and remembers what it saw where links had to be followed.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) mounts: Mounts,
    /// By bytes: hashing by component costs as much as the look.
    seen: HashMap<OsString, Look>,
}

impl Follower {
    pub(super) fn new(mounts: Mounts) -> Self {
        Self {
            mounts,
            seen: HashMap::new(),
        }
    }

    /// Follows an absolute path without `.` and `..`.
    pub(super) fn follow(&mut self, path: &Path) -> Result<Landing, Astray> {
        let end = match self.look(path)? {
            Look::Is(kind) => End::of(kind),
            Look::Nothing => End::Missing,
            Look::Link(_) | Look::CrossesLink | Look::Refused(_) | Look::Silent(_) => return self.walk(path),
        };
        Ok(Landing {
            path: path.to_path_buf(),
            end,
            links: Vec::new(),
            is_link: false,
            broken: false,
        })
    }

    /// One name at a time.
    fn walk(&mut self, path: &Path) -> Result<Landing, Astray> {
        let mut ahead: VecDeque<OsString> = names(path).collect();
        let mut here = PathBuf::from("/");
        let mut kind = Some(FileType::Directory);
        let mut links = Vec::new();
        let (mut is_link, mut broken) = (false, false);
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                broken |= kind != Some(FileType::Directory);
                here.pop();
                kind = Some(FileType::Directory);
                continue;
            }
            here.push(&name);
            if kind != Some(FileType::Directory) {
                kind = None;
                continue;
            }
            let unreachable = |nearest: &Path, why| End::Unreachable {
                nearest: nearest.to_path_buf(),
                why,
            };
            let above = here.parent().unwrap_or(&here);
            let end = match self.remembered(&here)? {
                Look::Is(found) => {
                    kind = Some(found);
                    continue;
                }
                Look::Nothing => {
                    kind = None;
                    continue;
                }
                Look::Link(target) => {
                    if here.starts_with("/proc") {
                        return Err(Astray::PerProcess { link: here });
                    }
                    if links.len() == MOST_LINKS {
                        return Err(Astray::Cycle { link: here });
                    }
                    links.push(here.clone());
                    is_link |= ahead.is_empty();
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    } else {
                        here.pop();
                    }
                    for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                        ahead.push_front(name);
                    }
                    continue;
                }
                // The folders above were none a moment ago: somebody is changing them right now.
                Look::CrossesLink => unreachable(above, Unreachable::Refused(Errno::LOOP)),
                Look::Refused(errno) => unreachable(above, Unreachable::Refused(errno)),
                Look::Silent(mount) => unreachable(&mount, Unreachable::Silent),
            };
            return Ok(Landing {
                path: here,
                end,
                links,
                is_link,
                broken,
            });
        }
        let end = kind.map_or(End::Missing, End::of);
        Ok(Landing {
            path: here,
            end,
            links,
            is_link,
            broken,
        })
    }

    fn remembered(&mut self, path: &Path) -> Result<Look, Astray> {
        if let Some(look) = self.seen.get(path.as_os_str()) {
            return Ok(look.clone());
        }
        let look = self.look(path)?;
        self.seen.insert(path.as_os_str().to_owned(), look.clone());
        Ok(look)
    }

    fn look(&mut self, path: &Path) -> Result<Look, Astray> {
        if let Some(mount) = self.mounts.silent(path, |path| drop(pin(path))) {
            return Ok(Look::Silent(mount));
        }
        let seen = pin(path).and_then(|pinned| {
            let kind = FileType::from_raw_mode(fstat(&pinned)?.st_mode);
            if kind == FileType::Symlink {
                let target = readlinkat(&pinned, "", Vec::new())?;
                return Ok(Look::Link(PathBuf::from(OsString::from_vec(target.into_bytes()))));
            }
            Ok(Look::Is(kind))
        });
        match seen {
            Ok(look) => Ok(look),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Look::Nothing),
            Err(Errno::LOOP) => Ok(Look::CrossesLink),
            Err(Errno::NAMETOOLONG) if path.iter().any(|name| name.len() > LONGEST_NAME) => Ok(Look::Nothing),
            Err(errno @ (Errno::NOSYS | Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(Astray::System { errno }),
            Err(errno) => Ok(Look::Refused(errno)),
        }
    }
}

impl End {
    pub(super) fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Dir,
            FileType::CharacterDevice => Self::CharDevice,
            _ => Self::File,
        }
    }
}

/// Opens what is at a path for looking only; a link at its end is opened itself, one before it is an error.
fn pin(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| openat2(CWD, path, flags, Mode::empty(), NO_LINKS))
}

/// The names of a path without `.` and the root; `..` is kept, since what it means depends on the links before it.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| OsStr::from_bytes(name).to_owned())
}
