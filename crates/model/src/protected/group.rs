//! The sets of names that are protected, and lifted, together.

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

/// A name that no group has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a group of protected paths{} The groups are: {}.", did_you_mean(.nearest), names())]
pub struct UnknownGroup {
    pub given: String,
    /// The group whose name looks most like what was given, if one does.
    pub nearest: Option<Group>,
}

impl Group {
    /// Every group, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::GitHooks,
        Self::GitConfig,
        Self::VersionControl,
        Self::ShellStart,
        Self::ToolStart,
        Self::Autostart,
        Self::Ide,
        Self::Agents,
        Self::Pinfold,
    ];

    /// The same as a slice.
    pub const fn all() -> &'static [Self] {
        &Self::ALL
    }

    /// The name in policy files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitHooks => "git-hooks",
            Self::GitConfig => "git-config",
            Self::VersionControl => "version-control",
            Self::ShellStart => "shell-start",
            Self::ToolStart => "tool-start",
            Self::Autostart => "autostart",
            Self::Ide => "ide",
            Self::Agents => "agents",
            Self::Pinfold => "pinfold",
        }
    }

    /// The group of a name; case and `_` for `-` do not matter.
    pub fn parse(given: &str) -> Result<Self, UnknownGroup> {
        let wanted = given.trim().replace('_', "-").to_ascii_lowercase();
        if let Some(group) = Self::all().iter().find(|group| group.name() == wanted) {
            return Ok(*group);
        }
        let nearest = Self::all()
            .iter()
            .map(|group| (distance(&wanted, group.name()), *group))
            .filter(|(distance, group)| *distance <= 1 + group.name().len() / 4)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, group)| group);
        Err(UnknownGroup {
            given: given.to_owned(),
            nearest,
        })
    }

    /// Whether a policy may lift the protection.
    pub const fn may_be_lifted(self) -> bool {
        !matches!(self, Self::Pinfold)
    }

    /// Why the group is protected: a sentence for a person.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::GitHooks => "Git on the host runs the programs in its hooks folder.",
            Self::GitConfig => {
                "Git configuration names programs that git on the host starts, and redirects it to other folders."
            }
            Self::VersionControl => "The repository's configuration names programs that the host's tool starts.",
            Self::ShellStart => "The next shell on the host runs its start files.",
            Self::ToolStart => {
                "Tools on the host read this file at start, and it can name programs or let others log in."
            }
            Self::Autostart => "The next session on the host starts what is named here.",
            Self::Ide => "An editor that opens the folder obeys these settings, and they can start programs.",
            Self::Agents => {
                "An agent on the host obeys these settings, and they can start programs or loosen its rules."
            }
            Self::Pinfold => "Pinfold's own policy and state decide what a sandbox may do.",
        }
    }
}

fn did_you_mean(nearest: &Option<Group>) -> String {
    nearest.map_or_else(|| ".".to_owned(), |group| format!("; did you mean `{}`?", group.name()))
}

fn names() -> String {
    Group::all()
        .iter()
        .map(|group| group.name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The edit distance of two names in bytes; a name too long to be meant is infinitely far away.
fn distance(given: &str, name: &str) -> usize {
    let given = given.as_bytes();
    if given.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (i, left) in given.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, right) in name.bytes().enumerate() {
            let replaced = diagonal + usize::from(*left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[name.len()]
}
