//! Whether a path is a protected one, by its name alone.
//!
//! A name does not tell whether a folder really is a bare repository, or which folder below `modules` is one: there the
//! scan of the runtime knows more. Nothing is called writable here that the scan would protect.

use super::table::{ENTRIES, Entry, GIT_ENTRIES, GIT_WRITABLE, Name, WORKTREE_ENTRIES};
use super::{CLOSED_FOLDERS, Group};

/// Where the folder lies that a path is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The root of a write root.
    Root,
    /// The home folder, covered by a write root.
    Home,
    /// Any other folder below a write root.
    Nested,
}

/// The protected name that a path is, or lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    pub group: Group,
    pub reason: &'static str,
    /// How many leading components of the path make up the protected name.
    pub components: usize,
}

/// What a path in a git directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitName {
    Protected(Match),
    /// Ordinary git commands have to write it.
    Writable,
    /// Neither: not protected, and of no importance.
    Other,
}

/// The protected name in a path relative to a write root, to home or to a folder below.
///
/// Empty and `.` components are skipped; a path with `..` is not taken apart and matches nothing.
pub fn classify(path: &[u8], place: Place) -> Option<Match> {
    let components = split(path)?;
    for start in 0..components.len() {
        let rest = &components[start..];
        let here = if start == 0 { place } else { Place::Nested };
        let found = in_folder(rest, here).or_else(|| in_repository(rest));
        if let Some(found) = found {
            return Some(Match {
                components: start + found.components,
                ..found
            });
        }
    }
    None
}

/// What a path relative to a git directory is: a `.git` folder, a bare repository, or the git directory of a submodule.
pub fn classify_in_git_dir(path: &[u8]) -> GitName {
    split(path).map_or(GitName::Other, |components| git_name(&components))
}

fn split(path: &[u8]) -> Option<Vec<&[u8]>> {
    let parts = path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".");
    let components: Vec<&[u8]> = parts.collect();
    (!components.contains(&b"..".as_slice())).then_some(components)
}

fn in_folder(path: &[&[u8]], place: Place) -> Option<Match> {
    let applies = |entry: &&Entry| !entry.home_only || place == Place::Home;
    if let Some(entry) = ENTRIES.iter().filter(applies).find(|entry| leads(entry.path, path)) {
        return Some(Match {
            group: entry.group,
            reason: entry.reason,
            components: entry.path.len(),
        });
    }
    let closed = |(group, _): &&(Group, &[Name])| *group != Group::Autostart || place == Place::Home;
    let (group, folder) = CLOSED_FOLDERS
        .iter()
        .filter(closed)
        .find(|(_, folder)| leads(folder, path))?;
    // The folder itself may be made; what lies in it may not be changed.
    (path.len() > folder.len()).then_some(Match {
        group: *group,
        reason: group.reason(),
        components: folder.len(),
    })
}

fn in_repository(path: &[&[u8]]) -> Option<Match> {
    let (first, rest) = path.split_first()?;
    if !first.eq_ignore_ascii_case(b".git") || rest.is_empty() {
        return None;
    }
    match git_name(rest) {
        GitName::Protected(found) => Some(Match {
            components: found.components + 1,
            ..found
        }),
        GitName::Writable | GitName::Other => None,
    }
}

fn git_name(path: &[&[u8]]) -> GitName {
    let Some((first, rest)) = path.split_first() else {
        return GitName::Other;
    };
    if let Some(found) = find(GIT_ENTRIES, path, 0) {
        return GitName::Protected(found);
    }
    if first.eq_ignore_ascii_case(b"worktrees") {
        return rest
            .get(1..)
            .map_or(GitName::Other, |inside| match find(WORKTREE_ENTRIES, inside, 2) {
                Some(found) => GitName::Protected(found),
                None => writable(inside),
            });
    }
    if first.eq_ignore_ascii_case(b"modules") {
        return in_modules(rest);
    }
    writable(path)
}

/// A submodule's name may have slashes, so the first component that means something to git ends it.
fn in_modules(path: &[&[u8]]) -> GitName {
    for start in 1..path.len() {
        match git_name(&path[start..]) {
            GitName::Protected(found) => {
                return GitName::Protected(Match {
                    components: 1 + start + found.components,
                    ..found
                });
            }
            GitName::Writable => return GitName::Writable,
            GitName::Other => {}
        }
    }
    GitName::Other
}

fn writable(path: &[&[u8]]) -> GitName {
    let Some(first) = path.first() else {
        return GitName::Other;
    };
    let listed = GIT_WRITABLE
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name.as_bytes()));
    let lock = path.len() == 1 && Name::Between("", ".lock").matches(first);
    if listed || lock {
        GitName::Writable
    } else {
        GitName::Other
    }
}

fn find(entries: &[Entry], path: &[&[u8]], before: usize) -> Option<Match> {
    let entry = entries.iter().find(|entry| leads(entry.path, path))?;
    Some(Match {
        group: entry.group,
        reason: entry.reason,
        components: before + entry.path.len(),
    })
}

/// Whether the names are the first components of the path.
fn leads(names: &[Name], path: &[&[u8]]) -> bool {
    path.len() >= names.len() && names.iter().zip(path).all(|(name, component)| name.matches(component))
}
