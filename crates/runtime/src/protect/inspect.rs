//! Noting a protected path, with everything that leads to the same content.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::protected::{Group, Place};
use rustix::fs::FileType;

use super::absent::Wanted;
use super::hard_link::Linked;
use super::node;
use super::resolve::resolve;
use super::scan::{Kind, ScanError, Warning};
use super::walk::{Pending, Search};

/// Files of a protected folder that are looked at for links; no honest hooks folder has more.
const MOST_INSPECTED: usize = 1024;
const INSPECTED_LEVELS: u8 = 3;

/// What to do with a protected link whose target cannot be protected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Refuse,
    Warn,
}

impl Search<'_> {
    /// Notes an existing path, and follows it where it is a link or has more than one name.
    pub(super) fn protect(&mut self, path: PathBuf, kind: FileType, group: Group) -> Result<(), ScanError> {
        let noted = match kind {
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::File,
        };
        if self.found.insert(path.clone(), (noted, group)).is_some() {
            return Ok(());
        }
        match kind {
            FileType::Directory => self.inspect_folder(&path, group),
            FileType::Symlink => self.follow(&path, group, Failure::Refuse),
            FileType::RegularFile => {
                self.count_names(&path, group);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Protects a path given in full, if it lies in a tree; where it does not exist, it is watched for.
    pub(super) fn protect_named(&mut self, path: &Path, group: Group) -> Result<(), ScanError> {
        if self.lifted(group)
            || self.root_of(path).is_none()
            || self.roots.iter().any(|root| root.path.starts_with(path))
        {
            return Ok(());
        }
        match node::kind_at(rustix::fs::CWD, path) {
            Ok(kind) => self.protect(path.to_owned(), kind, group),
            Err(_) => {
                self.watch_for(path, group);
                Ok(())
            }
        }
    }

    /// Watches for a path without links from the deepest folder on that exists.
    pub(super) fn watch_for(&mut self, path: &Path, group: Group) {
        for folder in path.ancestors().skip(1) {
            if self.root_of(folder).is_none() {
                return;
            }
            let is_folder = node::kind_at(rustix::fs::CWD, folder).is_ok_and(|kind| kind == FileType::Directory);
            if let (true, Ok(rest)) = (is_folder, path.strip_prefix(folder)) {
                if let Some(wanted) = Wanted::literal(group, rest) {
                    self.watch(folder.to_owned(), vec![wanted], Vec::new());
                }
                return;
            }
        }
    }

    /// A link in the place of a folder above protected names.
    pub(super) fn link_above(&mut self, link: PathBuf, wanted: Vec<Wanted>) -> Result<(), ScanError> {
        let Some(group) = wanted.first().map(|wanted| wanted.group) else {
            return Ok(());
        };
        self.found.insert(link.clone(), (Kind::Symlink, group));
        match resolve(&link, &self.remote) {
            Ok(led) => {
                self.note_links(led.links, group);
                if self.root_of(&led.path).is_none() {
                    return Ok(());
                }
                if led.kind == Some(FileType::Directory) {
                    self.queue.push_back(Pending {
                        path: led.path,
                        level: None,
                        wanted,
                        place: Place::Nested,
                    });
                } else {
                    self.watch_for(&led.path, group);
                }
            }
            Err(why) => self.warnings.push(Warning::LinkNotFollowed {
                link,
                why: why.to_string(),
            }),
        }
        Ok(())
    }

    fn follow(&mut self, link: &Path, group: Group, failure: Failure) -> Result<(), ScanError> {
        let led = match resolve(link, &self.remote) {
            Ok(led) => led,
            Err(why) => {
                self.warnings.push(Warning::LinkNotFollowed {
                    link: link.to_owned(),
                    why: why.to_string(),
                });
                return Ok(());
            }
        };
        self.note_links(led.links, group);
        if self.root_of(&led.path).is_none() {
            return Ok(());
        }
        if self.roots.iter().any(|root| root.path.starts_with(&led.path)) {
            let (link, target) = (link.to_owned(), led.path);
            if failure == Failure::Refuse {
                return Err(ScanError::LinkCoversRoot { link, target, group });
            }
            let why = format!("it leads to {target:?}, which holds a whole write root");
            self.warnings.push(Warning::LinkNotFollowed { link, why });
            return Ok(());
        }
        match led.kind {
            Some(kind) => self.protect(led.path, kind, group),
            None => {
                self.watch_for(&led.path, group);
                Ok(())
            }
        }
    }

    fn note_links(&mut self, links: Vec<PathBuf>, group: Group) {
        for link in links {
            if self.root_of(&link).is_some() {
                self.found.entry(link).or_insert((Kind::Symlink, group));
            }
        }
    }

    /// What is in a protected folder may be a link to a file that is not, or have a second name.
    fn inspect_folder(&mut self, folder: &Path, group: Group) -> Result<(), ScanError> {
        let mut ahead = vec![(folder.to_owned(), 0)];
        let mut seen = 0;
        while let Some((path, level)) = ahead.pop() {
            // A folder that cannot be entered is closed as the protected path that it is part of.
            let Some(opened) = self.enter(&path) else { continue };
            let mut links = Vec::new();
            let mut files = Vec::new();
            let listed = node::list(&opened, |name, kind, _| {
                seen += 1;
                let inside = || path.join(OsStr::from_bytes(name));
                match kind {
                    FileType::Directory if level < INSPECTED_LEVELS => ahead.push((inside(), level + 1)),
                    FileType::Symlink => links.push(inside()),
                    // Git does not run a sample.
                    FileType::RegularFile if group == Group::GitHooks && name.ends_with(b".sample") => {}
                    FileType::RegularFile => files.push(OsStr::from_bytes(name).to_owned()),
                    _ => {}
                }
                if seen > MOST_INSPECTED {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            for name in files {
                self.count_names_at(&opened, &name, &path.join(&name), group);
            }
            for link in links {
                self.follow(&link, group, Failure::Warn)?;
            }
            if !matches!(listed, Ok(ControlFlow::Continue(()))) {
                self.warnings.push(Warning::FolderNotInspected {
                    folder: folder.to_owned(),
                });
                break;
            }
        }
        Ok(())
    }

    fn count_names(&mut self, path: &Path, group: Group) {
        self.count_names_at(rustix::fs::CWD, path.as_os_str(), path, group);
    }

    fn count_names_at(&mut self, folder: impl std::os::fd::AsFd, name: &OsStr, path: &Path, group: Group) {
        let Ok(stat) = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        if stat.st_nlink > 1 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let (device, inode) = (stat.st_dev, stat.st_ino);
            self.linked.push(Linked {
                path: path.to_owned(),
                device,
                inode,
                names: stat.st_nlink,
                group,
            });
        }
    }
}
