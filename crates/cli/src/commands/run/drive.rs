//! The life of a command, in one loop: its events, the caller's signals and terminal, its first connection, its time limit.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use pinfold_model::wire::{Exit, Failure, GuestMessage, Refusal, Spawn};
use pinfold_runtime::backend::process::{Breach, Sandbox};
use pinfold_runtime::signal::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::network::Gate;
use super::protection::Protection;
use crate::terminal::{Relay, Streams};

/// Between the polite and the final end of a command that ran out of time.
const GRACE: Duration = Duration::from_secs(5);

/// For a terminal that is held to take what an ended command has said, where the end was asked for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Signals that are not the caller's own business but the command's.
const RELAYED: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
];

/// How it ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(Exit),
    NotExecuted {
        errno: i32,
        what: Vec<u8>,
    },
    /// A wall could not be put up, does not hold, or was lost.
    Broken(Failure),
    Breach(Breach),
    TimedOut,
    /// The command made a protected name that could not be taken away.
    Unprotected,
    /// The guest vanished, together with everything inside.
    GuestGone,
}

/// What happened on the way.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) refusals: Vec<Refusal>,
    pub(super) restored: Vec<Vec<u8>>,
    /// The caller has passed on a signal that asks for the end.
    asked_to_end: bool,
    /// The caller has asked for a stop, as Ctrl-Z does.
    asked_to_stop: bool,
}

/// Everything that takes part.
pub(super) struct Drive {
    pub(super) sandbox: Sandbox,
    pub(super) gate: Option<Gate>,
    pub(super) protection: Protection,
    pub(super) timeout: Option<Duration>,
    pub(super) events: Events,
}

/// Refusals that are kept for `--explain`.
const MAX_REFUSALS: usize = 10_000;

/// Time left to a command.
enum Clock {
    Unlimited,
    Until(Instant),
    /// Asked to end; killed at the instant.
    Ending(Instant),
}

