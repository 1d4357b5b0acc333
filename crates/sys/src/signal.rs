//! Blocking signals and reading them from a descriptor (signalfd(2)).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Errno, Result, check};

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub number: i32,
    /// The sender as seen from here; 0 when it is the kernel or lies outside this PID namespace.
    pub sender: u32,
    /// Sent by a process with kill(2), sigqueue(3) or pidfd_send_signal(2), not by the kernel.
    pub by_user: bool,
}

/// Signals that are blocked and read from here.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is valid storage; sigemptyset initialises it.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: `set` is initialised; a number out of range is reported and leaves it unchanged.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

impl SignalFd {
    /// Blocks `signals` in this thread and makes them readable.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new(signals: &[i32]) -> Result<Self> {
        let set = set_of(signals);
        // SAFETY: `set` is initialised; the old mask is not asked for.
        check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) }.into())?;
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let fd = check(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }.into())?;
        let fd = i32::try_from(fd).map_err(|_| Errno::INVAL)?;
        // SAFETY: the kernel has just returned this descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal, or none when all are read.
    ///
    /// # Errors
    /// The descriptor could not be read.
    pub fn next(&self) -> Result<Option<Arrived>> {
        // SAFETY: an all-zero signalfd_siginfo is a valid value of that plain C struct.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = std::mem::size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is valid for writes of `size` bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        match check(read as libc::c_long) {
            Ok(_) => Ok(Some(Arrived {
                number: info.ssi_signo.cast_signed(),
                sender: info.ssi_pid,
                by_user: info.ssi_code <= 0,
            })),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Unblocks every signal of this thread.
///
/// # Errors
/// The mask could not be set.
pub fn unblock_all() -> Result<()> {
    let none = set_of(&[]);
    // SAFETY: `none` is initialised; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) }.into()).map(drop)
}

/// Blocks or unblocks one signal of this thread.
///
/// # Errors
/// `INVAL` for a number that is no signal.
pub fn block(signal: i32, blocked: bool) -> Result<()> {
    let set = set_of(&[signal]);
    let how = if blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: `set` is initialised; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(how, &raw const set, std::ptr::null_mut()) }.into()).map(drop)
}

/// Gives one signal its default action.
pub fn default_action(signal: i32) {
    // SAFETY: setting the default action runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Ignores one signal.
pub fn ignore(signal: i32) {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Sends a signal by number to one process, a process group (negative), or all reachable ones (-1), as kill(2) does.
///
/// # Errors
/// `SRCH`, `PERM`, or `INVAL` for a number that is no signal.
pub fn send(target: i32, signal: i32) -> Result<()> {
    // SAFETY: kill takes plain integers.
    check(unsafe { libc::kill(target, signal) }.into()).map(drop)
}
