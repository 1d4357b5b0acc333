//! The control socket: one frame in, one frame out.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::wire::{GuestMessage, HostMessage, MAX_FRAME};
use pinfold_sys::Errno;
use pinfold_sys::message::{self, Received};

/// The guest's end of the control socket.
pub(crate) struct Channel {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// An order of the host with its descriptors.
pub(crate) struct Order {
    pub(crate) message: HostMessage,
    pub(crate) descriptors: VecDeque<OwnedFd>,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            buffer: vec![0; MAX_FRAME],
        }
    }

    /// The next order; none when the host is gone. Blocks.
    pub(crate) fn receive(&mut self) -> Result<Option<Order>, Errno> {
        match message::receive(&self.socket, &mut self.buffer)? {
            Received::Closed => Ok(None),
            Received::TooLarge => Err(Errno::MSGSIZE),
            Received::Frame { len, descriptors } => {
                let message = postcard::from_bytes(&self.buffer[..len]).map_err(|_| Errno::PROTO)?;
                Ok(Some(Order {
                    message,
                    descriptors: descriptors.into(),
                }))
            }
        }
    }

    pub(crate) fn send(&self, message: &GuestMessage, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let frame = postcard::to_stdvec(message).map_err(|_| Errno::PROTO)?;
        message::send(&self.socket, &frame, descriptors)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
