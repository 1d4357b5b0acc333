//! Moves bytes from one socket to another inside the kernel, through a pipe that is always emptied before the next fill.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a pipe is asked to hold, and the most that one call moves: each call wakes both peers. The kernel grants less to a
/// user with many pipes, and then the default has to do.
const PIPE_BYTES: usize = 1024 * 1024;

/// Which of the two peers ended it.
#[derive(Debug)]
pub(crate) enum MoveError {
    Read(io::Error),
    Write,
}

pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// None when the process has no descriptors to spare; copying works without.
    pub(crate) fn new() -> Option<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Some(Self { read, write })
    }

    /// Moves up to `limit` bytes, or up to the end of `from`, and tells how many are left of the limit.
    pub(crate) async fn relay(
        &self,
        from: &TcpStream,
        to: &TcpStream,
        mut limit: u64,
        moved: &AtomicU64,
    ) -> Result<u64, MoveError> {
        while limit > 0 {
            let want = usize::try_from(limit).unwrap_or(PIPE_BYTES).min(PIPE_BYTES);
            let fill = || {
                step(splice(
                    from,
                    None,
                    &self.write,
                    None,
                    want,
                    SpliceFlags::NONBLOCK | SpliceFlags::MOVE,
                ))
            };
            let mut held = from.async_io(Interest::READABLE, fill).await.map_err(MoveError::Read)?;
            if held == 0 {
                break;
            }
            limit -= held as u64;
            while held > 0 {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                let drain = || step(splice(&self.read, None, to, None, held, flags));
                let drained = to
                    .async_io(Interest::WRITABLE, drain)
                    .await
                    .map_err(|_| MoveError::Write)?;
                held -= drained.min(held);
                moved.fetch_add(drained as u64, Ordering::Relaxed);
            }
        }
        Ok(limit)
    }
}

fn step(result: rustix::io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(Errno::INTR) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        other => other.map_err(io::Error::from),
    }
}
