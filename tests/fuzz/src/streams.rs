//! The first bytes of connections that are not HTTP.

use pinfold_proxy::egress::{hello::HelloReader, socks};

/// A request is read from exactly its own bytes: none of its beginnings is one, and what follows does not change it.
pub(crate) fn socks(bytes: &[u8]) {
    drop(socks::greeting(bytes));
    let Ok(Some((target, taken))) = socks::request(bytes) else {
        return;
    };
    assert_eq!(socks::request(&bytes[..taken]), Ok(Some((target, taken))));
    for end in 0..taken {
        assert_eq!(
            socks::request(&bytes[..end]),
            Ok(None),
            "a request of {taken} bytes is taken at {end}"
        );
    }
}

/// However the bytes are cut into reads, the same server name comes out.
pub(crate) fn client_hello(bytes: &[u8]) {
    let mut whole = HelloReader::default();
    let Ok(Some(name)) = whole.feed(bytes) else { return };
    let mut trickled = HelloReader::default();
    let named = bytes
        .iter()
        .find_map(|byte| match trickled.feed(std::slice::from_ref(byte)) {
            Ok(named) => named.map(Ok),
            Err(error) => Some(Err(error)),
        });
    assert_eq!(named, Some(Ok(name)));
}
