//! What Pinfold keeps on disk for a project: the private home and the private layers over toolchains.
//!
//! ```text
//! <data>/projects/<name>-<hash>/workspace       the workspace's path, for people
//!                               home/           the sandbox's home, shared by the project's sandboxes
//!                               slots/<n>/lock  held by one running sandbox
//!                                         <tree>/{upper,work}
//! ```
//!
//! Two overlays must not share one upper folder, so every running sandbox takes a slot of its own; the first free one is
//! used, and its content lasts. What lies in these folders was written by sandboxes: nothing here follows a link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::plan::Node;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// Slots that are tried before giving up: sandboxes of one project at the same time.
const SLOTS: u32 = 1024;

/// Attempts at one name of the private home before giving up.
const TRIES: usize = 16;

/// The state folder of one project.
#[derive(Debug)]
pub struct Project {
    folder: PathBuf,
}

/// A slot of a project, held for as long as the descriptor is open in any process.
#[derive(Debug)]
pub struct Slot {
    folder: PathBuf,
    pub lock: OwnedFd,
}

impl Project {
    /// Opens, and at the first time makes, the state of the project whose workspace is `workspace` (canonical).
    ///
    /// # Errors
    /// The folder could not be made.
    pub fn open(data: &Path, workspace: &Path) -> io::Result<Self> {
        let hash = Sha256::digest(workspace.as_os_str().as_bytes());
        let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let name: String = workspace
            .file_name()
            .unwrap_or(OsStr::new("root"))
            .to_string_lossy()
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                    c
                } else {
                    '_'
                }
            })
            .take(40)
            .collect();
        let folder = data.join("projects").join(format!("{name}-{short}"));
        let project = Self { folder };
        if !project.home().is_dir() {
            make_private(&project.home())?;
            std::fs::write(project.folder.join("workspace"), workspace.as_os_str().as_bytes())?;
        }
        Ok(project)
    }

    /// The private home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Takes the first free slot.
    ///
    /// # Errors
    /// A slot could not be made, or all are taken.
    pub fn take_slot(&self) -> io::Result<Slot> {
        for number in 0..SLOTS {
            let folder = self.folder.join("slots").join(number.to_string());
            let path = folder.join("lock");
            let open = || {
                rustix::fs::open(
                    &path,
                    OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC,
                    Mode::RUSR | Mode::WUSR,
                )
            };
            let lock = match open() {
                Err(Errno::NOENT) => {
                    make_private(&folder)?;
                    open()?
                }
                other => other?,
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Slot { folder, lock }),
                Err(Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other(format!("all {SLOTS} slots of this project are taken")))
    }

    /// Makes the mount points that the plan needs in the private home. A link or a file that an earlier sandbox put in the
    /// way is renamed aside, never followed.
    ///
    /// # Errors
    /// A point could not be made.
    pub fn make_home_points(&self, points: &[(PathBuf, Node)]) -> io::Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        let home = rustix::fs::open(
            self.home(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        for (path, node) in points {
            make_point(home.as_fd(), path, *node)?;
        }
        Ok(())
    }
}

impl Slot {
    /// The upper and work folder of the layer over `tree`.
    ///
    /// # Errors
    /// They could not be made.
    pub fn layer(&self, tree: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let name: String = tree
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(String::new(), |mut name, byte| {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(*byte)),
                    other => name.push_str(&format!("%{other:02x}")),
                }
                name
            });
        let folder = self.folder.join(name);
        let (upper, work) = (folder.join("upper"), folder.join("work"));
        for folder in [&upper, &work] {
            if !folder.is_dir() {
                make_private(folder)?;
            }
        }
        Ok((upper, work))
    }
}

/// Makes a folder and its missing parents, for the caller alone.
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn make_point(home: rustix::fd::BorrowedFd<'_>, path: &Path, node: Node) -> io::Result<()> {
    let mut folder = home.try_clone_to_owned()?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let last = names.peek().is_none();
        let wants_dir = !last || node == Node::Dir;
        make_name(folder.as_fd(), name, wants_dir)?;
        if !last {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = openat(&folder, name, flags, Mode::empty())?;
        }
    }
    Ok(())
}

/// Another sandbox of the project may be making the same name.
fn make_name(folder: rustix::fd::BorrowedFd<'_>, name: &OsStr, wants_dir: bool) -> io::Result<()> {
    for _ in 0..TRIES {
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) if wants_dir => return Ok(()),
            Ok(FileType::RegularFile) if !wants_dir => return Ok(()),
            Ok(_) => match set_aside(folder, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            },
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let made = if wants_dir {
            mkdirat(folder, name, Mode::from_raw_mode(0o755))
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(folder, name, flags, Mode::from_raw_mode(0o600)).map(drop)
        };
        match made {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::other(
        "another program keeps changing the project's private home",
    ))
}

fn set_aside(folder: rustix::fd::BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    for number in 0..1000 {
        let mut aside = name.to_owned();
        aside.push(format!(".set-aside-{number}"));
        if matches!(statat(folder, &aside, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT)) {
            return Ok(renameat(folder, name, folder, &aside)?);
        }
    }
    Err(io::Error::other("too many files were set aside"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn two_sandboxes_of_one_project_get_different_slots_and_a_freed_one_is_used_again() {
        let data = tempfile::tempdir().unwrap();
        let project = Project::open(data.path(), Path::new("/work/app")).unwrap();
        let first = project.take_slot().unwrap();
        let second = project.take_slot().unwrap();
        assert_ne!(first.folder, second.folder);
        let freed = first.folder.clone();
        drop(first);
        assert_eq!(project.take_slot().unwrap().folder, freed);
    }

    #[test]
    fn sandboxes_that_start_at_once_make_the_same_points() {
        let data = tempfile::tempdir().unwrap();
        let points = [("a/b/c", Node::Dir), ("a/f", Node::File), ("d", Node::Dir)];
        let points = points.map(|(path, node)| (PathBuf::from(path), node));
        for round in 0..50 {
            let workspace = PathBuf::from(format!("/work/{round}"));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let project = Project::open(data.path(), &workspace).unwrap();
                        project.make_home_points(&points).unwrap();
                    });
                }
            });
        }
    }

    #[test]
    fn workspaces_with_the_same_last_name_do_not_share_state() {
        let data = tempfile::tempdir().unwrap();
        let open = |path: &str| Project::open(data.path(), Path::new(path)).unwrap().home();
        assert_ne!(open("/a/app"), open("/b/app"));
        assert_eq!(open("/a/app"), open("/a/app"));
    }

    #[test]
    fn a_link_planted_in_the_private_home_is_set_aside_and_never_followed() {
        let data = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let project = Project::open(data.path(), Path::new("/work/app")).unwrap();
        symlink(outside.path(), project.home().join("code")).unwrap();
        project
            .make_home_points(&[
                (PathBuf::from("code/app"), Node::Dir),
                (PathBuf::from(".gitconfig"), Node::File),
            ])
            .unwrap();
        assert!(project.home().join("code/app").is_dir());
        assert!(!project.home().join("code").is_symlink());
        assert!(project.home().join("code.set-aside-0").is_symlink());
        assert!(project.home().join(".gitconfig").is_file());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
