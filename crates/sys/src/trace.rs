//! Watching another process's system calls (ptrace(2)); used by `--explain` only.
//!
//! A tracer seizes a process, and from there on every thread and child that the process starts. Numbers of processes and
//! threads are plain `i32` here: a thread is waited for and resumed like a process.

use rustix::process::Pid;

use crate::{Errno, Result, check};

/// What a traced process or a child of the caller did (wait(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Exited {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    /// At the entry or the exit of a system call; [`call`] tells which.
    AtCall,
    /// About to receive a signal, which arrives only when it is passed to [`resume`].
    Signal {
        number: i32,
    },
    /// Stopped with its whole group by a stop signal. Also what an untraced child does when it stops.
    Stopped {
        signal: i32,
    },
    /// Another program was executed.
    Executed,
    /// A new thread or child, or another event that needs nothing but to go on.
    Other,
}

/// A stop of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Entry { number: u64, arguments: [u64; 6] },
    Exit { error: Option<Errno> },
    Neither,
}

/// How a stopped process goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Up to the next entry or exit of a system call; a signal number is delivered, 0 is none.
    WithSignal(i32),
    /// Stays stopped as part of its group, and says so when the group goes on.
    Listen,
}

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// `PTRACE_GET_SYSCALL_INFO` (Linux 5.3).
const GET_SYSCALL_INFO: libc::c_int = 0x420e;

/// `struct ptrace_syscall_info`, with the union of its entry and exit parts as words.
#[repr(C)]
struct CallInfo {
    op: u8,
    padding: [u8; 3],
    architecture: u32,
    instruction: u64,
    stack: u64,
    /// Entry: the number and six arguments. Exit: the result, then whether it is an error. Seccomp stops, which are longer, are
    /// not asked for.
    words: [u64; 8],
}

/// Starts to trace `pid` and stops it. Its next change is that stop, as [`Change::Other`].
///
/// # Errors
/// `PERM`: the host forbids tracing (a seccomp profile, or `kernel.yama.ptrace_scope` 3). `SRCH`: it has ended.
pub fn seize(pid: Pid) -> Result<()> {
    let pid = pid.as_raw_nonzero().get();
    request(libc::PTRACE_SEIZE as libc::c_int, pid, 0, OPTIONS as usize)?;
    request(libc::PTRACE_INTERRUPT as libc::c_int, pid, 0, 0)
}

/// Lets a stopped process go on.
///
/// # Errors
/// `SRCH`: it was killed in the meantime.
pub fn resume(pid: i32, how: Resume) -> Result<()> {
    match how {
        Resume::WithSignal(signal) => {
            let signal = usize::try_from(signal).map_err(|_| Errno::INVAL)?;
            request(libc::PTRACE_SYSCALL as libc::c_int, pid, 0, signal)
        }
        Resume::Listen => request(libc::PTRACE_LISTEN as libc::c_int, pid, 0, 0),
    }
}

fn request(request: libc::c_int, pid: i32, address: usize, data: usize) -> Result<()> {
    // SAFETY: the requests of this module that come here take plain integers and write no memory of ours.
    check(unsafe { libc::syscall(libc::SYS_ptrace, request, pid, address, data) }).map(drop)
}

/// Which system call a process that is [`Change::AtCall`] stands at.
///
/// # Errors
/// `SRCH`: it was killed in the meantime. `IO` or `INVAL`: the kernel is older than 5.3.
pub fn call(pid: i32) -> Result<Call> {
    const ENTRY: u8 = 1;
    const EXIT: u8 = 2;
    let mut info = CallInfo {
        op: 0,
        padding: [0; 3],
        architecture: 0,
        instruction: 0,
        stack: 0,
        words: [0; 8],
    };
    let size = std::mem::size_of::<CallInfo>();
    // SAFETY: the kernel writes at most `size` bytes to `info`, a plain C struct for which any bytes are valid.
    check(unsafe { libc::syscall(libc::SYS_ptrace, GET_SYSCALL_INFO, pid, size, &raw mut info) })?;
    Ok(match info.op {
        ENTRY => {
            let [number, arguments @ .., _] = info.words;
            Call::Entry { number, arguments }
        }
        EXIT => {
            // The flag is one byte in memory, the first of its word on every machine we build for (little-endian).
            let failed = info.words[1] & 0xff != 0;
            let number = i32::try_from(info.words[0].cast_signed().wrapping_neg()).ok();
            Call::Exit {
                error: number
                    .filter(|number| failed && (1..4096).contains(number))
                    .map(Errno::from_raw_os_error),
            }
        }
        _ => Call::Neither,
    })
}

