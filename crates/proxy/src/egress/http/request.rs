//! From the head of a request to what is decided on and what is sent upstream.

use pinfold_model::net::{Authority, Host, HostError};

use super::super::log::escaped;
use super::Framing;
use super::fields::{Connection, FieldError, framing, write_field, write_framing};
use super::head::{Field, HeadError, split, token, version};

const MAX_METHOD: usize = 32;
/// Bytes of a path that the log keeps.
const MAX_LOGGED: usize = 1024;
/// The port of an `http` URL without one.
const HTTP_PORT: u16 = 80;

/// Where the request was read, which fixes the form of its target.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// At the proxy itself: the target names the host.
    Proxy,
    /// Inside a tunnel to this host and port: nothing else may be named.
    Tunnel { host: &'a Host, port: u16 },
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `CONNECT`.
    Tunnel {
        host: Host,
        port: u16,
    },
    Forward(Forward),
}

/// A request that is to be sent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    pub host: Host,
    pub port: u16,
    pub method: String,
    /// Escaped, without the query.
    pub path: String,
    /// The rebuilt head, complete.
    pub head: Vec<u8>,
    pub framing: Framing,
    /// The client asks for a switch to the WebSocket protocol.
    pub websocket: bool,
    /// The client's minor version of HTTP/1.
    pub minor: u8,
    /// The client's connection may be used again.
    pub stays: bool,
}

/// Why a request is refused before any rule is asked, and what of it the log may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub fault: Fault,
    /// The host as far as it was understood, or an escaped form of the target.
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Head(#[from] HeadError),
    #[error("{0}")]
    Fields(#[from] FieldError),
    #[error("The host in the request is malformed. {0}")]
    Host(#[from] HostError),
    #[error("The request target is malformed.")]
    Target,
    #[error("This is a proxy: the request must name a full http:// URL, or use CONNECT.")]
    OriginForm,
    #[error("A URL of the scheme https is reached by CONNECT, any other scheme but http not at all.")]
    Scheme,
    #[error("A CONNECT request must name a host and a port.")]
    NoPort,
    #[error("The request has no Host field.")]
    NoHost,
    #[error("The request has more than one Host field.")]
    RepeatedHost,
    #[error("The Host field and the host in the request line differ.")]
    HostDiffers,
    #[error("The request names another host than the one its tunnel leads to.")]
    OtherHost,
    #[error("The method is refused here.")]
    Method,
    #[error("An Upgrade to anything but websocket is refused.")]
    Upgrade,
    #[error("An Expect field may only say 100-continue.")]
    Expectation,
    #[error("A request of this kind cannot have a body.")]
    Body,
    #[error("The chunked body is malformed.")]
    Chunks,
}

impl Fault {
    pub(crate) fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Head(error) if error.is_size() => (431, "Request Header Fields Too Large"),
            Self::Method => (405, "Method Not Allowed"),
            Self::Expectation => (417, "Expectation Failed"),
            _ => (400, "Bad Request"),
        }
    }

    /// Words for the log.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Host(_) => "malformed host",
            Self::HostDiffers | Self::OtherHost => "host differs",
            Self::Method => "method refused",
            Self::Upgrade => "upgrade refused",
            _ => "malformed request",
        }
    }
}

/// Parses the head of a request, which must be complete, and rebuilds it for the other side.
///
/// # Errors
/// When any part of it is malformed, ambiguous, or not for a proxy to forward.
pub fn parse(head: &[u8], arrival: Arrival<'_>) -> Result<Request, Refused> {
    let mut shown = Refused {
        fault: Fault::Target,
        host: "-".to_owned(),
        port: 0,
        method: None,
    };
    if let Arrival::Tunnel { host, port } = arrival {
        shown.host = host.to_string();
        shown.port = port;
    }
    parse_shown(head, arrival, &mut shown).map_err(|fault| Refused { fault, ..shown })
}

fn parse_shown(head: &[u8], arrival: Arrival<'_>, shown: &mut Refused) -> Result<Request, Fault> {
    let (start, fields) = split(head)?;
    let mut words = start.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(protocol), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HeadError::StartLine.into());
    };
    let method = token(method)
        .filter(|method| method.len() <= MAX_METHOD)
        .ok_or(HeadError::StartLine)?;
    shown.method = Some(method.to_owned());
    if matches!(arrival, Arrival::Proxy) {
        shown.host = escaped(target.split(|byte| *byte == b'?').next().unwrap_or_default(), 255);
    }
    let minor = version(protocol)?;
    if target.is_empty() || !target.iter().all(|byte| matches!(byte, 0x21..=0x7e)) || target.contains(&b'#') {
        return Err(Fault::Target);
    }
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) || method == "TRACE" {
        return Err(Fault::Method);
    }
    let line = Line { method, target, minor };
    if method == "CONNECT" {
        return tunnel(&line, &fields, arrival, shown);
    }
    forward(&line, &fields, arrival, shown).map(Request::Forward)
}

struct Line<'a> {
    method: &'a str,
    target: &'a [u8],
    minor: u8,
}

fn tunnel(line: &Line<'_>, fields: &[Field<'_>], arrival: Arrival<'_>, shown: &mut Refused) -> Result<Request, Fault> {
    if matches!(arrival, Arrival::Tunnel { .. }) {
        return Err(Fault::Method);
    }
    let authority = Authority::parse(line.target)?;
    shown.host = authority.host.to_string();
    let port = authority.port.ok_or(Fault::NoPort)?;
    shown.port = port;
    // Clients name the host here with the port, without it, or not at all; what they name must agree.
    if let Some(named) = host_field(fields)?
        && (named.host != authority.host || named.port.is_some_and(|named| named != port))
    {
        return Err(Fault::HostDiffers);
    }
    match framing(fields, line.minor)? {
        None | Some(Framing::Length(0)) => Ok(Request::Tunnel {
            host: authority.host,
            port,
        }),
        Some(_) => Err(Fault::Body),
    }
}

