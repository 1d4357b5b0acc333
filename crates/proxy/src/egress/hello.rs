//! What a client must say first on a port that is for TLS: a ClientHello that names the host it was let through for.
//!
//! The bytes are looked at and passed on untouched. Encrypted ClientHello is left alone: the outer name is what counts, and
//! browsers send the extension on every connection.

use pinfold_model::net::{Host, HostName};
use pinfold_model::verdict::Denial;
use rustls::server::Acceptor;

use super::rules::NEVER_ALLOWED;

/// A fatal `access_denied` alert (RFC 8446, section 6.2), for a client that has sent its ClientHello.
pub(crate) const ACCESS_DENIED: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 49];

/// Why the first bytes are not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    #[error("The first bytes are not a TLS ClientHello.")]
    NotTls,
    #[error("The server name in the ClientHello is not a host name.")]
    BadName,
}

/// Collects a ClientHello from reads of any size.
#[derive(Default)]
pub struct HelloReader {
    acceptor: Acceptor,
    begun: bool,
}

/// The canonical server name of a complete ClientHello, if it carries one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName(pub Option<HostName>);

impl HelloReader {
    /// Takes the next bytes; none while the ClientHello is incomplete. Bytes after the ClientHello are ignored.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a ClientHello.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<ServerName>, HelloError> {
        const HANDSHAKE: u8 = 0x16;
        if !self.begun && bytes.first().is_some_and(|first| *first != HANDSHAKE) {
            return Err(HelloError::NotTls);
        }
        self.begun |= !bytes.is_empty();
        while !bytes.is_empty() {
            if self.acceptor.read_tls(&mut bytes).map_err(|_| HelloError::NotTls)? == 0 {
                return Err(HelloError::NotTls);
            }
            if let Some(accepted) = self.acceptor.accept().map_err(|_| HelloError::NotTls)? {
                return match accepted.client_hello().server_name() {
                    None => Ok(Some(ServerName(None))),
                    Some(name) => HostName::parse(name.as_bytes())
                        .map(|name| Some(ServerName(Some(name))))
                        .map_err(|_| HelloError::BadName),
                };
            }
        }
        Ok(None)
    }
}

/// Whether a ClientHello is for the host that was judged. Only an address, which has no name to give, may go without.
pub(crate) fn check(host: &Host, named: &ServerName) -> Result<(), Denial> {
    match (host, &named.0) {
        (Host::Name(host), Some(name)) if host == name => Ok(()),
        (Host::Address(_), None) => Ok(()),
        (_, Some(name)) => Err(denial(
            "server name differs",
            format!("the client asked for {host} and then for {name}"),
        )),
        (Host::Name(_), None) => Err(denial(
            "no server name",
            "the client must send the host's name in its TLS handshake".to_owned(),
        )),
    }
}

pub(crate) fn refusal(error: &HelloError) -> Denial {
    match error {
        HelloError::NotTls => denial(
            "not TLS",
            "port 443 is for TLS; a rule for another port, HOST:PORT, passes any protocol".to_owned(),
        ),
        HelloError::BadName => denial("malformed server name", NEVER_ALLOWED.to_owned()),
    }
}

