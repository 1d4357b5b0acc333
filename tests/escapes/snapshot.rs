//! What a folder of the host holds, to every detail that a sandbox could change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    links: u64,
    owner: (u32, u32),
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
}

/// The state of trees of files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

impl Snapshot {
    pub(crate) fn of(roots: &[&Path]) -> Self {
        let mut entries = BTreeMap::new();
        for root in roots {
            add(root, &mut entries);
        }
        Self(entries)
    }

    #[track_caller]
    pub(crate) fn assert_same_as(&self, after: &Self) {
        for (path, entry) in &after.0 {
            match self.0.get(path) {
                None => panic!("{} has appeared on the host", path.display()),
                Some(before) => assert_eq!(before, entry, "{} was changed on the host", path.display()),
            }
        }
        for path in self.0.keys() {
            assert!(after.0.contains_key(path), "{} is gone on the host", path.display());
        }
    }

    /// The same, where what is taken away again may leave its time on one folder.
    #[track_caller]
    pub(crate) fn assert_same_as_but_for_times(self, after: &Self, folder: &Path) {
        let mut before = self;
        if let (Some(was), Some(is)) = (before.0.get_mut(folder), after.0.get(folder)) {
            was.modified = is.modified;
            was.changed = is.changed;
        }
        before.assert_same_as(after);
    }
}

fn add(path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    let found = fs::symlink_metadata(path).expect("the path can be looked at");
    let content = if found.is_symlink() {
        fs::read_link(path)
            .expect("the link can be read")
            .into_os_string()
            .into_encoded_bytes()
    } else if found.is_file() {
        fs::read(path).expect("the file can be read")
    } else {
        Vec::new()
    };
    let entry = Entry {
        mode: found.mode(),
        inode: found.ino(),
        links: found.nlink(),
        owner: (found.uid(), found.gid()),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
        content,
    };
    entries.insert(path.to_owned(), entry);
    if found.is_dir() {
        for below in fs::read_dir(path).expect("the folder can be listed") {
            add(&below.expect("the folder can be listed").path(), entries);
        }
    }
}
