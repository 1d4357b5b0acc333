//! A home folder with a workspace, and commands run in it through `pinfold run`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Gone with its end.
pub(crate) struct Desk {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// In the tester's home: of `/tmp` a sandbox has its own, so a rule about the whole host says nothing there.
    pub(crate) fn new() -> Self {
        let home = std::env::var_os("HOME").expect("the tester has a home");
        Self::in_folder(&PathBuf::from(home))
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/app")).unwrap();
        Self { _folder: folder, root }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("home/app")
    }

    /// A file in the workspace.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A program outside of any sandbox, that sees nothing of the tester's settings.
    pub(crate) fn outside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "me")
            .env("LOGNAME", "me")
            .env("LANG", "C.UTF-8")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command
    }

    /// `pinfold run`, ready for flags and a command.
    pub(crate) fn pinfold(&self) -> Command {
        let mut command = self.outside(env!("CARGO_BIN_EXE_pinfold"));
        // A program that hangs is a failed test, not a suite that never ends.
        command.args(["run", "--timeout", "5m"]);
        command
    }

    /// Runs a shell script in the sandbox.
    pub(crate) fn sh(&self, flags: &[&str], script: &str) -> Said {
        said(self.pinfold().args(flags).args(["--", "sh", "-c", script]))
    }

    /// Runs a shell script in the sandbox that has to succeed; its standard output.
    #[track_caller]
    pub(crate) fn works(&self, flags: &[&str], script: &str) -> String {
        let said = self.sh(flags, script);
        assert_eq!(said.code, Some(0), "{script}\n{said:#?}");
        said.out
    }
}

impl Drop for Desk {
    /// The kernel closes the work folders of overlays even to their owner, who then cannot remove them.
    fn drop(&mut self) {
        let _ = Command::new("chmod").arg("-R").arg("u+rwX").arg(&self.root).status();
    }
}

pub(crate) fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said {
        code: status.code(),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Whether a program is there; what is not tested for want of it is said.
pub(crate) fn has(program: &str) -> bool {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    let found = folders.iter().any(|folder| Path::new(folder).join(program).is_file());
    if !found {
        eprintln!("not tested: {program} is not installed");
    }
    found
}
