//! Why the rules cannot be carried out on this host.

use std::fmt;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::policy::path::shown_path;
use pinfold_model::policy::{PathAccess, PathFault, PathRule};
use rustix::io::Errno;

/// Each is a sentence with the rule's place; [`ResolveError::hint`] is the next step.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("'{}' does not exist, so it cannot be made {}   ({})", shown_path(path), rule.granted(), rule.origin)]
    Missing { rule: Box<RuleName>, path: PathBuf },
    #[error("{rule} leads into a cycle of links at '{}'   ({})", shown_path(link), rule.origin)]
    Cycle { rule: Box<RuleName>, link: PathBuf },
    #[error("{rule} cannot be looked at: {why}   ({})", rule.origin)]
    Unreachable { rule: Box<RuleName>, why: String },
    #[error("{rule} would make the whole file system writable   ({})", rule.origin)]
    WritesEverything { rule: Box<RuleName> },
    #[error("{rule} goes through the link '{}' to '{}', {widening}   ({})", shown_path(link), shown_path(target), rule.origin)]
    Widens {
        rule: Box<RuleName>,
        link: PathBuf,
        target: PathBuf,
        widening: Widening,
    },
    #[error("{rule} is about the host's '{}', but a sandbox has its own view of it   ({})", shown_path(place), rule.origin)]
    OwnView { rule: Box<RuleName>, place: PathBuf },
    #[error("{rule} names no character device, and nothing else of the host's /dev is shown   ({})", rule.origin)]
    NoDevice { rule: Box<RuleName> },
    #[error("{rule} goes through '{}', which leads elsewhere for each process   ({})", shown_path(link), rule.origin)]
    PerProcess { rule: Box<RuleName>, link: PathBuf },
    #[error("{rule} was searched for until {bound}; {visited} entries and {matches} matches were counted   ({})", rule.origin)]
    TooBig {
        rule: Box<RuleName>,
        bound: Bound,
        visited: u64,
        matches: usize,
    },
    #[error("{rule} is no pattern: {fault}   ({})", rule.origin)]
    Pattern { rule: Box<RuleName>, fault: PathFault },
    #[error("{rule} could not be looked up: {}   ({})", std::io::Error::from(*errno), rule.origin)]
    System { rule: Box<RuleName>, errno: Errno },
    #[error("the mount table of this process cannot be read: {source}")]
    Mounts { source: std::io::Error },
}

/// A rule in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleName {
    pub access: PathAccess,
    /// As written in a policy.
    pub text: String,
    pub origin: Origin,
}

/// What a rule that goes through a link would open up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Widening {
    #[error("and a command in a sandbox could have put that link there")]
    Planted,
    #[error("a system folder")]
    System,
    #[error("a folder above the link itself")]
    Above,
    #[error("and in a settings file a link opens only its own name")]
    Imported,
}

/// A bound of the search for what a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    #[error("there were too many entries to go through")]
    Entries,
    #[error("there were too many matches")]
    Matches,
    #[error("the folders were nested too deeply")]
    Depth,
    #[error("the time for it was up")]
    Time,
}

impl ResolveError {
    /// The next step for the person, without the word "hint".
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { rule, path } if rule.access == PathAccess::Write => {
                format!("create it first: mkdir -p {}", quoted(path))
            }
            Self::Missing { .. } => "correct the path, or leave the rule out".to_owned(),
            Self::Cycle { link, .. } => format!("remove one of the links: ls -l {}", quoted(link)),
            Self::Unreachable { .. } => {
                "name a path that you can list yourself, or make its file system answer".to_owned()
            }
            Self::WritesEverything { .. } => "name the folders that have to be writable".to_owned(),
            Self::Widens { target, .. } => {
                format!("if that is meant, name the target itself: {}", shown_path(target))
            }
            Self::OwnView { .. } => "leave the rule out: the sandbox has its own".to_owned(),
            Self::NoDevice { .. } => "name each device by itself, such as /dev/kvm".to_owned(),
            Self::PerProcess { .. } => "name what it leads to".to_owned(),
            Self::TooBig { rule, .. } => match rule.access {
                PathAccess::Hide | PathAccess::ReadOnly => {
                    "start the pattern in a folder further down, or name a whole folder".to_owned()
                }
                PathAccess::Read | PathAccess::Write => "name the folders instead of a pattern".to_owned(),
            },
            Self::Pattern { fault, .. } => fault.hint().to_owned(),
            Self::System {
                errno: Errno::NOSYS, ..
            } => "openat2 is needed, which Linux has since 5.6".to_owned(),
            Self::System { .. } => {
                "free some of it and start again; `ulimit -n` shows the limit on open files".to_owned()
            }
            Self::Mounts { .. } => "mount a proc file system at /proc".to_owned(),
        }
    }
}

impl RuleName {
    pub(super) fn of(rule: &PathRule) -> Box<Self> {
        Box::new(Self {
            access: rule.access,
            text: rule.path.to_text(),
            origin: rule.origin.clone(),
        })
    }

    fn granted(&self) -> &'static str {
        match self.access {
            PathAccess::Write => "writable",
            PathAccess::Read => "readable",
            PathAccess::ReadOnly => "read-only",
            PathAccess::Hide => "hidden",
        }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            PathAccess::Write => "write",
            PathAccess::Read => "read",
            PathAccess::ReadOnly => "readonly",
            PathAccess::Hide => "hide",
        };
        write!(f, "{access} '{}'", self.text)
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = shown_path(path);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%,:=".contains(&byte);
    if text.bytes().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
