//! A command with a terminal of its own.
//!
//! ```text
//! guest (1) ── leader: session leader, owns the terminal, waits ── command: own process group, in the foreground
//! ```
//!
//! The leader is there for Ctrl-Z: the kernel ignores terminal stops for a process group whose parent is outside the
//! session. When the command stops, the leader stops itself, which the guest sees; when the guest continues the leader, it
//! gives the command the foreground and continues it. It wears the same walls as the command.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::process::{Side, exit_now, fork};
use pinfold_sys::signal;
use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use rustix::termios::Winsize;

use crate::command::report_failure;
use crate::failure::During;

/// Both sides of a new pty of the sandbox's own devpts.
pub(crate) struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
}

impl Terminal {
    pub(crate) fn open(rows: u16, columns: u16) -> Result<Self, Failure> {
        let step = || "open a terminal".to_owned();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let master =
            rustix::fs::open("/dev/pts/ptmx", flags, rustix::fs::Mode::empty()).during(Layer::Terminal, step)?;
        rustix::pty::unlockpt(&master).during(Layer::Terminal, step)?;
        let open =
            rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY | rustix::pty::OpenptFlags::CLOEXEC;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, open).during(Layer::Terminal, step)?;
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&slave, size).during(Layer::Terminal, step)?;
        Ok(Self { master, slave })
    }

    pub(crate) fn slave(&self) -> BorrowedFd<'_> {
        self.slave.as_fd()
    }

    pub(crate) fn into_slave(self) -> OwnedFd {
        self.slave
    }

    pub(crate) fn into_master(self) -> OwnedFd {
        self.master
    }
}

/// Runs as the leader: takes the terminal, puts the walls on, starts the command with `execute` and mirrors what becomes of
/// it. Returns the exit code to end with.
pub(crate) fn lead(
    terminal: OwnedFd,
    put_on: impl FnOnce() -> Result<(), Failure>,
    report: OwnedFd,
    execute: impl FnOnce(&OwnedFd) -> i32,
) -> i32 {
    // A background process that hands over the foreground would be stopped for it.
    signal::ignore(libc_signal::SIGTTOU);
    let confined = take(&terminal).and_then(|()| put_on());
    if let Err(failure) = confined {
        return report_failure(&report, &failure.into());
    }
    match fork() {
        Ok(Side::Child) => {
            let step = || "become the terminal's foreground process".to_owned();
            let foreground = rustix::process::setpgid(None, None)
                .and_then(|()| rustix::termios::tcsetpgrp(&terminal, rustix::process::getpid()))
                .during(Layer::Terminal, step);
            exit_now(match foreground {
                Ok(()) => execute(&report),
                Err(failure) => report_failure(&report, &failure.into()),
            })
        }
        Ok(Side::Parent(command)) => {
            drop(report);
            mirror(&terminal, command)
        }
        Err(errno) => report_failure(
            &report,
            &crate::failure::failure(Layer::Limits, "start the command", errno).into(),
        ),
    }
}

fn take(terminal: &OwnedFd) -> Result<(), Failure> {
    rustix::process::setsid()
        .and_then(|_| rustix::process::ioctl_tiocsctty(terminal))
        .during(Layer::Terminal, || "take the terminal".to_owned())
}

/// Waits for the command; stops when it stops, ends as it ends.
fn mirror(terminal: &OwnedFd, command: Pid) -> i32 {
    loop {
        match waitpid(Some(command), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                let _ = signal::send(rustix::process::getpid().as_raw_nonzero().get(), libc_signal::SIGSTOP);
                // Continued by the guest.
                let _ = rustix::termios::tcsetpgrp(terminal, command);
                let _ = signal::send(-command.as_raw_nonzero().get(), libc_signal::SIGCONT);
            }
            Ok(Some((_, status))) => return end_like(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 125,
        }
    }
}

/// Ends this process by the signal that ended the command, or returns its exit code.
fn end_like(status: WaitStatus) -> i32 {
    if let Some(number) = status.terminating_signal() {
        signal::default_action(number);
        let _ = signal::unblock_all();
        let _ = signal::send(rustix::process::getpid().as_raw_nonzero().get(), number);
        return 128 + number;
    }
    status.exit_status().unwrap_or(125)
}

/// Signal numbers that are the same on every Linux architecture we build for.
mod libc_signal {
    pub(super) const SIGCONT: i32 = rustix::process::Signal::CONT.as_raw();
    pub(super) const SIGSTOP: i32 = rustix::process::Signal::STOP.as_raw();
    pub(super) const SIGTTOU: i32 = rustix::process::Signal::TTOU.as_raw();
}
