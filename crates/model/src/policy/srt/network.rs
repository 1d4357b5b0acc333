//! `network`: hosts become rules, keys of other proxies are refused.

use std::collections::{HashMap, HashSet};

use super::Source;
use super::domain::{self, Form};
use super::section::{At, Report, Section, quoted};
use crate::net::{HostPattern, NetRule, PortRange};
use crate::policy::Layer;

const EVERY_PORT: PortRange = PortRange {
    first: 1,
    last: u16::MAX,
};

pub(super) fn read(mut section: Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    allowed(&mut section, source, layer, report);
    denied(&mut section, source, layer, report);
    resolved(&mut section, source, layer, report);
    // Both values hold already: nothing asks, so what is not listed is denied.
    section.bool("strictAllowlist", report);
    unix_sockets(&mut section, source, layer, report);
    other_systems(&mut section, report);
    other_proxies(&mut section, report);
    tls(&mut section, report);
    section.close(report);
}

fn allowed(section: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    let mut without_port = 0;
    for (key, text) in list(section, "allowedDomains", report) {
        let Some(has_port) = checked(&key, text, Form::HostAndPort, report) else {
            continue;
        };
        match NetRule::parse_allow(text, None, source.origin(&key)) {
            Ok(mut rule) => {
                if !has_port {
                    rule.ports = vec![EVERY_PORT];
                    without_port += 1;
                }
                layer.network.allow.push(rule);
            }
            Err(error) => report.fault(&key, error.to_string(), error.hint()),
        }
    }
    if without_port > 0 {
        report.note(format!(
            "`network.allowedDomains` opens every port of {without_port} of its entries, because they name none; \
             write `host:443` to narrow one."
        ));
    }
}

fn denied(section: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    let mut rules = Vec::new();
    for (key, text) in list(section, "deniedDomains", report) {
        if checked(&key, text, Form::AnyHostAndPort, report).is_none() {
            continue;
        }
        match NetRule::parse_deny(text, None, source.origin(&key)) {
            Ok(rule) => rules.push(rule),
            Err(error) => report.fault(&key, error.to_string(), error.hint()),
        }
    }
    let reasons = section
        .take("deniedDomainReasons")
        .and_then(|at| at.entries(report))
        .unwrap_or_default();
    let mut by_text: HashMap<String, (At<'_>, &str)> = HashMap::new();
    for (entry, at) in reasons {
        if let Some(reason) = at.string(report) {
            by_text.insert(entry.to_ascii_lowercase(), (at, reason));
        }
    }
    let mut used = HashSet::new();
    for rule in &mut rules {
        let text = rule.text.to_ascii_lowercase();
        if let Some((_, reason)) = by_text.get(&text) {
            rule.reason = Some((*reason).to_owned());
            used.insert(text);
        }
    }
    let mut unused: Vec<&At<'_>> = by_text
        .iter()
        .filter(|(text, _)| !used.contains(*text))
        .map(|(_, (at, _))| at)
        .collect();
    unused.sort_by(|one, other| one.key.cmp(&other.key));
    for at in unused {
        report.ignored(at, "no entry of `network.deniedDomains` is written like that");
    }
    layer.network.deny.extend(rules);
}

fn resolved(section: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    for (key, text) in section.strings("deniedResolvedAddresses", report).unwrap_or_default() {
        let plain = !text.contains(['[', ']', '*']);
        match NetRule::parse_deny(text, None, source.origin(&key)) {
            Ok(NetRule {
                host: HostPattern::Addresses(network),
                ports,
                origin,
                ..
            }) if plain && ports.is_empty() => {
                layer.network.refused_addresses.push((network, origin));
            }
            Err(error) if text.contains('/') => report.fault(&key, error.to_string(), error.hint()),
            _ => report.fault(
                &key,
                format!("{} is no address and no address range", quoted(text)),
                "write an address or a CIDR range, IPv6 without brackets, such as 10.0.0.0/8 or fd12::/32",
            ),
        }
    }
}

fn unix_sockets(section: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    if let Some(at) = section.take("allowUnixSockets")
        && at.strings(report).is_some()
    {
        report.ignored(
            &at,
            "it lists sockets for macOS; on Linux a socket of the host has to be relayed by Pinfold's policy",
        );
    }
    let allowed = section.take("allowAllUnixSockets");
    match allowed.as_ref().and_then(|at| at.bool(report)) {
        Some(true) => report.note(
            "`network.allowAllUnixSockets` lets the command make Unix sockets among its own processes; \
             sockets of the host stay out of view.",
        ),
        _ => layer.deny_unix_sockets = Some(source.origin("network.allowAllUnixSockets")),
    }
}

/// Keys for macOS.
fn other_systems(section: &mut Section<'_>, report: &mut Report) {
    const MACOS: &str = "it is for macOS";
    for key in ["allowLocalBinding", "httpProxyDualStack"] {
        if let Some(at) = section.take(key)
            && at.bool(report).is_some()
        {
            report.ignored(&at, MACOS);
        }
    }
    if let Some(at) = section.take("allowMachLookup")
        && let Some(names) = at.strings(report)
    {
        for (key, name) in names {
            if name.is_empty() || name.find('*').is_some_and(|star| star + 1 != name.len()) {
                report.fault(
                    &key,
                    format!("{} is no service name: a `*` can only end it", quoted(name)),
                    "write a name such as com.example.*",
                );
            }
        }
        report.ignored(&at, MACOS);
    }
}

fn other_proxies(section: &mut Section<'_>, report: &mut Report) {
    for key in ["httpProxyPort", "socksProxyPort"] {
        if let Some(at) = section.take(key)
            && at.integer(1, u16::MAX, report).is_some()
        {
            report.fault(
                &at.key,
                format!("`{key}` would hand the traffic to a proxy of your own, and all traffic has to pass Pinfold's"),
                "remove the key; the hosts of `network.allowedDomains` are reached directly, and this version has no upstream proxy",
            );
        }
    }
    if let Some(at) = section.take("mitmProxy")
        && let Some(mut mitm) = at.section(report)
    {
        if let Some(socket) = mitm.require("socketPath", report) {
            socket.string(report);
        }
        let domains = mitm.require("domains", report);
        hosts(domains.as_ref(), true, report);
        mitm.close(report);
        report.fault(
            &at.key,
            "another proxy behind a socket of the host would see hosts that Pinfold could not judge",
            "remove the key and list the hosts under `network.allowedDomains`; this version passes TLS through unopened",
        );
    }
    if let Some(at) = section.take("parentProxy")
        && let Some(mut parent) = at.section(report)
    {
        let mut used = false;
        for key in ["http", "https"] {
            let Some(url) = parent.take(key) else { continue };
            used = true;
            if let Some(text) = url.string(report)
                && !["http://", "https://"]
                    .iter()
                    .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme))
            {
                report.fault(
                    &url.key,
                    "the value is no URL of a proxy",
                    "write it as http://proxy.example.com:3128",
                );
            }
        }
        parent.string("noProxy", report);
        parent.close(report);
        if used {
            report.fault(
                &at.key,
                "this version of Pinfold has no upstream proxy, and going around the one you name could reach what it blocks",
                "remove the key where the host can connect directly",
            );
        } else {
            report.ignored(&at, "it names no proxy");
        }
    }
    if let Some(at) = section.take("filterRequest") {
        report.fault(
            &at.key,
            "a filter function cannot stand in a file, and without it requests would pass that it stops",
            "remove the key and narrow `network.allowedDomains` by host and port",
        );
    }
}

