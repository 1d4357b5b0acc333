//! What the caller's standard streams are, and what the command gets in their place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::wire::Stdio;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, major, minor};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};
use thiserror::Error;

use super::Pump;

/// Devices that hold nothing of anybody's (Linux: devices.txt, 1 char): null, zero, full, random, urandom.
const HARMLESS: [(u32, u32); 5] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9)];

const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// A stream that may not be passed on.
#[derive(Debug, Error)]
pub(crate) enum StreamsError {
    #[error("{stream} is {what}, which would be a way out of the sandbox")]
    Refused { stream: &'static str, what: &'static str },
    #[error("{stream} cannot be prepared: {errno}")]
    Failed { stream: &'static str, errno: Errno },
}

/// The command's standard streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdio: [Stdio; 3],
    /// The descriptors to pass, in order.
    pub(crate) passed: Vec<OwnedFd>,
    /// The relay from the caller's terminal to a pipe of the command.
    pub(crate) input: Option<Pump>,
    /// The relays from pipes of the command to the caller's terminal.
    pub(crate) outputs: Vec<Pump>,
    /// Whether the command gets a terminal of its own.
    pub(crate) terminal: bool,
}

impl Streams {
    /// Looks at descriptors 0 to 2 of this process.
    pub(crate) fn of_caller() -> Result<Self, StreamsError> {
        let own = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let terminals = own.map(rustix::termios::isatty);
        let terminal = terminals[0] && terminals[1];
        let mut streams = Self {
            stdio: [Stdio::Null; 3],
            passed: Vec::new(),
            input: None,
            outputs: Vec::new(),
            terminal,
        };
        for (index, fd) in own.into_iter().enumerate() {
            let name = NAMES[index];
            streams.stdio[index] = match (terminals[index], terminal) {
                (true, true) => Stdio::Terminal,
                (true, false) => streams
                    .relay(fd, index == 0)
                    .map_err(|errno| StreamsError::Failed { stream: name, errno })?,
                (false, _) => streams.pass(fd, name)?,
            };
        }
        Ok(streams)
    }

    fn relay(&mut self, fd: BorrowedFd<'_>, input: bool) -> Result<Stdio, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        if input {
            self.input = Some(Pump::input(fd, write)?);
            self.passed.push(read);
        } else {
            self.outputs.push(Pump::output(read, fd)?);
            self.passed.push(write);
        }
        Ok(Stdio::Passed)
    }

    fn pass(&mut self, fd: BorrowedFd<'_>, stream: &'static str) -> Result<Stdio, StreamsError> {
        let failed = |errno| StreamsError::Failed { stream, errno };
        let refused = |what| Err(StreamsError::Refused { stream, what });
        if fcntl_getfl(fd).map_err(failed)?.contains(OFlags::PATH) {
            return refused("a path descriptor");
        }
        let stat = fstat(fd).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => return self.pass_socket(fd, stream),
            // Descriptors of the kernel's own: pidfd, epoll, namespaces.
            FileType::Unknown => return refused("a descriptor of the kernel's own"),
            FileType::RegularFile if is_namespace(fd) => return refused("a namespace"),
            FileType::Directory => return refused("a directory"),
            FileType::BlockDevice => return refused("a block device"),
            FileType::CharacterDevice if !HARMLESS.contains(&(major(stat.st_rdev), minor(stat.st_rdev))) => {
                return refused("a device");
            }
            _ => {}
        }
        self.passed
            .push(rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), 3).map_err(failed)?);
        Ok(Stdio::Passed)
    }

    /// A connected Unix stream can do nothing but carry bytes. Any other stream could be connected anew from inside, past the
    /// sandbox's network, so its bytes are relayed; what is no stream is refused.
    fn pass_socket(&mut self, fd: BorrowedFd<'_>, stream: &'static str) -> Result<Stdio, StreamsError> {
        let failed = |errno| StreamsError::Failed { stream, errno };
        let listening = sockopt::socket_acceptconn(fd).map_err(failed)?;
        if listening || sockopt::socket_type(fd).map_err(failed)? != SocketType::STREAM {
            return Err(StreamsError::Refused {
                stream,
                what: "a socket that is no connected stream",
            });
        }
        let unix = sockopt::socket_domain(fd).map_err(failed)? == AddressFamily::UNIX;
        if unix && rustix::net::getpeername(fd).is_ok() {
            self.passed
                .push(rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(failed)?);
            return Ok(Stdio::Passed);
        }
        self.relay(fd, stream == NAMES[0]).map_err(failed)
    }
}

/// Whether a descriptor stands for a namespace (`NSFS_MAGIC`, linux/magic.h).
fn is_namespace(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|found| found.f_type == 0x6e73_6673)
}
