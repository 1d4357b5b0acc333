//! From policy and facts to a [`Plan`]: pure, so that what will be done can be shown, compared and tested.

mod etc;
mod layout;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::plan::{
    Extent, Grant, GrantAccess, Instruction, Listeners, Node, Plan, Proof, RawPath, Rlimits, VERSION,
};
use pinfold_model::policy::access::{Effective, View};

use crate::host::{Caller, Host};
use layout::Layout;

/// Ports of the proxy's listeners inside the sandbox. Below 1024, so that nothing inside can ever listen there itself.
pub const LISTENERS: Listeners = Listeners { http: 312, socks: 108 };

/// Processes and threads that a sandbox may have when no limit was asked for.
pub const DEFAULT_PROCESSES: u64 = 8192;

/// A toolchain's tree of the real home, with a private layer for what is written into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    /// Where tools look for it, below home.
    pub tree: PathBuf,
    /// The folder that it is.
    pub source: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
    /// Credential files in the tree, which are hidden.
    pub hidden: Vec<(PathBuf, Node)>,
}

/// A path of the real home that is visible read-only inside the private one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub path: PathBuf,
    /// What it is; differs from `path` where a link leads elsewhere.
    pub source: PathBuf,
    pub node: Node,
}

/// The home folder inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// The policy shows the real one.
    Real,
    /// A private one, kept per project.
    Private {
        folder: PathBuf,
        layers: Vec<Layered>,
        shown: Vec<Shown>,
    },
}

/// What keeps protected paths closed, or opens what a checkout needs of its repository: applied in the order of the paths, on
/// top of the view. It beats every `write` rule; what the view hides stays hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    pub cuts: BTreeMap<PathBuf, (Effective, Node)>,
    /// Folders that must not be moved or removed.
    pub pinned: Vec<PathBuf>,
}

/// Everything a plan is made from.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub caller: &'a Caller,
    pub host: &'a Host,
    pub view: &'a View,
    /// The kind of every path that the view names; a path that is missing here is a folder.
    pub nodes: &'a BTreeMap<PathBuf, Node>,
    /// What protection asks for on top of the view.
    pub protection: &'a Protection,
    /// Device nodes of the host that the policy grants.
    pub devices: &'a [PathBuf],
    pub home: &'a Home,
    pub network: bool,
    pub filter: Vec<Instruction>,
    /// Processes and threads per sandbox.
    pub processes: u64,
}

/// Makes the plan.
#[must_use]
pub fn compose(inputs: &Inputs<'_>) -> Plan {
    let layout = Layout::new(inputs);
    Plan {
        version: VERSION,
        hostname: "pinfold".to_owned(),
        // Covered in the sandbox's own mount namespace only, and only until the old root is left.
        scaffold: raw(Path::new("/proc")),
        view: layout.steps(),
        grants: grants(&layout),
        filter: inputs.filter.clone(),
        network: inputs.network.then_some(LISTENERS),
        rlimits: Rlimits {
            processes: Some(inputs.processes),
        },
        proof: Proof {
            // The root is the sandbox's own, and there when a rule hides everything else.
            readable: match inputs.view.access(Path::new("/usr")).0 {
                Effective::Hidden => raw(Path::new("/")),
                _ => raw(Path::new("/usr")),
            },
            read_only: raw(Path::new("/.pinfold-proof")),
            landlocked: raw(Path::new("/run/.pinfold-proof")),
            hidden: layout.first_masked_file().map(raw),
            protected: layout.first_protected().map(raw),
            extent: Extent::Start,
        },
    }
}

/// The folder that `XDG_RUNTIME_DIR` names inside.
#[must_use]
pub fn runtime_dir(caller: &Caller) -> PathBuf {
    PathBuf::from(format!("/run/user/{}", caller.uid))
}

/// Mount points that have to exist in the private home before the view is built: paths relative to it, with their kinds.
#[must_use]
pub fn home_points(inputs: &Inputs<'_>) -> Vec<(PathBuf, Node)> {
    Layout::new(inputs).home_points()
}

/// Landlock's view: everything visible may be read; writing where the layout has something writable.
fn grants(layout: &Layout<'_>) -> Vec<Grant> {
    let grant = |path: &Path, access| Grant {
        path: raw(path),
        access,
    };
    let mut grants = vec![
        grant(Path::new("/"), GrantAccess::Read),
        grant(Path::new("/dev"), GrantAccess::Use),
        grant(Path::new("/proc"), GrantAccess::Use),
    ];
    grants.extend(layout.writable().map(|path| grant(path, GrantAccess::Write)));
    grants
}

pub(crate) fn raw(path: &Path) -> RawPath {
    RawPath::from(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests;
