//! Frames with descriptors over a local socket (unix(7), `SOCK_SEQPACKET`).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::{Errno, Result};

/// Descriptors that fit one frame.
pub const MAX_DESCRIPTORS: usize = 16;

/// Two connected ends that keep frame boundaries.
///
/// # Errors
/// Out of descriptors.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends one frame whole, with descriptors beside it.
///
/// # Errors
/// `MSGSIZE` for a frame larger than the socket's buffer, `PIPE` when the other end is gone.
pub fn send(socket: impl AsFd, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(Errno::INVAL);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    loop {
        match sendmsg(
            socket.as_fd(),
            &[IoSlice::new(frame)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(sent) if sent == frame.len() => return Ok(()),
            Ok(_) => return Err(Errno::MSGSIZE),
        }
    }
}

/// A frame as received.
#[derive(Debug)]
pub enum Received {
    /// `buffer[..len]` holds the frame.
    Frame {
        len: usize,
        descriptors: Vec<OwnedFd>,
    },
    /// The frame did not fit the buffer, or carried more descriptors than fit; what came of it is dropped.
    TooLarge,
    Closed,
}

/// Receives one frame into `buffer`.
///
/// # Errors
/// `AGAIN` on a non-blocking socket without a frame, `CONNRESET`.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let result = loop {
        match recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if result.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Ok(Received::TooLarge);
    }
    // No frame of ours is empty, so nothing read means that the other end is closed.
    if result.bytes == 0 {
        return Ok(Received::Closed);
    }
    Ok(Received::Frame {
        len: result.bytes,
        descriptors,
    })
}
