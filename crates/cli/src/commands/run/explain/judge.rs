//! Why a path or a call was refused: pure, from what the sandbox was built of and what the host has at the path.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::plan::{Access, Step};
use pinfold_model::policy::access::{Effective, View};
use pinfold_model::protected::Group;
use pinfold_model::wire::Refusal;
use pinfold_runtime::seccomp::{self, FilterOptions};
use rustix::io::Errno;

/// What a sandbox was built of.
#[derive(Debug, Default)]
pub(super) struct Walls {
    pub(super) places: BTreeMap<PathBuf, Kind>,
    pub(super) view: View,
    /// Protected paths that exist and that no lift opened.
    pub(super) protected: BTreeMap<PathBuf, Group>,
    /// Folders that were not searched for protected paths.
    pub(super) closed: BTreeSet<PathBuf>,
    /// Folders that must stay where they are.
    pub(super) pinned: BTreeSet<PathBuf>,
    pub(super) home: PathBuf,
    /// Pinfold's state folder.
    pub(super) data: PathBuf,
    pub(super) filter: FilterOptions,
}

/// What stands at a path of the view, and holds for what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the host has there.
    Host(Access),
    /// A file of the real home, read-only.
    Shown,
    /// A folder of the sandbox's own in place of the host's: the private home.
    Home,
    /// A toolchain, with a private layer for writes.
    Layer,
    /// A tmpfs of the sandbox's own.
    Own,
    Procfs,
    Hidden,
    Generated,
}

impl Kind {
    /// What a step of building the view leaves there.
    pub(super) fn of(step: &Step) -> Option<(PathBuf, Self)> {
        let (path, kind) = match step {
            Step::Bind {
                source, target, access, ..
            }
            | Step::Rebind {
                source, target, access, ..
            } => (
                target,
                match access {
                    _ if source == target => Self::Host(*access),
                    Access::ReadOnly => Self::Shown,
                    Access::ReadWrite => Self::Home,
                },
            ),
            Step::Overlay { target, .. } => (target, Self::Layer),
            Step::Tmpfs { path, .. } | Step::Devpts { path } => (path, Self::Own),
            Step::Device { target, .. } => (target, Self::Host(Access::ReadWrite)),
            Step::Proc { path } => (path, Self::Procfs),
            Step::Mask { target, .. } => (target, Self::Hidden),
            Step::File { path, .. } => (path, Self::Generated),
            Step::Dir { .. } | Step::EmptyFile { .. } | Step::Symlink { .. } | Step::Seal { .. } => return None,
        };
        Some((PathBuf::from(OsStr::from_bytes(path)), kind))
    }
}

/// What the host has at a refused path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OnHost {
    pub(super) exists: bool,
    pub(super) parent_exists: bool,
    /// Whether the caller may do there what was asked for, as far as the file's own permissions go.
    pub(super) permitted: bool,
}

/// Why, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) why: String,
    pub(super) fix: Option<String>,
}

