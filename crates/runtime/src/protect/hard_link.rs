//! The other names of a protected file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pinfold_model::protected::Group;
use rustix::fs::FileType;

use super::node;
use super::scan::{Kind, ScanError, Why};
use super::walk::Search;

/// A protected file that has more than one name.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) path: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) names: u64,
    pub(super) group: Group,
}

impl Search<'_> {
    /// Finds every name inside the trees of the protected files that have several, whatever the depth, and protects it.
    ///
    /// Names outside the trees are out of the command's reach. A search that does not end refuses the start.
    pub(super) fn cover_hard_links(&mut self) -> Result<(), ScanError> {
        if self.linked.is_empty() {
            return Ok(());
        }
        let linked = std::mem::take(&mut self.linked);
        let mut missing: BTreeMap<(u64, u64), (u64, Group)> = BTreeMap::new();
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        for file in &linked {
            let left = missing
                .entry((file.device, file.inode))
                .or_insert((file.names, file.group));
            if seen.insert(file.path.clone()) {
                left.0 = left.0.saturating_sub(1);
            }
        }
        missing.retain(|_, (left, _)| *left > 0);
        let mut ahead: Vec<PathBuf> = self.roots.iter().map(|root| root.path.clone()).collect();
        let mut walked: BTreeSet<PathBuf> = BTreeSet::new();
        while let (Some(path), false) = (ahead.pop(), missing.is_empty()) {
            if !walked.insert(path.clone()) {
                continue;
            }
            let Some(folder) = self.enter(&path) else {
                if let (Some(file), Some(Why::Unscanned)) = (linked.first(), self.closed.get(&path)) {
                    return Err(refused(file));
                }
                continue;
            };
            let mut names = Vec::new();
            let mut entries = 0;
            let listed = node::list(&folder, |name, kind, inode| {
                entries += 1;
                if kind == FileType::Directory {
                    ahead.push(path.join(OsStr::from_bytes(name)));
                } else if kind == FileType::RegularFile && missing.keys().any(|(_, wanted)| *wanted == inode) {
                    names.push(OsStr::from_bytes(name).to_owned());
                }
                ControlFlow::Continue(())
            });
            self.entries += entries;
            if let (Err(_), Some(file)) = (listed, linked.first()) {
                return Err(refused(file));
            }
            for name in names {
                let inside = path.join(&name);
                let stat = rustix::fs::statat(&folder, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
                let Some(key) = stat.ok().map(|stat| (stat.st_dev, stat.st_ino)) else {
                    continue;
                };
                let Some((left, group)) = missing.get_mut(&key) else {
                    continue;
                };
                if seen.insert(inside.clone()) {
                    self.found.insert(inside, (Kind::File, *group));
                    *left -= 1;
                    if *left == 0 {
                        missing.remove(&key);
                    }
                }
            }
        }
        Ok(())
    }
}

fn refused(file: &Linked) -> ScanError {
    ScanError::HardLinks {
        path: file.path.clone(),
        links: file.names,
        group: file.group,
    }
}
