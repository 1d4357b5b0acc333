//! The caller's own terminal and standard streams.
//!
//! A terminal of the caller never goes into a sandbox. With a terminal at both ends the command gets a new one of the
//! sandbox's, and the two are relayed; a single end is relayed through a pipe. Everything else is passed on as it is, after a
//! look at what it is.

mod pump;
mod raw;
mod relay;
mod streams;

use pump::{Pump, Waits};
pub(crate) use raw::RawMode;
pub(crate) use relay::Relay;
pub(crate) use streams::Streams;
