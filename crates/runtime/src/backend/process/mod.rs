//! The process backend: a process tree in namespaces of its own, on the host's kernel.
//!
//! ```text
//! Guest::start ──▶ Guest (waits for its plan) ──build──▶ Sandbox (walls stand) ──spawn──▶ the same, with a command
//! ```
//!
//! Dropping either kills everything inside: the guest is the init of its PID namespace.

mod error;
mod image;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pinfold_model::plan::Plan;
use pinfold_model::wire::{GuestMessage, HostMessage, MAX_FRAME, PROTOCOL, Spawn};
use pinfold_sys::message::{self, Received};
use pinfold_sys::{Errno, descriptor, namespace};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Signal, WaitId, WaitIdOptions};

pub use error::{Breach, StartError, layer_name};
pub use image::Image;

/// A guest that runs and waits for its plan.
#[derive(Debug)]
pub struct Guest {
    control: Control,
    life: Life,
    report: OwnedFd,
}

/// A sandbox whose walls stand.
#[derive(Debug)]
pub struct Sandbox {
    control: Control,
    life: Life,
    /// The proxy's listening sockets inside: HTTP, then SOCKS.
    listeners: Option<[OwnedFd; 2]>,
}

/// What the guest has to say about the command.
#[derive(Debug)]
pub struct Event {
    pub message: GuestMessage,
    /// With [`GuestMessage::Started`]: the master of the command's terminal.
    pub terminal: Option<OwnedFd>,
}

impl Guest {
    /// Starts a guest in new namespaces.
    ///
    /// # Errors
    /// [`StartError::Namespaces`] when the kernel refuses them.
    pub fn start(image: &Image<'_>) -> Result<Self, StartError> {
        refuse_privileged_file()?;
        let program = image.make_ready().map_err(StartError::host("keep the guest"))?;
        let (ours, theirs) = message::pair().map_err(StartError::errno("make the control socket"))?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(StartError::errno("open /dev/null"))?;
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let started = namespace::start(&namespace::Init {
            program: program.program(),
            control: theirs.as_fd(),
            null: null.as_fd(),
            name: c"pinfold-guest",
            uid_map: format!("{uid} {uid} 1").as_bytes(),
            gid_map: format!("{gid} {gid} 1").as_bytes(),
        })
        .map_err(|errno| StartError::Namespaces { errno })?;
        let life = Life {
            pid: started.pid,
            pidfd: started.pidfd,
            ended: false,
        };
        Ok(Self {
            control: Control::new(ours),
            life,
            report: started.report,
        })
    }

    /// The guest's process, as the host sees it.
    #[must_use]
    pub fn pid(&self) -> rustix::process::Pid {
        self.life.pid
    }

    /// Hands over the plan and waits until the walls stand. The guest keeps `held` open for as long as it lives.
    ///
    /// # Errors
    /// The step that failed; everything is gone then.
    pub fn build(mut self, plan: &Plan, held: &[OwnedFd]) -> Result<Sandbox, StartError> {
        let file = document(plan).map_err(StartError::host("keep the plan in memory"))?;
        let count = u8::try_from(held.len()).map_err(|_| StartError::Guest {
            what: "too many held descriptors".to_owned(),
        })?;
        let descriptors: Vec<_> = std::iter::once(file.as_fd())
            .chain(held.iter().map(AsFd::as_fd))
            .collect();
        let hello = HostMessage::Hello {
            protocol: PROTOCOL,
            held: count,
        };
        if let Err(errno) = self.control.send(&hello, &descriptors) {
            return Err(self.explain_silence(errno));
        }
        match self.control.receive() {
            Ok(Some((GuestMessage::Ready { protocol: PROTOCOL }, descriptors))) => {
                let listeners = listeners(plan, descriptors)?;
                Ok(Sandbox {
                    control: self.control,
                    life: self.life,
                    listeners,
                })
            }
            Ok(Some((GuestMessage::SetupFailed(failure), _))) => Err(StartError::Layer { failure }),
            Ok(Some(_)) => Err(StartError::Guest {
                what: "it answered out of turn".to_owned(),
            }),
            Ok(None) => Err(self.explain_silence(Errno::PIPE)),
            Err(breach) => Err(StartError::Guest {
                what: breach.to_string(),
            }),
        }
    }

    /// Why a guest is gone before it spoke.
    fn explain_silence(&self, errno: Errno) -> StartError {
        match namespace::read_report(&self.report) {
            Some((step, errno)) => StartError::Init { step, errno },
            None => StartError::Guest {
                what: format!("it ended before it was ready ({errno})"),
            },
        }
    }
}

impl Sandbox {
    /// Takes the proxy's listening sockets: HTTP, then SOCKS. None without a network, or when taken before.
    pub fn take_listeners(&mut self) -> Option<[OwnedFd; 2]> {
        self.listeners.take()
    }

    /// The guest's process, as the host sees it.
    #[must_use]
    pub fn pid(&self) -> rustix::process::Pid {
        self.life.pid
    }

    /// Asks for a command. The answer comes as an event.
    ///
    /// # Errors
    /// The guest is gone, or memory is short.
    pub fn spawn(&mut self, spawn: &Spawn, streams: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let file = document(spawn)?;
        let descriptors: Vec<_> = std::iter::once(file.as_fd()).chain(streams.iter().copied()).collect();
        Ok(self.control.send(&HostMessage::Spawn, &descriptors)?)
    }

