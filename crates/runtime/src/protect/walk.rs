//! The bounded walk: one folder at a time, the ones near a root first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinfold_model::protected::{CLOSED_FOLDERS, ENTRIES, GIT_ENTRIES, Group, Place, WORKTREE_ENTRIES, classify};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::absent::{AbsentIn, Step, Wanted};
use super::hard_link::Linked;
use super::mounts::RemoteMounts;
use super::scan::{Access, GitDir, Kind, ScanError, ScanRequest, Warning, Why};
use super::{git::is_git_name, node};

/// A folder tree in which protected paths are looked for.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    /// None for a root that is a file.
    pub(super) folder: Option<OwnedFd>,
}

/// A folder to be looked into.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) path: PathBuf,
    /// The level below its root when the folder is searched for everything; none when for `wanted` only.
    pub(super) level: Option<u8>,
    pub(super) wanted: Vec<Wanted>,
    pub(super) place: Place,
}

/// A search under way, and what it has found so far.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) request: ScanRequest<'a>,
    pub(super) roots: Vec<Root>,
    pub(super) remote: RemoteMounts,
    pub(super) queue: VecDeque<Pending>,
    pub(super) found: BTreeMap<PathBuf, (Kind, Group)>,
    pub(super) absent: BTreeMap<PathBuf, AbsentIn>,
    pub(super) closed: BTreeMap<PathBuf, Why>,
    pub(super) git: BTreeMap<PathBuf, GitDir>,
    /// Configurations that were read, each with the checkout it was read for.
    pub(super) configs: BTreeSet<(PathBuf, PathBuf)>,
    /// Git directories whose index is still to be read, each with its checkout.
    pub(super) indexes: VecDeque<(PathBuf, PathBuf)>,
    pub(super) indexes_seen: BTreeSet<(PathBuf, PathBuf)>,
    /// Names `.git` that were looked at.
    pub(super) repositories: BTreeSet<PathBuf>,
    pub(super) global_hooks: Option<Option<PathBuf>>,
    pub(super) grants: BTreeMap<PathBuf, Access>,
    pub(super) hidden: BTreeSet<PathBuf>,
    pub(super) sockets: BTreeSet<PathBuf>,
    pub(super) linked: Vec<Linked>,
    pub(super) warnings: Vec<Warning>,
    pub(super) started: Instant,
    pub(super) entries: u64,
    pub(super) stopped: Option<Exhausted>,
    anywhere: Vec<Wanted>,
    at_home: Vec<Wanted>,
    starts: Vec<PathBuf>,
}

/// Which budget ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exhausted {
    Time(Duration),
    Entries(u64),
}

impl<'a> Search<'a> {
    pub(super) fn new(request: ScanRequest<'a>) -> Result<Self, ScanError> {
        let wanted = |home_only: bool| {
            let lifted = request.lifts;
            let entries = ENTRIES.iter().filter(move |entry| entry.home_only == home_only);
            entries
                .filter(|entry| !is_lifted(lifted, entry.group))
                .map(Wanted::entry)
                .collect::<Vec<_>>()
        };
        let mut search = Self {
            request,
            roots: Vec::new(),
            remote: RemoteMounts::except_for(request.write_roots),
            queue: VecDeque::new(),
            found: BTreeMap::new(),
            absent: BTreeMap::new(),
            closed: BTreeMap::new(),
            git: BTreeMap::new(),
            configs: BTreeSet::new(),
            indexes: VecDeque::new(),
            indexes_seen: BTreeSet::new(),
            repositories: BTreeSet::new(),
            global_hooks: None,
            grants: BTreeMap::new(),
            hidden: BTreeSet::new(),
            sockets: BTreeSet::new(),
            linked: Vec::new(),
            warnings: Vec::new(),
            started: Instant::now(),
            entries: 0,
            stopped: None,
            anywhere: wanted(false),
            at_home: if request.home_is_covered {
                wanted(true)
            } else {
                Vec::new()
            },
            starts: request.write_roots.to_vec(),
        };
        if request.home_is_covered {
            search.starts.push(request.home.to_owned());
        }
        for root in request.write_roots {
            search.add_root(root)?;
        }
        Ok(search)
    }

