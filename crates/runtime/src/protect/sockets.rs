//! Unix sockets of the host in folders that a sandbox may read.
//!
//! A read-only mount does not keep a command from connecting, and what listens there is a program of the host's. The write
//! roots are searched by the scan itself.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::node;

/// So many names are looked at in all the folders together.
const MOST_NAMES: u32 = 100_000;

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    pub paths: Vec<PathBuf>,
    /// Whether every folder was looked into, down to the depth.
    pub complete: bool,
}

/// Searches folders for sockets, down to `depth` levels below each; other mounts below them are left alone.
#[must_use]
pub fn sockets<'a>(folders: impl IntoIterator<Item = &'a Path>, depth: u8) -> Sockets {
    let mut found = Sockets {
        paths: Vec::new(),
        complete: true,
    };
    let mut left = MOST_NAMES;
    for root in folders {
        let Ok(opened) = node::open_folder(rustix::fs::CWD, root) else {
            continue;
        };
        let mut ahead: VecDeque<(PathBuf, u8)> = VecDeque::from([(PathBuf::new(), 0)]);
        while let Some((below, level)) = ahead.pop_front() {
            let Ok(folder) = node::open_folder_beneath(&opened, &below) else {
                continue;
            };
            let listed = node::list(&folder, |name, kind, _| {
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                let name = OsStr::from_bytes(name);
                match kind {
                    FileType::Socket => found.paths.push(root.join(&below).join(name)),
                    FileType::Directory if level < depth => ahead.push_back((below.join(name), level + 1)),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            if matches!(listed, Ok(ControlFlow::Break(()))) {
                found.complete = false;
                return found;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_are_found_down_to_the_depth_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let places = ["s", "a/s", "a/b/s"].map(|name| folder.path().join(name));
        let _listening = places.each_ref().map(|place| UnixListener::bind(place).unwrap());
        assert_eq!(sockets([folder.path()], 1).paths, places[..2]);
        let all = sockets([folder.path()], 2);
        assert_eq!(all.paths, places);
        assert!(all.complete);
    }
}
