//! Everything between the caller's terminal and the command: its bytes, its size, its modes, its stops.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use pinfold_runtime::signal::{self, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::{Pump, RawMode, Streams, Waits};

/// How often to look whether a shell has brought us back to the foreground, which nothing announces.
const RECHECK: Duration = Duration::from_millis(250);

/// What a dead command has written is there at once; this is for a descriptor that somebody else keeps open.
const PATIENCE: Duration = Duration::from_secs(1);

/// The relays of a command. Nothing to do for one whose streams are all its own.
pub(crate) struct Relay {
    input: Option<Pump>,
    outputs: Vec<Pump>,
    /// The caller's terminal, where the command gets one of its own.
    outer: Option<RawMode>,
    /// The host's side of the command's terminal.
    master: Option<OwnedFd>,
}

impl Relay {
    /// Takes the relays of `streams`, and the caller's terminal where the command gets one.
    pub(crate) fn begin(streams: &mut Streams) -> Result<Self, Errno> {
        let outer = if streams.terminal {
            Some(RawMode::enter(rustix::stdio::stdin())?)
        } else {
            None
        };
        Ok(Self {
            input: streams.input.take(),
            outputs: std::mem::take(&mut streams.outputs),
            outer,
            master: None,
        })
    }

    /// Connects the command's terminal with the caller's. Only the first one, and only where one was asked for.
    pub(crate) fn connect(&mut self, master: OwnedFd) -> Result<(), Errno> {
        if self.outer.is_none() || self.master.is_some() {
            return Ok(());
        }
        let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 3);
        self.input = Some(Pump::input(rustix::stdio::stdin(), copy(&master)?)?);
        self.outputs
            .push(Pump::output(copy(&master)?, rustix::stdio::stdout())?);
        self.master = Some(master);
        self.resize();
        Ok(())
    }

    /// Gives the command's terminal the size of the caller's; the kernel tells the command.
    pub(crate) fn resize(&self) {
        if let (Some(master), Some(size)) = (&self.master, self.outer.as_ref().and_then(RawMode::size)) {
            let _ = rustix::termios::tcsetwinsize(master, size);
        }
    }

    /// Looks whether the caller's terminal is ours to read and to set. Returns when to look again.
    pub(crate) fn settle(&mut self) -> Option<Duration> {
        if let Some(outer) = &mut self.outer
            && outer.settle() == Ok(true)
        {
            self.resize();
        }
        let waiting = |pump: &Pump| matches!(pump.waits(), Waits::Foreground);
        self.input.as_ref().is_some_and(waiting).then_some(RECHECK)
    }

    /// What to wait for, each with its number for [`Relay::step`].
    pub(crate) fn interest(&self) -> impl Iterator<Item = (usize, PollFd<'_>)> {
        let pumps = std::iter::once(self.input.as_ref()).chain(self.outputs.iter().map(Some));
        pumps
            .enumerate()
            .filter_map(|(number, pump)| match pump.map(Pump::waits) {
                Some(Waits::Source(fd) | Waits::Sink(fd)) => Some((number, fd)),
                Some(Waits::Foreground | Waits::Ended) | None => None,
            })
    }

    /// Moves what can be moved.
    pub(crate) fn step(&mut self, number: usize) {
        let pump = match number.checked_sub(1) {
            None => self.input.as_mut(),
            Some(output) => self.outputs.get_mut(output),
        };
        if let Some(pump) = pump {
            pump.step();
        }
    }

    /// Stops as the command has stopped; returns once continued. With a terminal, the whole process group stops, as after
    /// Ctrl-Z. Where nobody could continue us (no shell behind us), the kernel ignores the stop and the command goes on.
    pub(crate) fn stop(&mut self) -> Result<(), Errno> {
        // What the command said before it stopped.
        while self.move_outputs(Some(Duration::ZERO), None)? == Moved::Some {}
        if let Some(outer) = &mut self.outer {
            outer.restore();
        }
        let stop = Signal::TSTP;
        signal::block(stop.as_raw(), false)?;
        let stopped = if self.outer.is_some() {
            rustix::process::kill_current_process_group(stop)
        } else {
            rustix::process::kill_process(rustix::process::getpid(), stop)
        };
        signal::block(stop.as_raw(), true)?;
        stopped?;
        self.continued();
        Ok(())
    }

    /// Whether the command has a terminal of its own, relayed to the caller's.
    pub(crate) fn has_terminal(&self) -> bool {
        self.outer.is_some()
    }

    /// Takes the terminal back after a stop.
    pub(crate) fn continued(&mut self) {
        if let Some(outer) = &mut self.outer {
            // A terminal that is gone is noticed where it is read.
            let _ = outer.again();
        }
        self.resize();
    }

    /// Delivers what is left once the command and everything beside it are dead. A reader may take its time, up to `limit`,
    /// and until the caller asks for the end.
    pub(crate) fn deliver(&mut self, signals: &SignalFd, limit: Option<Duration>) -> Result<(), Errno> {
        let end = limit.map(|limit| Instant::now() + limit);
        loop {
            let reading = self.outputs.iter().any(|pump| matches!(pump.waits(), Waits::Source(_)));
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let patience = reading.then_some(PATIENCE);
            let timeout = [left, patience].into_iter().flatten().min();
            if self.move_outputs(timeout, Some(signals))? == Moved::None {
                return Ok(());
            }
        }
    }

    fn move_outputs(&mut self, timeout: Option<Duration>, signals: Option<&SignalFd>) -> Result<Moved, Errno> {
        let (numbers, mut sources): (Vec<usize>, Vec<PollFd<'_>>) =
            self.interest().filter(|(number, _)| *number > 0).unzip();
        if sources.is_empty() {
            return Ok(Moved::None);
        }
        sources.extend(signals.map(|signals| PollFd::new(signals, PollFlags::IN)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut sources, timeout.as_ref()) {
            Ok(0) => return Ok(Moved::None),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Moved::Some),
            Err(errno) => return Err(errno),
        }
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        drop(sources);
        if let (Some(signals), Some(true)) = (signals, ready.get(numbers.len()))
            && Self::asked_to_end(signals)?
        {
            return Ok(Moved::None);
        }
        for (number, _) in numbers.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            self.step(number);
        }
        Ok(Moved::Some)
    }

    /// The command is dead, so that signals meant for it are for us.
    fn asked_to_end(signals: &SignalFd) -> Result<bool, Errno> {
        let mut end = false;
        while let Some(arrived) = signals.next()? {
            let ends = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
            end |= ends.iter().any(|signal| signal.as_raw() == arrived.number);
        }
        Ok(end)
    }
}

/// Whether anything happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    Some,
    None,
}
