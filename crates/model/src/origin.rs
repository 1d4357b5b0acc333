//! Where a rule came from, so that every verdict and every error can point at the line a person has to change.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How far a policy source is trusted (design, invariant 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A file inside the workspace: may tighten only.
    Workspace,
    /// The user's own configuration, shipped profiles, the command line, or a workspace file the person has trusted.
    Trusted,
}

/// The place a rule was written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// Built into Pinfold; the text says what it protects.
    Builtin { what: String },
    /// A shipped profile or one of the user's own.
    Profile {
        name: String,
        line: u32,
        column: u32,
        key: String,
    },
    /// A policy file. `line` and `column` count from 1; `key` is the dotted key, such as `network.allow[3]`.
    File {
        scope: Scope,
        path: PathBuf,
        line: u32,
        column: u32,
        key: String,
    },
    /// An imported Sandbox Runtime settings file.
    Settings { path: PathBuf, key: String },
    /// A command-line flag, spelled with its dashes.
    Flag { flag: String },
}

impl Origin {
    /// A rule that Pinfold brings itself.
    #[must_use]
    pub fn builtin(what: &str) -> Self {
        Self::Builtin { what: what.to_owned() }
    }

    /// A rule given on the command line by `flag` (with its dashes).
    #[must_use]
    pub fn flag(flag: &str) -> Self {
        Self::Flag { flag: flag.to_owned() }
    }

    /// Whether the source may loosen what other sources say.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::File { scope, .. } => *scope,
            _ => Scope::Trusted,
        }
    }
}

fn file_name(path: &Path) -> std::path::Display<'_> {
    path.file_name()
        .map_or_else(|| path.display(), |name| Path::new(name).display())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin { what } => write!(f, "built in: {what}"),
            Self::Profile { name, line, key, .. } => write!(f, "{key} (profile {name}:{line})"),
            Self::File { path, line, key, .. } => write!(f, "{key} ({}:{line})", file_name(path)),
            Self::Settings { path, key } => write!(f, "{key} ({})", file_name(path)),
            Self::Flag { flag } => write!(f, "command line, {flag}"),
        }
    }
}
