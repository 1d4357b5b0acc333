//! What is recorded: an entry as the caller gives it, and a record as the file keeps it.

use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::verdict::{Decision, Outcome};
use serde::{Deserialize, Serialize};

use super::escape::printable_path;

/// One thing that happened to one sandbox; the log adds the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub sandbox: String,
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Event {
    /// A network request was decided (and, if allowed, carried out).
    Network(Decision),
    /// The walls stood and the command was started.
    Started { backend: String },
    /// The sandbox was not started: which layer could not be applied, and at which step.
    StartRefused {
        layer: String,
        step: String,
        reason: String,
    },
    /// The self-test found a wall that does not hold; nothing was started.
    SelfTestFailed { check: String, reason: String },
    /// The command made a file with a protected name; it was moved away.
    Quarantined { path: String, moved_to: String },
    /// A sandbox was started whose policy opens every host.
    AllowAll { origin: Origin },
    /// Written by the log itself after damaged bytes at its end: the chain goes on from the last intact record.
    ChainRestarted {
        /// Length and SHA-256 of the damaged bytes before this record; none when they were too many to keep.
        damaged: Option<(u64, String)>,
    },
    /// An event of a newer version.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl Event {
    /// A protected name that was moved away; names that are not text are kept readable.
    #[must_use]
    pub fn quarantined(path: &Path, moved_to: &Path) -> Self {
        Self::Quarantined {
            path: printable_path(path),
            moved_to: printable_path(moved_to),
        }
    }

    /// The event in a form that JSON can hold: JSON has no bytes, so paths that are not UTF-8 become readable text.
    pub(super) fn for_json(&self) -> Self {
        let mut event = self.clone();
        match &mut event {
            Self::Network(decision) => match &mut decision.outcome {
                Outcome::Allowed { matched, .. } | Outcome::Failed { matched, .. } => text_path(&mut matched.origin),
                Outcome::Denied { denial } => {
                    if let Some(matched) = &mut denial.matched {
                        text_path(&mut matched.origin);
                    }
                }
            },
            Self::AllowAll { origin } => text_path(origin),
            _ => {}
        }
        event
    }

    /// Whether [`Event::for_json`] would change anything.
    pub(super) fn is_text(&self) -> bool {
        let origin = match self {
            Self::Network(decision) => match &decision.outcome {
                Outcome::Allowed { matched, .. } | Outcome::Failed { matched, .. } => Some(&matched.origin),
                Outcome::Denied { denial } => denial.matched.as_ref().map(|m| &m.origin),
            },
            Self::AllowAll { origin } => Some(origin),
            _ => None,
        };
        match origin {
            Some(Origin::File { path, .. } | Origin::Settings { path, .. }) => path.to_str().is_some(),
            _ => true,
        }
    }
}

fn text_path(origin: &mut Origin) {
    if let Origin::File { path, .. } | Origin::Settings { path, .. } = origin
        && path.to_str().is_none()
    {
        *path = PathBuf::from(printable_path(path));
    }
}

/// One intact line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// SHA-256 of the rest of the line, in hexadecimal.
    pub hash: String,
    /// The hash of the record before; 64 zeros at the start of a chain.
    pub prev: String,
    /// Counts from 1 over all files.
    pub seq: u64,
    /// UTC, RFC 3339 with milliseconds.
    pub time: String,
    pub sandbox: String,
    pub event: Event,
    /// The line as it stands in the file, without its newline.
    #[serde(skip)]
    pub line: String,
}
