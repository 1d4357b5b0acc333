//! Builds the sandbox's view of the file system from the plan's steps, then makes it the root.
//!
//! Sources are opened from the host's root without following any link, targets beneath the new root likewise, and both stay
//! pinned by descriptor from there on: what was looked at is what is mounted.

mod mounts;
mod procfs;

use std::os::fd::{AsFd, OwnedFd};

use pinfold_model::plan::{Access, Node, Plan, Step};
use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::Errno;
use pinfold_sys::mount::{Extent, attribute, set_attributes};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, symlinkat, unlinkat};
use rustix::mount::{MountPropagationFlags, UnmountFlags};

use crate::failure::{During, shown};

/// Names in the new root that exist only while it is built.
const MASK_FILE: &str = ".mask-file";
const MASK_DIR: &str = ".mask-dir";
const SCRATCH: &str = ".scratch";

/// What hidden paths are covered with: an empty file and an empty folder without a name.
pub(crate) struct Masks {
    file: OwnedFd,
    dir: OwnedFd,
}

impl Masks {
    /// Hides a file or folder of the finished view.
    pub(crate) fn hide(&self, path: rustix::fd::BorrowedFd<'_>, node: Node) -> Result<(), Errno> {
        let mask = if node == Node::Dir { &self.dir } else { &self.file };
        mounts::bind_onto(mask.as_fd(), path, Access::ReadOnly)
    }
}

/// Builds the view and moves into it. Afterwards nothing of the old root is reachable.
pub(crate) fn enter(plan: &Plan) -> Result<Masks, Failure> {
    // Modes are meant as they stand in the plan; the command gets the caller's mask back.
    let mask = rustix::process::umask(Mode::empty());
    let builder = Builder::new(plan.scaffold.as_slice())?;
    for step in &plan.view {
        builder.carry_out(step)?;
    }
    let masks = builder.finish()?;
    rustix::process::umask(mask);
    Ok(masks)
}

/// The new root while it is put together.
struct Builder {
    host: OwnedFd,
    root: OwnedFd,
}

impl Builder {
    fn new(scaffold: &[u8]) -> Result<Self, Failure> {
        rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
            .during(Layer::Mounts, || "make mount propagation private".to_owned())?;
        let host = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .during(Layer::Mounts, || "open the host's root".to_owned())?;
        let step = || "mount the new root".to_owned();
        let tmpfs = mounts::tmpfs(0o755, 16 << 20, 65_536).during(Layer::Mounts, step)?;
        let at = rustix::fs::open(
            scaffold,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .during(Layer::Mounts, step)?;
        mounts::attach(tmpfs.as_fd(), at.as_fd()).during(Layer::Mounts, step)?;
        let root = rustix::fs::open(
            scaffold,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .during(Layer::Mounts, step)?;
        let builder = Self { host, root };
        builder
            .make_masks()
            .during(Layer::Mounts, || "make the masks for hidden paths".to_owned())?;
        Ok(builder)
    }

    fn make_masks(&self) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, MASK_FILE, flags, Mode::empty())?;
        mkdirat(&self.root, MASK_DIR, Mode::from_raw_mode(0o555))
    }

    fn carry_out(&self, step: &Step) -> Result<(), Failure> {
        let layer = if matches!(step, Step::Proc { .. }) {
            Layer::Proc
        } else {
            Layer::Mounts
        };
        self.try_step(step).during(layer, || describe(step))
    }

