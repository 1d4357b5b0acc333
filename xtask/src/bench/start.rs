//! How long a start takes: `true` as a whole process, from spawning to its exit status.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::report::{Good, Report, Samples};
use super::{Options, Places, fresh_folder, peers, view};
use crate::{Outcome, invoke};

const ROUNDS: usize = 100;

/// Contenders slower than this take part in some rounds only.
const SLOW_MS: f64 = 100.0;
/// Samples of a slow contender, at most.
const SLOW_SAMPLES: usize = 10;

/// One way of running `true`.
struct Contender {
    name: &'static str,
    command: Command,
    every: usize,
    samples: Vec<f64>,
}

pub(super) fn measure(places: &Places, options: &Options) -> Outcome<Report> {
    let rounds = options.runs.unwrap_or(ROUNDS);
    let workspace = workspace(&places.scratch)?;
    let mut report = Report::new("start");
    let mut contenders = vec![
        Contender::new("bare fork+exec", Command::new("true")),
        Contender::new("pinfold", pinfold(places, &workspace)),
    ];
    contenders.extend(peers_of(places, &workspace, &mut report));
    contenders.retain_mut(|contender| match contender.warm_up(rounds) {
        Ok(()) => true,
        Err(reason) => {
            report.note(reason);
            false
        }
    });
    if !contenders.iter().any(|contender| contender.name == "pinfold") {
        return Err(format!("pinfold did not run true; nothing can be compared\n{report}"));
    }
    for round in 0..rounds {
        for contender in contenders.iter_mut().filter(|contender| round % contender.every == 0) {
            let elapsed = contender.time()?;
            contender.samples.push(elapsed);
        }
    }
    for contender in contenders {
        report.row(contender.name, "ms", Samples::new(contender.samples));
    }
    report.ratio("pinfold", "bwrap", Good::AtMost, 1.0);
    report.ratio("pinfold", "srt", Good::AtMost, 1.0 / 50.0);
    report.ratio("pinfold", "docker run", Good::AtMost, 1.0 / 40.0);
    Ok(report)
}

/// A repository, so that there is something to protect.
fn workspace(scratch: &Path) -> Outcome<std::path::PathBuf> {
    let folder = fresh_folder(scratch, "start")?;
    invoke::output(Command::new("git").args(["init", "--quiet"]).arg(&folder))?;
    Ok(folder)
}

fn pinfold(places: &Places, workspace: &Path) -> Command {
    let mut command = places.pinfold_run(workspace);
    command.args(["--allow", "example.com", "--", "true"]);
    command
}

fn peers_of(places: &Places, workspace: &Path, report: &mut Report) -> Vec<Contender> {
    let mut found = Vec::new();
    let mut add = |name, command: Outcome<Command>| match command {
        Ok(command) => found.push(Contender::new(name, command)),
        Err(reason) => report.note(reason),
    };
    let mut bubblewrap_view = None;
    add(
        "bwrap",
        peers::bubblewrap().map(|()| {
            let view = bubblewrap_view.insert(view::like_ours(places, workspace));
            let mut command = Command::new("bwrap");
            command.args(&view.arguments).arg("true");
            command
        }),
    );
    add(
        "srt",
        peers::Srt::find(places).map(|srt| {
            let mut command = srt.command(workspace);
            command.arg("true");
            command
        }),
    );
    add(
        "codex sandbox",
        peers::codex().map(|words| {
            let mut command = Command::new("codex");
            command.current_dir(workspace).args(words).arg("true");
            command
        }),
    );
    add(
        "docker run",
        peers::docker().map(|image| {
            let mut command = Command::new("docker");
            command.args(["run", "--rm", "--network", "none", image, "/bin/busybox", "true"]);
            command
        }),
    );
    if let Some(view) = bubblewrap_view {
        report.note(format!("bwrap made {} mounts, from {}", view.mounts, view.source));
    }
    found
}

impl Contender {
    fn new(name: &'static str, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self {
            name,
            command,
            every: 1,
            samples: Vec::new(),
        }
    }

    /// Two runs that do not count: caches fill, and what does not work here is found out.
    fn warm_up(&mut self, rounds: usize) -> Outcome {
        self.time()?;
        if self.time()? >= SLOW_MS {
            self.every = rounds.div_ceil(SLOW_SAMPLES);
        }
        Ok(())
    }

    /// Milliseconds of one run.
    fn time(&mut self) -> Outcome<f64> {
        let start = Instant::now();
        let status = self.command.status();
        let elapsed = start.elapsed().as_secs_f64() * 1e3;
        match status {
            Ok(status) if status.success() => Ok(elapsed),
            Ok(status) => Err(format!("{} does not run true here ({status})", self.name)),
            Err(error) => Err(format!("{} could not be started: {error}", self.name)),
        }
    }
}
