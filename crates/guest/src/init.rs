//! The guest's life: greet, build the walls, start the command, reap, tell how it ended.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use pinfold_model::plan::{self, Plan};
use pinfold_model::wire::{Exit, Failure, GuestMessage, HostMessage, Layer, PROTOCOL, Spawn};
use pinfold_sys::signal::{self, SignalFd};
use pinfold_sys::{Errno, namespace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{DumpableBehavior, Signal, WaitOptions, WaitStatus, wait};

use crate::channel::{Channel, Order};
use crate::command::{self, NotStarted, Running};
use crate::confine::Walls;
use crate::explain::{News, Tracer};
use crate::failure::{During, failure};
use crate::guard::Guard;
use crate::{network, view};

/// Signals that reach the command when somebody outside the sandbox sends them to the guest.
const RELAYED: [Signal; 8] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::CONT,
    Signal::TSTP,
];

/// Why the guest ended early.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The host is gone or will not listen: everything inside dies with the guest.
    HostGone,
    /// Setting up failed and the host was told.
    Failed,
}

impl From<Errno> for Ended {
    fn from(_: Errno) -> Self {
        Self::HostGone
    }
}

/// Runs until the command has ended.
pub(crate) fn run() -> Result<(), Ended> {
    let mut channel = Channel::new(namespace::take_control()?);
    // The death of the host's thread ends the sandbox, and so does the end of its control socket, should the host have died
    // before this call.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A caller that ignores SIGCHLD would have the kernel reap our children unseen.
    signal::default_action(Signal::CHILD.as_raw());
    let mut guest = match set_up(&mut channel) {
        Ok(guest) => guest,
        Err(failed) => {
            channel.send(&GuestMessage::SetupFailed(failed), &[])?;
            return Err(Ended::Failed);
        }
    };
    guest.drive(&mut channel)
}

struct Guest {
    plan: Plan,
    walls: Walls,
    guard: Guard,
    signals: SignalFd,
    running: Option<Running>,
    /// Every process was stopped on the host's order.
    frozen: bool,
    /// Follows the command, if it is to be explained.
    tracer: Option<Tracer>,
    /// Kept open for as long as the sandbox lives.
    _held: Vec<OwnedFd>,
}

fn set_up(channel: &mut Channel) -> Result<Guest, Failure> {
    let (plan, held) = greet(channel)?;
    // By now the host has put this process where its limits are.
    namespace::enter_cgroup_namespace().during(Layer::Namespaces, || "make a cgroup namespace".to_owned())?;
    network::bring_up()?;
    let listeners = plan.network.map(network::listen).transpose()?;
    rustix::system::sethostname(plan.hostname.as_bytes())
        .during(Layer::Namespaces, || "set the host name".to_owned())?;
    let masks = view::enter(&plan)?;
    let walls = Walls::prepare(&plan)?;
    let guard = Guard::new(&plan, masks)?;
    let mut watched: Vec<i32> = RELAYED.iter().map(|signal| signal.as_raw()).collect();
    watched.push(Signal::CHILD.as_raw());
    let signals = SignalFd::new(&watched).during(Layer::Protocol, || "watch for signals".to_owned())?;
    // From here on nothing inside can read or trace this process.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .during(Layer::Capabilities, || "make the guest unreadable".to_owned())?;
    let ready = GuestMessage::Ready { protocol: PROTOCOL };
    let descriptors: Vec<_> = listeners.iter().flatten().map(AsFd::as_fd).collect();
    channel
        .send(&ready, &descriptors)
        .during(Layer::Protocol, || "tell the host that the walls stand".to_owned())?;
    Ok(Guest {
        plan,
        walls,
        guard,
        signals,
        running: None,
        frozen: false,
        tracer: None,
        _held: held,
    })
}

/// Receives the plan and the descriptors to hold.
fn greet(channel: &mut Channel) -> Result<(Plan, Vec<OwnedFd>), Failure> {
    let step = || "receive the plan".to_owned();
    let order = channel.receive().during(Layer::Protocol, step)?;
    let Some(Order {
        message: HostMessage::Hello { protocol: PROTOCOL, .. },
        mut descriptors,
    }) = order
    else {
        return Err(failure(Layer::Protocol, "a host of another version", Errno::PROTO));
    };
    let plan: Plan = read_document(&mut descriptors, "receive the plan")?;
    if plan.version != plan::VERSION {
        return Err(failure(Layer::Protocol, "a plan of another version", Errno::PROTO));
    }
    Ok((plan, descriptors.into()))
}

