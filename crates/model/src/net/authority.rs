//! `host`, `host:port` and `[v6]:port`, as they stand in a `CONNECT` target, a URL or a `Host` header.

use std::fmt;
use std::num::NonZeroU16;
use std::str;

use super::host::{Host, HostError};

/// A host with the port that was written beside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

impl Authority {
    /// # Errors
    /// When the host is none, or the port is not a plain number from 1 to 65535. Userinfo is refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, HostError> {
        if bytes.contains(&b'@') {
            return Err(HostError::Userinfo);
        }
        let (host, port) = split_port(bytes)?;
        let host = Host::parse(host)?;
        let port = port
            .map(|digits| parse_port(digits).ok_or(HostError::BadPort))
            .transpose()?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

/// Parses a port of 1 to 65535 without sign, space or leading zero.
#[must_use]
pub fn parse_port(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits[0] == b'0' || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits)
        .ok()?
        .parse::<NonZeroU16>()
        .ok()
        .map(NonZeroU16::get)
}

fn split_port(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), HostError> {
    if bytes.first() == Some(&b'[') {
        let end = bytes
            .iter()
            .position(|byte| *byte == b']')
            .ok_or(HostError::BadBrackets)?
            + 1;
        let (host, rest) = bytes.split_at(end);
        return match rest.split_first() {
            None => Ok((host, None)),
            Some((b':', port)) => Ok((host, Some(port))),
            Some(_) => Err(HostError::BadBrackets),
        };
    }
    match bytes.iter().position(|byte| *byte == b':') {
        None => Ok((bytes, None)),
        // More than one colon can only be an IPv6 address without brackets, or garbage; the host parser names it.
        Some(colon) if bytes[colon + 1..].contains(&b':') => Ok((bytes, None)),
        Some(colon) => Ok((&bytes[..colon], Some(&bytes[colon + 1..]))),
    }
}
