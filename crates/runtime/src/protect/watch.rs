//! Notices protected names that appear while a command runs, and takes them away.
//!
//! What the host's user makes in the same folders during a run cannot be told from what the command makes, and goes to
//! quarantine as well: an editor that makes its settings folder, for one. A name that existed at the scan is never taken,
//! since a program on the host may replace its file at any time.
//!
//! A repository made during the run belongs to the run, so nothing in it is taken; [`Watch::finish`] lists it.
//!
//! ```text
//! start ──▶ waiting ──arm, after ARM_AFTER──▶ armed
//!              └───────────finish───────────────┴──▶ Report
//! ```
//!
//! Giving up an inotify instance that watches something takes the kernel 5 to 20 ms, far longer than a short command. So
//! nothing is watched for the first moments, in which a name that appears lives until [`Watch::arm`] looks for it. A command
//! that is done before costs a sweep and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinfold_model::protected::Group;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::absent::{Step, Wanted};
use super::node;
use super::quarantine::{Fate, Quarantine, Quarantined, make_writable};
use super::scan::{Budget, Scan, ScanRequest, scan};

/// So many events are read in one go, so that a command that makes files without end cannot hold its caller.
const MOST_READS: u32 = 64;
/// More folders than a person's tools make; a command that makes more is not followed into them before the sweep.
const MOST_FOLDERS: usize = 16_384;

/// How long to wait before [`Watch::arm`].
pub const ARM_AFTER: Duration = Duration::from_millis(10);

/// Watches the folders of a scan. Drop it only after [`Watch::finish`], or what appeared last stays.
#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
    roots: Vec<(PathBuf, OwnedFd)>,
    /// By watch descriptor; by numbers below zero until they are watched.
    folders: BTreeMap<i32, Folder>,
    armed: bool,
    /// A name that existed at the scan has appeared anew.
    replaced: bool,
    /// A folder could not be looked at.
    blind: bool,
    quarantine: Quarantine,
    taken: Vec<Quarantined>,
    again: Again,
}

#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    wanted: Vec<Wanted>,
    known: BTreeSet<OsString>,
}

/// What it takes to scan once more, and what was there the first time.
#[derive(Debug)]
struct Again {
    write_roots: Vec<PathBuf>,
    home: PathBuf,
    home_is_covered: bool,
    depth: u8,
    skip_node_modules: bool,
    budget: Budget,
    lifts: BTreeSet<Group>,
    before: BTreeSet<PathBuf>,
}

/// Why names cannot be watched for; the start has to be refused.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(
        "No inotify instance can be made ({errno}), so protected names could appear unseen. hint: raise the sysctl \
         fs.inotify.max_user_instances, or end programs that watch files."
    )]
    Instance { errno: Errno },
    #[error(
        "The folder {folder:?} cannot be watched ({errno}), so protected names could appear in it unseen. hint: for \"no \
         space left\" raise the sysctl fs.inotify.max_user_watches; else check that the folder may be listed."
    )]
    Folder { folder: PathBuf, errno: Errno },
}

/// What a run left, or would have left.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything taken during the run and at its end.
    pub quarantined: Vec<Quarantined>,
    /// Protected names that are new and were left: in repositories of the run, and deep in the tree. The host would obey
    /// them, so the person should know.
    pub made: Vec<Made>,
    /// Why `made` may lack names, if so.
    pub incomplete: Option<String>,
}

/// A protected name that the run made and that was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub path: PathBuf,
    pub group: Group,
}

