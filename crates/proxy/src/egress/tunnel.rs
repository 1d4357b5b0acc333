//! Relays bytes both ways until both directions have ended, one peer breaks off, or nothing moves for too long.
//!
//! The end of one direction is passed on and leaves the other one open. A reset is passed on as a reset, so that neither
//! peer takes a cut stream for a whole one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use super::connection::{Buffer, Connection, end_writing, write_all};
use super::decide::Traffic;
use super::splice::{MoveError, Pipe};

/// Bytes of one direction after which a pipe pays off.
const SPLICE_AFTER: u64 = 128 * 1024;

/// What each side had read already is forwarded first.
pub(crate) async fn relay(client: &mut Connection, upstream: &mut Connection, traffic: &Traffic, idle: Duration) {
    let Connection {
        stream: inner,
        buffer: from_inner,
    } = client;
    let Connection {
        stream: outer,
        buffer: from_outer,
    } = upstream;
    let ended = {
        let out = direction(inner, from_inner, outer, &traffic.sent);
        let back = direction(outer, from_outer, inner, &traffic.received);
        let both = async { tokio::try_join!(out, back).map(|_| ()) };
        tokio::select! {
            ended = both => ended,
            () = idleness(traffic, idle) => Err(io::ErrorKind::TimedOut.into()),
        }
    };
    if ended.is_err() {
        reset(inner);
        reset(outer);
    }
}

/// Ends when nothing has moved for at least `limit`.
pub(crate) async fn idleness(traffic: &Traffic, limit: Duration) {
    loop {
        let before = traffic.total();
        sleep(limit).await;
        if traffic.total() == before {
            return;
        }
    }
}

/// Makes the close that follows a reset instead of an orderly end.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}

/// An error ends the other direction too: the source is gone. A target that takes no more does not, because its own
/// last words may still be under way.
async fn direction(from: &TcpStream, buffer: &mut Buffer, to: &TcpStream, moved: &AtomicU64) -> io::Result<()> {
    match pump(from, buffer, to, moved).await {
        Ok(()) => {
            end_writing(to);
            Ok(())
        }
        Err(MoveError::Write) => Ok(()),
        Err(MoveError::Read(error)) => Err(error),
    }
}

async fn pump(from: &TcpStream, buffer: &mut Buffer, to: &TcpStream, moved: &AtomicU64) -> Result<(), MoveError> {
    loop {
        if !buffer.is_empty() {
            let count = buffer.data().len();
            write_all(to, buffer.data()).await.map_err(|_| MoveError::Write)?;
            buffer.consume(count);
            moved.fetch_add(count as u64, Ordering::Relaxed);
        }
        if moved.load(Ordering::Relaxed) >= SPLICE_AFTER
            && let Some(pipe) = Pipe::new()
        {
            return pipe.relay(from, to, u64::MAX, moved).await.map(|_| ());
        }
        if buffer.fill(from).await.map_err(MoveError::Read)? == 0 {
            return Ok(());
        }
    }
}
