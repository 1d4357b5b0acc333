//! Landlock (landlock(7)): a process gives up file rights for itself and all its children.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::{Errno, Result, check};

/// `struct landlock_ruleset_attr` as of ABI 6; older kernels accept it while the fields they lack are zero.
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1 << 0;
const SCOPE_SIGNAL: u64 = 1 << 1;
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// File rights (linux/landlock.h), one bit each.
pub mod right {
    pub const EXECUTE: u64 = 1 << 0;
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_DIR: u64 = 1 << 3;
    /// ABI 2.
    pub const REFER: u64 = 1 << 13;
    /// ABI 3.
    pub const TRUNCATE: u64 = 1 << 14;
    /// ABI 5.
    pub const IOCTL_DEV: u64 = 1 << 15;
    /// What a plain file can have; the rest is about folders, and the kernel refuses it on a file.
    pub const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    pub const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
}

/// The version of the kernel's landlock interface.
///
/// # Errors
/// `NOSYS`: not built in. `OPNOTSUPP`: built in, not enabled at boot.
pub fn abi() -> Result<u32> {
    // SAFETY: with the version flag the kernel takes no attribute and returns a number.
    let version = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    })?;
    u32::try_from(version).map_err(|_| Errno::INVAL)
}

/// Every file right that the given ABI can handle, as far as this code knows it.
#[must_use]
pub fn all_rights(abi: u32) -> u64 {
    match abi {
        0 => 0,
        1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    }
}

/// Rules being collected. Everything handled is denied unless a rule grants it.
#[derive(Debug)]
pub struct Ruleset {
    fd: OwnedFd,
    handled: u64,
}

impl Ruleset {
    /// A ruleset that handles every file right of the running kernel.
    ///
    /// # Errors
    /// As [`abi`].
    pub fn new(abi: u32) -> Result<Self> {
        let handled = all_rights(abi);
        let attr = RulesetAttr {
            handled_access_fs: handled,
            handled_access_net: 0,
            // Abstract sockets and processes outside of the domain are out of reach, whatever else fails (ABI 6).
            scoped: if abi >= 6 {
                SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL
            } else {
                0
            },
        };
        // SAFETY: `attr` is a valid ruleset attribute of the size given; trailing fields are zero for older kernels.
        let fd = check(unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attr,
                std::mem::size_of::<RulesetAttr>(),
                0_u32,
            )
        })?;
        let fd = RawFd::try_from(fd).map_err(|_| Errno::INVAL)?;
        Ok(Self {
            // SAFETY: the kernel has just returned this descriptor to us alone.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            handled,
        })
    }

    /// Grants `rights` on `path` (an `O_PATH` descriptor) and, for a folder, on all below it. Rights the kernel does not
    /// handle are not restricted by it and are left out.
    ///
    /// # Errors
    /// The kernel refused the rule.
    pub fn grant(&self, path: BorrowedFd<'_>, rights: u64) -> Result<()> {
        let attr = PathBeneathAttr {
            allowed_access: rights & self.handled,
            parent_fd: path.as_raw_fd(),
        };
        // SAFETY: `attr` is a valid path-beneath attribute; both descriptors are open for the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.fd.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const attr,
                0_u32,
            )
        })
        .map(drop)
    }

    /// Applies the rules to this thread and all it starts, for good. Needs no-new-privileges.
    ///
    /// # Errors
    /// The kernel refused; nothing is confined.
    pub fn restrict_self(&self) -> Result<()> {
        // SAFETY: takes a descriptor and flags.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_fd().as_raw_fd(), 0_u32) }).map(drop)
    }
}
