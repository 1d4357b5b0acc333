//! Starts a command inside the walls: fork, confine, prove, execute.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use pinfold_model::plan::{Extent, Plan};
use pinfold_model::wire::{Failure, Layer, Spawn, Stdio};
use pinfold_sys::process::{Side, execute, exit_now, fork};
use pinfold_sys::{Errno, descriptor, signal};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::confine::Walls;
use crate::explain::{Gate, Tracer};
use crate::failure::{During, failure, shown};
use crate::prove::{prove, prove_all};
use crate::session;

/// A command that was started.
pub(crate) struct Running {
    /// The child of the guest: the command itself, or the leader of its terminal session.
    pub(crate) child: Pid,
    /// The command, whose process group signals go to.
    pub(crate) command: Pid,
    /// The host's side of the command's terminal.
    pub(crate) master: Option<OwnedFd>,
}

/// Why a command was not started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NotStarted {
    /// The walls could not be put on or do not hold.
    Failed(Failure),
    /// The program could not be executed.
    NotExecuted { errno: i32, what: Vec<u8> },
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Everything a child needs, made ready before the fork.
struct Prepared<'a> {
    argv: Vec<CString>,
    env: Vec<CString>,
    candidates: Vec<CString>,
    cwd: &'a [u8],
    streams: [OwnedFd; 3],
    walls: &'a Walls,
    plan: &'a Plan,
    /// Closed until the command is traced, if it is to be.
    gate: Option<Gate>,
}

