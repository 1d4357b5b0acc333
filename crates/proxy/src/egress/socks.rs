//! SOCKS5 (RFC 1928): `CONNECT` only, names resolved here, no authentication: a sandbox is known by its listener.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pinfold_model::net::{Host, HostError};

/// The answer to a SOCKS4 or SOCKS4a request: "rejected or failed".
pub(crate) const SOCKS4_REJECTED: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];
pub(crate) const NO_AUTHENTICATION: [u8; 2] = [5, 0];
pub(crate) const NO_ACCEPTABLE_METHOD: [u8; 2] = [5, 0xff];

/// The reply field of RFC 1928, section 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The whole reply. The bound address stays zero: the host's own addresses are no business of the sandbox.
    pub(crate) fn bytes(self) -> [u8; 10] {
        [5, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Why a client's bytes are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocksError {
    #[error("The client speaks SOCKS4, which is not supported: use SOCKS5.")]
    Socks4,
    #[error("The client does not speak SOCKS5.")]
    NotSocks,
    #[error("The client offers no connection without authentication.")]
    NoMethod,
    #[error("The request is malformed.")]
    Malformed,
    #[error("The command {command} is not supported: only CONNECT is.")]
    Command { command: u8 },
    #[error("The address type {kind} is not known.")]
    AddressType { kind: u8 },
    #[error("The host is malformed. {source}")]
    Host {
        sent: Vec<u8>,
        port: u16,
        source: HostError,
    },
}

/// A parsed message and the bytes it took; none while it is incomplete.
pub type Taken<T> = Option<(T, usize)>;

/// The client's first message: a version and the methods it offers.
///
/// # Errors
/// When the version is another one, or "no authentication" is not among the methods.
pub fn greeting(bytes: &[u8]) -> Result<Taken<()>, SocksError> {
    match bytes {
        [] => Ok(None),
        [5] => Ok(None),
        [5, count, rest @ ..] => {
            let count = usize::from(*count);
            match rest.get(..count) {
                None => Ok(None),
                Some(methods) if methods.contains(&0) => Ok(Some(((), 2 + count))),
                Some(_) => Err(SocksError::NoMethod),
            }
        }
        [4, ..] => Err(SocksError::Socks4),
        [..] => Err(SocksError::NotSocks),
    }
}

/// Where the client wants to go.
///
/// # Errors
/// When it is no `CONNECT` request to a host and port.
pub fn request(bytes: &[u8]) -> Result<Taken<(Host, u16)>, SocksError> {
    let [version, rest @ ..] = bytes else { return Ok(None) };
    if *version != 5 {
        return Err(SocksError::Malformed);
    }
    let [command, reserved, kind, rest @ ..] = rest else {
        return Ok(None);
    };
    if *command != 1 {
        return Err(SocksError::Command { command: *command });
    }
    if *reserved != 0 {
        return Err(SocksError::Malformed);
    }
    let (address, rest) = match *kind {
        1 => match rest.split_first_chunk::<4>() {
            Some((octets, rest)) => (Sent::Address(IpAddr::V4(Ipv4Addr::from(*octets))), rest),
            None => return Ok(None),
        },
        4 => match rest.split_first_chunk::<16>() {
            Some((octets, rest)) => (Sent::Address(IpAddr::V6(Ipv6Addr::from(*octets))), rest),
            None => return Ok(None),
        },
        3 => match rest
            .split_first()
            .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)))
        {
            Some((name, rest)) => (Sent::Name(name), rest),
            None => return Ok(None),
        },
        kind => return Err(SocksError::AddressType { kind }),
    };
    let Some((port, rest)) = rest.split_first_chunk::<2>() else {
        return Ok(None);
    };
    let port = u16::from_be_bytes(*port);
    let host = address.host(port)?;
    Ok(Some(((host, port), bytes.len() - rest.len())))
}

enum Sent<'a> {
    Address(IpAddr),
    Name(&'a [u8]),
}

impl Sent<'_> {
    fn host(&self, port: u16) -> Result<Host, SocksError> {
        let (sent, parsed) = match self {
            Self::Address(address) => (address.to_string().into_bytes(), Ok(Host::from(*address))),
            Self::Name(name) => (name.to_vec(), Host::parse(name)),
        };
        match parsed {
            Ok(host) if port != 0 => Ok(host),
            Ok(_) => Err(SocksError::Host {
                sent,
                port,
                source: HostError::BadPort,
            }),
            Err(source) => Err(SocksError::Host { sent, port, source }),
        }
    }
}

impl SocksError {
    /// What to answer before closing; nothing to a client whose protocol is not known.
    pub(crate) fn answer(&self) -> Vec<u8> {
        match self {
            Self::Socks4 => SOCKS4_REJECTED.to_vec(),
            Self::NotSocks => Vec::new(),
            Self::NoMethod => NO_ACCEPTABLE_METHOD.to_vec(),
            Self::Malformed => Reply::GeneralFailure.bytes().to_vec(),
            Self::Command { .. } => Reply::CommandNotSupported.bytes().to_vec(),
            Self::AddressType { .. } => Reply::AddressTypeNotSupported.bytes().to_vec(),
            Self::Host { .. } => Reply::NotAllowed.bytes().to_vec(),
        }
    }

