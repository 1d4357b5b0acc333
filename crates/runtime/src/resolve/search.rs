//! What the patterns of rules match, found in one walk per folder that patterns start in.
//!
//! A walk descends only where a pattern can still match, and never through a link. It looks at no mount that may not answer,
//! unless a rule names it. A folder that cannot be listed is reported and the walk goes on. Every walk of a start
//! counts against the same bounds; past one of them the start is refused, since a rule that holds for a part is worse than none.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinfold_model::policy::glob::{Component, Glob};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat2, statat};
use rustix::io::Errno;

use super::error::Bound;
use super::follow::{NO_LINKS, Unreachable};
use super::mounts::Mounts;

/// Entries between two looks at the clock.
const CLOCK_EVERY: u64 = 1024;

/// How much may be looked at, for all patterns of a start together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) entries: u64,
    pub(super) matches: usize,
    /// Folders below the one that a pattern starts in.
    pub(super) depth: usize,
    pub(super) time: Duration,
}

impl Bounds {
    pub(super) fn within(time: Duration) -> Self {
        Self {
            entries: 1_000_000,
            matches: 50_000,
            depth: 64,
            time,
        }
    }
}

/// One pattern of a walk.
#[derive(Debug)]
pub(super) struct Pattern {
    /// How the caller knows it.
    pub(super) id: usize,
    pub(super) glob: Glob,
    /// Below a match, further matches would say nothing new.
    pub(super) settled_by: Settled,
}

/// Whether a match settles what is below it.
#[derive(Clone, Debug)]
pub(super) enum Settled {
    Never,
    /// Unless one of these, in order, lies below it.
    UnlessAbove(std::rc::Rc<[PathBuf]>),
}

/// What a walk saw.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Match {
        id: usize,
        path: PathBuf,
        kind: FileType,
    },
    /// A folder in which the pattern could match, and that was not listed.
    Barred {
        id: usize,
        folder: PathBuf,
        why: Unreachable,
    },
}

/// Counts across walks.
#[derive(Debug)]
pub(super) struct Meter {
    bounds: Bounds,
    started: Instant,
    pub(super) visited: u64,
    pub(super) matches: usize,
}

/// Which component of which pattern comes next: indices.
type State = (usize, usize);

impl Meter {
    pub(super) fn start(bounds: Bounds) -> Self {
        Self {
            bounds,
            started: Instant::now(),
            visited: 0,
            matches: 0,
        }
    }

    fn visit(&mut self) -> Result<(), Bound> {
        self.visited += 1;
        if self.visited > self.bounds.entries {
            return Err(Bound::Entries);
        }
        if self.visited.is_multiple_of(CLOCK_EVERY) {
            self.clock()
        } else {
            Ok(())
        }
    }

    fn matched(&mut self) -> Result<(), Bound> {
        self.matches += 1;
        if self.matches > self.bounds.matches {
            Err(Bound::Matches)
        } else {
            Ok(())
        }
    }

    fn clock(&self) -> Result<(), Bound> {
        if self.started.elapsed() > self.bounds.time {
            Err(Bound::Time)
        } else {
            Ok(())
        }
    }
}

/// Walks `base`, a folder without links in its path; of mounts that may not answer only the `named` ones.
pub(super) fn search(
    base: &Path,
    patterns: &[Pattern],
    named: &BTreeSet<PathBuf>,
    mounts: &mut Mounts,
    meter: &mut Meter,
) -> Result<Vec<Found>, Bound> {
    let mut found = Vec::new();
    let mut start = Vec::new();
    for index in 0..patterns.len() {
        reach(&mut start, patterns, (index, 0));
    }
    let mut open = vec![(base.to_path_buf(), 0, start)];
    while let Some((folder, depth, states)) = open.pop() {
        let unnamed = mounts.holding(&folder).is_some_and(|mount| !named.contains(mount));
        let listed = if unnamed || mounts.silent(&folder, |path| drop(open_folder(path))).is_some() {
            Err(Unreachable::Silent)
        } else {
            list(&folder, depth, &states, patterns, meter, &mut found, &mut open)?
        };
        meter.clock()?;
        if let Err(why) = listed {
            let mut ids: Vec<usize> = states.iter().map(|(pattern, _)| patterns[*pattern].id).collect();
            ids.dedup();
            found.extend(ids.into_iter().map(|id| Found::Barred {
                id,
                folder: folder.clone(),
                why,
            }));
        }
    }
    Ok(found)
}

