//! Detached mounts: made, restricted, then attached (open_tree(2), fsopen(2), move_mount(2)).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::plan::Access;
use pinfold_sys::Errno;
use pinfold_sys::mount::{Extent, attribute, set_attributes};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// A recursive clone of what `source` stands on, attached nowhere yet.
pub(super) fn clone_tree(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    open_tree(
        source,
        c"",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH,
    )
}

/// Attaches a detached mount at the file or folder that `target` stands on.
pub(super) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    move_mount(
        mount,
        c"",
        target,
        c"",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
}

/// Clones `source` with its submounts, restricts the whole tree and attaches it on `target`. Attributes that the host's
/// mounts carry stay.
pub(super) fn bind_onto(source: BorrowedFd<'_>, target: BorrowedFd<'_>, access: Access) -> Result<(), Errno> {
    let clone = clone_tree(source)?;
    let mut attributes = attribute::NO_SUID | attribute::NO_DEV;
    if access == Access::ReadOnly {
        attributes |= attribute::READ_ONLY;
    }
    set_attributes(clone.as_fd(), Extent::WholeTree, attributes)?;
    attach(clone.as_fd(), target)
}

/// A new file system of the given kind, attached nowhere yet. `attributes` are those of `pinfold_sys::mount::attribute`.
pub(super) fn new_filesystem(
    kind: &str,
    values: &[(&str, &str)],
    flags: &[&str],
    attributes: u64,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in values {
        fsconfig_set_string(&context, *key, *value)?;
    }
    for flag in flags {
        fsconfig_set_flag(&context, *flag)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::from_bits_retain(u32::try_from(attributes).map_err(|_| Errno::INVAL)?);
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A tmpfs bounded in bytes and inodes.
pub(super) fn tmpfs(mode: u32, size: u64, inodes: u64) -> Result<OwnedFd, Errno> {
    let (mode, size, inodes) = (format!("{mode:o}"), size.to_string(), inodes.to_string());
    new_filesystem(
        "tmpfs",
        &[
            ("mode", mode.as_str()),
            ("size", size.as_str()),
            ("nr_inodes", inodes.as_str()),
        ],
        &[],
        attribute::NO_SUID | attribute::NO_DEV,
    )
}

/// An overlay whose writes land in `upper`. Attributes go to `user.*` names, since a user namespace may set no others.
pub(super) fn overlay(lower: &[u8], upper: &[u8], work: &[u8]) -> Result<OwnedFd, Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let mut escaped = Vec::with_capacity(lower.len());
    for byte in lower {
        // A colon separates layers in this one value.
        if matches!(byte, b':' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    fsconfig_set_string(&context, "lowerdir", escaped.as_slice())?;
    fsconfig_set_string(&context, "upperdir", upper)?;
    fsconfig_set_string(&context, "workdir", work)?;
    fsconfig_set_flag(&context, "userxattr")?;
    // Without this the kernel flushes the whole file system of `upper` when the sandbox ends. What is lost when the host
    // crashes in between is a cache.
    fsconfig_set_flag(&context, "volatile")?;
    forget_last_use(work)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    set_attributes(mount.as_fd(), Extent::ThisMount, attribute::NO_SUID | attribute::NO_DEV)?;
    Ok(mount)
}

/// A volatile overlay leaves a mark in its work folder that refuses the next mount, lest a crash go unnoticed. Here nobody
/// relies on what was written right before one.
fn forget_last_use(work: &[u8]) -> Result<(), Errno> {
    let mark = [work, b"/work/incompat/volatile".as_slice()].concat();
    let dirty = [mark.as_slice(), b"/dirty"].concat();
    for removed in [rustix::fs::unlink(dirty), rustix::fs::rmdir(mark)] {
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
