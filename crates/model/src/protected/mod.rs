//! Paths that stay read-only inside a writable workspace, because the host runs or obeys what they say.
//!
//! This module owns the names, the reason for each, and the decision whether a path is one of them. It looks at bytes only:
//! which of the names exist, and where links lead, is for the scan of the runtime to find out.

mod classify;
mod group;
mod table;
#[cfg(test)]
mod tests;

pub use classify::{GitName, Match, Place, classify, classify_in_git_dir};
pub use group::{Group, UnknownGroup};
pub use table::{CLOSED_FOLDERS, ENTRIES, Entry, GIT_ENTRIES, GIT_HOOK_NAMES, GIT_WRITABLE, Name, WORKTREE_ENTRIES};
