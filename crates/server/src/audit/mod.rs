//! The audit log: one append-only, hash-chained file of JSON lines that every `pinfold` process of a user shares.
//!
//! Owns the folder it is given: `audit.jsonl`, the older files `audit.jsonl.1` to `.8` and `audit.lock`, all private to
//! the user. Each record carries the SHA-256 of itself and of the record before it, so an edit, an insertion or a removal
//! in the middle is seen by [`verify`]. The chain has no secret: it shows damage and careless edits, it does not stop
//! somebody who may write the files from computing a new chain or from cutting off the end.
//!
//! Refuses to follow a symlink in place of one of its files, and never holds queries, header values, bodies or secrets.

mod chain;
mod entry;
mod escape;
mod filter;
mod log;
mod reader;
mod time;
mod verify;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use entry::{Entry, Event, Record};
pub use escape::{printable, printable_path};
pub use filter::{Filter, HostFilter, Outcome};
pub use log::AuditLog;
pub use reader::{Damaged, Item, Reader};
pub use time::{format_utc, parse_utc};
pub use verify::{Break, Verified, verify};

/// Why the log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log could not {what} {}: {source}; {}", printable_path(.path), hint(.source))]
    Io {
        /// What was tried, as a verb: `write to`, `open`.
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the audit log {} stayed locked by another process for {seconds} s, so nothing was recorded; \
         hint: look for a stopped `pinfold` process (`jobs`, `ps`) and continue or end it",
        printable_path(.path)
    )]
    Busy { path: PathBuf, seconds: u64 },
    #[error("a record for the audit log could not be written as JSON: {source}; hint: this is a bug, please report it")]
    Encode {
        #[source]
        source: serde_json::Error,
    },
}

impl AuditError {
    fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// Whether the device or the quota is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "hint: free some space on that file system",
        io::ErrorKind::PermissionDenied => {
            "hint: the folder and its files must belong to you (they may have been made by `sudo pinfold`)"
        }
        _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "hint: a symlink stands in place of the file; remove it"
        }
        _ => "hint: check that the folder exists on a file system you can write to",
    }
}