impl Watch {
    /// Prepares to watch; call it before the command runs. `quarantine` is a state folder of the caller, made when needed.
    pub fn start(
        request: &ScanRequest<'_>,
        found: &Scan,
        quarantine: &Path,
        sandbox: &str,
    ) -> Result<Self, WatchError> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(|errno| WatchError::Instance { errno })?;
        let mut watch = Self {
            inotify,
            roots: Vec::new(),
            folders: BTreeMap::new(),
            armed: false,
            replaced: false,
            blind: false,
            quarantine: Quarantine::new(quarantine, sandbox),
            taken: Vec::new(),
            again: Again {
                write_roots: request.write_roots.to_vec(),
                home: request.home.to_owned(),
                home_is_covered: request.home_is_covered,
                depth: request.depth,
                skip_node_modules: request.skip_node_modules,
                budget: request.budget,
                lifts: request.lifts.clone(),
                before: found.existing.iter().map(|protected| protected.path.clone()).collect(),
            },
        };
        for root in request
            .write_roots
            .iter()
            .chain(found.grants.iter().map(|grant| &grant.path))
        {
            match node::open_folder(rustix::fs::CWD, root) {
                Ok(folder) => watch.roots.push((root.clone(), folder)),
                Err(Errno::NOTDIR) => {}
                Err(errno) => {
                    return Err(WatchError::Folder {
                        folder: root.clone(),
                        errno,
                    });
                }
            }
        }
        for absent in &found.watched {
            let failed = |errno| WatchError::Folder {
                folder: absent.folder.clone(),
                errno,
            };
            let known = absent.known.iter().cloned().collect();
            let folder = Folder {
                path: absent.folder.clone(),
                wanted: absent.wanted.clone(),
                known,
            };
            let opened = watch.open(&absent.folder).map_err(failed)?;
            watch.add(&opened, folder).map_err(failed)?;
        }
        Ok(watch)
    }

    /// Watches from now on, and takes away what has appeared before. On an error the run has to be stopped.
    pub fn arm(&mut self) -> Result<Vec<Quarantined>, WatchError> {
        if !self.armed {
            self.armed = true;
            for folder in std::mem::take(&mut self.folders).into_values() {
                let failed = |errno| WatchError::Folder {
                    folder: folder.path.clone(),
                    errno,
                };
                match self.open(&folder.path) {
                    Ok(opened) => self.add(&opened, folder.clone()).map(drop).map_err(failed)?,
                    // The command made it and removed it again.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(errno) => return Err(failed(errno)),
                }
            }
        }
        Ok(self.sweep())
    }

    /// Readable when there is something to handle; never before it is armed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Takes away what has appeared. Does not block, and has an end even if names appear without one.
    pub fn handle_events(&mut self) -> Vec<Quarantined> {
        let before = self.taken.len();
        for _ in 0..MOST_READS {
            match self.read_events() {
                Ok(None) => break,
                Ok(Some(events)) => self.handle(events),
                Err(_) => {
                    self.look_at_everything();
                    break;
                }
            }
        }
        self.taken[before..].to_vec()
    }

    /// Whether a folder could not be looked at (descriptors or memory ran out): what appears in it goes unseen, and the sandbox
    /// has to be stopped.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Whether a protected name that existed at the start has come anew since the last call: the host has moved another file or
    /// folder there, and the kernel says nothing of a cover that was moved away.
    pub fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.replaced)
    }

    /// Looks at every folder once more; call it when the command is dead and before its exit status is returned.
    pub fn sweep(&mut self) -> Vec<Quarantined> {
        let before = self.taken.len();
        self.handle_events();
        self.look_at_everything();
        self.taken[before..].to_vec()
    }

    /// Sweeps, and lists the protected names that are new and were left.
    pub fn finish(mut self) -> Report {
        self.sweep();
        let again = &self.again;
        let found = scan(ScanRequest {
            write_roots: &again.write_roots,
            home: &again.home,
            home_is_covered: again.home_is_covered,
            depth: again.depth,
            skip_node_modules: again.skip_node_modules,
            budget: again.budget,
            lifts: &again.lifts,
            pinfold_paths: &[],
        });
        let (found, incomplete) = match found {
            Ok(found) => {
                let incomplete = found.incomplete();
                (found.existing, incomplete)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let new = found
            .into_iter()
            .filter(|protected| !again.before.contains(&protected.path));
        let made = new
            .map(|protected| Made {
                path: protected.path,
                group: protected.group,
            })
            .collect();
        if self.armed {
            // A caller that lives on need not wait for the kernel; where no thread can be had, it waits.
            let inotify = self.inotify;
            let _ = std::thread::Builder::new().spawn(move || drop(inotify));
        }
        Report {
            quarantined: self.taken,
            made,
            incomplete,
        }
    }

    /// The next names of interest; none when there is nothing to read.
    fn read_events(&mut self) -> Result<Option<Vec<(i32, OsString)>>, Errno> {
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 16 * 1024];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut events = Vec::new();
        let mut any = false;
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            any = true;
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                return Err(Errno::OVERFLOW);
            }
            if event.events().contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
            } else if let Some(name) = event.file_name() {
                // Nearly all names are of no interest, and are not kept.
                let name = name.to_bytes();
                let folder = self.folders.get(&event.wd());
                if folder.is_some_and(|folder| folder.wanted.iter().any(|wanted| wanted.step(name).is_some())) {
                    events.push((event.wd(), OsStr::from_bytes(name).to_owned()));
                }
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        Ok(any.then_some(events))
    }

    fn handle(&mut self, events: Vec<(i32, OsString)>) {
        for (watch, name) in events {
            let Some(folder) = self.folders.get(&watch).cloned() else {
                continue;
            };
            // Where the folder is gone or another one now, its new place has been reported, or will be.
            if let Some(opened) = self.open_again(&folder) {
                self.forget_gone(watch, &opened, &name);
                let folder = self.folders.get(&watch).cloned().unwrap_or(folder);
                self.look_at(&opened, &folder, &name);
            }
        }
    }

    /// A watched folder, if it is there. One that cannot be opened for another reason leaves the watch blind.
    fn open_again(&mut self, folder: &Folder) -> Option<OwnedFd> {
        match self.open(&folder.path) {
            Ok(opened) => Some(opened),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(_) => {
                self.blind = true;
                None
            }
        }
    }

    /// A name that existed at the scan and is gone is guarded by nothing any more: whoever makes it anew, it is taken away.
    fn forget_gone(&mut self, watch: i32, opened: &OwnedFd, name: &OsStr) {
        let gone = || {
            let found = rustix::fs::statat(opened, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            matches!(found, Err(Errno::NOENT))
        };
        if let Some(folder) = self.folders.get_mut(&watch)
            && folder.known.contains(name)
            && gone()
        {
            folder.known.remove(name);
        }
    }

    fn look_at_everything(&mut self) {
        let folders: Vec<(i32, Folder)> = self
            .folders
            .iter()
            .map(|(watch, folder)| (*watch, folder.clone()))
            .collect();
        for (watch, folder) in folders {
            if let Some(opened) = self.open_again(&folder) {
                for name in &folder.known {
                    self.forget_gone(watch, &opened, name);
                }
                let folder = self.folders.get(&watch).cloned().unwrap_or(folder);
                self.look_into(&opened, &folder);
            }
        }
    }

    fn look_into(&mut self, opened: &OwnedFd, folder: &Folder) {
        let mut names = Vec::new();
        // What cannot be listed to its end is looked at as far as it can.
        let _ = node::list(opened, |name, _, _| {
            if folder.wanted.iter().any(|wanted| wanted.step(name).is_some()) {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            ControlFlow::Continue(())
        });
        for name in names {
            self.look_at(opened, folder, &name);
        }
    }

    /// A name that is there, or was a moment ago.
    fn look_at(&mut self, opened: &OwnedFd, folder: &Folder, name: &OsStr) {
        let known = folder.known.contains(name);
        let mut below = Vec::new();
        for step in folder.wanted.iter().filter_map(|wanted| wanted.step(name.as_bytes())) {
            match step {
                Step::Last(_) if known => {
                    self.replaced = true;
                    return;
                }
                Step::Last(group) => return self.take(opened, folder.path.join(name), group),
                Step::Above(wanted) => below.push(wanted),
            }
        }
        let Some(group) = below.first().map(|wanted| wanted.group) else {
            return;
        };
        let path = folder.path.join(name);
        // A folder that is guarded as a whole: what it holds was there at the scan, or the host has put it there.
        if known && self.again.before.contains(&path) {
            return;
        }
        match node::kind_at(opened, name) {
            Ok(FileType::Directory) => {}
            // Through a link the host would find protected names in a folder that is not watched.
            Ok(FileType::Symlink) if !known => return self.take(opened, path, group),
            _ => return,
        }
        let entered = match node::open_folder(opened, Path::new(name)) {
            Err(Errno::ACCESS) => make_writable(opened, name).and_then(|()| node::open_folder(opened, Path::new(name))),
            entered => entered,
        };
        let inside = Folder {
            path: path.clone(),
            wanted: below,
            known: BTreeSet::new(),
        };
        let entered = entered.and_then(|entered| self.add(&entered, inside).map(|inside| (entered, inside)));
        match entered {
            Ok((entered, inside)) => self.look_into(&entered, &inside),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            // A folder that cannot be watched could get protected names unseen.
            Err(_) if !known => self.take(opened, path, group),
            Err(_) => {}
        }
    }

    fn take(&mut self, folder: &OwnedFd, path: PathBuf, group: Group) {
        if let Some(taken) = self.quarantine.take(folder, path, group) {
            // The same name that is stuck again is no news.
            let is_old = matches!(taken.fate, Fate::Stuck { .. }) && self.taken.contains(&taken);
            if !is_old {
                self.taken.push(taken);
            }
        }
    }

    /// Opens a watched folder by its path below its root.
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let roots = self.roots.iter().filter(|(root, _)| path.starts_with(root));
        let (root, folder) = roots
            .max_by_key(|(root, _)| root.as_os_str().len())
            .ok_or(Errno::NOENT)?;
        let below = path.strip_prefix(root).map_err(|_| Errno::NOENT)?;
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(folder, below, flags, Mode::empty(), resolve)
    }

    /// Watches a folder that is open; the same folder is watched once, under its last path.
    fn add(&mut self, opened: &OwnedFd, folder: Folder) -> Result<Folder, Errno> {
        if self.folders.len() >= MOST_FOLDERS {
            return Err(Errno::NOSPC);
        }
        if !self.armed {
            if let Some(known) = self.folders.values().find(|known| known.path == folder.path) {
                return Ok(known.clone());
            }
            let number = -1 - i32::try_from(self.folders.len()).map_err(|_| Errno::NOSPC)?;
            self.folders.insert(number, folder.clone());
            return Ok(folder);
        }
        // The link in /proc leads to the folder that is open, whatever its path is by now.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let watch = inotify::add_watch(
            &self.inotify,
            path,
            WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::ONLYDIR,
        )?;
        let known = self.folders.entry(watch).or_insert_with(|| folder.clone());
        if known.path != folder.path {
            *known = folder;
        }
        Ok(known.clone())
    }
}
