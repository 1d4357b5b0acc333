//! Network rules as data. Parsing is at the edge; judging is in the proxy.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::origin::Origin;

/// Which hosts a rule is about. Names are canonical: lower-case A-labels without a trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostPattern {
    /// This name only.
    Exact(String),
    /// Every name below this one at any depth, never the name itself.
    Subdomains(String),
    /// Address literals, and addresses that permitted names resolve to.
    Addresses(IpNet),
    /// Every host; legal in deny rules only.
    Any,
}

/// An inclusive range of ports, 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

/// One network rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetRule {
    pub host: HostPattern,
    /// Empty means the default: 443 and 80 in an allow rule, every port in a deny rule.
    pub ports: Vec<PortRange>,
    /// The rule as written.
    pub text: String,
    pub reason: Option<String>,
    pub origin: Origin,
}

/// What the network rules of every source together say. The default permits nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPolicy {
    /// Set when a trusted source opened every host; address rules and denials still hold.
    pub allow_all: Option<Origin>,
    pub allow: Vec<NetRule>,
    pub deny: Vec<NetRule>,
    /// Addresses that no permitted name may resolve to.
    pub refused_addresses: Vec<(IpNet, Origin)>,
}
