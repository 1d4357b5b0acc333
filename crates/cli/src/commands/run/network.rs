//! The proxy of a run: started by the first connection, so that a command without one pays nothing for it.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pinfold_model::net::NetworkPolicy;
use pinfold_model::verdict::{Decision, Denial, Outcome};
use pinfold_runtime::proxy::egress::{
    DecisionSink, Listeners, Options, Stopper, SystemResolver, run_blocking, stop_pair,
};
use pinfold_server::audit::{AuditError, AuditLog, Entry, Event};
use rustix::event::{PollFd, PollFlags};

/// The sandbox's listeners, with or without the proxy behind them.
pub(super) struct Gate {
    policy: Arc<NetworkPolicy>,
    record: Arc<Record>,
    state: State,
}

enum State {
    /// Nobody has connected yet; connections wait in the backlog.
    Waiting([OwnedFd; 2]),
    Open {
        stopper: Stopper,
        thread: JoinHandle<io::Result<()>>,
    },
    Closed,
}

/// Events of one sandbox that the audit log keeps.
pub(super) const MAX_RECORDS: u64 = 10_000;

/// Distinct denials that the summary can name.
const MAX_DENIALS: usize = 1000;

/// A denied destination and how often it was asked for.
#[derive(Clone, Debug)]
pub(super) struct Denied {
    pub(super) denial: Denial,
    pub(super) times: u64,
}

/// What the summary at exit is made from, and the way to the audit log.
pub(super) struct Record {
    audit: AuditLog,
    sandbox: String,
    kept: Mutex<Kept>,
}

#[derive(Default)]
pub(super) struct Kept {
    pub(super) denied: BTreeMap<(String, u16), Denied>,
    /// Denials beyond those that are kept by name.
    pub(super) more: u64,
    pub(super) audit_error: Option<AuditError>,
    /// Events so far, those past [`MAX_RECORDS`] included.
    pub(super) written: u64,
}

impl Gate {
    pub(super) fn new(listeners: [OwnedFd; 2], policy: NetworkPolicy, record: Arc<Record>) -> Self {
        Self {
            policy: Arc::new(policy),
            record,
            state: State::Waiting(listeners),
        }
    }

    /// What to wait for, until the proxy runs.
    pub(super) fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let waiting = match &self.state {
            State::Waiting(listeners) => listeners.as_slice(),
            State::Open { .. } | State::Closed => &[],
        };
        waiting
            .iter()
            .map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN))
    }

    /// Starts the proxy.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let State::Waiting([http, socks]) = std::mem::replace(&mut self.state, State::Closed) else {
            return Ok(());
        };
        let options = Options {
            max_connections: connections(),
            ..Options::default()
        };
        let listeners = Listeners {
            http: TcpListener::from(http),
            socks: TcpListener::from(socks),
        };
        let (stopper, stop) = stop_pair();
        let (policy, record) = (Arc::clone(&self.policy), Arc::clone(&self.record));
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || run_blocking(listeners, policy, record, Arc::new(SystemResolver), options, stop))?;
        self.state = State::Open { stopper, thread };
        Ok(())
    }

    /// Ends the proxy; every decision is recorded when this returns.
    pub(super) fn close(self) -> io::Result<()> {
        match self.state {
            State::Open { stopper, thread } => {
                stopper.stop();
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("the proxy panicked")))
            }
            State::Waiting(_) | State::Closed => Ok(()),
        }
    }
}

/// Connections that the sandbox may have at a time: what this process has descriptors for, less a reserve for the watch over
/// the workspace, which must never run out of them. The limit is raised as far as it goes; the command is long started.
fn connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Of one connection when it moves much.
    const EACH: u64 = 6;
    const RESERVE: u64 = 128;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let soft = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let most = soft.unwrap_or(u64::MAX).saturating_sub(RESERVE) / EACH;
    usize::try_from(most)
        .unwrap_or(usize::MAX)
        .clamp(1, Options::default().max_connections)
}

impl Record {
    pub(super) fn new(audit: AuditLog, sandbox: String) -> Self {
        Self {
            audit,
            sandbox,
            kept: Mutex::default(),
        }
    }

    /// Writes an event to the audit log; the first failure is kept for the end. A sandbox cannot push out the records of all
    /// others: past its share, its events are counted only.
    pub(super) fn write(&self, event: Event) {
        {
            let mut kept = self.lock();
            kept.written += 1;
            if kept.written > MAX_RECORDS {
                return;
            }
        }
        if let Err(error) = self.audit.append(&Entry {
            sandbox: self.sandbox.clone(),
            event,
        }) {
            self.lock().audit_error.get_or_insert(error);
        }
    }

    pub(super) fn take(&self) -> Kept {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, decision: &Decision, times: u64) {
        let Outcome::Denied { denial } = &decision.outcome else {
            return;
        };
        let mut kept = self.lock();
        let key = (decision.host.clone(), decision.port);
        if kept.denied.len() >= MAX_DENIALS && !kept.denied.contains_key(&key) {
            kept.more += times;
            return;
        }
        kept.denied
            .entry(key)
            .or_insert_with(|| Denied {
                denial: denial.clone(),
                times: 0,
            })
            .times += times;
    }
}

impl DecisionSink for Record {
    fn record(&self, decision: Decision) {
        self.count(&decision, 1);
        self.write(Event::Network(decision));
    }

    fn collapsed(&self, like: &Decision, count: u64) {
        self.count(like, count);
    }
}