impl Reason {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            fix: None,
        }
    }

    fn fix(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Why a refused path is refused; none where it is no wall's doing.
pub(super) fn path(walls: &Walls, refusal: &Refusal, path: &Path, host: OnHost) -> Option<Reason> {
    let errno = errno_of(refusal);
    let missing = errno == Errno::NOENT;
    let there = host.exists || (refusal.write && host.parent_exists);
    if missing && !there {
        return None;
    }
    let (at, kind) = walls.place(path);
    match kind {
        Some(Kind::Procfs) if missing => None,
        Some(Kind::Procfs) if refusal.write => Some(Reason::new("settings of the whole host cannot be changed")),
        Some(Kind::Procfs) => Some(Reason::new("tells about the host or about pinfold itself")),
        Some(Kind::Hidden) => Some(walls.hidden(at, path)),
        Some(Kind::Own | Kind::Home) | None if missing => Some(walls.outside(path, refusal.write, host.exists)),
        Some(Kind::Host(_) | Kind::Shown | Kind::Layer | Kind::Generated) if missing => None,
        None if refusal.write => Some(walls.outside(path, true, host.exists)),
        Some(Kind::Generated) if refusal.write => Some(Reason::new("was made for the sandbox, and is read-only")),
        Some(Kind::Shown) if refusal.write => Some(Reason::new("a file of your own home, which is readable only")),
        _ if refusal.write => walls.written(path, kind, errno, host),
        _ => Some(permissions(host, errno)),
    }
}

/// Which rule of the system call filter refused a call, with its name.
pub(super) fn call(walls: &Walls, refusal: &Refusal) -> Option<(String, Reason)> {
    let found = seccomp::refused(refusal.call, &refusal.arguments, refusal.errno, &walls.filter);
    if let Some(found) = found {
        return Some((found.name.to_owned(), Reason::new(found.reason)));
    }
    if refusal.path.is_some() {
        return None;
    }
    let name = seccomp::name(refusal.call)?;
    let why = match (name, errno_of(refusal)) {
        (_, Errno::NETUNREACH) => "no way leads out but the proxy that HTTP_PROXY and ALL_PROXY name",
        ("bind", Errno::ACCESS) => "ports below 1024 are for pinfold's own listeners",
        ("kill" | "tgkill" | "pidfd_send_signal", Errno::PERM) => "the process is pinfold's, or another user's",
        (_, Errno::PERM | Errno::ACCESS) => "needs a privilege that nothing in a sandbox has",
        _ => return None,
    };
    Some((name.to_owned(), Reason::new(why)))
}

impl Walls {
    /// The nearest place at or above a path.
    fn place<'a>(&self, path: &'a Path) -> (&'a Path, Option<Kind>) {
        path.ancestors()
            .find_map(|above| self.places.get(above).map(|kind| (above, Some(*kind))))
            .unwrap_or((path, None))
    }

    fn hidden(&self, at: &Path, path: &Path) -> Reason {
        let (effective, origin) = self.view.access(path);
        if path.starts_with(&self.data) {
            return Reason::new("pinfold's own state is for nobody inside");
        }
        match origin {
            Origin::Builtin { .. } => {}
            origin if effective == Effective::Hidden => {
                return Reason::fix(format!("hidden by {origin}"), "change that rule");
            }
            _ => {}
        }
        let above = at.parent().map(|parent| self.place(parent).1);
        Reason::new(match above {
            Some(Some(Kind::Layer)) => "holds credentials of a tool",
            _ if effective == Effective::Hidden => "outside of what the sandbox sees",
            _ => "holds keys or passwords of the system",
        })
    }

    /// A path that the sandbox does not have.
    fn outside(&self, path: &Path, write: bool, exists: bool) -> Reason {
        if path.starts_with("/run") || path.starts_with("/var/run") {
            return Reason::new("no service of the host is inside: no D-Bus, keyring, display or container engine");
        }
        if let Ok(below) = path.strip_prefix(&self.home)
            && is_key(below)
        {
            return Reason::new("your keys stay outside");
        }
        let why = if self.home.starts_with(path) || path.starts_with(&self.home) {
            "your home stays outside"
        } else if path.starts_with("/dev") {
            "the sandbox has only harmless devices"
        } else if path.starts_with("/tmp") || path.starts_with("/var/tmp") {
            "the sandbox has temporary folders of its own"
        } else {
            "not visible"
        };
        // What is to be made cannot be named in a rule yet.
        let named = if exists { path } else { path.parent().unwrap_or(path) };
        if named == Path::new("/") || self.home.starts_with(named) {
            return Reason::new(why);
        }
        let flag = if write { "--write" } else { "--read" };
        Reason::fix(why, format!("{flag} {}", quoted(named)))
    }

    /// A change that was refused where something is.
    fn written(&self, path: &Path, kind: Option<Kind>, errno: Errno, host: OnHost) -> Option<Reason> {
        if let Some(group) = path.ancestors().find_map(|above| self.protected.get(above)) {
            return Some(protected("protected", *group));
        }
        if path.ancestors().any(|above| self.closed.contains(above)) {
            return Some(Reason::new("was not searched for protected files, and so is read-only"));
        }
        if self.pinned.contains(path) {
            let below = self.protected.iter().find(|(below, _)| below.starts_with(path));
            return Some(match below {
                Some((_, group)) => protected("holds protected files, and so must stay where it is", *group),
                None => Reason::new("a folder on the way to protected files, which must stay where it is"),
            });
        }
        match (kind, errno) {
            (Some(Kind::Host(Access::ReadOnly)), _) => Some(self.read_only(path)),
            // Between two file systems; tools copy instead.
            (_, Errno::XDEV) => None,
            // The other of the two names of a move.
            (_, Errno::BUSY) if !host.exists => None,
            (_, Errno::BUSY) => Some(Reason::new("a mount of the sandbox, which must stay where it is")),
            (Some(Kind::Own), _) if path.starts_with("/run") => {
                Some(Reason::new("in /run only the folder of XDG_RUNTIME_DIR can be written"))
            }
            (Some(Kind::Own), Errno::ROFS | Errno::ACCESS) => {
                Some(Reason::new("was made for the sandbox, and is read-only"))
            }
            _ => Some(permissions(host, errno)),
        }
    }

    fn read_only(&self, path: &Path) -> Reason {
        let (_, origin) = self.view.access(path);
        let text = origin.to_string();
        match origin {
            Origin::Builtin { what } if what.starts_with("protected") => Reason::new(what),
            Origin::Builtin { .. } if path.starts_with(&self.home) => {
                Reason::new("a file of your own home, which is readable only")
            }
            Origin::Builtin { .. } => Reason::fix("system folders are read-only", self.write_flag(path)),
            _ if text.contains("readonly") => Reason::fix(format!("read-only by {text}"), "change that rule"),
            _ => Reason::fix(format!("read-only by {text}"), self.write_flag(path)),
        }
    }

    /// The flag for the entry of the view that a path lies in.
    fn write_flag(&self, path: &Path) -> String {
        let folder = path.parent().filter(|parent| *parent != Path::new("/")).unwrap_or(path);
        format!("--write {}", quoted(folder))
    }
}

