//! `pinfold run`: a one-shot sandbox around the current folder.
//!
//! One straight line: place → policy → facts and plan → walls → command → what it left. The guest is started before the
//! policy is read, so that the two happen at the same time; it can do nothing before it has its plan.

mod drive;
mod explain;
mod network;
mod place;
mod plan_text;
mod protection;
pub(super) mod start_error;
mod summary;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use pinfold_model::wire::{Exit, Spawn};
use pinfold_runtime::backend::process::{Guest, Sandbox};
use pinfold_runtime::cgroup::{self, Cgroup};
use pinfold_runtime::prepare::{self, Prepared, Request};
use pinfold_server::audit::{AuditLog, Event};

use super::StartedGuest;
use crate::error::{Error, code};
use crate::policy::{Loaded, PolicyArgs};
use crate::terminal::{RawMode, Streams};
use drive::{Drive, End, Events};
use explain::Explain;
use network::{Gate, Record};
use place::Place;
use protection::Protection;

/// What a run ends with, at the end of its long help.
const EXIT_CODES: &str = "\
Exit codes:
  the command's own, and 128+N when signal N ended it; otherwise pinfold failed by itself:
   64   bad usage of the command line
   65   bad policy: a file or flag that is not exactly understood, or may not do what it says
   70   a fault of pinfold's
   73   a file or folder cannot be made
   74   reading or writing failed, the audit log included
  124   the command ran out of time (--timeout)
  125   the sandbox could not start, or one of its walls was lost
  126   the command cannot be executed
  127   the command was not found";

/// Run a command in a sandbox around the current folder.
///
/// The command can change the folder, read the system, and reach the hosts that were allowed. Everything else is refused.
#[derive(Args, Debug)]
#[command(trailing_var_arg = true, after_long_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// The folder that the command works in; the current one by default.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    workspace: Option<PathBuf>,
    /// Accept your whole home folder as the workspace, with every key and password in it.
    #[arg(long)]
    workspace_is_home: bool,
    /// Take the system folders (/usr, /etc, …) from this folder in place of the host's, read-only.
    #[arg(long, value_name = "FOLDER")]
    rootfs: Option<PathBuf>,
    /// Say nothing on standard error but errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print the plan and start nothing.
    #[arg(long)]
    dry_run: bool,
    /// Name at the end what the kernel refused, and why. Traces every system call: slow.
    #[arg(long, conflicts_with_all = ["quiet", "dry_run"])]
    explain: bool,
    /// With --dry-run: print the plan as JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
    /// The command and its arguments.
    #[arg(required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    // Last: its heading holds for what comes after it.
    #[command(flatten)]
    policy: PolicyArgs,
}

/// Runs the command; returns its exit code.
pub(crate) fn run(args: &RunArgs, guest: StartedGuest) -> Result<u8, Error> {
    let place = Place::find(args.workspace.as_deref(), args.workspace_is_home)?;
    let loaded = args.policy.load(&place.folders, &place.cwd, &place.workspace)?;
    let id = sandbox_id();
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let own_paths = place.own_paths(&args.policy);
    let rootfs = args.rootfs.as_deref().map(place::rootfs).transpose()?;
    let request = Request {
        policy: &loaded.policy,
        caller: &place.caller,
        workspace: &place.workspace,
        rootfs: rootfs.as_deref(),
        data: &place.data,
        own_paths: &own_paths,
        environment: &environment,
        id: &id,
    };
    // Why no sandbox can be made says more than what fails next for the same reason.
    let guest = if args.dry_run {
        None
    } else {
        Some(guest.map_err(start_error::explain)?)
    };
    let prepared = prepare::prepare(&request).map_err(prepare_error)?;
    let Some(guest) = guest else {
        return plan_text::print(&prepared.plan, args.json);
    };
    if !args.quiet {
        summary::before(&loaded, &prepared, &place);
    }
    let record = Arc::new(Record::new(AuditLog::open(place.data.join("audit")), id.clone()));
    if let Some(origin) = &loaded.policy.network.allow_all {
        record.write(Event::AllowAll { origin: origin.clone() });
    }
    let run = Run {
        explain: args.explain.then(|| Explain::new(&prepared, &loaded.policy, &place)),
        args,
        place: &place,
        loaded: &loaded,
        request: &request,
        record: &record,
    };
    let outcome = run.drive(guest, prepared);
    if let Err(Failed::Start(error)) = &outcome {
        record.write(start_error::event(error));
    }
    let ended = outcome.map_err(Failed::into_error)?;
    summary::after(&ended, &record, &loaded.policy, args.quiet)?;
    let code = exit_code(ended.end);
    if let Err(Failed::Start(error)) = &code {
        record.write(start_error::event(error));
    }
    code.map_err(Failed::into_error)
}

/// What the parts of a run share.
struct Run<'a> {
    explain: Option<Explain>,
    args: &'a RunArgs,
    place: &'a Place,
    loaded: &'a Loaded,
    request: &'a Request<'a>,
    record: &'a Arc<Record>,
}

/// Why a run ended without an exit code of the command's.
enum Failed {
    Start(pinfold_runtime::backend::process::StartError),
    Other(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::Start(error) => start_error::explain(error),
            Self::Other(error) => error,
        }
    }
}

/// What happened, for the summary.
struct Ended {
    end: End,
    events: Events,
    report: pinfold_runtime::protect::Report,
    out_of_memory: bool,
}

