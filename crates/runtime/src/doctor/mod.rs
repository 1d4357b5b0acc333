//! What works on this host: starts a real sandbox in a folder made for it, and has every wall of it tried from the inside.
//!
//! Owns a trial folder in the state folder, which is gone afterwards. Changes nothing else, and reads no policy: a host is
//! judged, not what somebody allows on it.

mod report;
mod trial;
mod warnings;

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pinfold_model::net::NetworkPolicy;
use pinfold_model::plan::Extent;
use pinfold_model::verdict::Decision;
use pinfold_model::wire::{Exit, Failure, Finding, GuestMessage, Layer, Spawn, Stdio};
use pinfold_proxy::egress::{DecisionSink, Listeners, Options, Stopper, SystemResolver, run_blocking, stop_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::backend::process::{Guest, Sandbox, StartError};
use crate::cgroup;
use crate::diagnose;
use crate::host::Caller;
use crate::prepare::{Prepared, prepare};
use crate::protect::Fate;
pub use report::{Failed, Obstacle, Part, Report, State};
use trial::Trial;

/// Who asks, and where Pinfold keeps its state.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub caller: &'a Caller,
    /// Absolute; need not exist.
    pub data: &'a Path,
    pub environment: &'a [(OsString, OsString)],
}

/// Time for the whole test from the moment the walls stand.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of findings that are read at most.
const MOST_TEXT: usize = 1 << 20;

/// Judges the process backend. `start` starts a guest; a second one is needed where layers do not work.
pub fn process(request: &Request<'_>, mut start: impl FnMut() -> Result<Guest, StartError>) -> Report {
    let landlock = pinfold_sys::landlock::abi().ok();
    let cgroup = cgroup::usable();
    let mut outcome = examine(request, &mut start, true);
    let mut findings = Vec::new();
    if let Err(Trouble::Start(StartError::Layer { failure })) = &outcome
        && is_about_layers(failure)
    {
        findings.push(Finding {
            part: "layers".to_owned(),
            check: "a layer over a folder can be mounted".to_owned(),
            failure: Some(std::io::Error::from_raw_os_error(failure.errno).to_string()),
        });
        outcome = examine(request, &mut start, false);
    }
    let warnings = warnings::look(request.caller, request.data);
    match outcome {
        Ok(more) => {
            findings.extend(more);
            report::judged(landlock, &cgroup, findings, warnings)
        }
        Err(trouble) => report::not_started(trouble.obstacle(), landlock, &cgroup, warnings),
    }
}

fn is_about_layers(failure: &Failure) -> bool {
    failure.layer == Layer::Mounts && failure.step.contains("private layer")
}