fn protected(how: &str, group: Group) -> Reason {
    let why = format!("{how}: {}", words(group));
    if group.may_be_lifted() {
        Reason::fix(why, format!("--lift {}", group.name()))
    } else {
        Reason::new(why)
    }
}

/// The refusal's error; a number that the kernel does not have is the guest's invention.
fn errno_of(refusal: &Refusal) -> Errno {
    Errno::from_io_error(&std::io::Error::from_raw_os_error(refusal.errno)).unwrap_or(Errno::IO)
}

/// Why a group is protected, in few words.
fn words(group: Group) -> &'static str {
    match group {
        Group::GitHooks => "git hooks run on the host",
        Group::GitConfig => "git on the host obeys its configuration",
        Group::VersionControl => "version control on the host obeys it",
        Group::ShellStart => "the next shell on the host runs it",
        Group::ToolStart => "tools on the host obey it",
        Group::Autostart => "the next session on the host starts it",
        Group::Ide => "an editor on the host obeys it",
        Group::Agents => "agents on the host obey it",
        Group::Pinfold => "it decides what a sandbox may do",
    }
}

fn permissions(host: OnHost, errno: Errno) -> Reason {
    if host.exists && !host.permitted {
        Reason::new("its own permissions, which hold outside of the sandbox as well")
    } else if errno == Errno::PERM {
        Reason::new("needs a privilege that nothing in a sandbox has")
    } else {
        Reason::new(format!("the kernel says: {errno}"))
    }
}

/// Folders and files of a home for which no flag is offered.
fn is_key(below_home: &Path) -> bool {
    const KEYS: [&str; 16] = [
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".netrc",
        ".git-credentials",
        ".password-store",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".config/gcloud",
        ".config/gh",
        ".config/git/credentials",
        ".local/share/keyrings",
    ];
    KEYS.iter().any(|key| below_home.starts_with(key))
}

/// A path as an argument of a shell command.
fn quoted(path: &Path) -> String {
    let text = pinfold_server::audit::printable_path(path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
