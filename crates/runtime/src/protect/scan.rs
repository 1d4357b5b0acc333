//! What a scan is asked and what it answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinfold_model::protected::Group;
use rustix::io::Errno;

use super::absent::AbsentIn;
use super::walk::Search;

/// What to look at.
#[derive(Clone, Copy, Debug)]
pub struct ScanRequest<'a> {
    /// Absolute, existing, without links.
    pub write_roots: &'a [PathBuf],
    /// Absolute, without links.
    pub home: &'a Path,
    /// Whether a write root is home or lies above it.
    pub home_is_covered: bool,
    /// How many levels of folders below a write root are looked into, 1 to 10; 3 is the default.
    pub depth: u8,
    /// Leaves `node_modules` folders out.
    pub skip_node_modules: bool,
    pub budget: Budget,
    /// Groups that the policy lifts.
    pub lifts: &'a BTreeSet<Group>,
    /// Pinfold's own files and folders; those inside a write root are protected, and need not exist.
    pub pinfold_paths: &'a [PathBuf],
}

/// Where a scan stops early.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub time: Duration,
    /// Directory entries read.
    pub entries: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            time: Duration::from_millis(500),
            entries: 1_000_000,
        }
    }
}

/// What has to be done so that the protected paths hold. Every list is sorted by path, and so parents come first.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Existing paths to be made read-only, with all that is below.
    pub existing: Vec<Protected>,
    /// Existing folders above a protected path to be mounted over themselves, so that they cannot be moved or removed.
    pub pinned: Vec<PathBuf>,
    /// Folders in which a protected name could appear.
    pub watched: Vec<AbsentIn>,
    /// Git directories that were found.
    pub git: Vec<GitDir>,
    /// Parts of git directories outside the write roots that the checkouts inside need. `existing` may close parts of them,
    /// and a grant may open a part of what `existing` closes: all three are applied in the order of their paths.
    pub grants: Vec<ExtraGrant>,
    /// Folders inside a grant that are not git's, to be covered: a checkout beside a bare repository, for one.
    pub hidden: Vec<PathBuf>,
    /// Unix sockets that somebody on the host has made there, to be covered.
    pub sockets: Vec<PathBuf>,
    /// Folders that were not looked into and therefore have to be made read-only as a whole.
    pub closed: Vec<Closed>,
    /// Why part of the tree was not looked at; `closed` names the parts.
    pub stopped_early: Option<Stopped>,
    pub warnings: Vec<Warning>,
}

impl Scan {
    /// Why `existing` may lack paths, if so.
    pub fn incomplete(&self) -> Option<String> {
        let unseen =
            |warning: &&Warning| matches!(warning, Warning::IndexNotRead { .. } | Warning::SubmoduleNotSeen { .. });
        let stopped = self.stopped_early.as_ref().map(ToString::to_string);
        stopped.or_else(|| self.warnings.iter().find(unseen).map(ToString::to_string))
    }
}

/// An existing protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    pub path: PathBuf,
    pub kind: Kind,
    pub group: Group,
}

/// What a mount has to sit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Dir,
    /// A regular file, or a FIFO, socket or device in the place of one.
    File,
    /// The link itself; where it leads is protected on its own.
    Symlink,
}

/// A git directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDir {
    pub path: PathBuf,
    pub kind: GitKind,
    /// The checkout that belongs to it, where one is known.
    pub checkout: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitKind {
    /// The `.git` folder of a checkout.
    Main,
    /// What a `.git` file leads to, inside a write root or believed.
    Pointed,
    /// What several worktrees share.
    Common,
    /// Below `modules` of another one.
    Submodule,
    /// A repository without a checkout.
    Bare,
}

/// A path outside the write roots that has to be visible, or writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraGrant {
    pub path: PathBuf,
    pub access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    Write,
}

/// A folder that was not looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub path: PathBuf,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It cannot be listed.
    Unreadable(Errno),
    /// A remote or automounted file system, which is not touched unasked.
    Remote,
    /// The scan had stopped before.
    Unscanned,
}

/// Why a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    #[error(
        "The search for protected paths stopped after {} ms, so {folders} folders that it had not seen are read-only. \
         hint: raise the time budget, or lower the scan depth.", .after.as_millis()
    )]
    Time { after: Duration, folders: usize },
    #[error(
        "The search for protected paths stopped after {after} directory entries, so {folders} folders that it had not seen \
         are read-only. hint: make a smaller folder writable, or lower the scan depth."
    )]
    Entries { after: u64, folders: usize },
}

/// Something that a person should know; the start goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "The git pointer {pointer:?} is not followed: {why}. Git will not find its repository inside. hint: add the \
         repository's folder to the policy if the command needs it."
    )]
    PointerNotBelieved { pointer: PathBuf, why: String },
    #[error(
        "The git index {index:?} cannot be searched for submodules: {why}. Submodules deep in the tree are not protected. \
         hint: run git there with `--ignore-submodules=all`, or remove the index and make it anew with `git reset`."
    )]
    IndexNotRead { index: PathBuf, why: String },
    #[error(
        "The submodule {checkout:?} is not protected, because its folder cannot be opened ({errno}). hint: give yourself \
         the right to list it, or remove it."
    )]
    SubmoduleNotSeen { checkout: PathBuf, errno: Errno },
    #[error("Where the protected link {link:?} leads is not protected: {why}. The link itself is.")]
    LinkNotFollowed { link: PathBuf, why: String },
    #[error(
        "{folder:?} holds too many files to look for links in all of them; it is read-only, where its links lead is not."
    )]
    FolderNotInspected { folder: PathBuf },
    #[error("The write rule for {root:?} has no effect, because the path is protected ({}). hint: lift the group {}.", .group.reason(), .group.name())]
    RootIsProtected { root: PathBuf, group: Group },
}

/// Why a start has to be refused.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(
        "The write root {root:?} cannot be opened ({errno}). hint: check that the folder exists and may be listed."
    )]
    Root { root: PathBuf, errno: Errno },
    #[error(
        "The protected link {link:?} leads to {target:?}, which holds a whole write root, so it cannot be made read-only. \
         hint: remove the link, or lift the group `{}`.", .group.name()
    )]
    LinkCoversRoot {
        link: PathBuf,
        target: PathBuf,
        group: Group,
    },
    #[error(
        "The write root {root:?} is too large to be searched for protected paths, and too wide to be closed in parts. \
         hint: make a smaller folder writable, or raise the scan budget."
    )]
    TooLarge { root: PathBuf },
    #[error(
        "The protected file {path:?} has {links} names, and the search for the others did not end in time, so it could be \
         changed under another name. hint: replace the file by a copy of its own, or lift the group `{}`.", .group.name()
    )]
    HardLinks { path: PathBuf, links: u64, group: Group },
}

/// Searches the write roots for protected paths.
///
/// Reads directories, links and small files only: git itself is not run, and no time stamp is changed where the kernel
/// lets the caller avoid it.
pub fn scan(request: ScanRequest<'_>) -> Result<Scan, ScanError> {
    let mut search = Search::new(request)?;
    search.run()?;
    search.finish()
}
