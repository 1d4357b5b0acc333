//! What goes wrong, as a person reads it: a sentence, the next step, and an exit code of the one table.

use std::fmt::{self, Display};
use std::io::Write as _;

/// Exit codes of pinfold's own failures (sysexits.h where it has a word for it).
pub(crate) mod code {
    pub(crate) const USAGE: u8 = 64;
    pub(crate) const POLICY: u8 = 65;
    pub(crate) const NOT_AVAILABLE: u8 = 69;
    pub(crate) const BUG: u8 = 70;
    pub(crate) const CANNOT_CREATE: u8 = 73;
    pub(crate) const IO: u8 = 74;
    pub(crate) const TIMEOUT: u8 = 124;
    pub(crate) const NOT_STARTED: u8 = 125;
    pub(crate) const NOT_EXECUTABLE: u8 = 126;
    pub(crate) const NOT_FOUND: u8 = 127;
}

/// A line on standard error. Unlike `eprintln!` it survives a reader that went away: there is no other place to tell of it.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::error::line(format_args!($($text)*))
    };
}
pub(crate) use say;

pub(crate) fn line(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A failure for a person.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Error {
    pub(crate) fn new(code: u8, message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            hint: None,
            code,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages of the library carry their hint behind a marker; a person gets it on a line of its own.
        match split_hint(&self.message) {
            Some((message, hint)) => write!(f, "error: {}\nhint: {hint}", message.trim_end_matches(';'))?,
            None => write!(f, "error: {}", self.message)?,
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// A marker behind blanks belongs to an item of a list, which keeps its own hint.
fn split_hint(message: &str) -> Option<(&str, &str)> {
    let marker = " hint: ";
    let mut places = message.match_indices(marker).map(|(at, _)| at);
    let at = places.find(|at| !message[..*at].ends_with(char::is_whitespace))?;
    Some((&message[..at], &message[at + marker.len()..]))
}

impl From<crate::policy::LoadError> for Error {
    fn from(error: crate::policy::LoadError) -> Self {
        Self::new(error.exit_code(), &error).hint(error.hint())
    }
}
