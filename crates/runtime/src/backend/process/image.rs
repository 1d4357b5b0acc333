//! The guest's program on its way into a sandbox.
//!
//! It is kept as a file in a folder of the caller's, which no sandbox sees, and executed through a read-only mount: copying a
//! megabyte into memory at every start would take longer than the walls. Where it cannot be kept (a read-only or `noexec`
//! file system, a file that is not what it was) it is copied into a sealed memory file, which is no weaker.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use pinfold_sys::descriptor;
use pinfold_sys::namespace::Program;
use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, StatVfsMountFlags, fstat, fstatvfs, renameat_with};
use rustix::io::Errno;

/// The age at which nobody starts another build's program any more.
const STARTED_LONG_AGO: Duration = Duration::from_secs(60);

/// The guest's program.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub content: &'a [u8],
    /// Names this build of it: a hash of the content.
    pub id: &'a str,
    /// Where it may be kept; none keeps it nowhere. Absolute.
    pub folder: Option<&'a Path>,
}

/// A program that is ready to be executed.
pub(super) enum Ready {
    Kept { path: CString, device: u64, inode: u64 },
    Sealed(OwnedFd),
}

impl Ready {
    pub(super) fn program(&self) -> Program<'_> {
        match self {
            Self::Kept { path, device, inode } => Program::Kept {
                path,
                device: *device,
                inode: *inode,
            },
            Self::Sealed(file) => Program::Sealed(file.as_fd()),
        }
    }
}

impl Image<'_> {
    pub(super) fn make_ready(&self) -> std::io::Result<Ready> {
        if let Some(folder) = self.folder {
            let path = folder.join(self.id);
            let kept = self.find(&path).or_else(|| {
                self.keep(folder, &path).ok()?;
                self.find(&path)
            });
            if let Some(kept) = kept {
                return Ok(kept);
            }
        }
        descriptor::sealed_file("pinfold-guest", self.content).map(Ready::Sealed)
    }

    /// The kept file, if it is ours, whole, executable and writable by nobody else.
    fn find(&self, path: &Path) -> Option<Ready> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        let ours = stat.st_uid == rustix::process::geteuid().as_raw();
        let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_mode & 0o7777 == 0o500;
        let whole = u64::try_from(stat.st_size).ok()? == self.content.len() as u64;
        let executable = !fstatvfs(&file).ok()?.f_flag.contains(StatVfsMountFlags::NOEXEC);
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        (ours && plain && whole && executable).then_some(Ready::Kept {
            path,
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Writes the file beside its place and moves it there, so that it is never seen half, unless another start was faster: a
    /// file that is there may be on its way into a sandbox. Older builds go away.
    fn keep(&self, folder: &Path, path: &Path) -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for entry in std::fs::read_dir(folder)?.flatten() {
            // One that runs stays alive without its name; one that starts does not.
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if entry.path() != path && age > STARTED_LONG_AGO {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let beside = folder.join(format!(".{}-{}", self.id, std::process::id()));
        let write = || {
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o500)
                .open(&beside)?;
            file.write_all(self.content)?;
            file.sync_all()?;
            match renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) if self.find(path).is_some() => std::fs::remove_file(&beside),
                // What is there is no good, or the file system knows no such move.
                Err(_) => std::fs::rename(&beside, path),
            }
        };
        write().inspect_err(|_| {
            let _ = std::fs::remove_file(&beside);
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn image(folder: &Path) -> Image<'_> {
        Image {
            content: b"program",
            id: "0123",
            folder: Some(folder),
        }
    }

    #[test]
    fn a_program_is_kept_at_the_first_start_and_found_at_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("guest");
        for _ in 0..2 {
            assert!(matches!(image(&folder).make_ready().unwrap(), Ready::Kept { .. }));
        }
        assert_eq!(std::fs::read(folder.join("0123")).unwrap(), b"program");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_kept_file_that_somebody_could_have_changed_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0123");
        std::fs::write(&path, b"another").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(image(folder.path()).make_ready().unwrap(), Ready::Kept { .. }));
        assert_eq!(std::fs::read(&path).unwrap(), b"program");
    }

    #[test]
    fn a_link_in_the_place_of_the_kept_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("x"), b"program").unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("x"), folder.path().join("0123")).unwrap();
        assert!(matches!(image(folder.path()).make_ready().unwrap(), Ready::Kept { .. }));
        assert!(!folder.path().join("0123").is_symlink());
    }

    #[test]
    fn a_program_that_cannot_be_kept_is_sealed_in_memory() {
        let nowhere = Image {
            content: b"program",
            id: "0123",
            folder: Some(Path::new("/proc/nowhere")),
        };
        assert!(matches!(nowhere.make_ready().unwrap(), Ready::Sealed(_)));
    }
}