impl Drive {
    /// Runs the command to its end.
    pub(super) fn run(&mut self, spawn: &Spawn, mut streams: Streams) -> std::io::Result<End> {
        let signals = watch_signals()?;
        let mut relay = Relay::begin(&mut streams)?;
        let passed: Vec<BorrowedFd<'_>> = streams.passed.iter().map(AsFd::as_fd).collect();
        match self.sandbox.spawn(spawn, &passed) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(End::GuestGone),
            Err(error) => return Err(error),
        }
        drop(passed);
        streams.passed.clear();
        let mut clock = self
            .timeout
            .map_or(Clock::Unlimited, |timeout| Clock::Until(Instant::now() + timeout));
        let end = loop {
            if let Some(end) = self.turn(&signals, &mut relay, &mut clock)? {
                break end;
            }
        };
        // Whoever else still writes would keep the end waiting.
        self.sandbox.kill();
        let hurry = matches!(end, End::TimedOut) || self.events.asked_to_end;
        relay.deliver(&signals, hurry.then_some(LAST_WORDS))?;
        Ok(end)
    }

    /// Waits for something to happen and deals with it.
    fn turn(&mut self, signals: &SignalFd, relay: &mut Relay, clock: &mut Clock) -> std::io::Result<Option<End>> {
        let recheck = relay.settle();
        let mut sources = vec![
            PollFd::new(&self.sandbox, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        let pumps_at = sources.len();
        let (pumps, waits): (Vec<usize>, Vec<PollFd<'_>>) = relay.interest().unzip();
        sources.extend(waits);
        let gate_at = sources.len();
        sources.extend(self.gate.iter().flat_map(Gate::interest));
        let gate_end = sources.len();
        sources.extend(self.protection.interest());
        let left = [clock.left(), self.protection.due(), recheck]
            .into_iter()
            .flatten()
            .min();
        // Rounded up, so that a wake-up finds the time over.
        let timeout = left.and_then(|left| Timespec::try_from(left + Duration::from_millis(1)).ok());
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let ready: Vec<PollFlags> = sources.iter().map(PollFd::revents).collect();
        drop(sources);

        self.protection.arm_when_due()?;
        if ready[gate_at..gate_end].iter().any(|flags| !flags.is_empty())
            && let Some(gate) = &mut self.gate
        {
            gate.open()?;
        }
        if ready[gate_end..].iter().any(|flags| !flags.is_empty()) && !self.protection.handle_events() {
            return Ok(Some(End::Unprotected));
        }
        if self.protection.take_replaced() {
            // A guest that is gone is noticed at its socket.
            let _ = self.sandbox.restore_covers();
        }
        for (pump, flags) in pumps.into_iter().zip(&ready[pumps_at..gate_at]) {
            if !flags.is_empty() {
                relay.step(pump);
            }
        }
        if !ready[1].is_empty() {
            let _: bool = self.relay_signals(signals, relay)?;
        }
        if !ready[0].is_empty()
            && let Some(end) = self.event(signals, relay)?
        {
            return Ok(Some(if matches!(clock, Clock::Ending(_)) {
                End::TimedOut
            } else {
                end
            }));
        }
        Ok(self.check_clock(clock))
    }

    fn event(&mut self, signals: &SignalFd, relay: &mut Relay) -> Result<Option<End>, Errno> {
        let event = match self.sandbox.next_event() {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(Some(End::GuestGone)),
            Err(breach) => return Ok(Some(End::Breach(breach))),
        };
        Ok(match event.message {
            GuestMessage::Started => {
                if let Some(master) = event.terminal {
                    relay.connect(master)?;
                }
                None
            }
            GuestMessage::Exited(exit) => Some(End::Exited(exit)),
            GuestMessage::NotExecuted { errno, what } => Some(End::NotExecuted {
                errno,
                what: what.into_vec(),
            }),
            GuestMessage::SetupFailed(failure) => Some(End::Broken(failure)),
            // Stopping with the command is what a shell behind us expects. Nothing inside may go on while nobody watches.
            GuestMessage::Stopped { .. } => {
                if relay.has_terminal() || std::mem::take(&mut self.events.asked_to_stop) {
                    let _ = self.sandbox.freeze();
                }
                None
            }
            GuestMessage::Frozen => {
                relay.stop()?;
                // Continued by a signal, which goes on to the command; without one nothing has stopped.
                if !self.relay_signals(signals, relay)? {
                    let _ = self.sandbox.resume();
                }
                None
            }
            GuestMessage::CoverRestored { path } => {
                self.events.restored.push(path.into_vec());
                None
            }
            GuestMessage::Refused(refusal) => {
                if self.events.refusals.len() < MAX_REFUSALS {
                    self.events.refusals.push(refusal);
                }
                None
            }
            GuestMessage::Ready { .. } => Some(End::Breach(Breach::Malformed)),
        })
    }

    /// Passes on what has arrived; tells whether that continued the command.
    fn relay_signals(&mut self, signals: &SignalFd, relay: &mut Relay) -> Result<bool, Errno> {
        let mut continued = false;
        while let Some(arrived) = signals.next()? {
            // A guest that is gone is noticed at its socket.
            if arrived.number == Signal::WINCH.as_raw() {
                relay.resize();
            } else if arrived.number == Signal::TSTP.as_raw() {
                // A group whose parent lies outside its session ignores the terminal's stop, so it gets the one that cannot
                // be ignored; the guest then reports it as stopped.
                self.events.asked_to_stop = true;
                let _ = self.sandbox.signal(Signal::STOP.as_raw());
            } else if arrived.number == Signal::CONT.as_raw() {
                relay.continued();
                let _ = self.sandbox.resume();
                continued = true;
            } else {
                let free = [Signal::USR1, Signal::USR2].map(Signal::as_raw);
                self.events.asked_to_end |= !free.contains(&arrived.number);
                let _ = self.sandbox.signal(arrived.number);
            }
        }
        Ok(continued)
    }

    fn check_clock(&mut self, clock: &mut Clock) -> Option<End> {
        match *clock {
            Clock::Until(end) if Instant::now() >= end => {
                let _ = self.sandbox.signal(Signal::TERM.as_raw());
                // One that is stopped could not hear it.
                let _ = self.sandbox.signal(Signal::CONT.as_raw());
                *clock = Clock::Ending(Instant::now() + GRACE);
                None
            }
            Clock::Ending(end) if Instant::now() >= end => Some(End::TimedOut),
            _ => None,
        }
    }
}

impl Clock {
    fn left(&self) -> Option<Duration> {
        let (Self::Until(end) | Self::Ending(end)) = self else {
            return None;
        };
        Some(end.saturating_duration_since(Instant::now()))
    }
}

/// Blocks the signals that concern the command and makes them readable. From here on they no longer end pinfold by
/// themselves: the command's end does.
fn watch_signals() -> Result<SignalFd, Errno> {
    let mut watched: Vec<i32> = RELAYED.iter().map(|signal| signal.as_raw()).collect();
    watched.extend([Signal::WINCH, Signal::TSTP, Signal::CONT].map(Signal::as_raw));
    SignalFd::new(&watched)
}