    /// Words for the log.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Socks4 => "SOCKS4 not supported",
            Self::NotSocks | Self::Malformed => "malformed request",
            Self::NoMethod => "authentication offered",
            Self::Command { .. } => "command not supported",
            Self::AddressType { .. } => "address type not known",
            Self::Host { .. } => "malformed host",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn connect(kind: u8, address: &[u8], port: u16) -> Vec<u8> {
        let mut bytes = vec![5, 1, 0, kind];
        bytes.extend(address);
        bytes.extend(port.to_be_bytes());
        bytes
    }

    fn host(text: &str) -> Host {
        Host::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn names_and_both_kinds_of_address_are_understood() {
        for (bytes, wanted, port) in [
            (connect(3, b"\x0fApi.Example.com", 443), "api.example.com", 443),
            (connect(3, b"\x0710.0.0.", 443), "", 0),
            (connect(3, b"\x0810.0.0.1", 80), "10.0.0.1", 80),
            (connect(1, &[10, 0, 0, 1], 5432), "10.0.0.1", 5432),
            (
                connect(4, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1], 1),
                "10.0.0.1",
                1,
            ),
            (
                connect(4, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 443),
                "[2001:db8::1]",
                443,
            ),
        ] {
            if wanted.is_empty() {
                assert!(matches!(request(&bytes), Err(SocksError::Host { .. })));
            } else {
                assert_eq!(
                    request(&bytes),
                    Ok(Some(((host(wanted), port), bytes.len()))),
                    "{wanted}"
                );
            }
        }
    }

    #[test]
    fn hostile_names_are_refused_before_any_rule_is_asked() {
        for name in [
            &b"a\0.example.com"[..],
            b"a\r\nb",
            b"a b",
            b"a@b",
            b"127.1",
            b"0x7f000001",
            b"2130706433",
            b"::1",
            b"[fe80::1%1]",
            b"",
            b"a..b",
            b"a.b..",
            b"*.example.com",
            b"example.com:443",
        ] {
            let mut sent = vec![u8::try_from(name.len()).unwrap()];
            sent.extend(name);
            assert!(
                matches!(request(&connect(3, &sent, 443)), Err(SocksError::Host { .. })),
                "{name:?}"
            );
        }
        assert!(matches!(
            request(&connect(1, &[8, 8, 8, 8], 0)),
            Err(SocksError::Host { .. })
        ));
    }

    #[test]
    fn other_commands_versions_and_address_types_are_refused_by_their_own_code() {
        for (bytes, reply) in [
            (vec![5, 2, 0, 1, 1, 2, 3, 4, 0, 80], Reply::CommandNotSupported),
            (vec![5, 3, 0, 1, 0, 0, 0, 0, 0, 0], Reply::CommandNotSupported),
            (vec![5, 0xf0, 0, 1, 1, 2, 3, 4, 0, 80], Reply::CommandNotSupported),
            (vec![5, 1, 0, 2, 1, 2, 3, 4, 0, 80], Reply::AddressTypeNotSupported),
            (vec![5, 1, 9, 1, 1, 2, 3, 4, 0, 80], Reply::GeneralFailure),
            (vec![4, 1, 0, 80, 1, 2, 3, 4, 0], Reply::GeneralFailure),
        ] {
            assert_eq!(request(&bytes).unwrap_err().answer(), reply.bytes(), "{bytes:?}");
        }
        assert_eq!(greeting(&[4, 1, 0, 80, 1, 2, 3, 4, 0]), Err(SocksError::Socks4));
        assert_eq!(greeting(b"GET / HTTP/1.1\r\n"), Err(SocksError::NotSocks));
        assert_eq!(greeting(&[5, 1, 2]), Err(SocksError::NoMethod));
        assert_eq!(greeting(&[5, 0]), Err(SocksError::NoMethod));
        assert_eq!(greeting(&[5, 2, 2, 0, 9]), Ok(Some(((), 4))));
    }

    #[test]
    fn a_message_that_arrives_in_pieces_is_waited_for() {
        let whole = connect(3, b"\x0bexample.com", 443);
        for length in 0..whole.len() {
            assert_eq!(request(&whole[..length]), Ok(None), "{length}");
        }
        for length in 0..4 {
            assert_eq!(greeting(&[5, 2, 0, 2][..length]), Ok(None), "{length}");
        }
    }

    proptest! {
        #[test]
        fn parsing_bytes_never_panics_and_never_takes_more_than_there_is(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(((), taken))) = greeting(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
            if let Ok(Some((_, taken))) = request(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
