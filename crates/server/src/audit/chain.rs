//! One line of the log: how it is built, how it is checked, and how the end of a file is judged.
//!
//! The hash covers the bytes of the line, not their meaning, so checking needs no second serialization.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::entry::{Event, Record};
use super::escape::to_safe_json;

/// Bytes of the longest line, its newline included.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// Strings of an event that would make a longer line are cut to this many bytes.
const CUT_STRING: usize = 512;

/// How far back from the end an intact line is looked for.
const WINDOW: u64 = 4 * MAX_LINE as u64;

/// Enough for the last line nearly always.
const FIRST_LOOK: u64 = 4096;

const HEAD: &[u8] = b"{\"hash\":\"";
const HASH_DIGITS: usize = 64;

/// Where the next record is tied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) hash: String,
    pub(super) seq: u64,
}

impl Link {
    /// The start of a chain.
    pub(super) fn start() -> Self {
        Self {
            hash: "0".repeat(HASH_DIGITS),
            seq: 0,
        }
    }
}

/// What a line says about the chain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joint {
    pub(super) prev: String,
    pub(super) link: Link,
}

/// Builds the line of a record, with its newline, and the link to the next.
pub(super) fn encode(
    link: &Link,
    time: &str,
    sandbox: &str,
    event: &Event,
) -> Result<(String, Link), serde_json::Error> {
    #[derive(Serialize)]
    struct Body<'a, E> {
        prev: &'a str,
        seq: u64,
        time: &'a str,
        sandbox: &'a str,
        event: E,
    }
    let seq = link.seq.saturating_add(1);
    let prev = link.hash.as_str();
    let mut body = if event.is_text() {
        to_safe_json(&Body {
            prev,
            seq,
            time,
            sandbox,
            event,
        })?
    } else {
        to_safe_json(&Body {
            prev,
            seq,
            time,
            sandbox,
            event: event.for_json(),
        })?
    };
    if body.len() + HEAD.len() + HASH_DIGITS + 4 > MAX_LINE {
        let mut value = serde_json::to_value(event.for_json())?;
        cut_strings(&mut value);
        let mut sandbox = sandbox.to_owned();
        cut(&mut sandbox);
        body = to_safe_json(&Body {
            prev,
            seq,
            time,
            sandbox: &sandbox,
            event: value,
        })?;
    }
    let hash = hex(&Sha256::digest(body.as_bytes()));
    let line = format!("{{\"hash\":\"{hash}\",{}\n", &body[1..]);
    Ok((line, Link { hash, seq }))
}

/// Reads a line (without its newline) whose own hash holds.
pub(super) fn joint(line: &[u8]) -> Option<Joint> {
    #[derive(Deserialize)]
    struct Body {
        prev: String,
        seq: u64,
    }
    let rest = line.strip_prefix(HEAD)?;
    let (hash, rest) = rest.split_at_checked(HASH_DIGITS)?;
    let rest = rest.strip_prefix(b"\",")?;
    let mut digest = Sha256::new();
    digest.update(b"{");
    digest.update(rest);
    let hash = std::str::from_utf8(hash).ok()?;
    if hash != hex(&digest.finalize()) {
        return None;
    }
    let body: Body = serde_json::from_slice(line).ok()?;
    Some(Joint {
        prev: body.prev,
        link: Link {
            hash: hash.to_owned(),
            seq: body.seq,
        },
    })
}

/// The record on a line, if the line is intact.
pub(super) fn decode(line: &[u8]) -> Option<Record> {
    joint(line)?;
    let mut record: Record = serde_json::from_slice(line).ok()?;
    record.line = String::from_utf8(line.to_vec()).ok()?;
    Some(record)
}

/// The end of a file.
#[derive(Debug)]
pub(super) struct Tail {
    /// The last intact record, if there is one near the end.
    pub(super) link: Option<Link>,
    /// What follows it, when something does.
    pub(super) damage: Option<Damage>,
}

/// Bytes after the last intact record: a line torn by a crash, or something that is no record.
#[derive(Debug)]
pub(super) struct Damage {
    /// Length and SHA-256, counting the newline that ends them; none when the last intact record is out of reach.
    pub(super) digest: Option<(u64, String)>,
    /// Whether they still lack their newline.
    pub(super) open: bool,
}

/// Looks at the end of a file of `len` bytes.
pub(super) fn tail(file: &File, len: u64) -> io::Result<Tail> {
    if len == 0 {
        return Ok(Tail {
            link: None,
            damage: None,
        });
    }
    let near = window(file, len, FIRST_LOOK)?;
    if let Some(link) = near
        .strip_suffix(b"\n")
        .and_then(last_line)
        .and_then(joint)
        .map(|j| j.link)
    {
        return Ok(Tail {
            link: Some(link),
            damage: None,
        });
    }
    let bytes = window(file, len, WINDOW)?;
    let mut end = bytes.len();
    // From the end backwards, over every place a line could end.
    while let Some(newline) = bytes[..end].iter().rposition(|b| *b == b'\n') {
        let whole = (bytes.len() as u64) == len;
        let line = last_line(&bytes[..newline]).or_else(|| whole.then_some(&bytes[..newline]));
        if let Some(joint) = line.and_then(joint) {
            let after = &bytes[newline + 1..];
            return Ok(Tail {
                link: Some(joint.link),
                damage: (!after.is_empty()).then(|| damage(after, true)),
            });
        }
        end = newline;
    }
    Ok(Tail {
        link: None,
        damage: Some(damage(&bytes, (bytes.len() as u64) == len)),
    })
}

fn damage(bytes: &[u8], complete: bool) -> Damage {
    let open = !bytes.ends_with(b"\n");
    let mut digest = Sha256::new();
    digest.update(bytes);
    if open {
        digest.update(b"\n");
    }
    let digest = complete.then(|| (bytes.len() as u64 + u64::from(open), hex(&digest.finalize())));
    Damage { digest, open }
}

/// What follows the last newline; none when there is no newline, for then the start may be cut off.
fn last_line(bytes: &[u8]) -> Option<&[u8]> {
    let newline = bytes.iter().rposition(|b| *b == b'\n')?;
    Some(&bytes[newline + 1..])
}

fn window(file: &File, len: u64, size: u64) -> io::Result<Vec<u8>> {
    let size = size.min(len);
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, len - size)?;
    Ok(bytes)
}

fn cut_strings(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => cut(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(cut_strings),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(cut_strings),
        _ => {}
    }
}

fn cut(text: &mut String) {
    if text.len() > CUT_STRING {
        let end = (0..=CUT_STRING)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
        text.push_str("[cut]");
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|n| char::from(DIGITS[usize::from(n)]))
        .collect()
}
