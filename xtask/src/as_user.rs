//! The test-suite once more as an ordinary user: many walls are built another way there, and some faults show only there.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, invoke};

/// The packages whose behaviour depends on who runs them.
const PACKAGES: [&str; 4] = ["pinfold", "pinfold-guest", "pinfold-runtime", "pinfold-sys"];

/// What an ordinary user's shell starts with; the toolchain of the build is not part of it.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A built test program.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    executable: PathBuf,
    manifest: PathBuf,
}

pub(crate) fn run(user: &str) -> Outcome {
    let home = home_of(user)?;
    let mut build = invoke::cargo();
    build.args(["test", "--no-run", "--locked", "--message-format=json"]);
    for package in PACKAGES {
        build.args(["--package", package]);
    }
    let programs = programs(&invoke::output(&mut build)?);
    if programs.is_empty() {
        return Err("no test program was built for the run as an ordinary user".to_owned());
    }
    let mut failed = Vec::new();
    for program in &programs {
        reachable(user, &program.executable)?;
        eprintln!("     Running {} as {user}", program.name);
        if invoke::run(&mut as_user(user, &home, program)).is_err() {
            failed.push(program.name.as_str());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed as {user}: {}", failed.join(", ")))
    }
}

fn programs(messages: &str) -> Vec<Program> {
    let program = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        Some(Program {
            name: message["target"]["name"].as_str()?.to_owned(),
            executable: message["executable"].as_str()?.into(),
            manifest: message["manifest_path"].as_str()?.into(),
        })
    };
    messages.lines().filter_map(program).collect()
}

/// As cargo starts a test: in the package's folder, with the variables that tests and snapshots look at.
fn as_user(user: &str, home: &str, program: &Program) -> Command {
    let folder = program.manifest.parent().unwrap_or(Path::new("/"));
    let mut command = Command::new("runuser");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", home)
        .env("USER", user)
        .env("LOGNAME", user)
        .env("LANG", "C.UTF-8")
        .env("CARGO_MANIFEST_DIR", folder)
        .env("INSTA_WORKSPACE_ROOT", invoke::root())
        .env("INSTA_UPDATE", "no")
        .args(["-u", user, "--"])
        .arg(&program.executable);
    for name in ["CI", "RUST_BACKTRACE", "TERM"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

fn home_of(user: &str) -> Outcome<String> {
    let entry = invoke::output(Command::new("getent").args(["passwd", user]))
        .map_err(|_| format!("there is no user {user}\nhint: useradd --create-home {user}"))?;
    entry
        .trim()
        .split(':')
        .nth(5)
        .map(str::to_owned)
        .ok_or_else(|| format!("the entry of {user} has no home: {entry}"))
}

fn reachable(user: &str, executable: &Path) -> Outcome {
    let mut probe = Command::new("runuser");
    probe.args(["-u", user, "--", "test", "-x"]).arg(executable);
    match invoke::output(&mut probe) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "{user} cannot run {}\nhint: the run has to be root's, and the checkout in a folder that others may enter",
            executable.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Program, programs};

    #[test]
    fn only_test_programs_are_taken_from_the_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","profile":{"test":false},"target":{"name":"pinfold"},"executable":"/t/pinfold","manifest_path":"/s/Cargo.toml"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","profile":{"test":true},"target":{"name":"escapes"},"executable":"/t/escapes-1","manifest_path":"/s/Cargo.toml"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let wanted = Program {
            name: "escapes".to_owned(),
            executable: "/t/escapes-1".into(),
            manifest: "/s/Cargo.toml".into(),
        };
        assert_eq!(programs(messages), [wanted]);
    }
}
