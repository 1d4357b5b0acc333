//! Carries bytes one way between two descriptors, a buffer at a time, without ever blocking the caller's loop on the reader.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, read, write};

use super::raw::in_foreground;

const BUFFER: usize = 64 * 1024;

/// Bytes that a terminal takes without blocking once it is writable at all (Linux: `WAKEUP_CHARS` of tty.h).
const UNBLOCKED: usize = 256;

/// One direction of a relay.
#[derive(Debug)]
pub(crate) struct Pump {
    ends: Option<Ends>,
    buffer: Box<[u8]>,
    held: std::ops::Range<usize>,
}

#[derive(Debug)]
struct Ends {
    from: OwnedFd,
    to: OwnedFd,
    /// The source is a terminal of the caller's, which only the foreground may read.
    guarded: bool,
    /// Bytes to write at once.
    chunk: usize,
}

/// What a pump waits for.
pub(crate) enum Waits<'a> {
    /// To read: nothing is held.
    Source(PollFd<'a>),
    /// To write what is held.
    Sink(PollFd<'a>),
    /// For the foreground of the terminal that it reads; nothing can be polled for that.
    Foreground,
    /// For nothing: its source has ended, or its reader went away.
    Ended,
}

impl Pump {
    /// From a terminal of the caller's into the sandbox. `to` is a pipe or the master of a pty.
    pub(crate) fn input(terminal: BorrowedFd<'_>, to: OwnedFd) -> Result<Self, Errno> {
        let (from, _) = own_end(terminal, OFlags::RDONLY)?;
        set_nonblocking(&to)?;
        Ok(Self::new(Ends {
            from,
            to,
            guarded: true,
            chunk: BUFFER,
        }))
    }

    /// From the sandbox to a terminal of the caller's. `from` is a pipe or the master of a pty.
    pub(crate) fn output(from: OwnedFd, terminal: BorrowedFd<'_>) -> Result<Self, Errno> {
        let (to, blocks) = own_end(terminal, OFlags::WRONLY)?;
        set_nonblocking(&from)?;
        Ok(Self::new(Ends {
            from,
            to,
            guarded: false,
            chunk: if blocks { UNBLOCKED } else { BUFFER },
        }))
    }

    fn new(ends: Ends) -> Self {
        Self {
            ends: Some(ends),
            buffer: vec![0; BUFFER].into(),
            held: 0..0,
        }
    }

    /// What to wait for before the next [`Pump::step`].
    pub(crate) fn waits(&self) -> Waits<'_> {
        match &self.ends {
            None => Waits::Ended,
            Some(ends) if !self.held.is_empty() => Waits::Sink(PollFd::new(&ends.to, PollFlags::OUT)),
            Some(ends) if ends.guarded && !in_foreground(ends.from.as_fd()) => Waits::Foreground,
            Some(ends) => Waits::Source(PollFd::new(&ends.from, PollFlags::IN)),
        }
    }

    /// Moves what can be moved after [`Pump::waits`] was met.
    pub(crate) fn step(&mut self) {
        if let Some(ends) = &self.ends
            && ends.carry(&mut self.buffer, &mut self.held).is_err()
        {
            // Closing the writing side is how the command learns of the end.
            self.ends = None;
            self.held = 0..0;
        }
    }
}

/// The source ended, or the reader went away.
struct Ended;

impl Ends {
    fn carry(&self, buffer: &mut [u8], held: &mut std::ops::Range<usize>) -> Result<(), Ended> {
        if (*held).is_empty() {
            match read(&self.from, &mut *buffer) {
                Ok(count) if count > 0 => *held = 0..count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                // The end of a pipe, EIO of a pty whose other side is closed, or a terminal that hung up.
                _ => return Err(Ended),
            }
        }
        while !(*held).is_empty() {
            let end = held.end.min(held.start + self.chunk);
            match write(&self.to, &buffer[held.start..end]) {
                Ok(count) => held.start += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Ended),
            }
            if self.chunk < BUFFER {
                // It may block from here on: ask again first.
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A descriptor of our own for a terminal of the caller's, and whether it blocks. Its modes of opening are shared with every
/// process that inherited it, so it is opened anew where that is possible.
fn own_end(terminal: BorrowedFd<'_>, direction: OFlags) -> Result<(OwnedFd, bool), Errno> {
    let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let flags = direction | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(own) = rustix::fs::open(path, flags, Mode::empty())
        && let (Ok(opened), Ok(given)) = (fstat(&own), fstat(terminal))
        && (opened.st_dev, opened.st_ino, opened.st_rdev) == (given.st_dev, given.st_ino, given.st_rdev)
    {
        return Ok((own, false));
    }
    Ok((rustix::io::fcntl_dupfd_cloexec(terminal, 3)?, true))
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)
}
