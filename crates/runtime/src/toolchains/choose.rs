//! The choice of trees from text: `PATH`, the variables and the home. No disk.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::known::{FAMILIES, Family, LOCAL, PRIVATE, SHARED, VARIABLES};
use super::{Reason, Warning};

/// A tree that is to be shown if it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub tree: PathBuf,
    pub reason: Reason,
    /// Links in it are followed to further trees: a folder of programs.
    pub programs: bool,
    /// Where links on the way to it lead is shown: its place is one that only the person and their tools write.
    pub believed: bool,
}

/// What the text alone says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// In order of preference, without one inside another.
    pub candidates: Vec<Candidate>,
    /// The variables behind them.
    pub variables: Vec<(&'static str, Vec<PathBuf>)>,
    pub warnings: Vec<Warning>,
}

/// Chooses trees for the entries of `path` and for the [`VARIABLES`] among `variables`.
///
/// `home` is absolute. Entries that are empty, relative or not below the home choose nothing, and neither do those in
/// one of `shown`: what is visible anyway, such as the workspace with its own programs, keeps its access.
#[must_use]
pub fn candidates(home: &Path, path: &OsStr, variables: &[(OsString, OsString)], shown: &[PathBuf]) -> Choice {
    let mut choice = Choice::default();
    let Some(home) = normal(home).filter(|home| home.parent().is_some()) else {
        return choice;
    };
    for known in VARIABLES {
        let Some((_, value)) = variables.iter().find(|(name, _)| name == known) else {
            continue;
        };
        let mut trees = Vec::new();
        for place in entries(value) {
            if home.starts_with(&place) {
                choice.warn(Warning::ContainsHome {
                    what: (*known).to_owned(),
                    path: place,
                });
            } else if place.starts_with(&home) && !is_below(shown, &place) {
                choice.add(&home, &place, &Reason::Variable(known));
                trees.push(place);
            }
        }
        if !trees.is_empty() {
            choice.variables.push((known, trees));
        }
    }
    for entry in entries(path) {
        if home.starts_with(&entry) {
            // A root or `/home` in PATH has no programs of the home in it; the home itself may.
            if entry == home {
                choice.warn(Warning::ContainsHome {
                    what: "PATH".to_owned(),
                    path: entry,
                });
            }
        } else if entry.starts_with(&home) && !is_below(shown, &entry) {
            choice.add(&home, &entry, &Reason::Path(entry.clone()));
        }
    }
    choice
}

impl Choice {
    fn add(&mut self, home: &Path, place: &Path, reason: &Reason) {
        let Ok(below) = place.strip_prefix(home) else { return };
        if is_of(PRIVATE, below) {
            return;
        }
        if below.starts_with(".local") && (below == Path::new(".local") || is_of(LOCAL, below)) {
            for part in LOCAL {
                self.insert(home.join(part), reason, *part == ".local/bin");
            }
            return;
        }
        if let Some(family) = family_of(below) {
            self.insert(home.join(family.tree), reason, family.tree == "bin");
            for tree in family.with {
                self.insert(home.join(tree), reason, false);
            }
            return;
        }
        if !is_shared(below) {
            // A folder of no known tool may lie in a project that an earlier sandbox could write: no link is believed there.
            self.push(Candidate {
                tree: place.to_owned(),
                reason: reason.clone(),
                programs: false,
                believed: false,
            });
        }
    }

    /// Keeps the outermost of nested trees.
    fn insert(&mut self, tree: PathBuf, reason: &Reason, programs: bool) {
        self.push(Candidate {
            tree,
            reason: reason.clone(),
            programs,
            believed: true,
        });
    }

    fn push(&mut self, candidate: Candidate) {
        let tree = &candidate.tree;
        if self.candidates.iter().any(|known| tree.starts_with(&known.tree)) {
            return;
        }
        self.candidates.retain(|known| !known.tree.starts_with(tree));
        self.candidates.push(candidate);
    }

    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// The deepest known tree that contains a path relative to the home.
fn family_of(below: &Path) -> Option<&'static Family> {
    FAMILIES
        .iter()
        .filter(|family| below.starts_with(family.tree))
        .max_by_key(|family| family.tree.len())
}

pub(super) fn is_below(trees: &[PathBuf], place: &Path) -> bool {
    trees.iter().any(|tree| place.starts_with(tree))
}

fn is_of(list: &[&str], below: &Path) -> bool {
    list.iter().any(|part| below.starts_with(part))
}

/// Whether a path relative to the home is a place that more than one program uses.
pub(super) fn is_shared(below: &Path) -> bool {
    below == Path::new("") || SHARED.iter().any(|shared| below == Path::new(shared))
}

/// The tree that a program at `target` (absolute, below `home`) needs, as narrow as the usual layouts permit.
///
/// A program in `prefix/bin` needs its prefix, when the prefix belongs to one program alone; elsewhere the folder that
/// the program lies in, or only the file when that folder is shared.
pub(super) fn around(home: &Path, target: &Path) -> Option<PathBuf> {
    let below = target
        .strip_prefix(home)
        .ok()
        .filter(|below| !is_shared(below) && !is_of(PRIVATE, below))?;
    if let Some(part) = LOCAL.iter().find(|part| below.starts_with(part)) {
        return Some(home.join(part));
    }
    if let Some(family) = family_of(below) {
        return Some(home.join(family.tree));
    }
    let folder = below.parent()?;
    if is_shared(folder) {
        return Some(target.to_owned());
    }
    let hidden = below.as_os_str().as_bytes().starts_with(b".");
    let prefix = folder
        .parent()
        .filter(|prefix| hidden && folder.ends_with("bin") && !is_shared(prefix));
    Some(home.join(prefix.unwrap_or(folder)))
}

/// The absolute entries of a list such as `PATH`, without `.`, `..` and doubled slashes.
fn entries(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    list.as_bytes()
        .split(|byte| *byte == b':')
        .filter_map(|entry| normal(Path::new(OsStr::from_bytes(entry))))
}

/// Folds `.`, `..` and `//` by text; none for a relative path.
pub(super) fn normal(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut folded = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => folded.push(name),
            Component::ParentDir => {
                folded.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(folded)
}
