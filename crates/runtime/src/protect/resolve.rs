//! Where a path leads, one component at a time, with every link on the way.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::mounts::RemoteMounts;

/// As the kernel counts (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Absolute and without links; of a missing target, where it would be.
    pub(super) path: PathBuf,
    /// The type of what is there; none if there is nothing.
    pub(super) kind: Option<FileType>,
    /// The links passed on the way, each at its own canonical place.
    pub(super) links: Vec<PathBuf>,
}

/// Why a path was not followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unresolved {
    #[error("it is a cycle of links")]
    Cycle,
    #[error("it leads to a remote or automounted file system, which is not touched unasked")]
    Remote,
    #[error("it cannot be looked at ({0})")]
    Refused(Errno),
}

/// Follows an absolute path.
pub(super) fn resolve(path: &Path, remote: &RemoteMounts) -> Result<Resolved, Unresolved> {
    let mut ahead: VecDeque<OsString> = components(path).collect();
    let mut here = PathBuf::from("/");
    let mut kind = Some(FileType::Directory);
    let mut links = Vec::new();
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            here.pop();
            kind = Some(FileType::Directory);
            continue;
        }
        here.push(&name);
        if kind != Some(FileType::Directory) {
            kind = None;
            continue;
        }
        if remote.has(&here) {
            return Err(Unresolved::Remote);
        }
        kind = match rustix::fs::lstat(&here) {
            Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(errno) => return Err(Unresolved::Refused(errno)),
        };
        if kind == Some(FileType::Symlink) {
            if links.len() == MOST_LINKS {
                return Err(Unresolved::Cycle);
            }
            let target = rustix::fs::readlink(&here, Vec::new()).map_err(Unresolved::Refused)?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            links.push(here.clone());
            if target.is_absolute() {
                here = PathBuf::from("/");
            } else {
                here.pop();
            }
            kind = Some(FileType::Directory);
            for name in components(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(name);
            }
        }
    }
    Ok(Resolved {
        path: here,
        kind,
        links,
    })
}

/// The names of a path without `.` and the root; `..` is kept, since what it means depends on the links before it.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| OsStr::from_bytes(name).to_owned())
}
