//! What the rules say about a host and about the addresses it resolves to. Pure: `policy check` asks the same functions.
//!
//! Deny beats allow, no match is a denial, and the order of rules has no effect on the answer.

use std::net::{IpAddr, SocketAddr};

use pinfold_model::net::{AddressClass, Host, HostName, HostPattern, NetRule, NetworkPolicy, classify, unwrap_mapped};
use pinfold_model::verdict::{Denial, Matched, Verdict};

/// The hint of a denial that no rule lifts.
pub(crate) const NEVER_ALLOWED: &str = "never allowed";

const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// Judges a destination before anything is resolved.
pub fn judge_host(policy: &NetworkPolicy, host: &Host, port: u16) -> Verdict {
    if let Some(kind) = never(host) {
        return Verdict::Deny(denial(kind, None, NEVER_ALLOWED.to_owned()));
    }
    if let Some(rule) = policy
        .deny
        .iter()
        .find(|rule| rule.denies_port(port) && denies(rule, host))
    {
        return Verdict::Deny(denied_by(rule));
    }
    if let Host::Address(address) = host
        && let Some(denial) = refused_address(policy, *address)
    {
        return Verdict::Deny(denial);
    }
    if let Some(rule) = policy
        .allow
        .iter()
        .find(|rule| rule.allows_port(port) && allows(rule, host))
    {
        return Verdict::Allow(matched(rule));
    }
    if let Some(origin) = &policy.allow_all
        && is_opened_by_allow_all(host)
    {
        return Verdict::Allow(Matched {
            rule: "allow_all".to_owned(),
            reason: None,
            origin: origin.clone(),
        });
    }
    Verdict::Deny(unmatched(policy, host, port))
}

/// Judges every address that a permitted host resolved to; one that is refused refuses them all.
///
/// The answer is what may be dialled, in the order given, IPv4-mapped addresses unwrapped.
///
/// # Errors
/// The denial of the first address that may not be dialled.
pub fn judge_addresses(
    policy: &NetworkPolicy,
    host: &Host,
    port: u16,
    addresses: &[IpAddr],
) -> Result<Vec<SocketAddr>, Denial> {
    addresses
        .iter()
        .map(|address| judge_address(policy, host, port, unwrap_mapped(*address)))
        .collect()
}

fn judge_address(policy: &NetworkPolicy, host: &Host, port: u16, address: IpAddr) -> Result<SocketAddr, Denial> {
    let class = classify(address);
    if let AddressClass::Never(kind) = class {
        return Err(denial(kind, None, NEVER_ALLOWED.to_owned()));
    }
    if let Some(rule) = policy
        .deny
        .iter()
        .find(|rule| rule.denies_port(port) && rule.host.covers_wrapped(address))
    {
        return Err(denied_by(rule));
    }
    if let Some(denial) = refused_address(policy, address) {
        return Err(denial);
    }
    let by_rule = || {
        policy
            .allow
            .iter()
            .any(|rule| rule.allows_port(port) && rule.host.matches(&Host::from(address)))
    };
    match class {
        AddressClass::Private(kind) if !by_rule() => Err(private(host, port, address, kind)),
        _ => Ok(SocketAddr::new(address, port)),
    }
}

fn never(host: &Host) -> Option<&'static str> {
    match host {
        Host::Name(name) => name.is_metadata().then_some("cloud metadata"),
        Host::Address(address) => match classify(*address) {
            AddressClass::Never(kind) => Some(kind),
            AddressClass::Public | AddressClass::Private(_) => None,
        },
    }
}

fn denies(rule: &NetRule, host: &Host) -> bool {
    match host {
        Host::Address(address) => rule.host.matches(host) || rule.host.covers_wrapped(*address),
        Host::Name(_) => rule.host.matches(host),
    }
}

/// A name with an underscore is permitted only by a rule that spells one.
fn allows(rule: &NetRule, host: &Host) -> bool {
    let spelled = match host {
        Host::Name(name) => !name.has_underscore() || rule.host.has_underscore(),
        Host::Address(_) => true,
    };
    spelled && rule.host != HostPattern::Any && rule.host.matches(host)
}

fn is_opened_by_allow_all(host: &Host) -> bool {
    match host {
        Host::Name(name) => !name.has_underscore(),
        Host::Address(address) => classify(*address) == AddressClass::Public,
    }
}

/// Why nothing allowed the host: the nearest miss gives the most useful words.
fn unmatched(policy: &NetworkPolicy, host: &Host, port: u16) -> Denial {
    let command = allow_command(host, port);
    match host {
        Host::Address(address) => match classify(*address) {
            AddressClass::Private(kind) => denial("private address", None, format!("{kind}: {command}")),
            AddressClass::Public | AddressClass::Never(_) => denial("address literal", None, command),
        },
        Host::Name(name) => unmatched_name(policy, host, name, port, command),
    }
}

fn unmatched_name(policy: &NetworkPolicy, host: &Host, name: &HostName, port: u16, command: String) -> Denial {
    let same_host = policy.allow.iter().find(|rule| rule.host.matches(host));
    if name.has_underscore() && (policy.allow_all.is_some() || same_host.is_some_and(|rule| rule.allows_port(port))) {
        return denial("underscore in name", None, command);
    }
    if let Some(rule) = same_host {
        return denial(
            "no rule for this port",
            None,
            format!("\"{}\" is for other ports: {command}", rule.text),
        );
    }
    let apex_of = |rule: &&NetRule| matches!(&rule.host, HostPattern::Subdomains(below) if below == name.as_str());
    if let Some(rule) = policy.allow.iter().find(apex_of) {
        let hint = format!(
            "\"{}\" is for the names below {name}, not for {name} itself: {command}",
            rule.text
        );
        return denial("no rule", None, hint);
    }
    denial("no rule", None, command)
}

fn private(host: &Host, port: u16, address: IpAddr, kind: &str) -> Denial {
    let command = allow_command(&Host::from(address), port);
    let hint = match host {
        Host::Name(name) => format!("{name} resolves to {address} ({kind}): {command}"),
        Host::Address(_) => format!("{kind}: {command}"),
    };
    denial("private address", None, hint)
}

fn refused_address(policy: &NetworkPolicy, address: IpAddr) -> Option<Denial> {
    let (network, origin) = policy.refused_by(address)?;
    let matched = Matched {
        rule: network.to_string(),
        reason: None,
        origin: origin.clone(),
    };
    Some(denial("refused address", Some(matched), format!("change {origin}")))
}

fn denied_by(rule: &NetRule) -> Denial {
    denial(
        "denied by rule",
        Some(matched(rule)),
        format!("remove the rule: {}", rule.origin),
    )
}

fn allow_command(host: &Host, port: u16) -> String {
    if DEFAULT_PORTS.contains(&port) {
        format!("pinfold run --allow {host} …")
    } else {
        format!("pinfold run --allow {host}:{port} …")
    }
}

fn matched(rule: &NetRule) -> Matched {
    Matched {
        rule: rule.text.clone(),
        reason: rule.reason.clone(),
        origin: rule.origin.clone(),
    }
}

fn denial(reason: &str, matched: Option<Matched>, hint: String) -> Denial {
    Denial {
        reason: reason.to_owned(),
        matched,
        hint,
    }
}

#[cfg(test)]
mod tests;
