//! Which path a traced call was about: read from the memory of the process and followed to where it leads inside.
//!
//! The process may change its memory at any time, and so the answer is for the person's eyes only; nothing is decided by it.
//! Paths are pinned without being opened, and no link of procfs is followed.

use std::os::fd::{AsRawFd, OwnedFd};

use pinfold_sys::{Errno, trace};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlink};

use super::calls::{Last, Place};

/// Bytes of the longest path that the kernel takes.
const LONGEST: usize = 4096;

/// What the kernel adds to the name of a file that is gone (proc_pid_fd(5)).
const DELETED: &[u8] = b" (deleted)";

/// Folders that are tried above a path that is not there; what is deeper is taken as written.
const DEEPEST: usize = 64;

/// The absolute path that `place` of a call with `arguments` names, as far as it can be told.
pub(super) fn locate(pid: i32, place: Place, arguments: &[u64; 6], last: Last) -> Option<Vec<u8>> {
    match place {
        Place::Path(at) => {
            let path = trace::read_string(pid, arguments[at], LONGEST)?;
            follow(pid, None, &path, last)
        }
        Place::At(folder, at) => {
            let folder = descriptor(arguments[folder]);
            if arguments[at] == 0 {
                return link_of(pid, folder?);
            }
            let path = trace::read_string(pid, arguments[at], LONGEST)?;
            if path.is_empty() {
                return link_of(pid, folder?);
            }
            follow(pid, folder, &path, last)
        }
        Place::Descriptor(at) => link_of(pid, descriptor(arguments[at])?),
        Place::Address(at, len) => {
            let path = unix_path(&address(pid, arguments[at], arguments[len])?)?;
            follow(pid, None, &path, last)
        }
    }
}