fn tls(section: &mut Section<'_>, report: &mut Report) {
    let Some(at) = section.take("tlsTerminate") else { return };
    let Some(mut tls) = at.section(report) else { return };
    let pair = (tls.take("caCertPath"), tls.take("caKeyPath"));
    for path in [&pair.0, &pair.1].into_iter().flatten() {
        path.string(report);
    }
    if pair.0.is_some() != pair.1.is_some() {
        report.fault(
            &at.key,
            "`caCertPath` and `caKeyPath` only work together",
            "name both files, or none for a CA per run",
        );
    }
    let excluded = tls.take("excludeDomains");
    hosts(excluded.as_ref(), false, report);
    tls.strings("extraCaCertPaths", report);
    tls.close(report);
    report.fault(
        &at.key,
        "this version of Pinfold does not open TLS connections, so nothing in them could be inspected or replaced",
        "remove the key; the hosts of `network.allowedDomains` are then decided by name and port and passed through unopened",
    );
}

/// Checks a list of hosts without ports.
pub(super) fn hosts(at: Option<&At<'_>>, not_empty: bool, report: &mut Report) {
    let Some(at) = at else { return };
    let Some(entries) = at.strings(report) else { return };
    if entries.is_empty() && not_empty {
        report.fault(&at.key, "the list is empty", "name at least one host");
    }
    for (key, text) in entries {
        checked(&key, text, Form::Host, report);
    }
}

fn checked(key: &str, text: &str, form: Form, report: &mut Report) -> Option<bool> {
    match domain::check(text, form) {
        Ok(has_port) => Some(has_port),
        Err(what) => {
            let hint = match form {
                Form::Host => "write a host such as api.example.com, *.example.com, 10.0.0.1 or [fd12::1]",
                Form::HostAndPort | Form::AnyHostAndPort => {
                    "write a host such as api.example.com or *.example.com:443, an IPv4 address, or an IPv6 address in brackets"
                }
            };
            report.fault(key, format!("{} {what}", quoted(text)), hint);
            None
        }
    }
}

fn list<'v>(section: &mut Section<'v>, key: &'static str, report: &mut Report) -> Vec<(String, &'v str)> {
    section
        .require(key, report)
        .and_then(|at| at.strings(report))
        .unwrap_or_default()
}
