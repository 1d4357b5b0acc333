//! HTTP/1.1 as a client or a server inside out may send it.

use pinfold_model::net::Host;
use pinfold_proxy::egress::http::Framing;
use pinfold_proxy::egress::http::chunked::Decoder;
use pinfold_proxy::egress::http::head::HeadScan;
use pinfold_proxy::egress::http::request::{Arrival, Request, parse};
use pinfold_proxy::egress::http::response::{After, Context, Response};

/// What is sent on means to the other side what it meant here: the rebuilt head is read as the same request.
pub(crate) fn request(bytes: &[u8]) {
    let Some(head) = head(bytes) else { return };
    let Ok(Request::Forward(forward)) = parse(head, Arrival::Proxy) else {
        return;
    };
    assert_eq!(
        HeadScan::default().find(&forward.head),
        Ok(Some(forward.head.len())),
        "the rebuilt head has another end"
    );
    let Forwarded { host, port, framing } = again(&forward.head, &forward.host, forward.port);
    assert_eq!((host, port, framing), (forward.host, forward.port, forward.framing));
}

struct Forwarded {
    host: Host,
    port: u16,
    framing: Framing,
}

fn again(head: &[u8], host: &Host, port: u16) -> Forwarded {
    match parse(head, Arrival::Tunnel { host, port }) {
        Ok(Request::Forward(forward)) => Forwarded {
            host: forward.host,
            port: forward.port,
            framing: forward.framing,
        },
        other => panic!("rebuilt as \"{}\", read as {other:?}", head.escape_ascii()),
    }
}

/// A rebuilt response is a response with the same framing.
pub(crate) fn response(bytes: &[u8]) {
    let Some(head) = head(bytes) else { return };
    let context = Context {
        head_only: false,
        websocket: false,
        minor: 1,
    };
    let Ok(response) = Response::parse(head, context) else {
        return;
    };
    let rebuilt = response.rebuild(context, After::Stay);
    match Response::parse(&rebuilt, context) {
        Ok(again) => assert_eq!(again.framing, response.client_framing(context)),
        Err(error) => panic!("rebuilt as \"{}\": {error}", rebuilt.escape_ascii()),
    }
}

/// However the bytes are cut into reads, the same content comes out.
pub(crate) fn chunked(bytes: &[u8]) {
    let whole = decoded(bytes, bytes.len());
    let trickled = decoded(bytes, 1);
    assert_eq!(whole, trickled);
}

/// The content, and whether the body ended; none when it is not chunked coding. `piece` bytes arrive at a time.
fn decoded(bytes: &[u8], piece: usize) -> Option<(Vec<u8>, bool)> {
    let mut decoder = Decoder::default();
    let mut content = Vec::new();
    let mut pending: Vec<u8> = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        pending.extend_from_slice(part);
        loop {
            let step = decoder.step(&pending).ok()?;
            assert!(step.skip + step.data <= pending.len(), "reads beyond the bytes given");
            content.extend_from_slice(&pending[step.skip..step.skip + step.data]);
            pending.drain(..step.skip + step.data);
            if step.done {
                return Some((content, true));
            }
            if step.skip + step.data == 0 || pending.is_empty() {
                break;
            }
        }
    }
    Some((content, false))
}

fn head(bytes: &[u8]) -> Option<&[u8]> {
    let length = HeadScan::default().find(bytes).ok()??;
    Some(&bytes[..length])
}
