//! A case: a workspace, a home, and a folder outside, on the host; and the ways to run a command in a sandbox around them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::attack;
use crate::outcome::Ran;
use crate::snapshot::Snapshot;

/// What the caller's key file holds. Seen inside, it has leaked.
pub(crate) const SECRET: &str = "the-callers-own-secret";

/// Where the tools of the attacks are; no folder of anybody's home.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// No run takes that long unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Case {
    folder: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
    /// A folder that no rule names.
    pub(crate) outside: PathBuf,
}

impl Case {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("escape-")
            .tempdir()
            .expect("a folder for the case can be made");
        let root = fs::canonicalize(folder.path()).expect("the folder has a path");
        let case = Self {
            home: root.join("home"),
            workspace: root.join("home/project"),
            outside: root.join("outside"),
            folder,
        };
        for folder in [&case.workspace, &case.outside, &case.data(), &case.config()] {
            fs::create_dir_all(folder).expect("the case's folders can be made");
        }
        case.write(&case.home.join(".ssh/id_ed25519"), SECRET);
        case.write(&case.outside.join("file"), SECRET);
        case.write(&case.workspace.join("README"), "a project\n");
        case
    }

    /// A case whose workspace is a git repository with one commit.
    pub(crate) fn with_repository() -> Self {
        let case = Self::new();
        case.write(
            &case.home.join(".gitconfig"),
            "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n",
        );
        case.git(&["init", "--quiet"]);
        case.git(&["add", "README"]);
        case.git(&["commit", "--quiet", "-m", "first"]);
        case
    }

    pub(crate) fn root(&self) -> &Path {
        self.home.parent().expect("the home lies in the case's folder")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root_of_folder().join("data")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root_of_folder().join("config")
    }

    fn root_of_folder(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("the folder has a path")
    }

    /// Writes a file of the host, with the folders above it.
    pub(crate) fn write(&self, path: &Path, content: impl AsRef<[u8]>) {
        let parent = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).expect("the folder can be made");
        fs::write(path, content).expect("the file can be written");
    }

    /// Writes a file of the workspace.
    pub(crate) fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace.join(name);
        self.write(&path, content);
        path
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.workspace.join(name)).expect("the link can be made");
    }

    /// Writes the person's own policy file.
    pub(crate) fn policy(&self, text: impl AsRef<[u8]>) {
        self.write(&self.config().join("pinfold/config.toml"), text);
    }

    /// Runs git on the host, in the workspace.
    pub(crate) fn git(&self, arguments: &[&str]) {
        self.git_in(&self.workspace, arguments);
    }

    pub(crate) fn git_in(&self, folder: &Path, arguments: &[&str]) {
        let status = self
            .host("git")
            .current_dir(folder)
            .args(arguments)
            .status()
            .expect("the escape tests need git");
        assert!(status.success(), "git {arguments:?} failed on the host");
    }

    /// A program on the host, with the case's environment and nothing else.
    pub(crate) fn host(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .current_dir(&self.workspace)
            .env("PATH", PATH)
            .env("HOME", &self.home)
            .env("USER", "caller")
            .env("LANG", "C.UTF-8")
            .env("XDG_DATA_HOME", self.data())
            .env("XDG_CONFIG_HOME", self.config());
        command
    }

    /// `pinfold` itself, from the workspace.
    pub(crate) fn pinfold(&self) -> Command {
        self.host(program())
    }

    /// Runs a command in a sandbox, with flags of `pinfold run`.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, flags: &[S], command: &[&str]) -> Ran {
        let mut pinfold = self.pinfold();
        pinfold.arg("run").args(flags).arg("--").args(command);
        finish(pinfold.stdin(Stdio::null()))
    }

    pub(crate) fn sh(&self, script: &str) -> Ran {
        self.run::<OsString>(&[], &["sh", "-c", script])
    }

    /// Runs an attack (see [`attack`]) in a sandbox.
    pub(crate) fn attack(&self, script: &str) -> Ran {
        self.attack_with::<OsString>(&[], script)
    }

    pub(crate) fn attack_with<S: AsRef<OsStr>>(&self, flags: &[S], script: &str) -> Ran {
        attack::require_python();
        let ran = self.run(
            flags,
            &["/usr/bin/env", "python3", "-I", "-c", &attack::program(script)],
        );
        ran.assert_ran_to_its_end();
        ran
    }

    /// Starts a sandbox that goes on until its standard input is closed or it is killed.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, flags: &[S], command: &[&str]) -> Live {
        let mut pinfold = self.pinfold();
        pinfold.arg("run").args(flags).arg("--").args(command);
        Live::spawn(&mut pinfold)
    }

    pub(crate) fn start_attack<S: AsRef<OsStr>>(&self, flags: &[S], script: &str) -> Live {
        attack::require_python();
        self.start(
            flags,
            &["/usr/bin/env", "python3", "-I", "-c", &attack::program(script)],
        )
    }

    /// What lies in the home (with the workspace) and outside.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&[&self.home, &self.outside])
    }

    pub(crate) fn assert_unchanged(&self, before: &Snapshot) {
        before.assert_same_as(&self.snapshot());
    }
}

/// The binary under test.
pub(crate) fn program() -> OsString {
    std::env::var_os("PINFOLD_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_pinfold").into())
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs to the end, or kills and fails.
pub(crate) fn finish(command: &mut Command) -> Ran {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pinfold can be started");
    let pid = child.id();
    let (done, ended) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            kill(pid, rustix::process::Signal::KILL);
        }
        late
    });
    let output = child.wait_with_output().expect("pinfold can be waited for");
    drop(done);
    let ran = Ran::from(output);
    assert!(!guard.join().expect("the guard does not panic"), "it hangs: {ran:?}");
    ran
}

pub(crate) fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let _ = rustix::process::kill_process(pid.expect("a process has a positive id"), signal);
}

/// Waits for a condition of the host, within bounds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "never happened: {what}");
        // Nothing announces these conditions: looked at again after a moment.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A sandbox that is talked to line by line.
pub(crate) struct Live {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    seen: String,
    /// Kills a sandbox that hangs; told to end when this is dropped.
    _guard: mpsc::Sender<()>,
}

impl Live {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pinfold can be started");
        let pid = child.id();
        let (guard, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                kill(pid, rustix::process::Signal::KILL);
            }
        });
        Self {
            _guard: guard,
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("standard output is a pipe")),
            child,
            seen: String::new(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("standard input is open");
        writeln!(input, "{line}").expect("the command reads");
    }

    /// The next line of output.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the output is text");
        if line.is_empty() {
            let _ = self.child.kill();
            let mut errors = String::new();
            if let Some(mut stderr) = self.child.stderr.take() {
                let _ = std::io::Read::read_to_string(&mut stderr, &mut errors);
            }
            panic!("the command ended early: {}{errors}", self.seen);
        }
        self.seen.push_str(&line);
        line.trim_end().to_owned()
    }

    /// Closes the input and waits for the end.
    pub(crate) fn end(mut self) -> Ran {
        drop(self.input.take());
        std::io::Read::read_to_string(&mut self.output, &mut self.seen).expect("the output is text");
        let mut ran = Ran::from(
            std::mem::replace(&mut self.child, done())
                .wait_with_output()
                .expect("pinfold can be waited for"),
        );
        ran.stdout = std::mem::take(&mut self.seen);
        ran
    }
}

/// Takes the place of a child that was waited for.
fn done() -> Child {
    Command::new("true").spawn().expect("true can be started")
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