    pub(super) fn run(&mut self) -> Result<(), ScanError> {
        for root in self.request.write_roots {
            self.start_at(root)?;
        }
        if self.request.home_is_covered && !self.request.write_roots.iter().any(|root| root == self.request.home) {
            let path = self.request.home.to_owned();
            self.queue.push_back(Pending {
                path,
                level: Some(0),
                wanted: Vec::new(),
                place: Place::Home,
            });
        }
        for path in self.request.pinfold_paths {
            self.protect_named(path, Group::Pinfold)?;
        }
        loop {
            // A submodule may lie deeper than the walk goes, so they come before what is left of a budget is spent on it.
            if let Some((git_dir, checkout)) = self.indexes.pop_front() {
                self.submodules(&git_dir, &checkout)?;
            } else if let Some(pending) = self.queue.pop_front() {
                self.visit(pending)?;
            } else {
                break;
            }
        }
        self.cover_hard_links()
    }

    /// Opens a tree. What is not a folder is a root without anything below.
    pub(super) fn add_root(&mut self, path: &Path) -> Result<(), ScanError> {
        let folder = match node::open_folder(rustix::fs::CWD, path) {
            Ok(folder) => Some(folder),
            Err(Errno::NOTDIR) => None,
            Err(errno) => {
                return Err(ScanError::Root {
                    root: path.to_owned(),
                    errno,
                });
            }
        };
        self.roots.push(Root {
            path: path.to_owned(),
            folder,
        });
        Ok(())
    }

    /// A root may itself be a protected path, or lie at the start of one.
    fn start_at(&mut self, root: &Path) -> Result<(), ScanError> {
        if let Some(group) = self.own_group(root) {
            let kind = node::kind_at(rustix::fs::CWD, root).unwrap_or(FileType::RegularFile);
            self.warnings.push(Warning::RootIsProtected {
                root: root.to_owned(),
                group,
            });
            return self.protect(root.to_owned(), kind, group);
        }
        if self
            .roots
            .iter()
            .any(|known| known.path == root && known.folder.is_none())
        {
            return if root.file_name().is_some_and(is_dot_git) {
                self.pointer(root)
            } else {
                Ok(())
            };
        }
        let place = if root == self.request.home {
            Place::Home
        } else {
            Place::Root
        };
        let unlifted = ENTRIES
            .iter()
            .filter(|entry| !entry.home_only && !self.lifted(entry.group));
        let continued = unlifted.filter_map(|entry| Wanted::continued(entry, root));
        let wanted = continued.filter_map(|step| match step {
            Step::Above(wanted) => Some(wanted),
            Step::Last(_) => None,
        });
        self.queue.push_back(Pending {
            path: root.to_owned(),
            level: Some(0),
            wanted: wanted.collect(),
            place,
        });
        if root.file_name().is_some_and(is_dot_git) {
            self.git_folder(root)?;
        }
        Ok(())
    }

    fn own_group(&self, root: &Path) -> Option<Group> {
        let names: Vec<&[u8]> = root.iter().skip(1).map(OsStrExt::as_bytes).collect();
        let place = |tail: &Path| {
            if self.request.home.join(tail) == root {
                Place::Home
            } else {
                Place::Nested
            }
        };
        (1..=names.len().min(4)).find_map(|count| {
            let tail = names[names.len() - count..].join(&b'/');
            let found = classify(&tail, place(Path::new(OsStr::from_bytes(&tail))))?;
            (found.components == count && !self.lifted(found.group)).then_some(found.group)
        })
    }

    pub(super) fn lifted(&self, group: Group) -> bool {
        is_lifted(self.request.lifts, group)
    }

    pub(super) fn git_wanted(&self) -> Vec<Wanted> {
        GIT_ENTRIES
            .iter()
            .filter(|entry| !self.lifted(entry.group))
            .map(Wanted::entry)
            .collect()
    }

    pub(super) fn worktree_wanted(&self) -> Vec<Wanted> {
        WORKTREE_ENTRIES
            .iter()
            .filter(|entry| !self.lifted(entry.group))
            .map(Wanted::entry)
            .collect()
    }

