//! From the text of a network rule to the rule.
//!
//! Forms: `host`, `*.host`, an IPv4 or IPv6 address, a CIDR range, each with `:ports` where ports are numbers and ranges
//! separated by commas. A bare IPv6 address cannot take ports; in brackets it can.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::address::{AddressClass, classify, unwrap_mapped};
use super::authority::parse_port;
use super::host::{Host, HostError, HostName, parse_ipv6};
use super::rule::{HostPattern, NEVER_NAMES, NetRule, PortRange};
use super::rule_error::RuleError;
use crate::origin::Origin;

/// The widest ranges that an allow rule may open.
const MIN_PREFIX_V4: u8 = 8;
const MIN_PREFIX_V6: u8 = 7;

impl NetRule {
    /// Parses a rule that permits.
    ///
    /// # Errors
    /// When the text is no rule, opens too much, or names something that no rule can open.
    pub fn parse_allow(text: &str, reason: Option<String>, origin: Origin) -> Result<Self, RuleError> {
        let (host, ports) = parse(text)?;
        refuse_never(text, &host)?;
        refuse_broad(text, &host)?;
        Ok(Self {
            host,
            ports,
            text: text.to_owned(),
            reason,
            origin,
        })
    }

    /// Parses a rule that refuses; it may be as broad as `*`.
    ///
    /// # Errors
    /// When the text is no rule.
    pub fn parse_deny(text: &str, reason: Option<String>, origin: Origin) -> Result<Self, RuleError> {
        let (host, ports) = parse(text)?;
        Ok(Self {
            host,
            ports,
            text: text.to_owned(),
            reason,
            origin,
        })
    }
}

fn parse(text: &str) -> Result<(HostPattern, Vec<PortRange>), RuleError> {
    if text.is_empty() {
        return Err(RuleError::Empty);
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Err(RuleError::Url {
            text: text.to_owned(),
            host: host_of_url(rest),
        });
    }
    if text.contains('@') {
        return Err(RuleError::Userinfo { text: text.to_owned() });
    }
    // Without brackets, an IPv6 address or range has no room for ports.
    let colons = text.matches(':').count();
    if colons > 1 && !text.starts_with('[') {
        return parse_pattern(text, text).map(|host| (host, Vec::new()));
    }
    let (host, ports) = split_ports(text);
    let ports = ports.map_or(Ok(Vec::new()), |ports| parse_ports(text, ports))?;
    Ok((parse_pattern(text, host)?, ports))
}

fn host_of_url(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    parse(host).is_ok().then(|| host.to_owned())
}

fn split_ports(text: &str) -> (&str, Option<&str>) {
    let after_address = text.find(']').map_or(0, |end| end + 1);
    match text[after_address..].find(':') {
        Some(colon) => (&text[..after_address + colon], Some(&text[after_address + colon + 1..])),
        None => (text, None),
    }
}

fn parse_ports(text: &str, ports: &str) -> Result<Vec<PortRange>, RuleError> {
    let port = |digits: &str| {
        parse_port(digits.as_bytes()).ok_or_else(|| RuleError::BadPort {
            text: text.to_owned(),
            port: digits.to_owned(),
        })
    };
    ports
        .split(',')
        .map(|item| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = PortRange {
                first: port(first)?,
                last: port(last)?,
            };
            if range.first > range.last {
                return Err(RuleError::BackwardRange {
                    text: text.to_owned(),
                    range: item.to_owned(),
                });
            }
            Ok(range)
        })
        .collect()
}

fn parse_pattern(text: &str, host: &str) -> Result<HostPattern, RuleError> {
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    let bad_host = |source| RuleError::BadHost {
        text: text.to_owned(),
        source,
    };
    if host.contains('*') {
        let below = host
            .strip_prefix("*.")
            .filter(|below| !below.is_empty() && !below.contains('*'));
        let below = below.ok_or_else(|| RuleError::Wildcard { text: text.to_owned() })?;
        let name = HostName::parse(below.as_bytes()).map_err(bad_host)?;
        return Ok(HostPattern::Subdomains(name.as_str().to_owned()));
    }
    if let Some((address, prefix)) = host.split_once('/') {
        return parse_network(text, address, prefix).map(HostPattern::Addresses);
    }
    match Host::parse(host.as_bytes()) {
        Ok(Host::Name(name)) => Ok(HostPattern::Exact(name.as_str().to_owned())),
        Ok(Host::Address(address)) => Ok(HostPattern::Addresses(IpNet::from(address))),
        // A person may leave the brackets away where nothing is ambiguous.
        Err(HostError::BareIpv6) => {
            let address = parse_ipv6(host.as_bytes()).map_err(bad_host)?;
            Ok(HostPattern::Addresses(IpNet::from(unwrap_mapped(IpAddr::V6(address)))))
        }
        Err(source) => Err(bad_host(source)),
    }
}

