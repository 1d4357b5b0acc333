//! HTTP/1.1 as a proxy has to read it: one strict parser for both directions, and messages that are rebuilt from what was
//! parsed, never copied through.
//!
//! Pure: [`head`], [`fields`], [`request`], [`response`], [`chunked`]. Acting: `serve` (one client connection), `exchange`
//! (one request and its response), `body`, `answer` (what the proxy itself says).

mod answer;
mod body;
mod exchange;
mod fields;
mod serve;

pub mod chunked;
pub mod head;
pub mod request;
pub mod response;

pub(crate) use answer::{say, tunnel_open};
pub(crate) use serve::{Parsing, Served, Standing, serve, turn_away};

/// How the end of a message body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
    /// Responses only: the body ends with the connection.
    UntilClose,
}
