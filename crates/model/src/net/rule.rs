//! Network rules as data. Parsing is at the edge; judging is in the proxy.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::address::{embedded, unwrap_mapped};
use super::host::{Host, HostName};
use crate::origin::Origin;

/// Names of cloud metadata services; no rule opens them. Their usual addresses are in the address classes.
pub(super) const NEVER_NAMES: [&str; 2] = ["metadata.google.internal", "metadata.goog"];

/// What an allow rule without ports means.
const DEFAULT_PORTS: [u16; 2] = [443, 80];

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

impl HostPattern {
    /// Whether this pattern is about `host`. Name patterns never match addresses, address patterns never match names.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(exact), Host::Name(name)) => name.as_str() == exact,
            (Self::Subdomains(below), Host::Name(name)) => name.is_below(below),
            (Self::Addresses(network), Host::Address(address)) => network.contains(&unwrap_mapped(*address)),
            (Self::Exact(_) | Self::Subdomains(_), Host::Address(_)) | (Self::Addresses(_), Host::Name(_)) => false,
        }
    }

    /// Whether this pattern is an address range that holds `address`, or holds the IPv4 address inside it. For refusing:
    /// a range that is refused is refused in every wrapping.
    #[must_use]
    pub fn covers_wrapped(&self, address: IpAddr) -> bool {
        matches!(self, Self::Addresses(network) if network_covers_wrapped(network, address))
    }

    /// Whether the pattern as written holds an underscore, and so permits names that do.
    #[must_use]
    pub fn has_underscore(&self) -> bool {
        matches!(self, Self::Exact(name) | Self::Subdomains(name) if name.contains('_'))
    }
}

pub(super) fn network_covers_wrapped(network: &IpNet, address: IpAddr) -> bool {
    network.contains(&unwrap_mapped(address))
        || embedded(address).is_some_and(|inner| network.contains(&IpAddr::V4(inner)))
}

impl PortRange {
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl NetRule {
    /// Whether `port` is one that this rule, read as an allow rule, is about.
    #[must_use]
    pub fn allows_port(&self, port: u16) -> bool {
        if self.ports.is_empty() {
            DEFAULT_PORTS.contains(&port)
        } else {
            self.lists_port(port)
        }
    }

    /// Whether `port` is one that this rule, read as a deny rule, is about.
    #[must_use]
    pub fn denies_port(&self, port: u16) -> bool {
        self.ports.is_empty() || self.lists_port(port)
    }

    fn lists_port(&self, port: u16) -> bool {
        self.ports.iter().any(|range| range.contains(port))
    }
}

impl NetworkPolicy {
    /// The source that refuses `address` as an answer of a resolver, in whatever wrapping.
    #[must_use]
    pub fn refused_by(&self, address: IpAddr) -> Option<(&IpNet, &Origin)> {
        let hit = self
            .refused_addresses
            .iter()
            .find(|(network, _)| network_covers_wrapped(network, address));
        hit.map(|(network, origin)| (network, origin))
    }
}

impl HostName {
    /// Whether this is the name of a cloud metadata service, which no rule opens.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        NEVER_NAMES.contains(&self.as_str())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Subdomains(below) => write!(f, "*.{below}"),
            Self::Addresses(network) => match (network.addr(), network.prefix_len() == network.max_prefix_len()) {
                (address, true) => Host::from(address).fmt(f),
                (IpAddr::V4(_), false) => network.fmt(f),
                (IpAddr::V6(_), false) => write!(f, "[{network}]"),
            },
            Self::Any => f.write_str("*"),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            self.first.fmt(f)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The canonical text, which parses to an equal rule.
impl fmt::Display for NetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        for (index, range) in self.ports.iter().enumerate() {
            f.write_str(if index == 0 { ":" } else { "," })?;
            range.fmt(f)?;
        }
        Ok(())
    }
}
