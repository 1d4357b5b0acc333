//! From what was found to what has to be done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Kind;
use super::scan::{Access, Closed, ExtraGrant, Protected, Scan, ScanError, Stopped, Warning, Why};
use super::walk::{Exhausted, Search};

/// More folders than that are not closed one by one in one place.
const MOST_BESIDE: usize = 64;
/// Nor that many in all: each is a mount.
const MOST_CLOSED: usize = 2048;

/// What holds at a path and below, up to the next such path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Shut,
    Open,
}

impl Search<'_> {
    pub(super) fn finish(mut self) -> Result<Scan, ScanError> {
        self.close_in_groups()?;
        let mut rules: BTreeMap<PathBuf, Rule> = BTreeMap::new();
        let shut = self
            .found
            .iter()
            .filter(|(_, (kind, _))| *kind == Kind::Dir)
            .map(|(path, _)| path);
        for path in shut.chain(self.closed.keys()).chain(&self.hidden) {
            rules.insert(path.clone(), Rule::Shut);
        }
        let opened = self.grants.iter().filter(|(_, access)| **access == Access::Write);
        for (path, _) in opened {
            rules.insert(path.clone(), Rule::Open);
        }
        let inside_shut = |path: &Path| {
            let above = path.ancestors().skip(1).find_map(|above| rules.get(above));
            above == Some(&Rule::Shut)
        };

        self.found.retain(|path, _| !inside_shut(path));
        self.closed.retain(|path, _| !inside_shut(path));
        self.hidden.retain(|path| !inside_shut(path));
        self.absent
            .retain(|path, _| path.ancestors().find_map(|above| rules.get(above)) != Some(&Rule::Shut));
        for root in self.request.write_roots {
            let above = root.ancestors().skip(1).find_map(|above| self.found.get(above));
            if let Some((Kind::Dir, group)) = above {
                self.warnings.push(Warning::RootIsProtected {
                    root: root.clone(),
                    group: *group,
                });
            }
        }

        let mut pinned = BTreeSet::new();
        let guarded = self.found.keys().chain(self.closed.keys()).chain(&self.hidden);
        let above_guarded = guarded.flat_map(|path| path.ancestors().skip(1).map(move |above| (path, above)));
        let watched = self
            .absent
            .keys()
            .flat_map(|path| path.ancestors().map(move |above| (path, above)));
        let mut done: Option<&Path> = None;
        for (path, above) in above_guarded.chain(watched) {
            // A tree's own top is a mount already, and so is a grant; nothing above them is inside.
            let is_top =
                |path: &Path| self.roots.iter().any(|root| root.path == path) || self.grants.contains_key(path);
            if done == Some(path) || self.root_of(above).is_none() {
                continue;
            }
            if is_top(above) {
                done = Some(path);
                continue;
            }
            if !rules.contains_key(above) && !pinned.contains(above) {
                pinned.insert(above.to_owned());
            }
        }

        let folders = self.closed.values().filter(|why| **why == Why::Unscanned).count();
        let stopped_early = self.stopped.map(|exhausted| match exhausted {
            Exhausted::Time(after) => Stopped::Time { after, folders },
            Exhausted::Entries(after) => Stopped::Entries { after, folders },
        });
        let protected = self
            .found
            .into_iter()
            .map(|(path, (kind, group))| Protected { path, kind, group });
        Ok(Scan {
            existing: protected.collect(),
            pinned: pinned.into_iter().collect(),
            watched: self.absent.into_values().collect(),
            git: self.git.into_values().collect(),
            grants: self
                .grants
                .into_iter()
                .map(|(path, access)| ExtraGrant { path, access })
                .collect(),
            hidden: self.hidden.into_iter().collect(),
            sockets: self.sockets.into_iter().collect(),
            closed: self
                .closed
                .into_iter()
                .map(|(path, why)| Closed { path, why })
                .collect(),
            stopped_early,
            warnings: self.warnings,
        })
    }

    /// Closes the folder above where too many would have to be closed in it; a root cannot be closed.
    fn close_in_groups(&mut self) -> Result<(), ScanError> {
        loop {
            let mut beside: BTreeMap<&Path, usize> = BTreeMap::new();
            for path in self.closed.keys() {
                if let Some(root) = self.roots.iter().find(|root| root.path == *path) {
                    return Err(match self.closed.get(path) {
                        Some(Why::Unreadable(errno)) => ScanError::Root {
                            root: root.path.clone(),
                            errno: *errno,
                        },
                        _ => ScanError::TooLarge {
                            root: root.path.clone(),
                        },
                    });
                }
                if let Some(parent) = path.parent() {
                    *beside.entry(parent).or_default() += 1;
                }
            }
            let is_root = |path: &Path| self.roots.iter().any(|root| root.path == path);
            let crowded = beside
                .iter()
                .filter(|(path, count)| **count > MOST_BESIDE && !is_root(path));
            let crowded: Vec<PathBuf> = crowded.map(|(path, _)| (*path).to_owned()).collect();
            if crowded.is_empty() {
                break;
            }
            for parent in crowded {
                self.closed.retain(|path, _| path.parent() != Some(&parent));
                self.closed.insert(parent, Why::Unscanned);
            }
        }
        match self.closed.keys().next() {
            Some(first) if self.closed.len() > MOST_CLOSED => {
                let root = self
                    .root_of(first)
                    .map_or_else(|| first.clone(), |root| root.path.clone());
                Err(ScanError::TooLarge { root })
            }
            _ => Ok(()),
        }
    }
}
