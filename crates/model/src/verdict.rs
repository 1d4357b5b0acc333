//! The one answer type of every decision point, and the record of a decision.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::origin::Origin;

/// The rule that decided, as written, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The rule as the person wrote it, such as `*.example.com:8443`.
    pub rule: String,
    /// The reason given with the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub origin: Origin,
}

/// Why something was refused, in words for a table cell, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// A few words: `no rule`, `cloud metadata`, `denied by rule`, `private address`.
    pub reason: String,
    /// The rule that refused; none when nothing allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
    /// The next step for the person: a command, or `never allowed`.
    pub hint: String,
}

/// The answer of a decision point.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    Allow(Matched),
    Deny(Denial),
}

/// How a request reached the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    Http,
    Connect,
    Socks,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Outcome {
    /// Permitted and carried out; byte counts are payload as seen by the proxy.
    Allowed {
        #[serde(flatten)]
        matched: Matched,
        address: Option<SocketAddr>,
        sent: u64,
        received: u64,
    },
    /// Refused by policy or as malformed; nothing was dialled.
    Denied {
        #[serde(flatten)]
        denial: Denial,
    },
    /// Permitted, but the other side could not be reached.
    Failed {
        #[serde(flatten)]
        matched: Matched,
        error: String,
    },
}

/// One network decision, as the audit log keeps it. Never holds queries, header values, bodies or secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub kind: RequestKind,
    /// The canonical host, or an escaped form of what the client sent when it was not a host.
    pub host: String,
    pub port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Request path without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Milliseconds from accept to the end of the exchange.
    pub duration_ms: u64,
    #[serde(flatten)]
    pub outcome: Outcome,
}
