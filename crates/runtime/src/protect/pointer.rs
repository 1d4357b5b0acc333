//! `.git` files, which lead to a git directory elsewhere (gitrepository-layout(5)).
//!
//! The text is hostile. Inside the write roots it is followed freely, since that only closes more. Outside, it gives access
//! only where the git directory points back to this checkout, which an earlier run cannot have arranged: it could not write
//! there. What is granted is what commits need; the rest of the shared directory is closed or covered.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pinfold_model::protected::Group;
use rustix::fs::FileType;

use super::config;
use super::node;
use super::resolve::{Resolved, resolve};
use super::scan::{Access, GitKind, Kind, ScanError, Warning};
use super::walk::Search;

/// A path and the word before it.
const LONGEST: usize = 4096 + 64;

/// Folders of a shared git directory that commits, fetches and pushes write.
const OPEN: [&[u8]; 6] = [b"objects", b"refs", b"logs", b"reftable", b"rr-cache", b"lfs"];

/// Folders of a shared git directory that the host's git obeys, or that belong to other checkouts.
const SHUT: [&[u8]; 10] = [
    b"info",
    b"modules",
    b"worktrees",
    b"branches",
    b"remotes",
    b"rebase-merge",
    b"rebase-apply",
    b"sequencer",
    b"svn",
    b"annex",
];

/// What a believed pointer leads to.
struct Believed {
    /// Shared by all worktrees, or the submodule's own.
    common: PathBuf,
    /// The admin folder of a linked worktree.
    admin: Option<PathBuf>,
}

