//! Calls made only to see that they are refused; each would fail without effect if it were not.

use crate::{Result, check};

pub const IO_URING_SETUP: libc::c_long = libc::SYS_io_uring_setup;
pub const CLONE3: libc::c_long = libc::SYS_clone3;
pub const UNSHARE: libc::c_long = libc::SYS_unshare;
pub const IOCTL: libc::c_long = libc::SYS_ioctl;
pub const PTRACE: libc::c_long = libc::SYS_ptrace;
pub const SETNS: libc::c_long = libc::SYS_setns;
pub const MOUNT: libc::c_long = libc::SYS_mount;
pub const CHROOT: libc::c_long = libc::SYS_chroot;
pub const OPEN_TREE: libc::c_long = libc::SYS_open_tree;
pub const KEYCTL: libc::c_long = libc::SYS_keyctl;
pub const PERF_EVENT_OPEN: libc::c_long = libc::SYS_perf_event_open;
/// A new user namespace, together with a flag that unshare(2) does not know, so that nothing comes of it.
pub const NEW_USER_AND_INVALID: u64 = libc::CLONE_NEWUSER as u64 | 1;
/// TIOCSTI with a bit above the 32 that the kernel looks at (CVE-2019-10063).
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a request differs between C libraries"
)]
pub const TIOCSTI_UPPER_BITS: u64 = libc::TIOCSTI as u64 | 1 << 32;
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a request differs between C libraries"
)]
pub const TIOCSTI: u64 = libc::TIOCSTI as u64;
pub const TIOCLINUX: u64 = 0x541c;

const CALLS: [libc::c_long; 11] = [
    IO_URING_SETUP,
    CLONE3,
    UNSHARE,
    IOCTL,
    PTRACE,
    SETNS,
    MOUNT,
    CHROOT,
    OPEN_TREE,
    KEYCTL,
    PERF_EVENT_OPEN,
];

/// Makes a system call of the list above with up to three arguments.
///
/// # Errors
/// The kernel's answer, which is what the caller is after.
pub fn call(number: libc::c_long, arguments: [u64; 3]) -> Result<libc::c_long> {
    if !CALLS.contains(&number) {
        return Err(crate::Errno::INVAL);
    }
    let [first, second, third] = arguments;
    // SAFETY: only the calls above pass. With null or invalid arguments each of them fails before it touches memory.
    check(unsafe { libc::syscall(number, first, second, third, 0_u64, 0_u64, 0_u64) })
}
