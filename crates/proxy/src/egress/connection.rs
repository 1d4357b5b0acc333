//! A socket with the bytes that were read from it and not yet used.

use std::io::{self, IoSlice};

use rustix::net::Shutdown;
use tokio::net::TcpStream;

/// Bytes of a read buffer: the most that one read takes, and the bound of a message head.
pub(crate) const CAPACITY: usize = 64 * 1024;

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Buffer,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Buffer::default(),
        }
    }

    /// Appends what the peer sends; 0 means that it has ended its direction.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.fill(&self.stream).await
    }
}

/// Holds at most [`CAPACITY`] bytes; the memory is taken with the first read.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start >= CAPACITY
    }

    /// Forgets the first `count` bytes, which must have been seen in [`Buffer::data`].
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Waits for bytes and appends them. A full buffer is an error of the caller and reads nothing.
    pub(crate) async fn fill(&mut self, stream: &TcpStream) -> io::Result<usize> {
        if self.is_full() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        loop {
            stream.readable().await?;
            match stream.try_read(self.room()) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What has arrived by now, without waiting: none when nothing has.
    pub(crate) fn fill_now(&mut self, stream: &TcpStream) -> Option<io::Result<usize>> {
        match stream.try_read(self.room()) {
            Ok(count) => {
                self.end += count;
                Some(Ok(count))
            }
            Err(error) if is_transient(&error) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn room(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; CAPACITY];
        }
        if self.end == CAPACITY {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Writes everything, waiting for the peer as long as it takes.
pub(crate) async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all parts in order, gathered into as few calls as the kernel takes.
pub(crate) async fn write_parts(stream: &TcpStream, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        stream.writable().await?;
        match stream.try_write_vectored(parts) {
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends our direction; the peer may go on sending. A peer that is gone already is no news here.
pub(crate) fn end_writing(stream: &TcpStream) {
    let _ = rustix::net::shutdown(stream, Shutdown::Write);
}
