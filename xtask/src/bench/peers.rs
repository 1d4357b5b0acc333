//! Other sandboxes on this machine. Each is asked for once; what is not there is named with the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Places;
use crate::{Outcome, invoke};

/// Sandbox Runtime, from the npm registry, at the version that the numbers are compared with.
const SRT: &str = "@anthropic-ai/sandbox-runtime@0.0.83";
const SRT_NEEDS: [&str; 4] = ["bwrap", "socat", "rg", "node"];

const DOCKER_IMAGE: &str = "pinfold-bench:busybox";

/// `srt` with a settings file that permits the loopback address; installed on first use.
#[derive(Debug)]
pub(super) struct Srt {
    program: PathBuf,
    settings: PathBuf,
}

impl Srt {
    pub(super) fn find(places: &Places) -> Outcome<Self> {
        let missing: Vec<&str> = SRT_NEEDS
            .into_iter()
            .filter(|program| invoke::find(program).is_none())
            .collect();
        if !missing.is_empty() {
            return Err(format!("srt needs {}, not installed", missing.join(", ")));
        }
        let folder = places.scratch.join("srt");
        let program = folder.join("node_modules/.bin/srt");
        if !program.exists() {
            fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let mut install = Command::new("npm");
            install
                .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
                .arg(&folder)
                .arg(SRT);
            invoke::output(&mut install).map_err(|error| format!("srt not installed: {error}"))?;
        }
        let settings = folder.join("settings.json");
        let text = r#"{"network":{"allowedDomains":["127.0.0.1"],"deniedDomains":[]},
            "filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}"#;
        fs::write(&settings, text).map_err(|error| format!("{}: {error}", settings.display()))?;
        Ok(Self { program, settings })
    }

    pub(super) fn command(&self, workspace: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(workspace).arg("--settings").arg(&self.settings);
        command
    }
}

pub(super) fn bubblewrap() -> Outcome {
    invoke::find("bwrap")
        .map(drop)
        .ok_or_else(|| "bwrap not installed".to_owned())
}

/// The subcommand's spelling changed between releases: the one that runs here.
pub(super) fn codex() -> Outcome<Vec<&'static str>> {
    if invoke::find("codex").is_none() {
        return Err("codex not installed".to_owned());
    }
    let spellings = [vec!["sandbox", "linux", "--"], vec!["sandbox", "--"]];
    spellings
        .into_iter()
        .find(|words| invoke::output(Command::new("codex").args(words).arg("true")).is_ok())
        .ok_or_else(|| "codex is installed, but its sandbox does not run here".to_owned())
}

/// An image of one static program, so that only the engine is measured.
pub(super) fn docker() -> Outcome<&'static str> {
    if invoke::find("docker").is_none() {
        return Err("docker not installed".to_owned());
    }
    let answers = invoke::output(Command::new("timeout").args(["5", "docker", "info"]));
    answers.map_err(|_| "docker is installed, but no engine answers".to_owned())?;
    let present = invoke::output(Command::new("docker").args(["image", "inspect", DOCKER_IMAGE])).is_ok();
    if !present {
        let import = format!("tar -C / -c bin/busybox | docker import - {DOCKER_IMAGE}");
        invoke::output(Command::new("sh").args(["-c", &import]))
            .map_err(|error| format!("docker: no image could be made from /bin/busybox (busybox-static): {error}"))?;
    }
    Ok(DOCKER_IMAGE)
}
