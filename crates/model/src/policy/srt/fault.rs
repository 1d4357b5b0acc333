//! What is wrong with a settings file.

use std::fmt;
use std::path::PathBuf;

use super::super::path::shown_path;

/// One thing that is wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Such as `network.allowedDomains[3]`; empty for the file as a whole.
    pub key_path: String,
    pub message: String,
    /// What to do, without the word "hint".
    pub hint: String,
}

/// Why a settings file was refused: everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ImportError {
    pub file: PathBuf,
    pub faults: Vec<Fault>,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the settings file {} cannot be used, so nothing was run",
            shown_path(&self.file)
        )?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key_path.is_empty() {
            write!(f, "{}: ", self.key_path)?;
        }
        write!(f, "{}\n    hint: {}", self.message, self.hint)
    }
}