impl Run<'_> {
    fn drive(&self, guest: Guest, prepared: Prepared) -> Result<Ended, Failed> {
        let cgroup = self.limit(&guest)?;
        let streams = Streams::of_caller().map_err(|error| {
            Error::new(code::USAGE, error).hint("redirect it from or to a file, a pipe, or /dev/null")
        })?;
        let spawn = self.spawn(&prepared, &streams);
        let quarantine = self.place.data.join("quarantine");
        let watch = prepared
            .watch(self.request, &quarantine)
            .map_err(|error| Error::new(code::NOT_STARTED, error))?;
        let held: Vec<OwnedFd> = prepared.held;
        let mut sandbox: Sandbox = guest.build(&prepared.plan, &held).map_err(Failed::Start)?;
        drop(held);
        let gate = sandbox
            .take_listeners()
            .map(|listeners| Gate::new(listeners, self.loaded.policy.network.clone(), Arc::clone(self.record)));
        let mut drive = Drive {
            sandbox,
            gate,
            protection: Protection::new(watch),
            timeout: self.loaded.policy.limits.timeout.as_ref().map(|limit| limit.value),
            events: Events::default(),
        };
        let end = drive.run(&spawn, streams);
        let Drive {
            mut sandbox,
            gate,
            protection,
            events,
            ..
        } = drive;
        let out_of_memory = cgroup.as_ref().is_some_and(Cgroup::oom_killed);
        // Everything inside is dead before the last look at the workspace.
        sandbox.kill();
        let ran = matches!(end, Ok(End::Exited(_) | End::NotExecuted { .. } | End::TimedOut));
        if let Some(explain) = self.explain.as_ref().filter(|_| ran) {
            explain.print(&events.refusals);
        }
        let report = protection.finish();
        if let Some(gate) = gate {
            gate.close()
                .map_err(|error| Error::new(code::IO, format!("The proxy failed: {error}.")))?;
        }
        if let Some(cgroup) = cgroup {
            cgroup.remove().map_err(|error| Error::new(code::IO, error))?;
        }
        let end = end.map_err(|error| Error::new(code::IO, format!("The command could not be driven: {error}.")))?;
        Ok(Ended {
            end,
            events,
            report,
            out_of_memory,
        })
    }

    /// Puts the guest, and so everything that it starts, into a cgroup, when a limit was asked for.
    fn limit(&self, guest: &Guest) -> Result<Option<Cgroup>, Error> {
        let limits = &self.loaded.policy.limits;
        let limits = cgroup::Limits {
            memory: limits.memory.as_ref().map(|limit| limit.value),
            cpu_millis: limits.cpu_millis.as_ref().map(|limit| limit.value),
            pids: limits.pids.as_ref().map(|limit| limit.value),
        };
        if limits.is_empty() {
            return Ok(None);
        }
        let failed = |error| Error::new(code::NOT_STARTED, error);
        let cgroup = Cgroup::create(&limits).map_err(failed)?;
        cgroup.add(guest.pid()).map_err(failed)?;
        Ok(Some(cgroup))
    }

    fn spawn(&self, prepared: &Prepared, streams: &Streams) -> Spawn {
        let bytes = |text: &OsString| serde_bytes::ByteBuf::from(text.as_bytes());
        Spawn {
            argv: self.args.command.iter().map(bytes).collect(),
            env: prepared.environment.clone(),
            cwd: serde_bytes::ByteBuf::from(self.place.cwd_inside().as_os_str().as_bytes()),
            stdio: streams.stdio,
            terminal: streams.terminal.then(|| RawMode::size_of_caller().unwrap_or((24, 80))),
            explain: self.explain.is_some(),
        }
    }
}

/// The exit code of the command, or why there is none.
fn exit_code(end: End) -> Result<u8, Failed> {
    Ok(match end {
        End::Exited(Exit::Code(code)) => code,
        End::Exited(Exit::Signal(number)) => 128_u8.saturating_add(number),
        End::TimedOut => {
            return Err(Error::new(code::TIMEOUT, "The command ran out of time and was ended.")
                .hint("a longer time: --timeout DURATION")
                .into());
        }
        End::NotExecuted { errno, what } => return Err(start_error::not_executed(errno, &what).into()),
        End::Broken(failure) => {
            return Err(Failed::Start(pinfold_runtime::backend::process::StartError::Layer {
                failure,
            }));
        }
        End::Unprotected => {
            return Err(Error::new(
                code::NOT_STARTED,
                "The sandbox was killed: the command made a protected name that could not be taken away.",
            )
            .hint("the line above names it: look at it and remove it by hand")
            .into());
        }
        End::Breach(breach) => {
            return Err(Error::new(code::NOT_STARTED, format!("The sandbox was killed: {breach}.")).into());
        }
        End::GuestGone => {
            return Err(Error::new(
                code::NOT_STARTED,
                "The sandbox's init ended, and everything inside with it.",
            )
            .hint("was it killed by somebody, or by the kernel for want of memory? See: dmesg")
            .into());
        }
    })
}

fn prepare_error(error: prepare::PrepareError) -> Error {
    use prepare::PrepareError as E;
    let code = match &error {
        E::Rootfs { .. } => code::USAGE,
        E::Rule(_) | E::RuleInRootfs { .. } | E::Hidden { .. } => code::POLICY,
        E::Scan(_) | E::HardLinks { .. } => code::NOT_STARTED,
        E::State { .. } => code::CANNOT_CREATE,
    };
    match &error {
        E::Rule(rule) => Error::new(code, rule).hint(rule.hint()),
        _ => Error::new(code, error),
    }
}

/// A name for this sandbox in the log: short, unique on this machine.
fn sandbox_id() -> String {
    let mut bytes = [0_u8; 6];
    // Without random numbers the process id still tells sandboxes apart.
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::NONBLOCK) != Ok(bytes.len()) {
        bytes[..4].copy_from_slice(&std::process::id().to_ne_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
