//! Sweeping descriptors and sealed memory files.

use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::{Result, check};

/// Marks every descriptor from `first` up close-on-exec, without an upper bound and without `/proc` (close_range(2), Linux 5.11).
///
/// # Errors
/// The sweep did not happen; nothing may be executed.
pub fn close_on_exec_from(first: u32) -> Result<()> {
    // SAFETY: close_range with CLOSE_RANGE_CLOEXEC closes nothing and takes plain integers.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Whether a descriptor is open and stays so when another program is executed.
#[must_use]
pub fn survives_exec(fd: RawFd) -> bool {
    // SAFETY: F_GETFD takes plain integers and fails when the descriptor is not open.
    check(unsafe { libc::fcntl(fd, libc::F_GETFD) }.into())
        .is_ok_and(|flags| flags & libc::c_long::from(libc::FD_CLOEXEC) == 0)
}

/// A memory file with `content` that nobody can change any more (memfd_create(2)).
///
/// # Errors
/// Memory files are not available, or memory is short.
pub fn sealed_file(name: &str, content: &[u8]) -> std::io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(content)?;
    fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    Ok(file.into())
}