fn list(
    folder: &Path,
    depth: usize,
    states: &[State],
    patterns: &[Pattern],
    meter: &mut Meter,
    found: &mut Vec<Found>,
    open: &mut Vec<(PathBuf, usize, Vec<State>)>,
) -> Result<Result<(), Unreachable>, Bound> {
    let opened = match open_folder(folder) {
        Ok(opened) => opened,
        // Gone, or replaced by something else, since its name was read: nothing is left to search.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Ok(())),
        Err(errno) => return Ok(Err(Unreachable::Refused(errno))),
    };
    let mut buffer = [const { MaybeUninit::<u8>::uninit() }; 32 * 1024];
    let mut entries = RawDir::new(&opened, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return Ok(Err(Unreachable::Refused(errno))),
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        meter.visit()?;
        let mut next = step(states, patterns, name);
        if next.is_empty() {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                // Whatever it is: taken as a folder it is looked at again, and barred there.
                Err(_) => FileType::Directory,
            },
            known => known,
        };
        let path = folder.join(std::ffi::OsStr::from_bytes(name));
        let mut settled = Vec::new();
        for (pattern, at) in &next {
            let pattern = &patterns[*pattern];
            if *at == pattern.glob.components().len() {
                meter.matched()?;
                found.push(Found::Match {
                    id: pattern.id,
                    path: path.clone(),
                    kind,
                });
                if pattern.settled_by.at(&path) {
                    settled.push(pattern.id);
                }
            }
        }
        if kind != FileType::Directory {
            continue;
        }
        next.retain(|(index, at)| {
            let pattern = &patterns[*index];
            *at < pattern.glob.components().len() && !settled.contains(&pattern.id)
        });
        if !next.is_empty() {
            if depth == meter.bounds.depth {
                return Err(Bound::Depth);
            }
            open.push((path, depth + 1, next));
        }
    }
    Ok(Ok(()))
}

/// Where the patterns stand after one more name.
fn step(states: &[State], patterns: &[Pattern], name: &[u8]) -> Vec<State> {
    let mut next = Vec::new();
    for (pattern, at) in states {
        match patterns[*pattern].glob.components().get(*at) {
            Some(Component::Deep) => reach(&mut next, patterns, (*pattern, *at)),
            Some(component) if component.matches(name) => reach(&mut next, patterns, (*pattern, *at + 1)),
            _ => {}
        }
    }
    next
}

/// Adds a state, and what follows a `**` that spans nothing.
fn reach(states: &mut Vec<State>, patterns: &[Pattern], (pattern, mut at): State) {
    loop {
        if !states.contains(&(pattern, at)) {
            states.push((pattern, at));
        }
        if patterns[pattern].glob.components().get(at) != Some(&Component::Deep) {
            return;
        }
        at += 1;
    }
}

impl Settled {
    fn at(&self, path: &Path) -> bool {
        match self {
            Self::Never => false,
            Self::UnlessAbove(kept) => {
                let next = kept.partition_point(|kept| kept.as_path() < path);
                !kept.get(next).is_some_and(|kept| kept.starts_with(path))
            }
        }
    }
}

/// Opens a folder for listing. Reading must not move the access time, which the kernel grants to the owner only.
fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |flags| rustix::io::retry_on_intr(|| openat2(CWD, path, flags, Mode::empty(), NO_LINKS));
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}
