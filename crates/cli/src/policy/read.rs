//! Reading a policy file that may be anything: a pipe without a writer, a device, a file without end.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use pinfold_model::policy::LARGEST_FILE;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::LoadError;

/// Nothing here waits for another process, becomes a controlling terminal, or reaches a child.
const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Reads a file of the person's own; links are followed. None when it does not exist.
pub(super) fn read_own(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    match openat(CWD, path, OPEN, Mode::empty()) {
        Ok(file) => read_open(file, path).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(read_error(path, error)),
    }
}

/// Reads a file of a hostile folder, without leaving the folder. None when it does not exist.
pub(super) fn read_beneath(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, LoadError> {
    let path = folder.join(name);
    let open_folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, open_folder, Mode::empty()).map_err(|error| read_error(folder, error))?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = match openat2(&folder, name, OPEN, Mode::empty(), resolve) {
        // Before Linux 5.6, and where a container's filter does not know the call: no link at all.
        Err(Errno::NOSYS | Errno::PERM) => openat(&folder, name, OPEN | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    };
    match opened {
        Ok(file) => read_open(file, &path).map(Some),
        Err(Errno::NOENT) if is_link(folder.as_fd(), name) => Err(LoadError::Link {
            path,
            leads: "leads nowhere",
        }),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::XDEV) => Err(LoadError::Link {
            path,
            leads: "leads out of the workspace",
        }),
        Err(Errno::LOOP) => Err(LoadError::Link {
            path,
            leads: "cannot be followed",
        }),
        Err(error) => Err(read_error(&path, error)),
    }
}

fn is_link(folder: std::os::fd::BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

fn read_open(file: OwnedFd, path: &Path) -> Result<Vec<u8>, LoadError> {
    let stat = fstat(&file).map_err(|error| read_error(path, error))?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a folder"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        _ => Some("something else"),
    };
    if let Some(what) = what {
        return Err(LoadError::NotAFile {
            path: path.to_owned(),
            what,
        });
    }
    // The size is asked first for the message; the read is bounded by itself, since a file can grow.
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let too_large = |bytes| LoadError::TooLarge {
        path: path.to_owned(),
        bytes,
    };
    if size > LARGEST_FILE as u64 {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    let read = File::from(file).take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() > LARGEST_FILE {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

fn read_error(path: &Path, error: Errno) -> LoadError {
    match error {
        // What opening a socket, or a device without a driver, says.
        Errno::NXIO => LoadError::NotAFile {
            path: path.to_owned(),
            what: "a socket or a device",
        },
        error => LoadError::Read {
            path: path.to_owned(),
            source: io::Error::from(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn said<T: std::fmt::Debug>(result: Result<T, LoadError>, folder: &Path) -> String {
        result
            .expect_err("refused")
            .to_string()
            .replace(&*folder.to_string_lossy(), "DIR")
    }

    #[test]
    fn what_is_no_plain_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("folder")).expect("a folder");
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        std::fs::write(at("large"), vec![b'#'; LARGEST_FILE + 1]).expect("a file");
        let table = [
            ("folder", "DIR/folder is a folder, and a policy is a plain file"),
            ("pipe", "DIR/pipe is a pipe, and a policy is a plain file"),
            (
                "socket",
                "DIR/socket is a socket or a device, and a policy is a plain file",
            ),
            ("large", "DIR/large has 1048577 bytes, and a policy has at most 1048576"),
        ];
        for (name, message) in table {
            assert_eq!(said(read_own(&at(name)), folder.path()), message);
            assert_eq!(said(read_beneath(folder.path(), name), folder.path()), message);
        }
        assert_eq!(
            said(read_own(Path::new("/dev/zero")), folder.path()),
            "/dev/zero is a device, and a policy is a plain file"
        );
    }

    #[test]
    fn a_link_of_the_workspace_is_followed_inside_it_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = tempfile::NamedTempFile::new().expect("a file");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("real"), "version = 1").expect("a file");
        symlink("real", at("inside")).expect("a link");
        symlink(outside.path(), at("outside")).expect("a link");
        symlink("gone", at("nowhere")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        assert_eq!(
            read_beneath(folder.path(), "inside").expect("reads").as_deref(),
            Some(b"version = 1".as_slice())
        );
        assert_eq!(read_beneath(folder.path(), "absent").expect("reads"), None);
        assert_eq!(
            said(read_beneath(folder.path(), "outside"), folder.path()),
            "DIR/outside is a link that leads out of the workspace"
        );
        assert_eq!(
            said(read_beneath(folder.path(), "nowhere"), folder.path()),
            "DIR/nowhere is a link that leads nowhere"
        );
        assert_eq!(
            said(read_beneath(folder.path(), "loop"), folder.path()),
            "DIR/loop is a link that cannot be followed"
        );
        assert!(read_own(&at("outside")).expect("reads").is_some());
    }
}
