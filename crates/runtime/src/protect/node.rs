//! Looking at files and folders that a sandbox may have made: no link is followed, nothing blocks, no time stamp changes.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const PLAIN: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// Opens a folder by a path without links; an absolute path ignores `base`.
pub(super) fn open_folder(base: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    quietly(|more| openat2(&base, path, DIRECTORY | more, Mode::empty(), PLAIN))
}

/// Opens a folder below `base`, on the same mount; `XDEV` says that another mount begins on the way.
pub(super) fn open_folder_beneath(base: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = PLAIN | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
    quietly(|more| openat2(&base, path, DIRECTORY | more, Mode::empty(), resolve))
}

/// Reads a regular file of at most `limit` bytes; none if it is anything else, or longer.
pub(super) fn read_small(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Errno> {
    // A FIFO must not block the open, and a device must not notice it: the type is checked on the inode first.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let stat = rustix::fs::lstat(path)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let file = quietly(|more| openat2(rustix::fs::CWD, path, flags | more, Mode::empty(), PLAIN))?;
    let stat = rustix::fs::fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if !is_file || size > limit {
        return Ok(None);
    }
    // A file that grows meanwhile is read as far as it was long.
    let mut text = vec![0; size];
    let mut filled = 0;
    while filled < text.len() {
        match rustix::io::read(&file, &mut text[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    text.truncate(filled);
    Ok(Some(text))
}

/// Calls `each` with name, type and inode number of every entry but `.` and `..`.
pub(super) fn list(
    folder: impl AsFd,
    mut each: impl FnMut(&[u8], FileType, u64) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Errno> {
    let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 16 * 1024];
    let folder = folder.as_fd();
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match kind_at(folder, name) {
                Ok(kind) => kind,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            known => known,
        };
        if each(name.to_bytes(), kind, entry.ino()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The type of a name, of the link itself if it is one.
pub(super) fn kind_at(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Reading must not move the access time, which the kernel grants to the owner only.
fn quietly(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(OFlags::NOATIME) {
        Err(Errno::PERM) => open(OFlags::empty()),
        opened => opened,
    }
}