    fn try_step(&self, step: &Step) -> Result<(), Errno> {
        match step {
            Step::Dir { path, mode } => self.make_dir(path, *mode),
            Step::File { path, mode, content } => self.put_file(path, *mode, content),
            Step::EmptyFile { path } => self.make_empty_file(path),
            Step::Symlink { path, target } => {
                let (parent, name) = self.parent(path)?;
                symlinkat(target.as_slice(), parent, name)
            }
            Step::Tmpfs {
                path,
                mode,
                size,
                inodes,
            } => mounts::attach(
                mounts::tmpfs(*mode, *size, *inodes)?.as_fd(),
                self.locate(path)?.as_fd(),
            ),
            Step::Bind {
                source,
                target,
                access,
                node,
            } => self.bind(
                source_of(self.host.as_fd(), source, *node)?.as_fd(),
                target,
                *access,
                *node,
            ),
            Step::Rebind {
                source,
                target,
                access,
                node,
            } => self.bind(
                source_of(self.root.as_fd(), source, *node)?.as_fd(),
                target,
                *access,
                *node,
            ),
            Step::Mask { target, node } => self.mask(target, *node),
            Step::Overlay {
                lower,
                upper,
                work,
                target,
            } => {
                let overlay = mounts::overlay(lower, upper, work)?;
                mounts::attach(overlay.as_fd(), self.locate(target)?.as_fd())
            }
            Step::Proc { path } => procfs::mount(self.locate(path)?.as_fd()),
            Step::Devpts { path } => {
                let devpts = mounts::new_filesystem(
                    "devpts",
                    &[("mode", "0620"), ("ptmxmode", "0666")],
                    &["newinstance"],
                    attribute::NO_SUID | attribute::NO_EXEC,
                )?;
                mounts::attach(devpts.as_fd(), self.locate(path)?.as_fd())
            }
            Step::Device { source, target } => {
                let source = source_of(self.host.as_fd(), source, Node::File)?;
                let clone = mounts::clone_tree(source.as_fd())?;
                set_attributes(
                    clone.as_fd(),
                    Extent::ThisMount,
                    // Read-only keeps the node's mode and times; what is written to the device passes all the same.
                    attribute::NO_SUID | attribute::NO_EXEC | attribute::READ_ONLY,
                )?;
                mounts::attach(clone.as_fd(), self.locate(target)?.as_fd())
            }
            Step::Seal { path } => set_attributes(self.locate(path)?.as_fd(), Extent::ThisMount, attribute::READ_ONLY),
        }
    }

    fn bind(&self, source: rustix::fd::BorrowedFd<'_>, target: &[u8], access: Access, node: Node) -> Result<(), Errno> {
        let target = locate_in(self.root.as_fd(), target, node)?;
        mounts::bind_onto(source, target.as_fd(), access)
    }

    fn mask(&self, target: &[u8], node: Node) -> Result<(), Errno> {
        let name = if node == Node::Dir { MASK_DIR } else { MASK_FILE };
        let mask = source_of(self.root.as_fd(), name.as_bytes(), node)?;
        let target = locate_in(self.root.as_fd(), target, node)?;
        mounts::bind_onto(mask.as_fd(), target.as_fd(), Access::ReadOnly)
    }

    /// Puts generated content at a path. Where something is there already (a file of a read-only system folder), the
    /// content covers it; the file behind the cover has no name any more.
    fn put_file(&self, path: &[u8], mode: u32, content: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let existing = match self.locate(path) {
            Ok(existing) => existing,
            Err(Errno::NOENT) => {
                let (parent, name) = self.parent(path)?;
                let file = rustix::fs::openat(&parent, name, flags, mode)?;
                return write_all(&file, content);
            }
            Err(error) => return Err(error),
        };
        let file = rustix::fs::openat(&self.root, SCRATCH, flags, mode)?;
        write_all(&file, content)?;
        let source = source_of(self.root.as_fd(), SCRATCH.as_bytes(), Node::File)?;
        mounts::bind_onto(source.as_fd(), existing.as_fd(), Access::ReadOnly)?;
        unlinkat(&self.root, SCRATCH, AtFlags::empty())
    }

