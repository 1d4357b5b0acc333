//! The policy: what each source says, what all together permit, each rule with its origin.
//!
//! Text becomes a [`Layer`] (a TOML file, an imported settings file, or flags), layers become one [`Policy`], and its path rules
//! become a [`View`](access::View). No step does I/O.

pub mod access;
mod document;
mod entry;
mod error;
mod flags;
pub mod glob;
mod layer;
mod loosening;
mod merge;
mod parse;
pub mod path;
mod print;
pub mod quantity;
mod schema;
mod source;
mod spelling;
pub mod srt;

pub use error::{Place, PolicyError, harmless_text, is_harmless};
pub use flags::Flags;
pub use layer::{Authority, Layer};
pub use loosening::{DEFAULT_SCAN_DEPTH, Loosening};
pub use merge::merge;
pub use parse::LARGEST_FILE;
pub use path::{Base, PathFault};
pub use schema::json_schema;
pub use source::SourceName;
pub use spelling::closest;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::net::NetworkPolicy;
use crate::origin::Origin;
use crate::protected::Group;

/// What a path rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathAccess {
    /// Visible and writable.
    Write,
    /// Visible, not writable; makes a path below a hidden folder visible.
    Read,
    /// Not writable; does not make anything visible by itself.
    ReadOnly,
    /// Neither listed nor readable.
    Hide,
}

/// One path rule of the merged policy, with globs not yet expanded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    pub access: PathAccess,
    pub path: PathPattern,
    pub reason: Option<String>,
    pub origin: Origin,
}

/// An absolute path in bytes, `~` and relative parts resolved, `//` and `/./` folded, with or without glob characters.
///
/// `glob` is none for a literal path. With a glob, `path` is the literal directory that the pattern starts in (its leading
/// components without glob characters) and `glob` is the rest, relative to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathPattern {
    pub path: PathBuf,
    pub glob: Option<String>,
}

/// A rule that lifts the protection of a group of protected paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    pub group: Group,
    pub origin: Origin,
}

/// What of the caller's environment enters, and what is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentPolicy {
    /// Names passed through from the caller when set there.
    pub pass: Vec<(String, Origin)>,
    /// Names set to a fixed value.
    pub set: BTreeMap<String, (String, Origin)>,
    /// Names never passed, whatever else says so (the import of `credentials.envVars` with mode `deny`).
    pub deny: Vec<(String, Origin)>,
}

/// A limit with the place that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit<T> {
    pub value: T,
    pub origin: Origin,
}

/// Resource limits; none means that nobody asked for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes, of the whole tree.
    pub memory: Option<Limit<u64>>,
    /// Thousandths of one CPU.
    pub cpu_millis: Option<Limit<u32>>,
    /// Processes and threads, of the whole tree.
    pub pids: Option<Limit<u32>>,
    /// Wall-clock life of the command.
    pub timeout: Option<Limit<Duration>>,
}

/// What every source together says. The default is the strict one: nothing beyond the built-in view, no network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub filesystem: Vec<PathRule>,
    pub lift: Vec<Lift>,
    /// How deep below a write root protected names are searched, 1 to 10; none means 3.
    pub scan_depth: Option<Limit<u8>>,
    /// The import of a settings file that forbids making Unix sockets.
    pub deny_unix_sockets: Option<Origin>,
    pub network: NetworkPolicy,
    pub environment: EnvironmentPolicy,
    pub limits: Limits,
    /// Directories that git is told to trust (`safe.directory`).
    pub git_safe_directories: Vec<(PathBuf, Origin)>,
    /// Texts whose denials are left out of the summary at exit, by the command text they apply to (`*` for all).
    pub quiet_denials: BTreeMap<String, Vec<String>>,
}
