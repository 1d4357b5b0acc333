//! Frames between the host and the guest.

use pinfold_model::plan::Plan;
use pinfold_model::wire::{GuestMessage, HostMessage};

/// A frame of a guest that was taken over. What can be read can be written again.
pub(crate) fn guest_message(bytes: &[u8]) {
    if let Ok(message) = postcard::from_bytes::<GuestMessage>(bytes) {
        let again = postcard::to_stdvec(&message).expect("a message that was read can be written");
        assert_eq!(postcard::from_bytes::<GuestMessage>(&again).as_ref(), Ok(&message));
    }
    drop(postcard::from_bytes::<HostMessage>(bytes));
}

pub(crate) fn plan(bytes: &[u8]) {
    if let Ok(plan) = postcard::from_bytes::<Plan>(bytes) {
        let again = postcard::to_stdvec(&plan).expect("a plan that was read can be written");
        assert_eq!(postcard::from_bytes::<Plan>(&again).as_ref(), Ok(&plan));
    }
}
