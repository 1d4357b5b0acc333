//! The part of the mount interface that `rustix` lacks (mount_setattr(2), Linux 5.12).

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Result, check};

/// Mount attributes (linux/mount.h).
pub mod attribute {
    pub const READ_ONLY: u64 = 0x1;
    pub const NO_SUID: u64 = 0x2;
    pub const NO_DEV: u64 = 0x4;
    pub const NO_EXEC: u64 = 0x8;
}

/// How far [`set_attributes`] reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    ThisMount,
    WholeTree,
}

/// Sets attributes on the mount that `mount` stands on. Only adds restrictions, never clears one.
///
/// # Errors
/// `NOSYS` before Linux 5.12, `INVAL` when `mount` is not the root of a mount.
pub fn set_attributes(mount: BorrowedFd<'_>, extent: Extent, attributes: u64) -> Result<()> {
    let attr = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if extent == Extent::WholeTree {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is an empty C string and `attr` a valid mount_attr of the size given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            std::mem::size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}