    /// The innermost tree that a path lies in, or is.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Root> {
        self.roots
            .iter()
            .filter(|root| path.starts_with(&root.path))
            .max_by_key(|root| root.path.as_os_str().len())
    }

    /// Opens a folder inside a tree; on failure the folder is noted as one to be closed, unless it is gone.
    pub(super) fn enter(&mut self, path: &Path) -> Option<OwnedFd> {
        if self.exhausted() {
            self.closed.insert(path.to_owned(), Why::Unscanned);
            return None;
        }
        let root = self.root_of(path)?;
        let below = path.strip_prefix(&root.path).ok()?;
        let mut opened = node::open_folder_beneath(root.folder.as_ref()?, below);
        if opened.as_ref().is_err_and(|errno| *errno == Errno::XDEV) {
            let points = path.ancestors().take_while(|above| *above != root.path);
            if points.into_iter().any(|above| self.remote.has(above)) {
                self.closed.insert(path.to_owned(), Why::Remote);
                return None;
            }
            opened = node::open_folder(root.folder.as_ref()?, below);
        }
        match opened {
            Ok(folder) => Some(folder),
            // It was removed or replaced meanwhile: what it is now was made by somebody who runs at this moment.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(errno) => {
                self.closed.insert(path.to_owned(), Why::Unreadable(errno));
                None
            }
        }
    }

    pub(super) fn exhausted(&mut self) -> bool {
        if self.stopped.is_none() {
            let spent = self.started.elapsed();
            if spent > self.request.budget.time {
                self.stopped = Some(Exhausted::Time(spent));
            } else if self.entries > self.request.budget.entries {
                self.stopped = Some(Exhausted::Entries(self.entries));
            }
        }
        self.stopped.is_some()
    }

    pub(super) fn visit(&mut self, pending: Pending) -> Result<(), ScanError> {
        let Some(folder) = self.enter(&pending.path) else {
            return Ok(());
        };
        let whole = pending.level.is_some();
        let at_home: &[Wanted] = if whole && pending.place == Place::Home {
            &self.at_home
        } else {
            &[]
        };
        let anywhere: &[Wanted] = if whole { &self.anywhere } else { &[] };
        let wanted = || pending.wanted.iter().chain(anywhere).chain(at_home);
        let mut first = [false; 256];
        wanted()
            .filter_map(Wanted::first_byte)
            .for_each(|byte| first[usize::from(byte)] = true);

        let deeper = pending.level.is_some_and(|level| level < self.request.depth);
        let mut matched: Vec<(OsString, FileType, Vec<Step>)> = Vec::new();
        let mut folders: Vec<OsString> = Vec::new();
        let mut repositories: Vec<(OsString, FileType)> = Vec::new();
        let mut sockets: Vec<OsString> = Vec::new();
        let (mut head, mut objects, mut refs) = (false, false, false);
        let mut left = self.request.budget.entries.saturating_sub(self.entries) + 1;
        let listed = node::list(&folder, |name, kind, _| {
            left = left.saturating_sub(1);
            if left == 0 {
                return ControlFlow::Break(());
            }
            let is_folder = kind == FileType::Directory;
            if kind == FileType::Socket {
                sockets.push(OsStr::from_bytes(name).to_owned());
                return ControlFlow::Continue(());
            }
            if whole {
                if name.eq_ignore_ascii_case(b".git") {
                    repositories.push((OsStr::from_bytes(name).to_owned(), kind));
                    return ControlFlow::Continue(());
                }
                head |= name == b"HEAD" && !is_folder;
                objects |= name == b"objects" && is_folder;
                refs |= name == b"refs" && is_folder;
            }
            if first[usize::from(name[0].to_ascii_lowercase())] {
                let steps: Vec<Step> = wanted().filter_map(|wanted| wanted.step(name)).collect();
                if !steps.is_empty() {
                    matched.push((OsStr::from_bytes(name).to_owned(), kind, steps));
                    return ControlFlow::Continue(());
                }
            }
            if is_folder && deeper && !(self.request.skip_node_modules && name == b"node_modules") {
                folders.push(OsStr::from_bytes(name).to_owned());
            }
            ControlFlow::Continue(())
        });
        self.entries = (self.request.budget.entries + 1).saturating_sub(left);
        match listed {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => {
                self.exhausted();
                self.closed.insert(pending.path.clone(), Why::Unscanned);
            }
            Err(errno) => {
                self.closed.insert(pending.path.clone(), Why::Unreadable(errno));
            }
        }

        self.sockets
            .extend(sockets.into_iter().map(|name| pending.path.join(name)));
        // A folder below a root is searched, but not watched for everything: too many would have to be.
        let watched = match pending.place {
            Place::Root | Place::Home => self.watched_at_start(pending.place, &pending.wanted),
            Place::Nested => pending.wanted,
        };
        if !watched.is_empty() {
            // A file where a folder would be is neither guarded nor pinned, so anything may take its place.
            let guarded = matched.iter().filter(|(_, kind, steps)| {
                let is_protected = steps.iter().any(|step| matches!(step, Step::Last(_)));
                is_protected || matches!(kind, FileType::Directory | FileType::Symlink)
            });
            let known = guarded.map(|(name, ..)| name.clone()).collect();
            self.watch(pending.path.clone(), watched, known);
        }
        if head && objects && refs {
            self.bare_repository(&pending.path)?;
            folders.retain(|name| !is_git_name(name.as_bytes()));
        }
        for (name, kind) in repositories {
            self.repository(&pending.path, &name, kind)?;
        }
        let level = pending
            .level
            .map(|level| level + 1)
            .filter(|level| *level <= self.request.depth);
        for (name, kind, steps) in matched {
            self.matched(pending.path.join(name), kind, steps, level)?;
        }
        for name in folders {
            let path = pending.path.join(name);
            if !self.starts.contains(&path) {
                self.queue.push_back(Pending {
                    path,
                    level,
                    wanted: Vec::new(),
                    place: Place::Nested,
                });
            }
        }
        Ok(())
    }

    fn watched_at_start(&self, place: Place, more: &[Wanted]) -> Vec<Wanted> {
        let here = ENTRIES
            .iter()
            .filter(|entry| !entry.of_repository && (!entry.home_only || place == Place::Home));
        let here = here.filter(|entry| !self.lifted(entry.group)).map(Wanted::entry);
        here.chain(more.iter().cloned()).collect()
    }

    pub(super) fn watch(&mut self, folder: PathBuf, wanted: Vec<Wanted>, known: Vec<OsString>) {
        let entry = self.absent.entry(folder.clone());
        let absent = entry.or_insert_with(|| AbsentIn {
            folder,
            wanted: Vec::new(),
            known: Vec::new(),
        });
        absent.wanted.extend(wanted);
        absent.known.extend(known);
    }

    /// A name that is protected, or that lies above a protected one.
    fn matched(&mut self, path: PathBuf, kind: FileType, steps: Vec<Step>, level: Option<u8>) -> Result<(), ScanError> {
        let mut wanted = Vec::new();
        for step in steps {
            match step {
                Step::Last(group) => return self.protect(path, kind, group),
                Step::Above(above) => wanted.push(above),
            }
        }
        let is_closed = |(group, names): &&(Group, &[pinfold_model::protected::Name])| {
            let mut tail = path.iter().rev().zip(names.iter().rev());
            path.iter().count() > names.len()
                && tail.all(|(component, name)| name.matches(component.as_bytes()))
                && wanted.iter().any(|wanted| wanted.group == *group)
        };
        if kind == FileType::Directory {
            if let Some((group, _)) = CLOSED_FOLDERS.iter().find(is_closed) {
                return self.protect(path, kind, *group);
            }
            self.queue.push_back(Pending {
                path,
                level,
                wanted,
                place: Place::Nested,
            });
            return Ok(());
        }
        if kind == FileType::Symlink {
            return self.link_above(path, wanted);
        }
        Ok(())
    }
}

pub(super) fn is_dot_git(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}

fn is_lifted(lifts: &BTreeSet<Group>, group: Group) -> bool {
    group.may_be_lifted() && lifts.contains(&group)
}