fn forward(line: &Line<'_>, fields: &[Field<'_>], arrival: Arrival<'_>, shown: &mut Refused) -> Result<Forward, Fault> {
    let (host, port, path) = destination(line, arrival)?;
    shown.host = host.to_string();
    shown.port = port;
    match host_field(fields)? {
        Some(named) if named.host == host && named.port.unwrap_or(HTTP_PORT) == port => {}
        Some(_) => return Err(Fault::HostDiffers),
        None if line.minor == 0 => {}
        None => return Err(Fault::NoHost),
    }
    let connection = Connection::of(fields)?;
    let framing = framing(fields, line.minor)?.unwrap_or(Framing::None);
    let websocket = websocket(line, fields, &connection, framing)?;
    let expects = expects_continue(line, fields)?;

    let mut head = Vec::with_capacity(1024);
    for part in [line.method.as_bytes(), b" ", &path, b" HTTP/1.1\r\n"] {
        head.extend_from_slice(part);
    }
    let authority = Authority {
        host: host.clone(),
        port: (port != HTTP_PORT).then_some(port),
    };
    write_field(&mut head, "Host", authority.to_string().as_bytes());
    let rebuilt = |field: &Field<'_>| ["host", "content-length", "expect"].iter().any(|name| field.is(name));
    for field in fields
        .iter()
        .filter(|field| !rebuilt(field) && !connection.is_hop_by_hop(field))
    {
        write_field(&mut head, field.name, field.value);
    }
    write_framing(&mut head, framing);
    if expects {
        write_field(&mut head, "Expect", b"100-continue");
    }
    if websocket {
        write_field(&mut head, "Connection", b"Upgrade");
        write_field(&mut head, "Upgrade", b"websocket");
    }
    head.extend_from_slice(b"\r\n");
    Ok(Forward {
        host,
        port,
        method: line.method.to_owned(),
        path: escaped(path.split(|byte| *byte == b'?').next().unwrap_or_default(), MAX_LOGGED),
        head,
        framing,
        websocket,
        minor: line.minor,
        stays: connection.stays(line.minor),
    })
}

/// The one host of the request, and the path and query to ask it for.
fn destination(line: &Line<'_>, arrival: Arrival<'_>) -> Result<(Host, u16, Vec<u8>), Fault> {
    let origin_form = line.target.starts_with(b"/") || (line.target == b"*" && line.method == "OPTIONS");
    match arrival {
        Arrival::Proxy if origin_form => Err(Fault::OriginForm),
        Arrival::Tunnel { host, port } if origin_form => Ok((host.clone(), port, line.target.to_vec())),
        Arrival::Proxy => absolute(line),
        Arrival::Tunnel { host, port } => {
            let (named, named_port, path) = absolute(line)?;
            if named != *host || named_port != port {
                return Err(Fault::OtherHost);
            }
            Ok((named, named_port, path))
        }
    }
}

fn absolute(line: &Line<'_>) -> Result<(Host, u16, Vec<u8>), Fault> {
    const SCHEME: &[u8] = b"http://";
    let target = line.target;
    let scheme = target
        .get(..SCHEME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    if !scheme {
        let other = target.windows(3).any(|part| part == b"://");
        return Err(if other { Fault::Scheme } else { Fault::Target });
    }
    let rest = &target[SCHEME.len()..];
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?'))
        .unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = Authority::parse(authority)?;
    let path = match path.first() {
        None if line.method == "OPTIONS" => b"*".to_vec(),
        None => b"/".to_vec(),
        Some(b'?') => [b"/", path].concat(),
        Some(_) => path.to_vec(),
    };
    Ok((authority.host, authority.port.unwrap_or(HTTP_PORT), path))
}

fn host_field(fields: &[Field<'_>]) -> Result<Option<Authority>, Fault> {
    let mut hosts = fields.iter().filter(|field| field.is("host"));
    match (hosts.next(), hosts.next()) {
        (None, _) => Ok(None),
        (Some(host), None) => Ok(Some(Authority::parse(host.value)?)),
        (Some(_), Some(_)) => Err(Fault::RepeatedHost),
    }
}

/// An `Upgrade` that `Connection` does not announce is ignored, as the RFC has it; one for another protocol never is.
fn websocket(
    line: &Line<'_>,
    fields: &[Field<'_>],
    connection: &Connection<'_>,
    framing: Framing,
) -> Result<bool, Fault> {
    let mut upgrades = fields.iter().filter(|field| field.is("upgrade"));
    let Some(upgrade) = upgrades.next() else {
        return Ok(false);
    };
    if upgrades.next().is_some() || !upgrade.value.eq_ignore_ascii_case(b"websocket") {
        return Err(Fault::Upgrade);
    }
    if !connection.upgrade || line.minor == 0 {
        return Ok(false);
    }
    if line.method != "GET" {
        return Err(Fault::Upgrade);
    }
    match framing {
        Framing::None | Framing::Length(0) => Ok(true),
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose => Err(Fault::Body),
    }
}

fn expects_continue(line: &Line<'_>, fields: &[Field<'_>]) -> Result<bool, Fault> {
    let mut expectations = fields.iter().filter(|field| field.is("expect"));
    match (expectations.next(), expectations.next()) {
        (None, _) => Ok(false),
        (Some(field), None) if field.value.eq_ignore_ascii_case(b"100-continue") => Ok(line.minor >= 1),
        _ => Err(Fault::Expectation),
    }
}

#[cfg(test)]
mod tests;
