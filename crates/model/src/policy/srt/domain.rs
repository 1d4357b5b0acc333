//! The format's domain entries, which are narrower than Pinfold's network rules.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::net::parse_port;

/// What a list of domains takes besides hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Hosts only.
    Host,
    /// Hosts, each with a port or without.
    HostAndPort,
    /// The same and `*`, with a port or without.
    AnyHostAndPort,
}

/// Checks an entry; the answer is whether it names a port.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn check(text: &str, form: Form) -> Result<bool, &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    if text.contains("://") || text.contains(['/', '@', '?', '#']) {
        return Err("is a URL or a path, and only hosts are named here");
    }
    let (host, port) = split(text)?;
    if let Some(port) = port {
        if form == Form::Host {
            return Err("names a port, which this list does not take");
        }
        if parse_port(port.as_bytes()).is_none() {
            return Err("has a port that is no number from 1 to 65535");
        }
    }
    if host == "*" {
        return if form == Form::AnyHostAndPort {
            Ok(port.is_some())
        } else {
            Err("would match every host")
        };
    }
    if !host.starts_with('[') {
        check_name(host)?;
    }
    Ok(port.is_some())
}

fn split(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or("has a bracket that is not closed")?;
        address.parse::<Ipv6Addr>().map_err(|_| "is no IPv6 address")?;
        let port = match rest {
            "" => None,
            _ => Some(
                rest.strip_prefix(':')
                    .ok_or("has something after its bracket that is no port")?,
            ),
        };
        return Ok((&text[..text.len() - rest.len()], port));
    }
    match text.split_once(':') {
        None => Ok((text, None)),
        Some((_, rest)) if rest.contains(':') => Err("is an IPv6 address without brackets"),
        Some((host, port)) => Ok((host, Some(port))),
    }
}

fn check_name(host: &str) -> Result<(), &'static str> {
    if let Some(below) = host.strip_prefix("*.") {
        if below.contains('*') {
            return Err("has a `*` that is not its whole first label");
        }
        let labels = below.strip_suffix('.').unwrap_or(below).split('.');
        return if labels.count() >= 2 {
            Ok(())
        } else {
            Err("is too broad: a `*.` needs at least two labels after it")
        };
    }
    if host.contains('*') {
        return Err("has a `*` that is not its whole first label");
    }
    let known = host.contains('.') || host.eq_ignore_ascii_case("localhost") || host.parse::<Ipv4Addr>().is_ok();
    if known {
        Ok(())
    } else {
        Err("is no host name: only `localhost` has no dot")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_domain_entries() {
        use Form::{AnyHostAndPort, Host, HostAndPort};
        let table = [
            ("api.example.com", Host, Some(false)),
            ("localhost", Host, Some(false)),
            ("LOCALHOST:80", HostAndPort, Some(true)),
            ("*.example.com:8443", HostAndPort, Some(true)),
            ("10.0.0.1", Host, Some(false)),
            ("[::1]", Host, Some(false)),
            ("[2001:db8::1]:443", HostAndPort, Some(true)),
            ("*", AnyHostAndPort, Some(false)),
            ("*:22", AnyHostAndPort, Some(true)),
            ("*", HostAndPort, None),
            ("*.com", AnyHostAndPort, None),
            ("*.", HostAndPort, None),
            ("", Host, None),
            ("intranet", Host, None),
            ("a.example.com:443", Host, None),
            ("a.example.com:0443", HostAndPort, None),
            ("a.example.com:0", HostAndPort, None),
            ("a.example.com:65536", HostAndPort, None),
            ("a.example.com:", HostAndPort, None),
            ("a.example.com:80,443", HostAndPort, None),
            ("https://a.example.com", HostAndPort, None),
            ("a.example.com/x", HostAndPort, None),
            ("10.0.0.0/8", AnyHostAndPort, None),
            ("u@a.example.com", HostAndPort, None),
            ("a.*.example.com", HostAndPort, None),
            ("*a.example.com", HostAndPort, None),
            ("*.*.example.com", HostAndPort, None),
            ("2001:db8::1", HostAndPort, None),
            ("[2001:db8::1", HostAndPort, None),
            ("[a.example.com]", HostAndPort, None),
            ("[::1]443", HostAndPort, None),
        ];
        for (text, form, expected) in table {
            assert_eq!(check(text, form).ok(), expected, "{text}");
        }
    }
}
