//! Keeps what the host runs or obeys out of a sandbox's reach, inside folders that the sandbox may write.
//!
//! [`scan`] looks at the write roots before a start and says which paths exist and have to become read-only, which folders
//! have to stay where they are, and where a protected name could still appear. [`Watch`] then moves such a name to
//! quarantine the moment it appears, and once more before the exit status is returned.
//!
//! Everything below a write root is hostile: an earlier run may have made it. Folders are opened without following links,
//! files are read with a limit, and what a git pointer says is believed only where it restricts, or where the folder that it
//! leads to points back. Nothing here writes below a write root, except that quarantine takes away what the command made.

mod absent;
mod carry;
mod config;
mod finish;
mod git;
mod hard_link;
mod index;
mod inspect;
mod mounts;
mod node;
mod pointer;
mod quarantine;
mod resolve;
mod scan;
mod sockets;
#[cfg(test)]
mod tests;
mod walk;
mod watch;

pub use absent::{AbsentIn, Wanted};
pub use quarantine::{Fate, Quarantined};
pub use scan::{
    Access, Budget, Closed, ExtraGrant, GitDir, GitKind, Kind, Protected, Scan, ScanError, ScanRequest, Stopped,
    Warning, Why, scan,
};
pub use sockets::{Sockets, sockets};
pub use watch::{ARM_AFTER, Made, Report, Watch, WatchError};
