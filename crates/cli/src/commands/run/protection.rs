//! The watch over protected names that do not exist yet.

use std::io;
use std::time::{Duration, Instant};

use pinfold_runtime::protect::{ARM_AFTER, Fate, Report, Watch};
use rustix::event::{PollFd, PollFlags};

/// Names that a sandbox may have taken away: one that makes more does nothing else, and fills the host's disk.
const MOST_TAKEN: usize = 200;

/// The watch, and when it starts to look by itself.
pub(super) struct Protection {
    watch: Watch,
    /// A short command is looked at once, at its end; arming costs more than all of it.
    arm_at: Option<Instant>,
    taken: usize,
}

impl Protection {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            watch,
            arm_at: Some(Instant::now() + ARM_AFTER),
            taken: 0,
        }
    }

    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        Some(PollFd::from_borrowed_fd(self.watch.fd(), PollFlags::IN))
    }

    /// Time until [`Protection::arm_when_due`] has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        self.arm_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Starts to watch once the command has run for a while. Takes away what appeared before.
    pub(super) fn arm_when_due(&mut self) -> io::Result<()> {
        if self.due().is_some_and(|left| left.is_zero()) {
            self.arm_at = None;
            self.watch.arm().map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Whether covers have to be looked at: a protected name was replaced on the host.
    pub(super) fn take_replaced(&mut self) -> bool {
        self.watch.take_replaced()
    }

    /// Takes away what has appeared; the report at the end names it. Whether the sandbox may go on: not with a protected name
    /// that could not be taken away, not when names could appear unseen, and not when it makes them without end.
    pub(super) fn handle_events(&mut self) -> bool {
        let taken = self.watch.handle_events();
        self.taken += taken.len();
        let stuck = taken.iter().any(|taken| matches!(taken.fate, Fate::Stuck { .. }));
        !stuck && !self.watch.is_blind() && self.taken <= MOST_TAKEN
    }

    /// Looks once more, now that the command is dead.
    pub(super) fn finish(self) -> Report {
        self.watch.finish()
    }
}