/// Why the test did not come to its end.
enum Trouble {
    Start(StartError),
    Prepare(String),
    /// What could not be done on the host's side.
    Host(&'static str, std::io::Error),
    State(std::path::PathBuf, std::io::Error),
    OutOfTime,
}

impl From<StartError> for Trouble {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl Trouble {
    fn obstacle(self) -> Obstacle {
        match self {
            Self::Start(StartError::Layer { failure }) if failure.layer == Layer::Proof => Obstacle {
                cause: StartError::Layer { failure }.to_string(),
                fix: Some(report::BROKEN.to_owned()),
            },
            Self::Start(error) => Obstacle {
                cause: error.to_string(),
                fix: diagnose::hint(&error),
            },
            Self::Prepare(text) => match text.split_once(" hint: ") {
                Some((cause, fix)) => Obstacle {
                    cause: cause.to_owned(),
                    fix: Some(fix.to_owned()),
                },
                None => Obstacle { cause: text, fix: None },
            },
            Self::Host(step, error) => Obstacle {
                cause: format!("cannot {step}: {error}"),
                fix: None,
            },
            Self::State(folder, error) => Obstacle {
                cause: format!("the state folder {} cannot be used: {error}", folder.display()),
                fix: Some("make it a folder of your own that can be written, or set XDG_DATA_HOME".to_owned()),
            },
            Self::OutOfTime => Obstacle {
                cause: format!("the test did not end within {} s", PATIENCE.as_secs()),
                fix: Some("is the machine very busy, or a file system not answering? Try again".to_owned()),
            },
        }
    }
}

/// One sandbox from start to end; returns what was found.
fn examine(
    request: &Request<'_>,
    start: &mut impl FnMut() -> Result<Guest, StartError>,
    with_layers: bool,
) -> Result<Vec<Finding>, Trouble> {
    let guest = start()?;
    let trial = Trial::make(request.data).map_err(|error| Trouble::State(request.data.to_owned(), error))?;
    let policy = trial.policy();
    let inner = trial.request(request, &policy);
    let mut prepared = prepare(&inner).map_err(|error| Trouble::Prepare(error.to_string()))?;
    prepared.plan.proof.extent = Extent::Full(trial.for_the_guest(with_layers));
    if with_layers {
        prepared.plan.view.push(trial.layer());
    }
    let mut watch = prepared
        .watch(&inner, &trial.quarantine())
        .map_err(|error| Trouble::Prepare(error.to_string()))?;
    let mut sandbox = guest.build(&prepared.plan, &prepared.held)?;
    let proxy = sandbox.take_listeners().map(Proxy::start).transpose();
    let proxy = proxy.map_err(|error| Trouble::Host("start the proxy", error))?;
    let armed = watch.arm();
    let findings = drive(&mut sandbox, &prepared, &trial);
    sandbox.kill();
    if let Some(proxy) = proxy {
        proxy.stop();
    }
    let mut findings = findings?;
    findings.push(Finding {
        part: "inotify".to_owned(),
        check: "the host can watch the workspace".to_owned(),
        failure: armed.err().map(|error| error.to_string()),
    });
    let report = watch.finish();
    let taken = report.quarantined.iter().any(|taken| {
        taken.path == trial.absent()
            && matches!(
                taken.fate,
                Fate::Moved { .. } | Fate::Copied { .. } | Fate::Removed { .. }
            )
    });
    let gone = taken && !trial.absent().exists();
    findings.push(Finding {
        part: "protection".to_owned(),
        check: "a protected name that the command makes is taken away".to_owned(),
        failure: (!gone).then(|| "it is still there".to_owned()),
    });
    Ok(findings)
}

/// Has the guest run its checks and collects what they say.
fn drive(sandbox: &mut Sandbox, prepared: &Prepared, trial: &Trial) -> Result<Vec<Finding>, Trouble> {
    let host = |step| move |error: Errno| Trouble::Host(step, error.into());
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(host("make a pipe"))?;
    let spawn = Spawn {
        // Named, but never executed.
        argv: vec![b"pinfold-self-test".to_vec().into()],
        env: prepared.environment.clone(),
        cwd: trial.workspace_bytes(),
        stdio: [Stdio::Null, Stdio::Passed, Stdio::Null],
        terminal: None,
        explain: false,
    };
    sandbox
        .spawn(&spawn, &[write.as_fd()])
        .map_err(|error| Trouble::Host("ask for the test", error))?;
    drop(write);
    let end = Instant::now() + PATIENCE;
    let mut text = Vec::new();
    let mut open = true;
    let mut exit = None;
    while exit.is_none() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Trouble::OutOfTime);
        }
        let patience = Timespec::try_from(left).map_err(|_| Trouble::OutOfTime)?;
        let mut sources = vec![PollFd::new(&*sandbox, PollFlags::IN)];
        if open {
            sources.push(PollFd::new(&read, PollFlags::IN));
        }
        match poll(&mut sources, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(host("wait for the test")(errno)),
        }
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        if ready.get(1) == Some(&true) {
            open = read_some(&read, &mut text);
        }
        if ready[0] {
            exit = event(sandbox)?;
        }
    }
    while open {
        open = read_some(&read, &mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let mut findings: Vec<Finding> = text.lines().filter_map(Finding::from_line).collect();
    let failed = findings.iter().any(|finding| finding.failure.is_some());
    // A test that ended early, or that says one thing and does another, is no proof.
    if findings.is_empty() || (exit == Some(Exit::Code(0))) == failed {
        findings.push(Finding {
            part: "self-test".to_owned(),
            check: "it came to its end".to_owned(),
            failure: Some(format!("it ended with {exit:?}")),
        });
    }
    Ok(findings)
}

/// Reads what is there; false at the end.
fn read_some(from: &OwnedFd, text: &mut Vec<u8>) -> bool {
    let mut chunk = [0_u8; 4096];
    match rustix::io::read(from, &mut chunk) {
        Ok(0) => false,
        Ok(read) if text.len() < MOST_TEXT => {
            text.extend_from_slice(&chunk[..read]);
            true
        }
        Err(Errno::INTR) => true,
        Ok(_) | Err(_) => false,
    }
}

/// Deals with one event; returns how the test ended, if it did.
fn event(sandbox: &mut Sandbox) -> Result<Option<Exit>, Trouble> {
    let gone = || StartError::Guest {
        what: "it ended during the test".to_owned(),
    };
    let event = sandbox
        .next_event()
        .map_err(|breach| StartError::Guest {
            what: breach.to_string(),
        })?
        .ok_or_else(gone)?;
    match event.message {
        GuestMessage::Exited(exit) => Ok(Some(exit)),
        GuestMessage::SetupFailed(failure) => Err(StartError::Layer { failure }.into()),
        GuestMessage::Started | GuestMessage::CoverRestored { .. } => Ok(None),
        _ => Err(StartError::Guest {
            what: "it answered out of turn".to_owned(),
        }
        .into()),
    }
}

/// A proxy that allows nothing.
struct Proxy {
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Proxy {
    fn start([http, socks]: [OwnedFd; 2]) -> std::io::Result<Self> {
        let listeners = Listeners {
            http: http.into(),
            socks: socks.into(),
        };
        let (stopper, stop) = stop_pair();
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            run_blocking(
                listeners,
                Arc::new(NetworkPolicy::default()),
                Arc::new(Silence),
                Arc::new(SystemResolver),
                Options::default(),
                stop,
            )
        })?;
        Ok(Self { stopper, thread })
    }

    /// Its own failure shows in the checks.
    fn stop(self) {
        self.stopper.stop();
        let _ = self.thread.join();
    }
}

/// The test's denials are nobody's denials.
struct Silence;

impl DecisionSink for Silence {
    fn record(&self, _: Decision) {}

    fn collapsed(&self, _: &Decision, _: u64) {}
}
