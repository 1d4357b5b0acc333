//! Git directories: what is protected in each, and what their configuration makes git obey elsewhere.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use pinfold_model::protected::{GIT_HOOK_NAMES, Group, Place};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::absent::Wanted;
use super::config::{self, GitConfig};
use super::index::{self, Index, Take};
use super::node;
use super::resolve::resolve;
use super::scan::{GitDir, GitKind, Kind, ScanError, Warning};
use super::walk::{Pending, Search};

/// A submodule's name may have slashes, and so its git directory lies some levels below `modules`.
const MODULE_LEVELS: u8 = 8;
const MOST_INCLUDES: usize = 32;

/// Folders of a git directory that are of no interest to the walk for other names.
pub(super) fn is_git_name(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b"objects",
        b"refs",
        b"logs",
        b"hooks",
        b"info",
        b"modules",
        b"worktrees",
        b"reftable",
    ];
    NAMES.contains(&name)
}

impl Search<'_> {
    /// A name `.git` in a folder.
    pub(super) fn repository(&mut self, checkout: &Path, name: &OsStr, kind: FileType) -> Result<(), ScanError> {
        let path = checkout.join(name);
        // The walk and an index may both lead here.
        if !self.repositories.insert(path.clone()) {
            return Ok(());
        }
        match kind {
            FileType::Directory => self.git_dir(&path, GitKind::Main, Some(checkout)),
            FileType::RegularFile => {
                if !self.lifted(Group::GitConfig) {
                    self.protect(path.clone(), kind, Group::GitConfig)?;
                }
                self.pointer(&path)
            }
            FileType::Symlink => self.linked_git_dir(path, checkout),
            _ if self.lifted(Group::GitConfig) => Ok(()),
            _ => self.protect(path, kind, Group::GitConfig),
        }
    }

    fn linked_git_dir(&mut self, link: PathBuf, checkout: &Path) -> Result<(), ScanError> {
        if !self.lifted(Group::GitConfig) {
            self.found.insert(link.clone(), (Kind::Symlink, Group::GitConfig));
        }
        match resolve(&link, &self.remote) {
            Ok(led) if self.root_of(&led.path).is_some() => {
                self.note_git_links(led.links);
                match led.kind {
                    Some(FileType::Directory) => self.git_dir(&led.path, GitKind::Pointed, Some(checkout)),
                    Some(kind) => {
                        self.protect(led.path.clone(), kind, Group::GitConfig)?;
                        self.pointer_in(&led.path, checkout)
                    }
                    None => Ok(()),
                }
            }
            Ok(led) => {
                let why = format!("the link leads to {:?}, outside the write roots", led.path);
                self.warnings.push(Warning::PointerNotBelieved { pointer: link, why });
                Ok(())
            }
            Err(why) => {
                self.warnings.push(Warning::PointerNotBelieved {
                    pointer: link,
                    why: why.to_string(),
                });
                Ok(())
            }
        }
    }

    /// A write root that is itself called `.git`.
    pub(super) fn git_folder(&mut self, path: &Path) -> Result<(), ScanError> {
        self.git_dir(path, GitKind::Main, path.parent())
    }

    pub(super) fn bare_repository(&mut self, path: &Path) -> Result<(), ScanError> {
        self.git_dir(path, GitKind::Bare, None)
    }

    /// Protects a git directory inside a tree, with its submodules and worktrees.
    pub(super) fn git_dir(&mut self, path: &Path, kind: GitKind, checkout: Option<&Path>) -> Result<(), ScanError> {
        if !self.git.contains_key(path) {
            let checkout = checkout.map(Path::to_owned);
            self.git.insert(
                path.to_owned(),
                GitDir {
                    path: path.to_owned(),
                    kind,
                    checkout,
                },
            );
            let wanted = self.git_wanted();
            self.visit(Pending {
                path: path.to_owned(),
                level: None,
                wanted,
                place: Place::Nested,
            })?;
            self.modules(&path.join("modules"), 0)?;
            self.worktrees(&path.join("worktrees"))?;
        }
        self.obey_config(path, checkout)
    }

    fn modules(&mut self, path: &Path, level: u8) -> Result<(), ScanError> {
        for name in self.folders_in(path) {
            let module = path.join(name);
            if node::kind_at(rustix::fs::CWD, module.join("HEAD")).is_ok() {
                self.git_dir(&module, GitKind::Submodule, None)?;
            } else if level < MODULE_LEVELS {
                self.modules(&module, level + 1)?;
            }
        }
        Ok(())
    }

    fn worktrees(&mut self, path: &Path) -> Result<(), ScanError> {
        for name in self.folders_in(path) {
            let admin = path.join(name);
            let wanted = self.worktree_wanted();
            self.visit(Pending {
                path: admin.clone(),
                level: None,
                wanted,
                place: Place::Nested,
            })?;
            self.modules(&admin.join("modules"), 0)?;
        }
        Ok(())
    }

    fn folders_in(&mut self, path: &Path) -> Vec<OsString> {
        let mut folders = Vec::new();
        let mut entries = 0;
        let Some(folder) = self.enter(path) else { return folders };
        // What cannot be listed to the end is not entered: the names beyond are noted as not seen.
        let listed = node::list(&folder, |name, kind, _| {
            entries += 1;
            if kind == FileType::Directory {
                folders.push(OsStr::from_bytes(name).to_owned());
            }
            ControlFlow::Continue(())
        });
        self.entries += entries;
        if let Err(errno) = listed {
            self.closed.insert(path.to_owned(), super::Why::Unreadable(errno));
        }
        folders
    }

    /// Protects the hooks folder and the included files that a configuration names.
    fn obey_config(&mut self, git_dir: &Path, checkout: Option<&Path>) -> Result<(), ScanError> {
        let key = (git_dir.to_owned(), checkout.unwrap_or(git_dir).to_owned());
        if !self.configs.insert(key) {
            return Ok(());
        }
        let mut config = GitConfig::default();
        let mut left = MOST_INCLUDES;
        for name in ["config", "config.worktree"] {
            self.read_config(&git_dir.join(name), &mut config, &mut left)?;
        }
        for checkout in [checkout, config.worktree.as_deref()].into_iter().flatten() {
            self.queue_index(git_dir, checkout);
        }
        let base = match (checkout, &config.worktree) {
            (Some(checkout), _) => checkout.to_owned(),
            (None, Some(worktree)) => git_dir.join(worktree),
            (None, None) => git_dir.to_owned(),
        };
        let hooks = match config.hooks_path {
            Some(hooks) => Some(hooks),
            None => self.global_hooks()?,
        };
        let hooks = hooks.and_then(|hooks| config::absolute(&hooks, &base, self.request.home));
        match hooks {
            Some(hooks) if !self.lifted(Group::GitHooks) => self.protect_hooks(&hooks, &base),
            _ => Ok(()),
        }
    }

    /// Has the index of a git directory searched for submodules. It waits in a queue, since they nest as deep as one likes.
    pub(super) fn queue_index(&mut self, git_dir: &Path, checkout: &Path) {
        let checkout = plain(&git_dir.join(checkout));
        if self.root_of(&checkout).is_none() || (self.lifted(Group::GitConfig) && self.lifted(Group::GitHooks)) {
            return;
        }
        let index = (git_dir.to_owned(), checkout);
        if self.indexes_seen.insert(index.clone()) {
            self.indexes.push_back(index);
        }
    }

    /// Protects the checkouts of the submodules that an index names, at whatever depth: git on the host enters them all.
    pub(super) fn submodules(&mut self, git_dir: &Path, checkout: &Path) -> Result<(), ScanError> {
        if self.exhausted() {
            self.leave_index(git_dir, checkout);
            return Ok(());
        }
        let mut paths = Vec::new();
        let mut folders = Vec::new();
        if let Some(index) = self.read_index(&git_dir.join("index"), Take::Gitlinks) {
            paths.extend(index.paths);
            folders.extend(index.folders);
            let take = if index.nameless {
                Take::Everything
            } else {
                Take::Gitlinks
            };
            for name in index.shared {
                if let Some(shared) = self.read_index(&git_dir.join(name), take) {
                    paths.extend(shared.paths);
                    folders.extend(shared.folders);
                }
            }
        }
        for path in folders {
            // Git takes such a folder apart where it exists, and enters the submodules in it.
            let folder = plain(&checkout.join(OsStr::from_bytes(&path)));
            self.entries += 1;
            if self.exhausted() || self.open_checkout(&folder).is_ok() {
                self.warnings.push(Warning::IndexNotRead {
                    index: git_dir.join("index"),
                    why: format!("it holds the folder {folder:?} as a whole (a sparse index)"),
                });
                break;
            }
        }
        for path in paths {
            self.entries += 1;
            if self.exhausted() {
                self.leave_index(git_dir, checkout);
                return Ok(());
            }
            self.submodule(&plain(&checkout.join(OsStr::from_bytes(&path))))?;
        }
        Ok(())
    }

    /// Opens a folder that an index names. Git does not go through links to it either.
    fn open_checkout(&self, checkout: &Path) -> Result<OwnedFd, Errno> {
        let root = self.root_of(checkout).ok_or(Errno::NOENT)?;
        let below = checkout.strip_prefix(&root.path).map_err(|_| Errno::NOENT)?;
        let folder = root.folder.as_ref().ok_or(Errno::NOTDIR)?;
        match node::open_folder_beneath(folder, below) {
            Err(Errno::XDEV) if !checkout.ancestors().any(|above| self.remote.has(above)) => {
                node::open_folder(folder, below)
            }
            opened => opened,
        }
    }

    fn submodule(&mut self, checkout: &Path) -> Result<(), ScanError> {
        let kind = self
            .open_checkout(checkout)
            .and_then(|folder| node::kind_at(folder, ".git"));
        match kind {
            Ok(kind) => self.repository(checkout, OsStr::new(".git"), kind),
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::IO)) => {
                self.warnings.push(Warning::SubmoduleNotSeen {
                    checkout: checkout.to_owned(),
                    errno,
                });
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    /// None when there is no index, or none that can be read.
    fn read_index(&mut self, path: &Path, take: Take) -> Option<Index> {
        let why = match resolve(path, &self.remote) {
            Ok(led) if led.kind.is_none() => return None,
            Ok(led) => match node::read_small(&led.path, index::LONGEST) {
                Ok(Some(bytes)) if bytes.is_empty() => return None,
                Ok(Some(bytes)) => match index::parse(&bytes, take) {
                    Ok(index) => return Some(index),
                    Err(why) => why.to_string(),
                },
                Ok(None) => "it is not a regular file of at most 64 MiB".to_owned(),
                Err(Errno::NOENT) => return None,
                Err(errno) => format!("it cannot be opened ({errno})"),
            },
            Err(why) => why.to_string(),
        };
        self.warnings.push(Warning::IndexNotRead {
            index: path.to_owned(),
            why,
        });
        None
    }

    /// The budget is spent: a checkout whose submodules are not known is closed, unless it is what the run is to write to.
    fn leave_index(&mut self, git_dir: &Path, checkout: &Path) {
        let is_folder = node::kind_at(rustix::fs::CWD, checkout).is_ok_and(|kind| kind == FileType::Directory);
        if is_folder && !self.roots.iter().any(|root| root.path.starts_with(checkout)) {
            self.closed.insert(checkout.to_owned(), super::Why::Unscanned);
        } else {
            self.warnings.push(Warning::IndexNotRead {
                index: git_dir.join("index"),
                why: "the search had to stop before".to_owned(),
            });
        }
    }

    fn global_hooks(&mut self) -> Result<Option<PathBuf>, ScanError> {
        if let Some(known) = &self.global_hooks {
            return Ok(known.clone());
        }
        let mut config = GitConfig::default();
        let mut left = MOST_INCLUDES;
        let home = self.request.home;
        for path in [
            Path::new("/etc/gitconfig"),
            &home.join(".config/git/config"),
            &home.join(".gitconfig"),
        ] {
            self.read_config(path, &mut config, &mut left)?;
        }
        self.global_hooks = Some(config.hooks_path.clone());
        Ok(config.hooks_path)
    }

    /// Reads a configuration and what it includes; a later value wins.
    fn read_config(&mut self, path: &Path, config: &mut GitConfig, left: &mut usize) -> Result<(), ScanError> {
        let text = match node::read_small(path, config::LONGEST) {
            // The file, or a folder above, is a link.
            Err(Errno::LOOP) | Ok(None) => match resolve(path, &self.remote) {
                Ok(led) => node::read_small(&led.path, config::LONGEST),
                Err(_) => return Ok(()),
            },
            read => read,
        };
        let Ok(Some(text)) = text else { return Ok(()) };
        let said = config::parse(&text);
        config.hooks_path = said.hooks_path.or(config.hooks_path.take());
        config.worktree = said.worktree.or(config.worktree.take());
        let base = path.parent().unwrap_or(path).to_owned();
        for include in said.includes {
            let Some(left_after) = left.checked_sub(1) else {
                return Ok(());
            };
            *left = left_after;
            let Some(include) = config::absolute(&include, &base, self.request.home) else {
                continue;
            };
            let Ok(led) = resolve(&include, &self.remote) else {
                continue;
            };
            self.note_git_links(led.links);
            self.protect_named(&led.path, Group::GitConfig)?;
            self.read_config(&led.path, config, left)?;
        }
        Ok(())
    }

    fn protect_hooks(&mut self, hooks: &Path, base: &Path) -> Result<(), ScanError> {
        let Ok(led) = resolve(hooks, &self.remote) else {
            return Ok(());
        };
        for link in led.links {
            if self.root_of(&link).is_some() {
                self.found.entry(link).or_insert((Kind::Symlink, Group::GitHooks));
            }
        }
        if self.root_of(&led.path).is_none() {
            return Ok(());
        }
        if base.starts_with(&led.path) || self.roots.iter().any(|root| root.path.starts_with(&led.path)) {
            // The whole checkout cannot be closed, so each hook in it is protected by its name.
            let wanted = GIT_HOOK_NAMES
                .iter()
                .map(|name| Wanted::exact(Group::GitHooks, name))
                .collect();
            return self.visit(Pending {
                path: led.path,
                level: None,
                wanted,
                place: Place::Nested,
            });
        }
        self.protect_named(&led.path, Group::GitHooks)
    }

    pub(super) fn note_git_links(&mut self, links: Vec<PathBuf>) {
        if self.lifted(Group::GitConfig) {
            return;
        }
        for link in links {
            if self.root_of(&link).is_some() {
                self.found.entry(link).or_insert((Kind::Symlink, Group::GitConfig));
            }
        }
    }
}

/// A path without `.` and `..`, as if no name on the way were a link.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            name => plain.push(name),
        }
    }
    plain
}
