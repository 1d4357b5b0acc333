//! The canonical form of a host, and the only way to obtain one.
//!
//! A name is lower-case ASCII labels without a trailing dot; a non-ASCII name has become A-labels (UTS-46, non-transitional,
//! strict). An address is dotted quad, or IPv6 in brackets. Refused: every other byte, every spelling that some resolver
//! would read as a number, zone identifiers, user information.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::address::unwrap_mapped;

/// Bytes of the longest name, without its trailing dot (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
/// Bytes of the longest label.
const MAX_LABEL: usize = 63;
/// Bytes of the longest spelling that is looked at; a Unicode spelling may be longer than the name it stands for.
const MAX_SPELLING: usize = 1024;

/// Why some bytes are not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("The host is empty.")]
    Empty,
    #[error("The host is longer than {MAX_NAME} bytes, which no name can be.")]
    TooLong,
    #[error("The host holds a label of more than {MAX_LABEL} bytes, which no name can have.")]
    LongLabel,
    #[error("The host holds an empty label: two dots in a row, a leading dot, or more than one trailing dot.")]
    EmptyLabel,
    #[error("The host holds a label that starts or ends with a hyphen, which no name can have.")]
    HyphenAtEdge,
    #[error("The host holds the byte 0x{byte:02x}, which no host may contain.")]
    ForbiddenByte { byte: u8 },
    #[error("The host is not a valid internationalized name (UTS-46, strict).")]
    Unicode,
    #[error(
        "The host is a number that programs read as different addresses; write the address as four decimal numbers."
    )]
    NumericSpelling,
    #[error("The host starts with a bracket but is not an IPv6 address in brackets.")]
    BadBrackets,
    #[error("The IPv6 address names a zone, which means something on one machine only.")]
    Zone,
    #[error("The IPv6 address has no brackets around it.")]
    BareIpv6,
    #[error("The host carries a user name or password.")]
    Userinfo,
    #[error("The port is not a number from 1 to 65535.")]
    BadPort,
}

/// A canonical host name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// Brings `bytes` into canonical form. Underscores are kept: whether they are wanted is for the rule to say.
    ///
    /// # Errors
    /// When the bytes are not a name, or are a spelling of an address.
    pub fn parse(bytes: &[u8]) -> Result<Self, HostError> {
        if bytes.is_empty() {
            return Err(HostError::Empty);
        }
        if bytes.len() > MAX_SPELLING {
            return Err(HostError::TooLong);
        }
        let ascii = if bytes.is_ascii() {
            lower_ascii(bytes)?
        } else {
            unicode_to_ascii(bytes)?
        };
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        check_labels(name)?;
        if name.split('.').any(|label| label.starts_with("xn--")) {
            check_a_labels(name)?;
        }
        Ok(Self(name.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a label holds an underscore, which only a rule that writes one permits.
    #[must_use]
    pub fn has_underscore(&self) -> bool {
        self.0.contains('_')
    }

    /// Whether this name lies below `parent` (canonical), by whole labels; a name is not below itself.
    #[must_use]
    pub fn is_below(&self, parent: &str) -> bool {
        self.0
            .strip_suffix(parent)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|labels| !labels.is_empty())
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name, or an address that needs no resolving.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Name(HostName),
    /// Never an IPv4-mapped IPv6 address: those have been unwrapped.
    Address(IpAddr),
}

impl Host {
    /// Parses a host without a port, as it stands in a `CONNECT` target, a `Host` header, a URL or a SOCKS request.
    ///
    /// # Errors
    /// When the bytes are neither a name nor an address in one of the two accepted spellings.
    pub fn parse(bytes: &[u8]) -> Result<Self, HostError> {
        if bytes.is_empty() {
            return Err(HostError::Empty);
        }
        if bytes.contains(&b'@') {
            return Err(HostError::Userinfo);
        }
        if let Some(rest) = bytes.strip_prefix(b"[") {
            let inner = rest.strip_suffix(b"]").ok_or(HostError::BadBrackets)?;
            return parse_ipv6(inner).map(|address| Self::from(IpAddr::V6(address)));
        }
        if let Some(address) = str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse::<Ipv4Addr>().ok())
        {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        if bytes.contains(&b':') && parse_ipv6(bytes).is_ok() {
            return Err(HostError::BareIpv6);
        }
        HostName::parse(bytes).map(Self::Name)
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(unwrap_mapped(address))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

pub(super) fn parse_ipv6(inner: &[u8]) -> Result<Ipv6Addr, HostError> {
    if inner.contains(&b'%') {
        return Err(HostError::Zone);
    }
    str::from_utf8(inner)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(HostError::BadBrackets)
}

fn lower_ascii(bytes: &[u8]) -> Result<Cow<'_, str>, HostError> {
    if let Some(&byte) = bytes.iter().find(|byte| !is_name_byte(**byte)) {
        return Err(HostError::ForbiddenByte { byte });
    }
    let text = str::from_utf8(bytes).map_err(|_| HostError::Unicode)?;
    Ok(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// The mapping also turns full-width and ideographic dots into dots, so labels are counted only afterwards.
fn unicode_to_ascii(bytes: &[u8]) -> Result<Cow<'_, str>, HostError> {
    Uts46::new()
        .to_ascii(bytes, AsciiDenyList::STD3, Hyphens::Check, DnsLength::Ignore)
        .map_err(|_| HostError::Unicode)
}

/// An A-label that decodes to nothing valid, or that is not the encoding of what it decodes to, has no canonical form.
fn check_a_labels(name: &str) -> Result<(), HostError> {
    match Uts46::new().to_ascii(name.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore) {
        Ok(again) if again == name => Ok(()),
        _ => Err(HostError::Unicode),
    }
}

fn check_labels(name: &str) -> Result<(), HostError> {
    if name.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    let mut last = "";
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > MAX_LABEL {
            return Err(HostError::LongLabel);
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::HyphenAtEdge);
        }
        last = label;
    }
    if reads_as_number(last) {
        Err(HostError::NumericSpelling)
    } else {
        Ok(())
    }
}

/// What makes URL parsers and `inet_aton` take the whole host for an IPv4 address.
fn reads_as_number(last: &str) -> bool {
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    last.strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
