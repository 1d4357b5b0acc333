//! What the person has trusted: exactly this content of exactly this file.
//!
//! A record is an empty-able file named by two SHA-256 sums, `PATH/CONTENT`; that it exists is all that counts. The sums are
//! taken of the very bytes that were judged, never of the file read a second time.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pinfold_model::policy::path::shown_path;
use sha2::{Digest as _, Sha256};

use super::{Folders, LoadError};

/// The records below the data folder.
#[derive(Clone, Debug)]
pub(crate) struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    /// None when no data folder is known; then nothing is trusted.
    #[must_use]
    pub(crate) fn new(folders: &Folders) -> Option<Self> {
        folders.data.as_ref().map(|data| Self {
            folder: data.join("trust"),
        })
    }

    /// Whether `content` of `path` (canonical) was trusted.
    #[must_use]
    pub(crate) fn holds(&self, path: &Path, content: &[u8]) -> bool {
        fs::symlink_metadata(self.record(path, content)).is_ok_and(|record| record.is_file())
    }

    /// Trusts `content` of `path` until it is revoked.
    pub(crate) fn add(&self, path: &Path, content: &[u8]) -> Result<(), LoadError> {
        let record = self.record(path, content);
        let store = |source| LoadError::Store {
            path: self.folder.clone(),
            source,
        };
        let folder = self.records_of(path);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(store)?;
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&record)
        {
            // The text is for a person who looks into the folder.
            Ok(mut file) => writeln!(file, "{}", shown_path(path)).map_err(store),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.holds(path, content) => Ok(()),
            Err(error) => Err(store(error)),
        }
    }

    /// Forgets every content of `path` that was trusted, and says whether there was any.
    pub(crate) fn revoke(&self, path: &Path) -> Result<bool, LoadError> {
        match fs::remove_dir_all(self.records_of(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(LoadError::Store {
                path: self.folder.clone(),
                source,
            }),
        }
    }

    fn records_of(&self, path: &Path) -> PathBuf {
        self.folder.join(hex(path.as_os_str().as_bytes()))
    }

    fn record(&self, path: &Path, content: &[u8]) -> PathBuf {
        self.records_of(path).join(hex(content))
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_holds_for_one_content_of_one_path_until_revoked() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders = Folders {
            data: Some(folder.path().join("data")),
            ..Folders::default()
        };
        let store = TrustStore::new(&folders).expect("a data folder");
        let path = Path::new("/w/app/pinfold.toml");
        assert!(!store.holds(path, b"a"));
        store.add(path, b"a").expect("recorded");
        store.add(path, b"a").expect("recorded twice");
        store.add(path, b"b").expect("another content");
        assert!(store.holds(path, b"a") && store.holds(path, b"b"));
        assert!(!store.holds(path, b"a "));
        assert!(!store.holds(Path::new("/w/other/pinfold.toml"), b"a"));
        assert!(store.revoke(path).expect("revoked"));
        assert!(!store.holds(path, b"a") && !store.holds(path, b"b"));
        assert!(!store.revoke(path).expect("nothing left"));
    }
}