/// Starts the command that `spawn` asks for. Returns once it is executed or has failed. `tracer` gets what follows a command
/// that is to be explained.
pub(crate) fn start(
    spawn: &Spawn,
    descriptors: VecDeque<OwnedFd>,
    walls: &Walls,
    plan: &Plan,
    tracer: &mut Option<Tracer>,
) -> Result<Running, NotStarted> {
    let terminal = spawn
        .terminal
        .map(|(rows, columns)| session::Terminal::open(rows, columns))
        .transpose()?;
    let streams = streams(&spawn.stdio, descriptors, terminal.as_ref())?;
    let argv = c_strings(&spawn.argv)?;
    let env = c_strings(&spawn.env)?;
    let candidates = candidates(&argv, &env)?;
    let mut prepared = Prepared {
        argv,
        env,
        candidates,
        cwd: &spawn.cwd,
        streams,
        walls,
        plan,
        gate: spawn.explain.then(Gate::new).transpose()?,
    };

    let step = || "start the command's process".to_owned();
    let (report_read, report_write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during(Layer::Limits, step)?;
    match fork().during(Layer::Limits, step)? {
        Side::Child => {
            drop(report_read);
            let slave = terminal.map(session::Terminal::into_slave);
            let report = match slave {
                None => run(&prepared, &report_write),
                Some(slave) => session::lead(
                    slave,
                    || put_on(&prepared),
                    report_write,
                    |report_write| prove_and_execute(&prepared, report_write),
                ),
            };
            exit_now(report)
        }
        Side::Parent(child) => {
            drop(report_write);
            let gate = prepared.gate.take();
            drop(prepared);
            if let Some(gate) = gate {
                *tracer = trace(plan, child, gate)?;
            }
            let command = read_report(&report_read)?;
            let master = terminal.map(session::Terminal::into_master);
            Ok(Running { child, command, master })
        }
    }
}

/// Traces a command from its gate to its exec. None when it did not come as far as the gate: its report says why.
fn trace(plan: &Plan, child: Pid, gate: Gate) -> Result<Option<Tracer>, Failure> {
    let Some((command, gate)) = gate.reached() else {
        return Ok(None);
    };
    let leader = (child != command).then_some(child);
    let mut tracer = Tracer::seize(plan, command, leader, gate)?;
    tracer
        .follow_to_exec(command)
        .during(Layer::Trace, || "trace the command up to its start".to_owned())?;
    Ok(Some(tracer))
}

/// The child of a command without a terminal.
fn run(prepared: &Prepared<'_>, report: &OwnedFd) -> i32 {
    let session = rustix::process::setsid().during(Layer::Terminal, || "start a new session".to_owned());
    match session.and_then(|_| put_on(prepared)) {
        Ok(()) => prove_and_execute(prepared, report),
        Err(failure) => report_failure(report, &failure.into()),
    }
}

/// Everything that a command shares with the leader of its session.
fn put_on(prepared: &Prepared<'_>) -> Result<(), Failure> {
    let step = || "arrange the command's descriptors".to_owned();
    rustix::stdio::dup2_stdin(&prepared.streams[0]).during(Layer::Limits, step)?;
    rustix::stdio::dup2_stdout(&prepared.streams[1]).during(Layer::Limits, step)?;
    rustix::stdio::dup2_stderr(&prepared.streams[2]).during(Layer::Limits, step)?;
    descriptor::close_on_exec_from(3).during(Layer::Limits, step)?;
    rustix::process::chdir(prepared.cwd).during(Layer::Mounts, || {
        format!("enter the working directory {}", shown(prepared.cwd))
    })?;
    prepared.walls.put_on()
}

/// The last steps of every command. Returns only when the command was not executed, with the exit code of the child.
fn prove_and_execute(prepared: &Prepared<'_>, report: &OwnedFd) -> i32 {
    let pid = rustix::process::getpid().as_raw_nonzero().get().to_ne_bytes();
    let _ = rustix::io::write(report, &pid);
    if let Err(failure) = prove(&prepared.plan.proof) {
        return report_failure(report, &failure.into());
    }
    if let Extent::Full(trial) = &prepared.plan.proof.extent {
        return prove_all(prepared.plan, trial);
    }
    if let Some(gate) = &prepared.gate {
        gate.wait();
    }
    // What the caller ignores (as under nohup) stays ignored; these were changed by us or by the Rust runtime.
    for changed in [Signal::PIPE, Signal::TTOU] {
        signal::default_action(changed.as_raw());
    }
    if let Err(errno) = signal::unblock_all() {
        return report_failure(report, &failure(Layer::Limits, "reset the signal mask", errno).into());
    }
    let errno = execute_first(prepared);
    report_failure(
        report,
        &NotStarted::NotExecuted {
            errno: errno.raw_os_error(),
            what: prepared.argv[0].to_bytes().to_vec(),
        },
    )
}

/// Tries each candidate in turn, as execvp(3) does.
fn execute_first(prepared: &Prepared<'_>) -> Errno {
    let mut answer = Errno::NOENT;
    for candidate in &prepared.candidates {
        match execute(candidate, &prepared.argv, &prepared.env) {
            Errno::NOENT | Errno::NOTDIR => {}
            // A later folder of PATH may hold one that can be executed.
            Errno::ACCESS => answer = Errno::ACCESS,
            // A script without an interpreter line: shells and execvp run it with sh.
            Errno::NOEXEC => {
                let mut argv = vec![c"sh".to_owned(), candidate.clone()];
                argv.extend(prepared.argv.iter().skip(1).cloned());
                return execute(c"/bin/sh", &argv, &prepared.env);
            }
            other => return other,
        }
    }
    answer
}

/// The files to try for the command's name.
fn candidates(argv: &[CString], env: &[CString]) -> Result<Vec<CString>, Failure> {
    let name = argv
        .first()
        .ok_or_else(|| failure(Layer::Protocol, "a command without a name", Errno::INVAL))?;
    if name.to_bytes().contains(&b'/') {
        return Ok(vec![name.clone()]);
    }
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let path = env
        .iter()
        .find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/bin:/bin");
    Ok(path
        .split(|byte| *byte == b':')
        // An empty entry would mean the working directory, which the command can write.
        .filter(|folder| !folder.is_empty())
        .filter_map(|folder| CString::new([folder, b"/", name.to_bytes()].concat()).ok())
        .collect())
}

fn c_strings(bytes: &[serde_bytes::ByteBuf]) -> Result<Vec<CString>, Failure> {
    bytes
        .iter()
        .map(|bytes| CString::new(bytes.as_slice()))
        .collect::<Result<_, _>>()
        .map_err(|_| failure(Layer::Protocol, "an argument or variable with a NUL byte", Errno::INVAL))
}

fn streams(
    stdio: &[Stdio; 3],
    mut descriptors: VecDeque<OwnedFd>,
    terminal: Option<&session::Terminal>,
) -> Result<[OwnedFd; 3], Failure> {
    let mut stream = |which: Stdio| -> Result<OwnedFd, Failure> {
        let step = || "open a standard stream".to_owned();
        match which {
            Stdio::Null => {
                rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).during(Layer::Mounts, step)
            }
            Stdio::Passed => descriptors
                .pop_front()
                .ok_or_else(|| failure(Layer::Protocol, "a standard stream without its descriptor", Errno::BADF)),
            Stdio::Terminal => {
                let terminal = terminal
                    .ok_or_else(|| failure(Layer::Protocol, "a terminal stream without a terminal", Errno::NOTTY))?;
                rustix::io::fcntl_dupfd_cloexec(terminal.slave().as_fd(), 3).during(Layer::Terminal, step)
            }
        }
    };
    Ok([stream(stdio[0])?, stream(stdio[1])?, stream(stdio[2])?])
}

/// Tells the guest why the command does not run; the exit code of the child is never seen by anybody.
pub(crate) fn report_failure(report: &OwnedFd, failure: &NotStarted) -> i32 {
    if let Ok(bytes) = postcard::to_stdvec(failure) {
        let _ = rustix::io::write(report, &bytes);
    }
    125
}

/// Reads the command's process id and, up to the exec that closes the pipe, a failure.
fn read_report(report: &OwnedFd) -> Result<Pid, NotStarted> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 1024];
    loop {
        match rustix::io::read(report, &mut chunk) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failure(Layer::Protocol, "read the command's report", errno).into()),
        }
    }
    let vanished = || {
        failure(
            Layer::Protocol,
            "the command's process ended before it was executed",
            Errno::CHILD,
        )
    };
    // A failure before the process id was written stands alone.
    let Some((pid, rest)) = bytes.split_first_chunk::<4>() else {
        return Err(vanished().into());
    };
    let pid = Pid::from_raw(i32::from_ne_bytes(*pid));
    if let (Some(pid), true) = (pid, rest.is_empty()) {
        return Ok(pid);
    }
    let failed = postcard::from_bytes(rest)
        .or_else(|_| postcard::from_bytes(&bytes))
        .unwrap_or_else(|_| vanished().into());
    Err(failed)
}
