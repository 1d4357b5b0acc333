//! What the proxy itself says to a client, and how it takes its leave.

use std::time::Duration;

use pinfold_model::verdict::Denial;
use tokio::time::timeout;

use super::super::connection::{Connection, end_writing, write_all};
use super::request::Fault;

/// How long a client may take to read its refusal while it is still sending.
const LINGER: Duration = Duration::from_secs(2);
/// What of its sending is read and thrown away meanwhile.
const LINGER_BYTES: usize = 4 * 1024 * 1024;

pub(crate) fn tunnel_open() -> &'static [u8] {
    b"HTTP/1.1 200 Connection established\r\n\r\n"
}

/// Refused by policy. The reason stands in the status line too: many clients show nothing else.
pub(crate) fn connect_denied(host: &str, port: u16, denial: &Denial) -> Vec<u8> {
    let rule = denial.matched.as_ref().map_or_else(String::new, |matched| {
        let reason = matched
            .reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("rule: {}{reason}, {}\n", matched.rule, matched.origin)
    });
    let text = format!(
        "pinfold denied {host}:{port}: {}.\n{rule}hint: {}\n",
        denial.reason, denial.hint
    );
    let status = format!("403 Denied by pinfold: {}", denial.reason);
    build(&status, &[("X-Pinfold-Denied", &denial.reason)], &text)
}

/// Permitted, but the other side could not be reached.
pub(crate) fn connect_failed(host: &str, port: u16, error: &str) -> Vec<u8> {
    build(
        "502 Bad Gateway",
        &[],
        &format!("pinfold allows {host}:{port}, but could not reach it. {error}\n"),
    )
}

/// Refused as malformed, before any rule was asked.
pub(crate) fn malformed(fault: &Fault) -> Vec<u8> {
    let (status, reason) = fault.status();
    let text = format!("pinfold refused the request. {fault}\n");
    build(
        &format!("{status} {reason}"),
        &[("X-Pinfold-Denied", fault.reason())],
        &text,
    )
}

/// `status` and the field values are words of this crate: ASCII without control characters.
fn build(status: &str, fields: &[(&str, &str)], text: &str) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in fields {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("Content-Type: text/plain; charset=utf-8\r\n");
    out.push_str(&format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    ));
    out.into_bytes()
}

/// Sends the last words and closes, without cutting them off: closing on unread bytes would reset the connection, and the
/// client might lose what it has not read yet.
pub(crate) async fn say(mut client: Connection, words: &[u8]) {
    let farewell = async {
        if !words.is_empty() && write_all(&client.stream, words).await.is_err() {
            return;
        }
        end_writing(&client.stream);
        let mut drained = 0;
        while drained < LINGER_BYTES {
            let held = client.buffer.data().len();
            client.buffer.consume(held);
            match client.fill().await {
                Ok(0) | Err(_) => return,
                Ok(count) => drained += count,
            }
        }
    };
    let _ = timeout(LINGER, farewell).await;
}
