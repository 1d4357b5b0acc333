//! `pinfold run --explain` and `pinfold doctor` against the kernel of this machine.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod doctor;
mod refusals;
mod unchanged;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PINFOLD: &str = env!("CARGO_BIN_EXE_pinfold");

/// A workspace with a repository, and a home, in a folder of their own.
struct Case {
    folder: tempfile::TempDir,
}

/// What a run came to.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Case {
    fn new() -> Self {
        let case = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["home", "work/.git/hooks", "work/.git/objects", "work/.git/refs"] {
            std::fs::create_dir_all(case.path(folder)).unwrap();
        }
        std::fs::write(case.path("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(case.path("work/.git/config"), "").unwrap();
        case
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Runs `pinfold run` with the given arguments.
    fn run(&self, arguments: &[&str]) -> Ran {
        // A command that is never continued must not hold up the suite.
        let mut command = self.command("timeout");
        ran(command.args(["-k", "2", "60", PINFOLD, "run"]).args(arguments))
    }

    /// Runs a shell script under `--explain`.
    fn explain(&self, script: &str) -> Ran {
        self.run(&["--explain", "--", "sh", "-c", script])
    }
}

fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran {
        code: status.code().unwrap(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

impl Ran {
    /// The row of the report about a path or call.
    #[track_caller]
    fn row(&self, of: &str) -> &str {
        let mut rows = self.err.lines().filter(|line| line.trim_start().starts_with(of));
        let row = rows.next().unwrap_or_else(|| panic!("no row {of} in:\n{}", self.err));
        assert_eq!(rows.next(), None, "{}", self.err);
        row
    }

    #[track_caller]
    fn says(&self, of: &str, expected: &[&str]) {
        let row = self.row(of);
        for part in expected {
            assert!(row.contains(part), "{part} in: {row}");
        }
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
