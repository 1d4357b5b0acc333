//! The other names of files that rules deny: a file that is hidden under one name must not be readable under another.
//!
//! Names outside the folders that the command sees are out of its reach. Files in a denied folder are not looked at: what they
//! are called elsewhere is a rule of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use pinfold_model::plan::Node;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::Effective;

use super::PrepareError;
use crate::resolve::Resolved;

/// A search that takes longer would be felt at every start.
const MOST_NAMES: u64 = 1_000_000;

/// A denied file with more than one name.
struct Linked {
    path: PathBuf,
    effective: Effective,
    /// How many names are still to be found.
    left: u64,
}

/// Every further name of a denied file below `folders`, with what holds for it.
///
/// # Errors
/// The search did not come to its end, so a name could be left open.
pub(super) fn other_names<'a>(
    resolved: &Resolved,
    folders: impl IntoIterator<Item = &'a Path>,
) -> Result<Vec<(PathBuf, Effective)>, PrepareError> {
    let mut linked = linked(resolved);
    let mut names = Vec::new();
    let mut ahead: Vec<PathBuf> = folders.into_iter().map(Path::to_owned).collect();
    let mut walked: BTreeSet<PathBuf> = BTreeSet::new();
    let mut left = MOST_NAMES;
    while let (Some(folder), false) = (ahead.pop(), linked.is_empty()) {
        // Folders of rules may lie in one another.
        if !walked.insert(folder.clone()) {
            continue;
        }
        // What cannot be listed by the caller cannot be listed inside either.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            if let (0, Some(file)) = (left, linked.values().next()) {
                return Err(PrepareError::HardLinks {
                    file: file.path.clone(),
                });
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if kind.is_file() && linked.keys().any(|(_, inode)| *inode == entry.ino()) {
                let Ok(found) = entry.metadata() else { continue };
                let key = (found.dev(), found.ino());
                let Some(file) = linked.get_mut(&key) else { continue };
                if file.path == entry.path() {
                    continue;
                }
                names.push((entry.path(), file.effective));
                file.left = file.left.saturating_sub(1);
                if file.left == 0 {
                    linked.remove(&key);
                }
            }
        }
    }
    Ok(names)
}

fn linked(resolved: &Resolved) -> BTreeMap<(u64, u64), Linked> {
    let mut linked: BTreeMap<(u64, u64), Linked> = BTreeMap::new();
    for rule in &resolved.rules {
        let effective = match rule.access {
            PathAccess::Hide => Effective::Hidden,
            PathAccess::ReadOnly => Effective::ReadOnly,
            PathAccess::Read | PathAccess::Write => continue,
        };
        if resolved.nodes.get(&rule.path) != Some(&Node::File) {
            continue;
        }
        let Ok(found) = std::fs::symlink_metadata(&rule.path) else {
            continue;
        };
        if found.nlink() > 1 {
            let file = linked.entry((found.dev(), found.ino())).or_insert_with(|| Linked {
                path: rule.path.clone(),
                effective,
                left: found.nlink() - 1,
            });
            // Two names with a rule each: the stricter holds for the file.
            file.effective = file.effective.min(effective);
        }
    }
    linked
}