impl Search<'_> {
    /// Follows a `.git` file.
    pub(super) fn pointer(&mut self, file: &Path) -> Result<(), ScanError> {
        let checkout = file.parent().unwrap_or(file).to_owned();
        self.pointer_in(file, &checkout)
    }

    pub(super) fn pointer_in(&mut self, file: &Path, checkout: &Path) -> Result<(), ScanError> {
        let followed = match self.target(file, checkout) {
            Ok(target) if self.in_write_root(&target) => return self.restrict(&target, checkout),
            Ok(target) => self.believe(&target, file, checkout),
            Err(why) => Err(why),
        };
        match followed {
            Ok(believed) => self.grant(believed, checkout),
            Err(why) => {
                self.warnings.push(Warning::PointerNotBelieved {
                    pointer: file.to_owned(),
                    why,
                });
                Ok(())
            }
        }
    }

    fn in_write_root(&self, path: &Path) -> bool {
        self.request.write_roots.iter().any(|root| path.starts_with(root))
    }

    fn target(&mut self, file: &Path, checkout: &Path) -> Result<PathBuf, String> {
        let text = match node::read_small(file, LONGEST) {
            Ok(Some(text)) => text,
            Ok(None) => return Err("it is not a short regular file".to_owned()),
            Err(errno) => return Err(format!("it cannot be read ({errno})")),
        };
        let target = text
            .strip_prefix(b"gitdir:")
            .map(one_path)
            .filter(|path| !path.as_os_str().is_empty());
        let target = target.ok_or("it does not say where the git directory is")?;
        let led = self.led(&checkout.join(target))?;
        if led.kind != Some(FileType::Directory) {
            return Err(format!("there is no folder {:?}", led.path));
        }
        self.note_git_links(led.links);
        Ok(led.path)
    }

    /// Inside the write roots a pointer can only add protection.
    fn restrict(&mut self, target: &Path, checkout: &Path) -> Result<(), ScanError> {
        self.git_dir(target, GitKind::Pointed, Some(checkout))?;
        let Ok(Some(text)) = node::read_small(&target.join("commondir"), LONGEST) else {
            return Ok(());
        };
        match self.led(&target.join(one_path(&text))) {
            Ok(led) if led.kind == Some(FileType::Directory) && self.in_write_root(&led.path) => {
                self.git_dir(&led.path, GitKind::Common, Some(checkout))
            }
            _ => Ok(()),
        }
    }

    fn believe(&mut self, target: &Path, file: &Path, checkout: &Path) -> Result<Believed, String> {
        let short = |name: &str| node::read_small(&target.join(name), LONGEST).ok().flatten();
        let believed = match (short("gitdir"), short("commondir")) {
            (Some(back), Some(common)) => {
                if self.led(&target.join(one_path(&back)))?.path != file {
                    return Err(format!("{target:?} belongs to another checkout"));
                }
                let common = self.led(&target.join(one_path(&common)))?.path;
                if target.parent() != Some(common.join("worktrees").as_path()) {
                    return Err(format!("{target:?} is not a worktree folder of {common:?}"));
                }
                Believed {
                    common,
                    admin: Some(target.to_owned()),
                }
            }
            _ => {
                let text = node::read_small(&target.join("config"), config::LONGEST).ok().flatten();
                let worktree = text.and_then(|text| config::parse(&text).worktree);
                let worktree = worktree.ok_or_else(|| format!("{target:?} does not point back to this checkout"))?;
                if self.led(&target.join(worktree))?.path != checkout {
                    return Err(format!("{target:?} belongs to another checkout"));
                }
                Believed {
                    common: target.to_owned(),
                    admin: None,
                }
            }
        };
        let common = &believed.common;
        let holds = |name: &str, kind| node::kind_at(rustix::fs::CWD, common.join(name)) == Ok(kind);
        let is_git_dir = holds("HEAD", FileType::RegularFile)
            && holds("objects", FileType::Directory)
            && holds("refs", FileType::Directory);
        if !is_git_dir {
            return Err(format!("{common:?} is not a git directory"));
        }
        if self.request.home.starts_with(common) || common.components().count() < 3 {
            return Err(format!("{common:?} is too wide to be made writable"));
        }
        Ok(believed)
    }

    fn led(&self, path: &Path) -> Result<Resolved, String> {
        resolve(path, &self.remote).map_err(|why| why.to_string())
    }

    fn grant(&mut self, believed: Believed, checkout: &Path) -> Result<(), ScanError> {
        let Believed { common, admin } = believed;
        let kind = if admin.is_some() {
            GitKind::Common
        } else {
            GitKind::Pointed
        };
        let is_new = !self.grants.contains_key(&common);
        if is_new && let Err(error) = self.add_root(&common) {
            self.warnings.push(Warning::PointerNotBelieved {
                pointer: checkout.join(".git"),
                why: error.to_string(),
            });
            return Ok(());
        }
        if let Some(admin) = &admin {
            self.queue_index(admin, checkout);
        }
        for path in admin.into_iter().chain([common.clone()]) {
            self.grants.insert(path, Access::Write);
        }
        self.git_dir(&common, kind, Some(checkout))?;
        if is_new {
            self.shut(&common);
        }
        Ok(())
    }

    /// Closes what is in a shared git directory and not needed, and covers what is not git's.
    fn shut(&mut self, common: &Path) {
        let Some(folder) = self.enter(common) else { return };
        let mut entries = Vec::new();
        let listed = node::list(&folder, |name, kind, _| {
            entries.push((OsStr::from_bytes(name).to_owned(), kind));
            ControlFlow::Continue(())
        });
        if let Err(errno) = listed {
            self.closed.insert(common.to_owned(), super::Why::Unreadable(errno));
        }
        for (name, kind) in entries {
            let path = common.join(&name);
            let name = name.as_bytes();
            if OPEN.contains(&name) || name.eq_ignore_ascii_case(b"hooks") {
                continue;
            }
            match kind {
                FileType::Directory if SHUT.contains(&name) => {
                    self.found.insert(path, (Kind::Dir, Group::GitConfig));
                }
                FileType::Symlink => {
                    self.found.entry(path).or_insert((Kind::Symlink, Group::GitConfig));
                }
                FileType::Directory if !self.roots.iter().any(|root| root.path.starts_with(&path)) => {
                    self.hidden.insert(path);
                }
                _ => {}
            }
        }
    }
}

/// The path that a pointer file holds: one line, without the white space around it.
fn one_path(text: &[u8]) -> PathBuf {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    let text = &text[..end];
    let text = if text.contains(&0) { &[] } else { text };
    PathBuf::from(OsString::from_vec(text.to_vec()))
}
