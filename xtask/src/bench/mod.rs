//! Speed, as ratios to peers measured in the same run.
//!
//! Absolute times say more about the machine than about the program: every bar is a ratio of medians whose samples were
//! taken in turn. A bar that is missed is printed, it does not fail the command; a peer that is not there is named, it is
//! never replaced by a remembered number.

pub(crate) mod files;
pub(crate) mod http;
mod peers;
mod proxy;
mod report;
mod start;
mod view;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, invoke, metadata};

/// What was asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Rounds; none leaves the benchmark's own number.
    runs: Option<usize>,
    json: bool,
    /// The program to measure; none builds this tree's.
    pinfold: Option<PathBuf>,
}

/// Where things lie.
#[derive(Debug)]
pub(crate) struct Places {
    pinfold: PathBuf,
    /// Scratch space of the benchmarks, below the target folder; peers are installed here.
    scratch: PathBuf,
    /// This very program, which also works inside the sandboxes.
    xtask: PathBuf,
}

impl Places {
    /// `pinfold run -q`, to be followed by more flags; its state goes to the scratch space, not to the person's home.
    fn pinfold_run(&self, workspace: &Path) -> Command {
        let mut command = Command::new(&self.pinfold);
        command
            .current_dir(workspace)
            .env("XDG_DATA_HOME", self.scratch.join("state/data"))
            .env("XDG_STATE_HOME", self.scratch.join("state/state"))
            .env("XDG_CACHE_HOME", self.scratch.join("state/cache"))
            .env("XDG_CONFIG_HOME", self.scratch.join("state/config"))
            .args(["run", "-q"]);
        command
    }
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let Some((kind, flags)) = words.split_first() else {
        return Err("bench what? start, files or proxy".to_owned());
    };
    let options = options(flags)?;
    let measure = match *kind {
        "start" => start::measure,
        "files" => files::measure,
        "proxy" => proxy::measure,
        other => return Err(format!("there is no benchmark {other}: start, files or proxy")),
    };
    let report = measure(&places(&options)?, &options)?;
    if options.json {
        println!("{:#}", report.json());
    } else {
        print!("{report}");
    }
    Ok(())
}

fn options(flags: &[&str]) -> Outcome<Options> {
    let mut options = Options::default();
    let mut rest = flags;
    loop {
        rest = match rest {
            [] => return Ok(options),
            ["--json", rest @ ..] => {
                options.json = true;
                rest
            }
            ["--runs", number, rest @ ..] => {
                let runs = number.parse().ok().filter(|&runs| runs > 0);
                options.runs = Some(runs.ok_or_else(|| format!("{number} is not a number of runs"))?);
                rest
            }
            ["--pinfold", path, rest @ ..] => {
                let path = std::fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?;
                options.pinfold = Some(path);
                rest
            }
            [other, ..] => return Err(format!("bench does not know {other}: --runs N, --json, --pinfold PATH")),
        };
    }
}

fn places(options: &Options) -> Outcome<Places> {
    if options.pinfold.is_none() {
        invoke::run(invoke::cargo().args(["build", "--release", "--locked", "--package", "pinfold"]))?;
    }
    let target = metadata::read()?.target;
    let scratch = target.join("bench");
    std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let xtask = std::env::current_exe().map_err(|error| format!("the path of xtask is unknown: {error}"))?;
    let pinfold = options
        .pinfold
        .clone()
        .unwrap_or_else(|| target.join("release/pinfold"));
    Ok(Places {
        pinfold,
        scratch,
        xtask,
    })
}

/// A fresh, empty folder below the scratch space.
fn fresh_folder(scratch: &Path, name: &str) -> Outcome<PathBuf> {
    let folder = scratch.join(name);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}
