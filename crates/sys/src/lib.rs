//! The kernel facilities Pinfold stands on, a file each: the only crate with unsafe code.
//!
//! Everything that `rustix` already offers safely is used from there by the callers; here is only what it lacks. Functions
//! return the kernel's error number as it came; callers add what they were doing.

pub mod capability;
pub mod descriptor;
pub mod landlock;
pub mod loopback;
pub mod message;
pub mod mount;
pub mod namespace;
pub mod probe;
pub mod process;
pub mod seccomp;
pub mod signal;
pub mod trace;

/// The kernel's answer: a value or an error number.
pub type Result<T> = rustix::io::Result<T>;

pub use rustix::io::Errno;

/// Turns the return value of a libc call or raw system call into a result.
fn check(value: libc::c_long) -> Result<libc::c_long> {
    if value < 0 { Err(last_error()) } else { Ok(value) }
}

fn last_error() -> Errno {
    // The standard library's accessor for errno; a missing code cannot happen for an OS error.
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