fn denial(reason: &str, hint: String) -> Denial {
    Denial {
        reason: reason.to_owned(),
        matched: None,
        hint,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A minimal TLS 1.2 ClientHello, built by hand from RFC 5246 and RFC 6066.
    pub(crate) fn client_hello(server_name: Option<&[u8]>) -> Vec<u8> {
        client_hello_with(server_name, &[])
    }

    fn client_hello_with(server_name: Option<&[u8]>, more_extensions: &[u8]) -> Vec<u8> {
        let mut extensions = Vec::new();
        if let Some(name) = server_name {
            let mut entry = vec![0];
            entry.extend(length16(name));
            extensions.extend([0, 0]);
            extensions.extend(length16(&length16(&entry)));
        }
        // signature_algorithms: ecdsa_secp256r1_sha256; supported_groups: x25519
        extensions.extend([0, 13, 0, 4, 0, 2, 4, 3]);
        extensions.extend([0, 10, 0, 4, 0, 2, 0, 29]);
        extensions.extend(more_extensions);
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend([0, 2, 0xc0, 0x2b, 1, 0]);
        body.extend(length16(&extensions));
        let mut message = vec![1, 0];
        message.extend(length16(&body));
        let mut record = vec![0x16, 3, 1];
        record.extend(length16(&message));
        record
    }

    fn length16(bytes: &[u8]) -> Vec<u8> {
        let mut out = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
        out.extend(bytes);
        out
    }

    fn read(bytes: &[u8]) -> Result<Option<ServerName>, HelloError> {
        HelloReader::default().feed(bytes)
    }

    fn named(name: &str) -> ServerName {
        ServerName(Some(HostName::parse(name.as_bytes()).unwrap()))
    }

    #[test]
    fn the_server_name_is_found_in_canonical_form_however_the_bytes_are_split() {
        let hello = client_hello(Some(b"API.Example.com"));
        assert_eq!(read(&hello), Ok(Some(named("api.example.com"))));
        let mut reader = HelloReader::default();
        let (last, first) = hello.split_last().unwrap();
        for byte in first {
            assert_eq!(reader.feed(&[*byte]), Ok(None));
        }
        assert_eq!(reader.feed(&[*last]), Ok(Some(named("api.example.com"))));
    }

    #[test]
    fn a_hello_that_is_split_over_several_records_is_put_together() {
        let whole = client_hello(Some(b"api.example.com"));
        let mut records = Vec::new();
        for part in whole[5..].chunks(7) {
            records.extend([0x16, 3, 1]);
            records.extend(length16(part));
        }
        assert_eq!(read(&records), Ok(Some(named("api.example.com"))));
    }

    #[test]
    fn a_hello_without_a_name_is_told_from_one_with_a_malformed_name() {
        assert_eq!(read(&client_hello(None)), Ok(Some(ServerName(None))));
        for name in [
            &b"a\0.example.com"[..],
            b"a b.example.com",
            b"",
            b"a..example.com",
            b"\xff.example.com",
        ] {
            let got = read(&client_hello(Some(name)));
            assert!(!matches!(got, Ok(Some(ServerName(Some(_))))), "{name:?}: {got:?}");
        }
    }

    #[test]
    fn a_second_server_name_is_refused() {
        let mut again = vec![0, 0];
        let mut entry = vec![0];
        entry.extend(length16(b"allowed.example"));
        again.extend(length16(&length16(&entry)));
        assert!(read(&client_hello_with(Some(b"other.example"), &again)).is_err());
    }

    #[test]
    fn bytes_that_are_no_hello_are_refused_at_once() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x\r\n",
            b"\0",
            b"\x16\x03\x01\0\x04\x02\0\0\0",
            b"\x17\x03\x03\0\x01\0",
        ] {
            assert_eq!(read(bytes), Err(HelloError::NotTls), "{bytes:?}");
        }
    }

    #[test]
    fn the_name_must_be_the_host_that_was_judged() {
        let name = Host::parse(b"api.example.com").unwrap();
        let literal = Host::parse(b"10.0.0.1").unwrap();
        let reason = |host: &Host, server: &ServerName| check(host, server).err().map(|denial| denial.reason);
        assert_eq!(reason(&name, &named("api.example.com")), None);
        assert_eq!(
            reason(&name, &named("evil.example.com")).as_deref(),
            Some("server name differs")
        );
        assert_eq!(reason(&name, &ServerName(None)).as_deref(), Some("no server name"));
        assert_eq!(reason(&literal, &ServerName(None)), None);
        assert_eq!(
            reason(&literal, &named("api.example.com")).as_deref(),
            Some("server name differs")
        );
    }

    proptest! {
        #[test]
        fn feeding_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), prefix in 0..80_usize) {
            let mut hello = client_hello(Some(b"api.example.com"));
            hello.truncate(prefix);
            hello.extend(bytes);
            let _ = read(&hello);
        }
    }
}
