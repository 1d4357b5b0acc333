//! Raw mode of the outer terminal, restored on every way out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};

/// The terminal whose input goes to the sandbox unread. It is raw only while this process group is in the foreground: in the
/// background the modes belong to the shell. Dropping restores it, also while a panic unwinds; signals that would end the
/// program are read from a descriptor and so pass through here too.
pub(crate) struct RawMode {
    terminal: OwnedFd,
    /// The modes to give back, while it is raw.
    before: Option<Termios>,
}

impl RawMode {
    /// Makes `terminal` raw, or leaves it until [`RawMode::settle`] finds us in the foreground.
    pub(crate) fn enter(terminal: impl AsFd) -> rustix::io::Result<Self> {
        let terminal = rustix::io::fcntl_dupfd_cloexec(terminal, 3)?;
        let mut raw = Self { terminal, before: None };
        raw.settle()?;
        Ok(raw)
    }

    /// The size of the caller's terminal: rows, columns.
    pub(crate) fn size_of_caller() -> Option<(u16, u16)> {
        let size = tcgetwinsize(rustix::stdio::stdin()).ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    }

    /// Makes it raw where a shell has just given us the foreground; forgets its modes where one took it away. Tells whether
    /// the terminal became ours.
    pub(crate) fn settle(&mut self) -> rustix::io::Result<bool> {
        match (in_foreground(self.terminal.as_fd()), self.before.is_some()) {
            (true, false) => {
                let before = tcgetattr(&self.terminal)?;
                set_raw(&self.terminal, &before)?;
                self.before = Some(before);
                Ok(true)
            }
            (false, true) => {
                self.before = None;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Makes it raw once more after a stop that we were not told of: the shell has set its own modes in between.
    pub(crate) fn again(&mut self) -> rustix::io::Result<()> {
        self.settle()?;
        match &self.before {
            Some(before) => set_raw(&self.terminal, before),
            None => Ok(()),
        }
    }

    /// Gives the terminal back as it was.
    pub(crate) fn restore(&mut self) {
        // From the background it would stop us, and the modes there are not ours to set.
        if let Some(before) = self.before.take()
            && in_foreground(self.terminal.as_fd())
        {
            // Nothing is left to be done where the terminal is gone.
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &before);
        }
    }

    /// The terminal's size.
    pub(crate) fn size(&self) -> Option<Winsize> {
        tcgetwinsize(&self.terminal).ok()
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.restore();
    }
}

/// At once, keeping what was typed ahead: waiting for the output would wait for ever on a terminal that is held.
fn set_raw(terminal: &OwnedFd, before: &Termios) -> rustix::io::Result<()> {
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(terminal, OptionalActions::Now, &raw)
}

/// Whether this process group may read from `terminal` and set its modes. A terminal that is not the controlling one knows
/// no background.
pub(super) fn in_foreground(terminal: BorrowedFd<'_>) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}
