//! A terminal for a test: a program that owns it, what it has written, and keys to press.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::home::Home;

/// After this a test is stuck.
const STUCK: Duration = Duration::from_secs(60);

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_Z: &str = "\x1a";

/// A terminal of the host and a program on it.
pub(crate) struct Pty {
    master: File,
    /// Kept open, so that the modes can be looked at after the program's end.
    slave: OwnedFd,
    screen: Arc<Screen>,
    /// Bytes of the screen that were waited for already.
    seen: usize,
    child: Child,
}

#[derive(Default)]
struct Screen {
    written: Mutex<Vec<u8>>,
    changed: Condvar,
}

/// How a program comes to its terminal.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    All,
    OnlyStdin,
    OnlyStdout,
}

impl Pty {
    /// `pinfold run -q` on a terminal of its own, with these words after it.
    pub(crate) fn run(home: &Home, words: &[&str]) -> Self {
        Self::start(home, Ends::All, &[&["pinfold", "run", "-q"], words].concat())
    }

    /// A shell that knows job control, to type into.
    pub(crate) fn shell(home: &Home) -> Self {
        let mut shell = Self::start(home, Ends::All, &["bash", "--norc", "--noprofile", "-i"]);
        // Written so that the echo of the line is not taken for the prompt.
        shell.press("PS1='out''side> '\n");
        shell.wait_for("outside> ");
        shell
    }

    pub(crate) fn start(home: &Home, ends: Ends, words: &[&str]) -> Self {
        let pty = Self::held_at(home, ends, words);
        let (reader, shared) = (pty.master.try_clone().expect("a descriptor"), Arc::clone(&pty.screen));
        std::thread::spawn(move || shared.fill(reader));
        pty
    }

    /// On a terminal whose screen nobody reads.
    pub(crate) fn held(home: &Home, words: &[&str]) -> Self {
        Self::held_at(home, Ends::All, words)
    }

    fn held_at(home: &Home, ends: Ends, words: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).expect("a terminal");
        rustix::pty::unlockpt(&master).expect("a terminal");
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).expect("a terminal");
        let size = Winsize {
            ws_row: 33,
            ws_col: 101,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&slave, size).expect("a size");
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        // It makes the terminal on its standard input the program's own, and becomes the program.
        let mut command: Command = home.command("setsid");
        command.arg("--ctty").args(words).stdin(end());
        match ends {
            Ends::All => command.stdout(end()).stderr(end()),
            Ends::OnlyStdin => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
            Ends::OnlyStdout => {
                command = home.command("setsid");
                command
                    .arg("--ctty")
                    .args(["sh", "-c", "echo piped | \"$@\"", "sh"])
                    .args(words)
                    .stdin(end());
                command.stdout(end()).stderr(end())
            }
        };
        let child = command.spawn().expect("setsid is there");
        Self {
            master: File::from(master),
            slave,
            screen: Arc::default(),
            seen: 0,
            child,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.master, size).expect("a size");
    }

    /// The terminal's modes, to be compared.
    pub(crate) fn modes(&self) -> String {
        format!("{:?}", rustix::termios::tcgetattr(&self.slave).expect("modes"))
    }

    /// Its path on the host.
    pub(crate) fn path(&self) -> String {
        let name = rustix::termios::ttyname(&self.slave, Vec::new()).expect("a name");
        name.into_string().expect("a plain path")
    }

    /// The program: pinfold or the shell itself.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// Waits until the screen shows `text` after what was waited for before; returns everything up to it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let start = self.seen;
        let found = self.screen.wait(STUCK, |written| {
            let new = &written[start..];
            let at = new.windows(text.len()).position(|window| window == text.as_bytes())?;
            Some((
                String::from_utf8_lossy(&new[..at]).into_owned(),
                start + at + text.len(),
            ))
        });
        let Some((before, seen)) = found else {
            panic!("no '{text}' on the screen, but:\n{}", self.text());
        };
        self.seen = seen;
        before
    }

    /// Waits for the program's end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(
                start.elapsed() < STUCK,
                "it does not end; on the screen:\n{}",
                self.text()
            );
            std::thread::yield_now();
            self.screen.pause();
        }
    }

    /// Waits for the end; returns the exit code and everything on the screen.
    pub(crate) fn finish(&mut self) -> (Option<i32>, String) {
        let code = self.end().code();
        // Everything is written before the end; a mark of our own tells that it is read.
        rustix::io::write(&self.slave, b"\0end\0").expect("the terminal is open");
        self.wait_for("\0end\0");
        (code, self.text().replace("\0end\0", ""))
    }

    /// Standard output and error of [`Ends::OnlyStdin`], to the end.
    pub(crate) fn piped(&mut self) -> String {
        let mut text = String::new();
        let output = self.child.stdout.as_mut().expect("a pipe");
        output.read_to_string(&mut text).expect("text");
        text
    }

    fn text(&self) -> String {
        let written = self.screen.written.lock().expect("no panic");
        String::from_utf8_lossy(&written).replace("\r\n", "\n")
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // A failed test must not leave its program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    fn fill(&self, mut reader: File) {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut chunk) {
            self.written
                .lock()
                .expect("no panic")
                .extend_from_slice(&chunk[..count]);
            self.changed.notify_all();
        }
    }

    fn wait<T>(&self, limit: Duration, mut find: impl FnMut(&[u8]) -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        let mut written = self.written.lock().expect("no panic");
        loop {
            if let Some(found) = find(&written) {
                return Some(found);
            }
            let left = end.checked_duration_since(Instant::now())?;
            written = self.changed.wait_timeout(written, left).expect("no panic").0;
        }
    }

    /// Until something is written, or a moment.
    fn pause(&self) {
        let written = self.written.lock().expect("no panic");
        let _ = self
            .changed
            .wait_timeout(written, Duration::from_millis(10))
            .expect("no panic");
    }
}
