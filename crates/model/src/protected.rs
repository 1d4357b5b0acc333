//! Paths that stay read-only inside a writable workspace, because the host runs or obeys what they say.

use serde::{Deserialize, Serialize};

/// A set of protected names that one lift opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    GitHooks,
    GitConfig,
    VersionControl,
    ShellStart,
    ToolStart,
    Autostart,
    Ide,
    Agents,
    /// Pinfold's own policy files; cannot be lifted.
    Pinfold,
}
