//! Installing a seccomp filter (seccomp(2)).

use crate::{Errno, Result, check};

/// One instruction of the filter: `struct sock_filter`.
pub type Instruction = libc::sock_filter;

const SET_MODE_FILTER: libc::c_uint = 1;

/// An instruction from its four fields.
#[must_use]
pub fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// Puts `program` on this thread and all it starts, for good. Needs no-new-privileges.
///
/// # Errors
/// `INVAL`: the kernel refused the program. `NOSYS`: no seccomp.
pub fn install(program: &[Instruction]) -> Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points at `len` instructions, which the kernel only reads.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0_u32, &raw const program) }).map(drop)
}
