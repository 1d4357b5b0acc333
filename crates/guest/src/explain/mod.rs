//! Names the calls that the kernel refuses to a command: traces the command and everything that it starts.
//!
//! Owns the stops of every traced process. Decides nothing and changes nothing: each call has been refused already when it is
//! looked at, and signals, stops, exit codes and orphans are as they would be without it. Bounded in what it keeps and says.
//!
//! ```text
//! command: walls on, proven ── waits at the gate ── exec …
//! guest:                        seizes it, opens the gate, follows every entry and exit of a call
//! ```

mod calls;
mod locate;
mod places;

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use pinfold_model::plan::Plan;
use pinfold_model::wire::{Exit, Failure, GuestMessage, Layer, MAX_REFUSALS, Refusal};
use pinfold_sys::Errno;
use pinfold_sys::trace::{self, Call, Change, Resume};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use crate::channel::Channel;
use crate::failure::During;
use places::Places;

/// What keeps a command from its exec until it is traced.
pub(crate) struct Gate {
    guest: OwnedFd,
    command: OwnedFd,
}

/// A gate at which the command waits.
pub(crate) struct Waiting(OwnedFd);

impl Gate {
    pub(crate) fn new() -> Result<Self, Failure> {
        let (guest, command) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .during(Layer::Trace, || "make the gate of the traced command".to_owned())?;
        Ok(Self { guest, command })
    }

    /// Waits, in the command's process, until the guest has seized it.
    pub(crate) fn wait(&self) {
        let pid = rustix::process::getpid().as_raw_nonzero().get().to_ne_bytes();
        let _ = rustix::io::write(&self.command, &pid);
        let mut byte = [0_u8; 1];
        while rustix::io::read(&self.command, &mut byte) == Err(Errno::INTR) {}
    }

