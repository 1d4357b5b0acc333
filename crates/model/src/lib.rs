//! The words that every part of Pinfold shares.
//!
//! Plain data and pure functions only: no I/O, no clock, no async runtime. A type lives here when both binaries, or two
//! crates that must not know each other, have to agree on it.
#![forbid(unsafe_code)]

pub mod net;
pub mod origin;
pub mod plan;
pub mod policy;
pub mod protected;
pub mod verdict;
pub mod wire;