fn parse_network(text: &str, address: &str, prefix: &str) -> Result<IpNet, RuleError> {
    let bad = || RuleError::BadNetwork { text: text.to_owned() };
    // `[fd12::/32]` and `[fd12::]/32` both leave room for ports.
    let (address, prefix) = match address.strip_prefix('[') {
        Some(inner) => match (inner.strip_suffix(']'), prefix.strip_suffix(']')) {
            (Some(inner), None) => (inner, prefix),
            (None, Some(prefix)) => (inner, prefix),
            _ => return Err(bad()),
        },
        None => (address, prefix),
    };
    let plain =
        !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
    if !plain {
        return Err(bad());
    }
    let prefix: u8 = prefix.parse().map_err(|_| bad())?;
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let network = IpNet::new(address, prefix).map_err(|_| bad())?;
    if network.trunc() != network {
        return Err(RuleError::HostBits {
            text: text.to_owned(),
            network: network.trunc().to_string(),
        });
    }
    Ok(unwrap_network(network))
}

/// A range of IPv4-mapped addresses is the IPv4 range: addresses are unwrapped before rules see them.
fn unwrap_network(network: IpNet) -> IpNet {
    const MAPPED: u8 = 96;
    let IpNet::V6(v6) = network else { return network };
    let first: Ipv6Addr = v6.network();
    match (first.to_ipv4_mapped(), v6.prefix_len().checked_sub(MAPPED)) {
        (Some(v4), Some(prefix)) => Ipv4Net::new(v4, prefix).map_or(network, IpNet::V4),
        _ => network,
    }
}

fn refuse_broad(text: &str, host: &HostPattern) -> Result<(), RuleError> {
    match host {
        HostPattern::Any => Err(RuleError::EveryHost { text: text.to_owned() }),
        HostPattern::Subdomains(below) if is_public_suffix(below) => Err(RuleError::PublicSuffix {
            text: text.to_owned(),
            suffix: below.clone(),
        }),
        HostPattern::Addresses(network) => {
            let least = if matches!(network, IpNet::V4(_)) {
                MIN_PREFIX_V4
            } else {
                MIN_PREFIX_V6
            };
            // The range of everything mapped is the IPv4 range, so it needs no case of its own.
            if network.prefix_len() < least || covers_all_mapped(network) {
                return Err(RuleError::BroadNetwork { text: text.to_owned() });
            }
            Ok(())
        }
        HostPattern::Exact(_) | HostPattern::Subdomains(_) => Ok(()),
    }
}

fn covers_all_mapped(network: &IpNet) -> bool {
    let mapped = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
    matches!(network, IpNet::V6(v6) if v6.contains(&mapped))
}

/// Includes the list's private part (hosting domains) and, by its default rule, every top-level name it does not know.
fn is_public_suffix(name: &str) -> bool {
    psl::suffix(name.as_bytes()).is_some_and(|suffix| suffix.as_bytes() == name.as_bytes())
}

fn refuse_never(text: &str, host: &HostPattern) -> Result<(), RuleError> {
    let never = |what: &str| RuleError::NeverReachable {
        text: text.to_owned(),
        what: what.to_owned(),
    };
    match host {
        HostPattern::Exact(name) if NEVER_NAMES.contains(&name.as_str()) => Err(never("cloud metadata")),
        // Every kind is either single addresses or one contiguous range, so the ends speak for the whole.
        HostPattern::Addresses(network) => match (classify(network.network()), classify(network.broadcast())) {
            (AddressClass::Never(first), AddressClass::Never(last)) if first == last => Err(never(first)),
            _ => Ok(()),
        },
        HostPattern::Exact(_) | HostPattern::Subdomains(_) | HostPattern::Any => Ok(()),
    }
}
