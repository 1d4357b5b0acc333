//! Which parts of the real home have to be visible so that the person's tools work: `~/.cargo`, `~/.pyenv`,
//! `~/.local/bin` …
//!
//! Owns the list of known toolchains ([`known`]), the choice of trees from `PATH` and a few variables, and the
//! credential files inside them. A tree is shown read-only; where writes into it land is the view's business. It
//! refuses to show the home itself, anything above it, or a place that other data shares.
//!
//! [`candidates`] decides on text alone. [`find`] then looks at the disk: what exists, where links lead, which
//! credentials lie there. It touches only paths below the home, lists only the roots of the trees and folders of
//! programs, and never descends.

mod choose;
mod inspect;
mod known;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use choose::{Candidate, Choice, candidates};
pub use inspect::find;
pub use known::VARIABLES;

/// A tree below the home that a tool needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// Where tools look for it: absolute, below the home, spelled as the caller spells it. No other tree contains it.
    pub tree: PathBuf,
    /// The directory or file that it is; differs from `tree` when links lead elsewhere. Never contains the home.
    pub source: PathBuf,
    pub is_directory: bool,
    pub reason: Reason,
    /// Credentials inside that exist, relative to `tree` and `source`.
    pub hidden: Vec<PathBuf>,
}

/// Why a tree is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This entry of `PATH`, as written, lies in it.
    Path(PathBuf),
    /// This variable names it.
    Variable(&'static str),
    /// This link in a folder of programs leads there.
    Link(PathBuf),
}

/// Everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// Sorted by `tree`, without one inside another.
    pub trees: Vec<Toolchain>,
    /// The variables that name a visible tree: the command needs them to find it.
    pub variables: Vec<&'static str>,
    pub warnings: Vec<Warning>,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "{what} names {}, which contains the whole home folder, so its programs are not visible inside. \
         hint: put programs into a folder of their own, such as ~/bin, or name the file with a read rule",
        path.display()
    )]
    ContainsHome { what: String, path: PathBuf },
    #[error(
        "{} leads to {}, which is too broad to show, so what it holds is not visible inside. \
         hint: name the folder that the tool needs with a read rule",
        tree.display(), source_path.display()
    )]
    TooBroad { tree: PathBuf, source_path: PathBuf },
}
