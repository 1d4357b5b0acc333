//! A home folder with a workspace in it, for one test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Gone with its end.
pub(crate) struct Home {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        for name in ["home/me/app", "bin"] {
            std::fs::create_dir_all(root.join(name)).expect("a folder");
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pinfold"), root.join("bin/pinfold")).expect("a link");
        Self { _folder: folder, root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("home/me/app")
    }

    /// A program in the workspace that sees nothing of the tester's own settings.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("HOME", self.root.join("home/me"))
            .env("USER", "me")
            .env("LOGNAME", "me")
            .env("SHELL", "/bin/sh")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm")
            .env(
                "PATH",
                format!(
                    "{}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                    self.root.display()
                ),
            );
        command
    }
}

/// Whether a program that a test needs is there. Where the whole suite has to run, it has to be.
pub(crate) fn has(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !found {
        eprintln!("not tested: {program} is not installed");
    }
    found
}
