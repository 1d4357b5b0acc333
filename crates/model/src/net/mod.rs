//! Hosts, addresses, ports and the rules over them, canonical from the edge on.
//!
//! Every name, address and rule is parsed here exactly once, and everything behind the edge compares, resolves, dials and
//! logs the value that came out. What cannot be brought into the one canonical form is refused, never guessed at.

mod address;
mod authority;
mod host;
mod rule;
mod rule_error;
mod rule_text;

pub use address::{AddressClass, classify, embedded, unwrap_mapped};
pub use authority::{Authority, parse_port};
pub use host::{Host, HostError, HostName};
pub use rule::{HostPattern, NetRule, NetworkPolicy, PortRange};
pub use rule_error::RuleError;

#[cfg(test)]
mod tests;