    /// Makes a mount point for a file, and its missing parents.
    fn make_empty_file(&self, path: &[u8]) -> Result<(), Errno> {
        if self.locate(path).is_ok() {
            return Ok(());
        }
        let (parent, name) = split(path);
        self.make_dir(parent, 0o755)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.locate(parent)?, name, flags, Mode::empty()).map(drop)
    }

    /// Makes a folder and its missing parents beneath the new root.
    fn make_dir(&self, path: &[u8], mode: u32) -> Result<(), Errno> {
        if path.iter().all(|byte| *byte == b'/') {
            return Ok(());
        }
        let (parent_path, name) = split(path);
        let parent = match self.locate(parent_path) {
            Err(Errno::NOENT) => {
                self.make_dir(parent_path, 0o755)?;
                self.locate(parent_path)?
            }
            other => other?,
        };
        match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => Ok(()),
            other => other,
        }
    }

    fn parent<'a>(&self, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8]), Errno> {
        let (parent, name) = split(path);
        Ok((self.locate(parent)?, name))
    }

    fn locate(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        locate_in(self.root.as_fd(), path, Node::Dir)
    }

    /// Makes the view the root of this mount namespace and lets go of the old one.
    fn finish(self) -> Result<Masks, Failure> {
        let step = || "move into the new root".to_owned();
        let masks = Masks {
            file: source_of(self.root.as_fd(), MASK_FILE.as_bytes(), Node::File).during(Layer::Mounts, step)?,
            dir: source_of(self.root.as_fd(), MASK_DIR.as_bytes(), Node::Dir).during(Layer::Mounts, step)?,
        };
        unlinkat(&self.root, MASK_FILE, AtFlags::empty()).during(Layer::Mounts, step)?;
        unlinkat(&self.root, MASK_DIR, AtFlags::REMOVEDIR).during(Layer::Mounts, step)?;
        set_attributes(self.root.as_fd(), Extent::ThisMount, attribute::READ_ONLY).during(Layer::Mounts, step)?;
        rustix::process::fchdir(&self.root).during(Layer::Mounts, step)?;
        // The old root comes to lie on top of the new one and is taken off (pivot_root(2), notes).
        rustix::process::pivot_root(".", ".").during(Layer::Mounts, step)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).during(Layer::Mounts, step)?;
        rustix::process::chdir("/").during(Layer::Mounts, step)?;
        Ok(masks)
    }
}

/// A pinned source beneath `base`; no component may be a link.
fn source_of(base: rustix::fd::BorrowedFd<'_>, path: &[u8], node: Node) -> Result<OwnedFd, Errno> {
    locate_in(base, path, node)
}

pub(crate) fn locate_in(base: rustix::fd::BorrowedFd<'_>, path: &[u8], node: Node) -> Result<OwnedFd, Errno> {
    let relative = path.strip_prefix(b"/").unwrap_or(path);
    let relative = if relative.is_empty() { b".".as_slice() } else { relative };
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if node == Node::Symlink {
        flags |= OFlags::NOFOLLOW;
    }
    openat2(
        base,
        relative,
        flags,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        let written = rustix::io::write(file, content)?;
        content = &content[written..];
    }
    Ok(())
}

fn describe(step: &Step) -> String {
    match step {
        Step::Dir { path, .. } => format!("make the folder {}", shown(path)),
        Step::File { path, .. } => format!("write {}", shown(path)),
        Step::EmptyFile { path } => format!("make the mount point {}", shown(path)),
        Step::Symlink { path, .. } => format!("make the link {}", shown(path)),
        Step::Tmpfs { path, .. } => format!("mount a tmpfs on {}", shown(path)),
        Step::Bind { source, target, .. } if source == target => format!("mount {}", shown(target)),
        Step::Bind { source, target, .. } | Step::Rebind { source, target, .. } | Step::Device { source, target } => {
            format!("mount {} on {}", shown(source), shown(target))
        }
        Step::Mask { target, .. } => format!("hide {}", shown(target)),
        Step::Overlay {
            lower, upper, target, ..
        } => {
            format!(
                "mount {} with its private layer {} on {}",
                shown(lower),
                shown(upper),
                shown(target)
            )
        }
        Step::Proc { path } => format!("mount a new procfs on {}", shown(path)),
        Step::Devpts { path } => format!("mount a new devpts on {}", shown(path)),
        Step::Seal { path } => format!("make {} read-only", shown(path)),
    }
}

/// Covers a file or folder of the finished view with a read-only clone of itself.
pub(crate) fn cover(path: rustix::fd::BorrowedFd<'_>) -> Result<(), Errno> {
    mounts::bind_onto(path, path, Access::ReadOnly)
}