/// A descriptor argument; none for the working directory (`AT_FDCWD`). Only its low 32 bits count.
fn descriptor(argument: u64) -> Option<u32> {
    let word = u32::try_from(argument & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (word.cast_signed() >= 0).then_some(word)
}

fn address(pid: i32, at: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0_u8; usize::try_from(len & u64::from(u32::MAX)).ok()?.min(128)];
    let read = trace::read_memory(pid, at, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

/// The path of a Unix socket address; none for other families and for abstract names (unix(7)).
fn unix_path(address: &[u8]) -> Option<Vec<u8>> {
    let (family, path) = address.split_first_chunk::<2>()?;
    if i32::from(u16::from_ne_bytes(*family)) != libc::AF_UNIX {
        return None;
    }
    let path = path.split(|byte| *byte == 0).next()?;
    (!path.is_empty()).then(|| path.to_vec())
}

/// What a descriptor of the process was opened at.
fn link_of(pid: i32, descriptor: u32) -> Option<Vec<u8>> {
    absolute(readlink(format!("/proc/{pid}/fd/{descriptor}"), Vec::new()))
}

/// A link's text, if it is a path and not such a thing as `socket:[1]`.
fn absolute(link: Result<std::ffi::CString, Errno>) -> Option<Vec<u8>> {
    link.ok()
        .map(std::ffi::CString::into_bytes)
        .filter(|path| path.starts_with(b"/"))
}

/// Follows a path from a folder of the process as far as it exists; what does not exist is added as written.
fn follow(pid: i32, folder: Option<u32>, path: &[u8], last: Last) -> Option<Vec<u8>> {
    let own = its_own(pid, path);
    let path = own.as_slice();
    let base = match (path.first()?, folder) {
        (b'/', _) => open_base("/")?,
        (_, None) => open_base(&format!("/proc/{pid}/cwd"))?,
        (_, Some(folder)) => open_base(&format!("/proc/{pid}/fd/{folder}"))?,
    };
    // Longest first: where the path, or the folder it is in, leads.
    let mut ends: Vec<usize> = Vec::new();
    if last == Last::Followed {
        ends.push(path.len());
    }
    let trimmed = path.len() - path.iter().rev().take_while(|byte| **byte == b'/').count();
    ends.extend((1..trimmed).rev().filter(|at| path[*at] == b'/').take(DEEPEST));
    for end in ends {
        if let Some(found) = resolved(&base, &path[..end]) {
            return Some(joined(found, &path[end..]));
        }
    }
    let start = if path.starts_with(b"/") {
        b"/".to_vec()
    } else {
        link_to(&base)?
    };
    Some(joined(start, path))
}

/// Paths of the process's own entry in procfs, with its number in place of `self`.
fn its_own(pid: i32, path: &[u8]) -> Vec<u8> {
    for own in [b"/proc/self".as_slice(), b"/proc/thread-self"] {
        if let Some(rest) = path.strip_prefix(own)
            && (rest.is_empty() || rest.starts_with(b"/"))
        {
            return [format!("/proc/{pid}").as_bytes(), rest].concat();
        }
    }
    path.to_vec()
}

fn open_base(path: &str) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn resolved(base: &OwnedFd, path: &[u8]) -> Option<Vec<u8>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(base, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).ok()?;
    let mut link = link_to(&found)?;
    // What hides a file has no name of its own any more, and the kernel says so.
    if link.ends_with(DELETED) && rustix::fs::fstat(&found).is_ok_and(|stat| stat.st_nlink == 0) {
        link.truncate(link.len() - DELETED.len());
    }
    Some(link)
}

fn link_to(descriptor: &OwnedFd) -> Option<Vec<u8>> {
    absolute(readlink(
        format!("/proc/self/fd/{}", descriptor.as_raw_fd()),
        Vec::new(),
    ))
}

/// `rest` below `start`, with `.`, `..` and double slashes taken out.
fn joined(start: Vec<u8>, rest: &[u8]) -> Vec<u8> {
    let mut path = start;
    for name in rest.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => {
                let parent = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                path.truncate(parent.max(1));
            }
            name => {
                if path.last() != Some(&b'/') {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_added_by_component() {
        for (start, rest, expected) in [
            ("/", "/a/b", "/a/b"),
            ("/w", "a//./b", "/w/a/b"),
            ("/w/x", "../b", "/w/b"),
            ("/", "../..", "/"),
            ("/w", "", "/w"),
        ] {
            let path = joined(start.as_bytes().to_vec(), rest.as_bytes());
            assert_eq!(path, expected.as_bytes(), "{start} {rest}");
        }
    }

    #[test]
    fn only_unix_addresses_with_a_name_in_the_file_system_are_paths() {
        let unix = |rest: &[u8]| [&1_u16.to_ne_bytes(), rest].concat();
        assert_eq!(unix_path(&unix(b"/run/x.sock\0junk")), Some(b"/run/x.sock".to_vec()));
        assert_eq!(unix_path(&unix(b"\0abstract")), None);
        assert_eq!(unix_path(&unix(b"")), None);
        assert_eq!(unix_path(&[2, 0, b'/', b'a']), None);
        assert_eq!(unix_path(&[1]), None);
    }

    #[test]
    fn a_path_is_followed_through_links_to_where_it_leads() {
        let folder = std::env::temp_dir().join(format!("pinfold-locate-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real")).unwrap();
        let _ = std::os::unix::fs::symlink("real", folder.join("link"));
        let folder = std::fs::canonicalize(&folder).unwrap();
        let (pid, bytes) = (std::process::id().cast_signed(), |name: &str| {
            folder.join(name).into_os_string().into_encoded_bytes()
        });
        let follow = |name: &str, last| follow(pid, None, &bytes(name), last);
        assert_eq!(follow("link", Last::Followed), Some(bytes("real")));
        assert_eq!(follow("link", Last::Itself), Some(bytes("link")));
        assert_eq!(follow("link/absent", Last::Followed), Some(bytes("real/absent")));
        assert_eq!(follow("link/no/such", Last::Itself), Some(bytes("real/no/such")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
