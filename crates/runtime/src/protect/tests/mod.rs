mod git;
mod index;
mod parsers;
mod scan;
mod watch;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pinfold_model::protected::Group;
use tempfile::TempDir;

use super::*;

/// A folder with a workspace, a home and room for more.
struct Place {
    base: PathBuf,
    work: PathBuf,
    home: PathBuf,
    lifts: BTreeSet<Group>,
    depth: u8,
    budget: Budget,
    covers_home: bool,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self::at(&std::env::temp_dir())
    }

    fn at(parent: &Path) -> Self {
        let folder = tempfile::tempdir_in(parent).unwrap();
        let base = folder.path().canonicalize().unwrap();
        let place = Self {
            work: base.join("work"),
            home: base.join("home"),
            base,
            lifts: BTreeSet::new(),
            depth: 3,
            budget: Budget {
                time: Duration::from_secs(600),
                entries: 1_000_000,
            },
            covers_home: false,
            _folder: folder,
        };
        std::fs::create_dir(&place.work).unwrap();
        std::fs::create_dir(&place.home).unwrap();
        place
    }

    fn request<'a>(&'a self, roots: &'a [PathBuf]) -> ScanRequest<'a> {
        ScanRequest {
            write_roots: roots,
            home: &self.home,
            home_is_covered: self.covers_home,
            depth: self.depth,
            skip_node_modules: true,
            budget: self.budget,
            lifts: &self.lifts,
            pinfold_paths: &[],
        }
    }

    fn try_scan(&self) -> Result<Scan, ScanError> {
        scan(self.request(std::slice::from_ref(&self.work)))
    }

    fn scan(&self) -> Scan {
        self.try_scan().unwrap()
    }

    fn folder(&self, path: &str) -> PathBuf {
        let path = self.work.join(path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self, path: &str) -> PathBuf {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        path
    }

    fn link(&self, path: &str, target: &str) -> PathBuf {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &path).unwrap();
        path
    }

    /// Runs the real git, with no configuration of the machine.
    fn git(&self, folder: &Path, arguments: &[&str]) {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// A repository with one commit.
    fn repository(&self, path: &Path) {
        std::fs::create_dir_all(path).unwrap();
        self.git(path, &["init", "-q", "-b", "main"]);
        std::fs::write(path.join("file"), "x").unwrap();
        self.git(path, &["add", "."]);
        self.git(path, &["commit", "-q", "-m", "first"]);
    }
}

/// The found paths relative to a folder, each with a letter for its kind.
fn existing(scan: &Scan, base: &Path) -> Vec<String> {
    let kind = |kind| match kind {
        Kind::Dir => "d",
        Kind::File => "f",
        Kind::Symlink => "l",
    };
    // Whether a new repository has this legacy folder depends on how git was packaged.
    let found = scan.existing.iter().filter(|found| !found.path.ends_with("branches"));
    found
        .map(|found| format!("{} {}", kind(found.kind), relative(&found.path, base)))
        .collect()
}

fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base)
        .unwrap_or(path)
        .as_os_str()
        .to_string_lossy()
        .into_owned()
}

fn pinned(scan: &Scan, base: &Path) -> Vec<String> {
    scan.pinned.iter().map(|path| relative(path, base)).collect()
}

fn watched<'a>(scan: &'a Scan, folder: &Path) -> Option<&'a AbsentIn> {
    scan.watched.iter().find(|watched| watched.folder == folder)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = match std::fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect(),
        Err(_) => Vec::new(),
    };
    names.sort();
    names
}

fn os(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}
