//! Relays one message: a head that was rebuilt, then its body, each piece as it arrives, with back-pressure.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpStream;

use super::super::connection::{Buffer, write_parts};
use super::super::splice::{MoveError, Pipe};
use super::Framing;
use super::chunked::Decoder;

/// Bytes still to come from which on a pipe pays off.
const SPLICE_FROM: u64 = 128 * 1024;

/// Where a message broke off.
#[derive(Debug)]
pub(super) enum BodyError {
    /// The sender failed, or ended before the end of the body.
    Source,
    /// The sender's chunks are malformed.
    Malformed,
    /// The receiver takes no more.
    Target,
}

impl From<MoveError> for BodyError {
    fn from(error: MoveError) -> Self {
        match error {
            MoveError::Read(_) => Self::Source,
            MoveError::Write => Self::Target,
        }
    }
}

/// A body on its way from one socket to another.
pub(super) struct Body<'a> {
    pub(super) from: &'a TcpStream,
    /// What has been read of the body, and perhaps of what follows it.
    pub(super) buffer: &'a mut Buffer,
    pub(super) to: &'a TcpStream,
    /// Counts content, not framing.
    pub(super) moved: &'a AtomicU64,
}

impl Body<'_> {
    /// Sends `head`, then the body, which is read as `framing` and written as `written`.
    pub(super) async fn relay(&mut self, head: &[u8], framing: Framing, written: Framing) -> Result<(), BodyError> {
        match framing {
            Framing::None | Framing::Length(0) => self.write(&mut [IoSlice::new(head)]).await,
            Framing::Length(length) => self.relay_bytes(head, length, true).await,
            Framing::UntilClose => self.relay_bytes(head, u64::MAX, false).await,
            Framing::Chunked => self.relay_chunks(head, written == Framing::Chunked).await,
        }
    }

    async fn relay_bytes(&mut self, mut head: &[u8], mut left: u64, exact: bool) -> Result<(), BodyError> {
        loop {
            let data = self.buffer.data();
            let count = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let mut parts = [IoSlice::new(head), IoSlice::new(&data[..count])];
            write_parts(self.to, &mut parts).await.map_err(target)?;
            self.took(count);
            head = &[];
            left -= count as u64;
            if left == 0 {
                return Ok(());
            }
            // A body without a stated length may be a few events: it pays only once it has shown to be long.
            let long = if exact {
                left >= SPLICE_FROM
            } else {
                self.moved.load(Ordering::Relaxed) >= SPLICE_FROM
            };
            if long && let Some(pipe) = Pipe::new() {
                left = pipe.relay(self.from, self.to, left, self.moved).await?;
                return if left == 0 || !exact {
                    Ok(())
                } else {
                    Err(BodyError::Source)
                };
            }
            if self.buffer.fill(self.from).await.map_err(source)? == 0 {
                return if exact { Err(BodyError::Source) } else { Ok(()) };
            }
        }
    }

    /// Everything that one read brought becomes one chunk.
    async fn relay_chunks(&mut self, mut head: &[u8], as_chunks: bool) -> Result<(), BodyError> {
        let mut decoder = Decoder::default();
        loop {
            let data = self.buffer.data();
            let mut content = Vec::new();
            let (mut at, mut size) = (0, 0);
            let done = loop {
                let step = decoder.step(&data[at..]).map_err(|_| BodyError::Malformed)?;
                if step.data > 0 {
                    let start = at + step.skip;
                    content.push(&data[start..start + step.data]);
                    size += step.data;
                }
                at += step.skip + step.data;
                if step.done || at == data.len() {
                    break step.done;
                }
            };
            let size_line = if as_chunks && size > 0 {
                format!("{size:x}\r\n")
            } else {
                String::new()
            };
            let end: &[u8] = match (as_chunks, size > 0, done) {
                (false, ..) | (true, false, false) => b"",
                (true, true, false) => b"\r\n",
                (true, true, true) => b"\r\n0\r\n\r\n",
                (true, false, true) => b"0\r\n\r\n",
            };
            let mut parts = Vec::with_capacity(content.len() + 3);
            parts.push(IoSlice::new(head));
            parts.push(IoSlice::new(size_line.as_bytes()));
            parts.extend(content.iter().map(|piece| IoSlice::new(piece)));
            parts.push(IoSlice::new(end));
            write_parts(self.to, &mut parts).await.map_err(target)?;
            self.buffer.consume(at);
            self.moved.fetch_add(size as u64, Ordering::Relaxed);
            head = &[];
            if done {
                return Ok(());
            }
            if self.buffer.fill(self.from).await.map_err(source)? == 0 {
                return Err(BodyError::Source);
            }
        }
    }

    async fn write(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), BodyError> {
        write_parts(self.to, parts).await.map_err(target)
    }

    fn took(&mut self, count: usize) {
        self.buffer.consume(count);
        self.moved.fetch_add(count as u64, Ordering::Relaxed);
    }
}

fn source(_: io::Error) -> BodyError {
    BodyError::Source
}

fn target(_: io::Error) -> BodyError {
    BodyError::Target
}
