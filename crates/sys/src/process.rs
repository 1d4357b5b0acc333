//! Fork and exec.

use std::ffi::{CStr, CString};

use rustix::process::Pid;

use crate::{Errno, Result, check, last_error};

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Parent(Pid),
    Child,
}

/// Splits this process in two. Meant for single-threaded programs: in a program with threads the child may only execute
/// another program.
///
/// # Errors
/// `AGAIN` at a process limit, `NOMEM`.
pub fn fork() -> Result<Side> {
    // SAFETY: fork shares no memory with the child; the C library takes care of its own locks.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok(i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .map_or(Side::Child, Side::Parent))
}

/// Replaces this process by the program at `path`; returns only on failure.
#[must_use]
pub fn execute(path: &CStr, argv: &[CString], env: &[CString]) -> Errno {
    let argv = pointers(argv);
    let env = pointers(env);
    // SAFETY: both arrays are NULL-terminated and point at C strings that outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last_error()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain(std::iter::once(std::ptr::null()))
        .collect()
}

/// Ends this process at once, without running destructors or exit handlers: the way out of a forked child.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Whether this program got privileges from its file at exec: set-user-ID, set-group-ID or file capabilities (`AT_SECURE`,
/// getauxval(3)).
#[must_use]
pub fn is_secure_execution() -> bool {
    // SAFETY: getauxval only reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