/// The next change of a child or a traced process; of `only` alone when it is given. Without `block`, none when nothing has
/// changed.
///
/// # Errors
/// `CHILD`: there is nothing to wait for.
pub fn wait(only: Option<Pid>, block: bool) -> Result<Option<(i32, Change)>> {
    let which = only.map_or(-1, |pid| pid.as_raw_nonzero().get());
    let flags = libc::__WALL | libc::WUNTRACED | if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status: libc::c_int = 0;
        // SAFETY: `status` is valid for writes.
        match check(unsafe { libc::waitpid(which, &raw mut status, flags) }.into()) {
            Ok(0) => return Ok(None),
            Ok(pid) => {
                let pid = i32::try_from(pid).map_err(|_| Errno::INVAL)?;
                return Ok(Some((pid, change(status))));
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What a status of wait(2) means for a process that was seized.
fn change(status: libc::c_int) -> Change {
    if libc::WIFEXITED(status) {
        return Change::Exited {
            code: libc::WEXITSTATUS(status),
        };
    }
    if libc::WIFSIGNALED(status) {
        return Change::Killed {
            signal: libc::WTERMSIG(status),
        };
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 if signal == libc::SIGTRAP | 0x80 => Change::AtCall,
        0 => Change::Signal { number: signal },
        libc::PTRACE_EVENT_EXEC => Change::Executed,
        // A stop of the whole group, unless it is the trap that a seized process makes when it starts or goes on.
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Change::Stopped { signal },
        _ => Change::Other,
    }
}

/// Reads memory of a traced process at `address`; returns how many bytes came. Stops early where its memory ends.
///
/// # Errors
/// `FAULT`: nothing is there. `SRCH`, `PERM`.
pub fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let Ok(address) = usize::try_from(address) else {
        return Err(Errno::FAULT);
    };
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: buffer.len(),
    };
    // SAFETY: the kernel writes into `buffer` only, within its length; the remote address is checked by the kernel against the
    // other process's memory.
    let read =
        check(unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) } as libc::c_long)?;
    usize::try_from(read).map_err(|_| Errno::INVAL)
}

/// Reads a C string of a traced process; none when it is not one of at most `longest` bytes.
#[must_use]
pub fn read_string(pid: i32, address: u64, longest: usize) -> Option<Vec<u8>> {
    /// A read never crosses a border of pages, of which the next may be missing.
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    let mut address = address;
    while text.len() < longest {
        let mut chunk = [0_u8; 256];
        let left = usize::try_from(PAGE - address % PAGE).unwrap_or(1).min(chunk.len());
        let read = read_memory(pid, address, &mut chunk[..left])
            .ok()
            .filter(|read| *read > 0)?;
        let chunk = &chunk[..read];
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&chunk[..end]);
            return (text.len() <= longest).then_some(text);
        }
        text.extend_from_slice(chunk);
        address = address.checked_add(read as u64)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_wait_status_is_told_apart() {
        let stopped = |signal: i32, event: i32| (event << 16) | (signal << 8) | 0x7f;
        for (status, expected) in [
            (3 << 8, Change::Exited { code: 3 }),
            (libc::SIGKILL, Change::Killed { signal: libc::SIGKILL }),
            (stopped(libc::SIGTRAP | 0x80, 0), Change::AtCall),
            (stopped(libc::SIGTERM, 0), Change::Signal { number: libc::SIGTERM }),
            (stopped(libc::SIGTRAP, 0), Change::Signal { number: libc::SIGTRAP }),
            (
                stopped(libc::SIGTSTP, libc::PTRACE_EVENT_STOP),
                Change::Stopped { signal: libc::SIGTSTP },
            ),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_STOP), Change::Other),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXEC), Change::Executed),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_CLONE), Change::Other),
        ] {
            assert_eq!(change(status), expected, "{status:#x}");
        }
    }

    #[test]
    fn strings_are_read_whole_or_not_at_all() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let long = [vec![b'a'; 5000], vec![0]].concat();
        let at = |bytes: &[u8]| bytes.as_ptr() as u64;
        assert_eq!(read_string(pid, at(b"short\0rest"), 100), Some(b"short".to_vec()));
        assert_eq!(read_string(pid, at(&long), 8192).map(|text| text.len()), Some(5000));
        assert_eq!(read_string(pid, at(&long), 4096), None);
        assert_eq!(read_string(pid, 0, 100), None);
        assert_eq!(read_string(pid, u64::MAX, 100), None);
    }
}
