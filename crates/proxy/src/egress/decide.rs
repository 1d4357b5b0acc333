//! The one path from a destination to an open connection, and the record of how it went.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pinfold_model::net::{Host, NetworkPolicy};
use pinfold_model::verdict::{Decision, Denial, Matched, Outcome, RequestKind, Verdict};
use tokio::time::timeout;

use super::connection::Connection;
use super::dial::{DialError, dial};
use super::log::Log;
use super::resolve::Resolve;
use super::rules::{judge_addresses, judge_host};
use super::server::Options;

/// What every connection of one sandbox shares.
pub(crate) struct Gate {
    pub(crate) policy: Arc<NetworkPolicy>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) log: Log,
    pub(crate) options: Options,
}

/// What a client asked for. The host is shown in its canonical form, or escaped when it was none.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: RequestKind,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) since: Instant,
}

/// A connection to an address that was judged, and why it was permitted.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) address: SocketAddr,
    pub(crate) matched: Matched,
}

pub(crate) enum Refusal {
    Denied(Denial),
    Failed { matched: Matched, error: DialError },
}

impl Gate {
    pub(crate) fn judge(&self, host: &Host, port: u16) -> Result<Matched, Denial> {
        match judge_host(&self.policy, host, port) {
            Verdict::Allow(matched) => Ok(matched),
            Verdict::Deny(denial) => Err(denial),
        }
    }

    /// Whether a connection that stands may be used for another request.
    pub(crate) fn still_permits(&self, host: &Host, address: SocketAddr) -> bool {
        judge_addresses(&self.policy, host, address.port(), &[address.ip()]).is_ok()
    }

    /// Judges, resolves, judges every address, and dials one of them, in this order.
    pub(crate) async fn open(&self, host: &Host, port: u16) -> Result<Opened, Refusal> {
        let matched = self.judge(host, port).map_err(Refusal::Denied)?;
        let failed = |error| Refusal::Failed {
            matched: matched.clone(),
            error,
        };
        let addresses = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => match timeout(self.options.resolve_deadline, self.resolver.resolve(name)).await {
                Err(_) => return Err(failed(DialError::SlowResolver)),
                Ok(Err(source)) => return Err(failed(DialError::Unresolved { source })),
                Ok(Ok(addresses)) if addresses.is_empty() => return Err(failed(DialError::NoAddress)),
                Ok(Ok(addresses)) => addresses,
            },
        };
        let judged = judge_addresses(&self.policy, host, port, &addresses).map_err(Refusal::Denied)?;
        let (stream, address) = dial(&judged, self.options.dial_deadline).await.map_err(failed)?;
        Ok(Opened {
            connection: Connection::new(stream),
            address,
            matched,
        })
    }

    pub(crate) fn record_denied(&self, asked: &Asked, denial: &Denial) {
        self.record(asked, Outcome::Denied { denial: denial.clone() });
    }

    pub(crate) fn record_failed(&self, asked: &Asked, matched: &Matched, error: &str) {
        self.record(
            asked,
            Outcome::Failed {
                matched: matched.clone(),
                error: error.to_owned(),
            },
        );
    }

    /// Keeps count of a permitted exchange and records it when dropped, however it ends.
    pub(crate) fn ledger(self: &Arc<Self>, asked: Asked, matched: Matched, address: SocketAddr) -> Ledger {
        Ledger {
            gate: Arc::clone(self),
            asked,
            matched,
            address,
            traffic: Traffic::default(),
            settled: false,
        }
    }

    fn record(&self, asked: &Asked, outcome: Outcome) {
        self.log.record(Decision {
            kind: asked.kind,
            host: asked.host.clone(),
            port: asked.port,
            method: asked.method.clone(),
            path: asked.path.clone(),
            duration_ms: u64::try_from(asked.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome,
        });
    }
}

/// Payload bytes of an exchange so far.
#[derive(Default)]
pub(crate) struct Traffic {
    /// From the sandbox.
    pub(crate) sent: AtomicU64,
    /// To the sandbox.
    pub(crate) received: AtomicU64,
}

impl Traffic {
    pub(crate) fn total(&self) -> u64 {
        self.sent
            .load(Ordering::Relaxed)
            .wrapping_add(self.received.load(Ordering::Relaxed))
    }
}

pub(crate) struct Ledger {
    gate: Arc<Gate>,
    asked: Asked,
    matched: Matched,
    address: SocketAddr,
    pub(crate) traffic: Traffic,
    settled: bool,
}

impl Ledger {
    /// What the client said after it was let through was refused.
    pub(crate) fn deny(mut self, denial: &Denial) {
        self.settled = true;
        self.gate.record_denied(&self.asked, denial);
    }

    /// The other side did not answer.
    pub(crate) fn fail(mut self, error: &str) {
        self.settled = true;
        self.gate.record_failed(&self.asked, &self.matched, error);
    }

    /// Leaves no record: another ledger goes on with the same request.
    pub(crate) fn discard(mut self) {
        self.settled = true;
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if !self.settled {
            let outcome = Outcome::Allowed {
                matched: self.matched.clone(),
                address: Some(self.address),
                sent: self.traffic.sent.load(Ordering::Relaxed),
                received: self.traffic.received.load(Ordering::Relaxed),
            };
            self.gate.record(&self.asked, outcome);
        }
    }
}