    /// Sends a signal to the command's process group.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn signal(&mut self, number: i32) -> Result<(), Errno> {
        self.control.send(&HostMessage::Signal { number }, &[])
    }

    /// Has the guest look whether every cover is in place.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn restore_covers(&mut self) -> Result<(), Errno> {
        self.control.send(&HostMessage::RestoreCovers, &[])
    }

    /// Stops every process inside; [`GuestMessage::Frozen`] tells when that is so.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn freeze(&mut self) -> Result<(), Errno> {
        self.control.send(&HostMessage::Freeze, &[])
    }

    /// Continues a command that was reported as stopped, and all that is frozen.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn resume(&mut self) -> Result<(), Errno> {
        self.control.send(&HostMessage::Continue, &[])
    }

    /// The next event; none once the guest is gone. Blocks unless the control socket is readable.
    ///
    /// # Errors
    /// What came is not what a guest says: treat the sandbox as hostile and drop it.
    pub fn next_event(&mut self) -> Result<Option<Event>, Breach> {
        let Some((message, descriptors)) = self.control.receive()? else {
            return Ok(None);
        };
        let terminal = match (&message, descriptors.len()) {
            (_, 0) => None,
            (GuestMessage::Started, 1) => descriptors.into_iter().next().map(check_terminal).transpose()?,
            _ => return Err(Breach::Descriptors),
        };
        Ok(Some(Event { message, terminal }))
    }

    /// Kills everything inside at once and waits until it is gone. Nothing can be asked of the sandbox afterwards.
    pub fn kill(&mut self) {
        self.life.end();
    }
}

impl AsFd for Sandbox {
    /// The control socket: readable when there is an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.socket.as_fd()
    }
}

/// The guest's process. Dropping kills it, and with it all processes of its PID namespace, and waits for the end.
#[derive(Debug)]
struct Life {
    pid: rustix::process::Pid,
    pidfd: OwnedFd,
    ended: bool,
}

impl Life {
    fn end(&mut self) {
        if !self.ended {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
            // Ends once every process inside is gone; the only error is that somebody else has waited already.
            let _ = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
            self.ended = true;
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug)]
struct Control {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Control {
    fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
        }
    }

    fn send(&self, message: &HostMessage, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let frame = postcard::to_stdvec(message).map_err(|_| Errno::PROTO)?;
        if frame.len() > MAX_FRAME {
            return Err(Errno::TOOBIG);
        }
        message::send(&self.socket, &frame, descriptors)
    }

    fn receive(&mut self) -> Result<Option<(GuestMessage, Vec<OwnedFd>)>, Breach> {
        self.buffer.resize(MAX_FRAME, 0);
        let mut received = message::receive(&self.socket, &mut self.buffer);
        if matches!(received, Err(Errno::CONNRESET)) {
            // The guest ended without having read all of ours. The kernel tells that once, before what the guest had sent.
            received = message::receive(&self.socket, &mut self.buffer);
        }
        match received {
            Ok(Received::Closed) | Err(Errno::CONNRESET) => Ok(None),
            Ok(Received::TooLarge) => Err(Breach::TooLarge),
            Ok(Received::Frame { len, descriptors }) => {
                let message = postcard::from_bytes(&self.buffer[..len]).map_err(|_| Breach::Malformed)?;
                Ok(Some((message, descriptors)))
            }
            Err(errno) => Err(Breach::Socket { errno }),
        }
    }
}

/// A sealed memory file with a value that is too large for a frame, to be read from its start.
fn document(value: &impl serde::Serialize) -> std::io::Result<OwnedFd> {
    let bytes = postcard::to_stdvec(value).map_err(std::io::Error::other)?;
    let file = descriptor::sealed_file("pinfold", &bytes)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// The listeners that a guest hands over, each checked for what it is: a listening TCP socket on the planned address. No
/// foreign code runs inside yet.
fn listeners(plan: &Plan, descriptors: Vec<OwnedFd>) -> Result<Option<[OwnedFd; 2]>, StartError> {
    let wrong = |what: &str| StartError::Guest {
        what: format!("its {what} is not what the plan asks for"),
    };
    let Some(ports) = plan.network else {
        return if descriptors.is_empty() {
            Ok(None)
        } else {
            Err(wrong("set of descriptors"))
        };
    };
    let pair: [OwnedFd; 2] = descriptors.try_into().map_err(|_| wrong("set of listeners"))?;
    for (socket, port) in pair.iter().zip([ports.http, ports.socks]) {
        let listening = rustix::net::sockopt::socket_acceptconn(socket).unwrap_or(false);
        let address = rustix::net::getsockname(socket)
            .ok()
            .and_then(|any| std::net::SocketAddr::try_from(any).ok());
        if !listening || address != Some((std::net::Ipv4Addr::LOCALHOST, port).into()) {
            return Err(wrong("listener"));
        }
    }
    Ok(Some(pair))
}

/// The master of a pty, and nothing else.
fn check_terminal(fd: OwnedFd) -> Result<OwnedFd, Breach> {
    /// `/dev/ptmx` and every master opened through it (Linux: devices.txt, 5 char).
    const PTMX: (u32, u32) = (5, 2);
    let stat = rustix::fs::fstat(&fd).map_err(|errno| Breach::Socket { errno })?;
    let device = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && device == PTMX {
        Ok(fd)
    } else {
        Err(Breach::Descriptors)
    }
}

/// Refuses to run with privileges that come from the program file itself.
///
/// # Errors
/// [`StartError::SetUserId`].
pub fn refuse_privileged_file() -> Result<(), StartError> {
    let same = rustix::process::getuid() == rustix::process::geteuid()
        && rustix::process::getgid() == rustix::process::getegid();
    if same && !pinfold_sys::process::is_secure_execution() {
        Ok(())
    } else {
        Err(StartError::SetUserId)
    }
}
