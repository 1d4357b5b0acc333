//! Hosts, addresses, ports and the rules over them, canonical from the edge on.

mod rule;

pub use rule::{HostPattern, NetRule, NetworkPolicy, PortRange};