/// Reads what the host wrote into the memory file that comes first among the descriptors.
fn read_document<T: serde::de::DeserializeOwned>(
    descriptors: &mut VecDeque<OwnedFd>,
    step: &str,
) -> Result<T, Failure> {
    let file = descriptors
        .pop_front()
        .ok_or_else(|| failure(Layer::Protocol, step, Errno::BADF))?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes)
        .map_err(|error| failure(Layer::Protocol, step, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    postcard::from_bytes(&bytes).map_err(|_| failure(Layer::Protocol, step, Errno::PROTO))
}

impl Guest {
    fn start(&mut self, mut descriptors: VecDeque<OwnedFd>) -> Result<Running, NotStarted> {
        let spawn: Spawn = read_document(&mut descriptors, "receive the command")?;
        command::start(&spawn, descriptors, &self.walls, &self.plan, &mut self.tracer)
    }

    fn drive(&mut self, channel: &mut Channel) -> Result<(), Ended> {
        loop {
            let mut sources = [
                PollFd::new(&*channel, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&self.guard, PollFlags::PRI),
            ];
            let behind = self.tracer.as_ref().is_some_and(Tracer::is_behind);
            let due = self.guard.due();
            let timeout = if behind { Some(Timespec::default()) } else { due };
            match poll(&mut sources, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [ordered, signalled, mounts] = sources.map(|source| source.revents());
            // The guard first: a lost cover must not outlive whatever else is going on.
            if due.is_some() || mounts.intersects(PollFlags::PRI | PollFlags::ERR) {
                self.restore_covers(channel)?;
            }
            if behind || signalled.contains(PollFlags::IN) {
                self.relay_signals()?;
                if let Some(exit) = self.reap(channel)? {
                    channel.send(&GuestMessage::Exited(exit), &[])?;
                    return Ok(());
                }
            }
            if !ordered.is_empty() {
                let Some(order) = channel.receive()? else {
                    return Err(Ended::HostGone);
                };
                self.obey(channel, order)?;
            }
        }
    }

    fn restore_covers(&mut self, channel: &Channel) -> Result<(), Ended> {
        match self.guard.restore() {
            Ok(restored) => {
                for path in restored {
                    channel.send(&GuestMessage::CoverRestored { path: path.into() }, &[])?;
                }
                Ok(())
            }
            // A cover that cannot be made again: nothing may go on running.
            Err(errno) => {
                let failed = failure(Layer::Mounts, "cover a protected path that the host replaced", errno);
                channel.send(&GuestMessage::SetupFailed(failed), &[])?;
                Err(Ended::Failed)
            }
        }
    }

    fn obey(&mut self, channel: &Channel, order: Order) -> Result<(), Ended> {
        match order.message {
            HostMessage::Spawn if self.running.is_none() => match self.start(order.descriptors) {
                Ok(mut running) => {
                    let master = running.master.take();
                    let descriptors: Vec<_> = master.iter().map(AsFd::as_fd).collect();
                    channel.send(&GuestMessage::Started, &descriptors)?;
                    self.running = Some(running);
                }
                Err(NotStarted::Failed(failed)) => {
                    channel.send(&GuestMessage::SetupFailed(failed), &[])?;
                    return Err(Ended::Failed);
                }
                Err(NotStarted::NotExecuted { errno, what }) => {
                    if let Some(tracer) = &mut self.tracer {
                        tracer.flush(channel)?;
                    }
                    channel.send(
                        &GuestMessage::NotExecuted {
                            errno,
                            what: what.into(),
                        },
                        &[],
                    )?;
                    return Err(Ended::Failed);
                }
            },
            HostMessage::Signal { number } => self.signal_command(number),
            HostMessage::RestoreCovers => self.restore_covers(channel)?,
            HostMessage::Freeze => {
                // All but this process, those in other sessions too; without any, there is nothing to stop.
                let _ = signal::send(-1, Signal::STOP.as_raw());
                self.frozen = true;
                channel.send(&GuestMessage::Frozen, &[])?;
            }
            HostMessage::Continue => {
                if std::mem::take(&mut self.frozen) {
                    let _ = signal::send(-1, Signal::CONT.as_raw());
                }
                if let Some(running) = &self.running {
                    let number = Signal::CONT.as_raw();
                    let _ = signal::send(running.child.as_raw_nonzero().get(), number);
                    if running.child == running.command {
                        self.signal_command(number);
                    }
                }
            }
            // A second greeting or command is not part of the protocol.
            HostMessage::Spawn | HostMessage::Hello { .. } => return Err(Ended::HostGone),
        }
        Ok(())
    }

    /// Signals the command's process group. A group that is already gone is no error.
    fn signal_command(&self, number: i32) {
        if let Some(running) = &self.running {
            let _ = signal::send(-running.command.as_raw_nonzero().get(), number);
        }
    }

    fn relay_signals(&self) -> Result<(), Ended> {
        while let Some(arrived) = self.signals.next()? {
            // A sender inside the sandbox has a process id here; only the host's side may steer the command through us.
            // A signal without a sender is the kernel's, which a process inside can ask for (fcntl(2), F_SETOWN).
            if arrived.number != Signal::CHILD.as_raw() && arrived.sender == 0 && arrived.by_user {
                self.signal_command(arrived.number);
            }
        }
        Ok(())
    }

    /// Collects every process that ended; returns how the command ended, if it did.
    fn reap(&mut self, channel: &Channel) -> Result<Option<Exit>, Ended> {
        if self.tracer.is_some() {
            return self.reap_traced(channel);
        }
        let mut exit = None;
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) => {
                    if self.running.as_ref().is_some_and(|running| running.child == pid) {
                        if let Some(signal) = status.stopping_signal() {
                            channel.send(&GuestMessage::Stopped { signal }, &[])?;
                        } else {
                            exit = exit_of(status);
                        }
                    }
                }
                Ok(None) | Err(Errno::CHILD) => return Ok(exit),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The same for a command that is traced.
    fn reap_traced(&mut self, channel: &Channel) -> Result<Option<Exit>, Ended> {
        let child = self.running.as_ref().map(|running| running.child);
        let Some(tracer) = &mut self.tracer else {
            return Ok(None);
        };
        let (mut exit, mut stops) = (None, Vec::new());
        tracer.collect(child, |news| match news {
            News::Stopped { signal } => stops.push(signal),
            News::Ended(end) => exit = end,
            News::None => {}
        })?;
        tracer.flush(channel)?;
        for signal in stops {
            channel.send(&GuestMessage::Stopped { signal }, &[])?;
        }
        Ok(exit)
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    let byte = |number: i32| u8::try_from(number).ok();
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => byte(code).map(Exit::Code),
        (None, Some(signal)) => byte(signal).map(Exit::Signal),
        (None, None) => None,
    }
}