    /// Waits, in the guest, for the command; none when it ended before.
    pub(crate) fn reached(self) -> Option<(Pid, Waiting)> {
        drop(self.command);
        let mut pid = [0_u8; 4];
        loop {
            match rustix::io::read(&self.guest, &mut pid) {
                Ok(4) => return Some((Pid::from_raw(i32::from_ne_bytes(pid))?, Waiting(self.guest))),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

/// A call that a thread is in.
struct Inside {
    number: u64,
    arguments: [u64; 6],
}

/// What makes two refusals the same: the call, its error number, its path, its first arguments.
type Said = (u64, i32, Option<Vec<u8>>, [u64; 2]);

/// A traced command.
pub(crate) struct Tracer {
    places: Places,
    /// The leader of the command's session, which is a child of the guest but is not traced.
    leader: Option<Pid>,
    inside: HashMap<i32, Inside>,
    said: HashSet<Said>,
    missing: usize,
    waiting: Vec<Refusal>,
    behind: bool,
}

/// Changes that are dealt with at a time.
const MANY: usize = 1000;

/// What a change means for the guest.
pub(crate) enum News {
    None,
    Stopped { signal: i32 },
    Ended(Option<Exit>),
}

impl Tracer {
    /// Seizes a command that waits at its gate, and lets it through. `leader` leads its session when that is another process.
    pub(crate) fn seize(plan: &Plan, command: Pid, leader: Option<Pid>, gate: Waiting) -> Result<Self, Failure> {
        let step = || "trace the command".to_owned();
        trace::seize(command).during(Layer::Trace, step)?;
        let mut tracer = Self {
            places: Places::of(&plan.view),
            leader,
            inside: HashMap::new(),
            said: HashSet::new(),
            missing: 0,
            waiting: Vec::new(),
            behind: false,
        };
        let stopped = trace::wait(Some(command), true).during(Layer::Trace, step)?;
        if let Some((pid, change)) = stopped {
            tracer.handle(pid, change);
        }
        rustix::io::write(&gate.0, &[1]).during(Layer::Trace, step)?;
        Ok(tracer)
    }

    /// Follows the command up to its exec, or to its end without one.
    pub(crate) fn follow_to_exec(&mut self, command: Pid) -> Result<(), Errno> {
        while let Some((pid, change)) = trace::wait(Some(command), true)? {
            self.handle(pid, change);
            if matches!(change, Change::Executed | Change::Exited { .. } | Change::Killed { .. }) {
                break;
            }
        }
        Ok(())
    }

    /// Deals with the changes that are due; tells what becomes of `child`, the guest's own, up to its end. Returns after a
    /// while even when there are more, so that a busy command cannot keep the guest from its other duties.
    pub(crate) fn collect(&mut self, child: Option<Pid>, mut tell: impl FnMut(News)) -> Result<(), Errno> {
        self.behind = true;
        for _ in 0..MANY {
            let Some((pid, change)) = next()? else {
                self.behind = false;
                return Ok(());
            };
            let news = self.handle(pid, change);
            if child.is_some_and(|child| child.as_raw_nonzero().get() == pid) {
                let ended = matches!(news, News::Ended(_));
                tell(news);
                if ended {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether more changes may be due than were dealt with, of which no signal tells any more.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Sends what is to be said.
    pub(crate) fn flush(&mut self, channel: &Channel) -> Result<(), Errno> {
        for refusal in self.waiting.drain(..) {
            channel.send(&GuestMessage::Refused(refusal), &[])?;
        }
        Ok(())
    }

    fn handle(&mut self, pid: i32, change: Change) -> News {
        let byte = |number: i32| u8::try_from(number).ok();
        let is_leader = self.leader.is_some_and(|leader| leader.as_raw_nonzero().get() == pid);
        match change {
            Change::Exited { code } => {
                self.inside.remove(&pid);
                return News::Ended(byte(code).map(Exit::Code));
            }
            Change::Killed { signal } => {
                self.inside.remove(&pid);
                return News::Ended(byte(signal).map(Exit::Signal));
            }
            // Not traced: its stops are for the person's shell, and it goes on by a signal.
            Change::Signal { number } | Change::Stopped { signal: number } if is_leader => {
                return News::Stopped { signal: number };
            }
            Change::Stopped { signal } => {
                resume(pid, Resume::Listen);
                return News::Stopped { signal };
            }
            Change::Signal { number } => resume(pid, Resume::WithSignal(number)),
            Change::AtCall => {
                self.at_call(pid);
                resume(pid, Resume::WithSignal(0));
            }
            Change::Executed => {
                // Other threads are gone, and the one that is left has its process's number.
                self.inside.retain(|thread, _| *thread != pid);
                resume(pid, Resume::WithSignal(0));
            }
            Change::Other => resume(pid, Resume::WithSignal(0)),
        }
        News::None
    }

    fn at_call(&mut self, pid: i32) {
        match trace::call(pid) {
            Ok(Call::Entry { number, arguments }) => {
                self.inside.insert(pid, Inside { number, arguments });
            }
            Ok(Call::Exit { error }) => {
                if let (Some(inside), Some(errno)) = (self.inside.remove(&pid), error) {
                    self.refused(pid, &inside, errno);
                }
            }
            // Killed in the meantime, or nothing to be learned.
            Ok(Call::Neither) | Err(_) => {}
        }
    }

    fn refused(&mut self, pid: i32, inside: &Inside, errno: Errno) {
        let about = calls::about(inside.number);
        if !is_refusal(inside.number, errno, about.is_some()) {
            return;
        }
        let mut named = false;
        for place in about.map_or(&[][..], |about| about.places) {
            let last = about.map_or(calls::Last::Itself, |about| about.last);
            if let Some(path) = locate::locate(pid, *place, &inside.arguments, last) {
                named = true;
                let write = about.is_some_and(|about| about.writes(&inside.arguments));
                self.say(pid, inside, errno, Some(path), write);
            }
        }
        // A missing path that cannot be told is nothing to tell.
        if !named && errno != Errno::NOENT {
            self.say(pid, inside, errno, None, false);
        }
    }

    fn say(&mut self, pid: i32, inside: &Inside, errno: Errno, path: Option<Vec<u8>>, write: bool) {
        if errno == Errno::NOENT {
            if self.missing >= MAX_REFUSALS || path.as_ref().is_none_or(|path| self.places.is_truly_missing(path)) {
                return;
            }
        } else if self.said.len() - self.missing >= MAX_REFUSALS {
            return;
        }
        // Without a path the first arguments tell calls apart; others are often addresses.
        let arguments = if path.is_some() {
            [u64::from(write), 0]
        } else {
            [inside.arguments[0], inside.arguments[1]]
        };
        if !self
            .said
            .insert((inside.number, errno.raw_os_error(), path.clone(), arguments))
        {
            return;
        }
        self.missing += usize::from(errno == Errno::NOENT);
        self.waiting.push(Refusal {
            call: u32::try_from(inside.number).unwrap_or(u32::MAX),
            errno: errno.raw_os_error(),
            path: path.map(Into::into),
            write,
            arguments: inside.arguments,
            command: command_of(pid),
        });
    }
}

/// Whether a failed call is worth a look: the errors with which a wall refuses, and not those of everyday work.
fn is_refusal(number: u64, errno: Errno, about_path: bool) -> bool {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::NOSYS | Errno::ROFS => true,
        Errno::NOENT | Errno::XDEV | Errno::BUSY => about_path,
        Errno::NETUNREACH => [
            libc::SYS_connect,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
        ]
        .iter()
        .any(|call| u64::try_from(*call) == Ok(number)),
        _ => false,
    }
}

fn next() -> Result<Option<(i32, Change)>, Errno> {
    match trace::wait(None, false) {
        // Nobody is left.
        Err(Errno::CHILD) => Ok(None),
        other => other,
    }
}

/// A process that was killed in the meantime needs no help to go on.
fn resume(pid: i32, how: Resume) {
    let _ = trace::resume(pid, how);
}

fn command_of(pid: i32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_errors_are_no_refusals() {
        let open = libc::SYS_openat as u64;
        for (number, errno, about_path, expected) in [
            (open, Errno::ROFS, true, true),
            (open, Errno::NOENT, true, true),
            (open, Errno::ISDIR, true, false),
            (libc::SYS_ioctl as u64, Errno::NOTTY, false, false),
            (libc::SYS_ptrace as u64, Errno::PERM, false, true),
            (libc::SYS_kill as u64, Errno::BUSY, false, false),
            (libc::SYS_connect as u64, Errno::NETUNREACH, true, true),
            (libc::SYS_connect as u64, Errno::CONNREFUSED, true, false),
            (open, Errno::NETUNREACH, true, false),
        ] {
            assert_eq!(is_refusal(number, errno, about_path), expected, "{number} {errno}");
        }
    }
}
