//! The only way out of a sandbox: an HTTP proxy and a SOCKS5 server on listeners that the sandbox made.
//!
//! Every arrival takes one path: parse ([`http`], [`socks`]) → judge the host ([`rules`]) → resolve → judge every address →
//! dial one that was judged → check what the client then says ([`hello`] on port 443, [`http`] on port 80) → relay. A fault
//! on the way is a refusal. Nothing is resolved for a host that the rules refuse, and nothing is cached.

mod blocking;
mod connection;
mod decide;
mod dial;
mod log;
mod resolve;
mod rules;
mod server;
mod session;
mod splice;
mod tunnel;

pub mod hello;
pub mod http;
pub mod socks;

pub use blocking::{StopSignal, Stopper, run_blocking, stop_pair};
pub use log::DecisionSink;
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use rules::{judge_addresses, judge_host};
pub use server::{Listeners, Options, Proxy};

#[cfg(test)]
mod tests;
