//! Which home the sandbox gets, and what of the real one shows in it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::plan::Node;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::{Effective, ResolvedRule, View};

use super::{PrepareError, Request, node_of, state_error, variable};
use crate::plan::{Home, Layered, Shown};
use crate::resolve::Resolved;
use crate::state::Project;
use crate::toolchains::{self, Toolchain};

/// Files of the real home that every sandbox may read: who commits, and how git is to behave.
const READABLE: [&str; 2] = [".gitconfig", ".config/git"];

/// A chosen home.
pub(super) struct Chosen {
    pub(super) home: Home,
    pub(super) project: Option<Project>,
    pub(super) held: Vec<OwnedFd>,
    /// Variables that tell tools where a visible toolchain is.
    pub(super) variables: Vec<&'static str>,
    /// What the private home shows of the real one, and what rules hide in it.
    pub(super) rules: Vec<ResolvedRule>,
    /// What is at the paths of `rules`.
    pub(super) nodes: Vec<(PathBuf, Node)>,
    pub(super) warnings: Vec<String>,
}

/// The real home where a rule shows it, else the project's private one.
pub(super) fn choose(request: &Request<'_>, view: &View, resolved: &Resolved) -> Result<Chosen, PrepareError> {
    let home = &request.caller.home;
    if view.access(home).0 != Effective::Hidden {
        return Ok(Chosen {
            home: Home::Real,
            project: None,
            held: Vec::new(),
            variables: toolchains::VARIABLES.to_vec(),
            rules: Vec::new(),
            nodes: Vec::new(),
            warnings: Vec::new(),
        });
    }
    let project = Project::open(request.data, request.workspace).map_err(state_error(request.data))?;
    let environment = with_real_home(request);
    let empty = OsString::new();
    let path = variable(&environment, "PATH").unwrap_or(&empty);
    let below_home = view
        .entries()
        .filter(|entry| entry.path.starts_with(home) && entry.path != home.as_path());
    let visible: Vec<PathBuf> = below_home
        .filter(|entry| entry.effective != Effective::Hidden)
        .map(|entry| entry.path.to_owned())
        .collect();
    let found = toolchains::find(home, path, &environment, &visible);
    let mut held = Vec::new();
    let mut layers = Vec::new();
    let mut shown = readable(home);
    shown.retain(|file| may_show(view, &file.path, &file.source));
    let trees = found.trees.into_iter();
    let trees = trees.filter(|found| may_show(view, &found.tree, &found.source));
    let (folders, files): (Vec<_>, Vec<_>) = trees.partition(|tree| tree.is_directory);
    shown.extend(files.into_iter().map(|file| Shown {
        path: file.tree,
        source: file.source,
        node: Node::File,
    }));
    let places = folders
        .iter()
        .map(|folder| (folder.tree.as_path(), folder.source.as_path()));
    let places = places.chain(shown.iter().map(|file| (file.path.as_path(), file.source.as_path())));
    let rules: Vec<ResolvedRule> = places
        .flat_map(|(path, source)| rules_of(path, source, resolved))
        .collect();
    if !folders.is_empty() {
        let slot = project.take_slot().map_err(state_error(request.data))?;
        for folder in folders {
            let (upper, work) = slot
                .layer(&relative(home, &folder.tree))
                .map_err(state_error(request.data))?;
            layers.push(layered(folder, upper, work));
        }
        held.push(slot.lock);
    }
    Ok(Chosen {
        home: Home::Private {
            folder: project.home(),
            layers,
            shown,
        },
        project: Some(project),
        held,
        variables: found.variables,
        nodes: nodes_of(&rules),
        rules,
        warnings: found.warnings.iter().map(ToString::to_string).collect(),
    })
}

/// The name by which the caller knows the home folder, when that leads through a link: made inside as well, since `PATH` and
/// other variables use it.
pub(super) fn other_name(request: &Request<'_>, view: &View) -> Option<(PathBuf, PathBuf)> {
    let name = spelled(request)?;
    let shown = view.access(&name).0 != Effective::Hidden;
    (!shown).then(|| (name, request.caller.home.clone()))
}

fn spelled(request: &Request<'_>) -> Option<PathBuf> {
    let name = PathBuf::from(variable(request.environment, "HOME")?);
    // Where one lies in the other, a link there could not be followed.
    let home = &request.caller.home;
    let apart = !name.starts_with(home) && !home.starts_with(&name);
    (apart && name.is_absolute() && std::fs::canonicalize(&name).is_ok_and(|real| real == *home)).then_some(name)
}

/// The caller's variables, the home folder in lists of paths by its real name.
fn with_real_home(request: &Request<'_>) -> Vec<(OsString, OsString)> {
    let mut environment = request.environment.to_vec();
    let Some(name) = spelled(request) else {
        return environment;
    };
    for (_, value) in &mut environment {
        let real = std::env::split_paths(value).map(|entry| match entry.strip_prefix(&name) {
            Ok(below) => request.caller.home.join(below),
            Err(_) => entry,
        });
        if let Ok(joined) = std::env::join_paths(real) {
            *value = joined;
        }
    }
    environment
}

/// Whether no rule hides a path of the real home or the folder that it lies in. The default that hides all of the home does
/// not count.
fn may_show(view: &View, path: &Path, source: &Path) -> bool {
    [path, source].into_iter().all(|place| match view.access(place) {
        (Effective::Hidden, origin) => matches!(origin, Origin::Builtin { .. }),
        _ => true,
    })
}

/// The default that shows `path`, and every rule that hides something in what it really is, which may lie elsewhere.
fn rules_of(path: &Path, source: &Path, resolved: &Resolved) -> Vec<ResolvedRule> {
    let mut rules = vec![ResolvedRule {
        path: path.to_owned(),
        access: PathAccess::Read,
        origin: Origin::builtin("toolchains and git's settings show in the private home"),
    }];
    let hidden = resolved.rules.iter().filter(|rule| rule.access == PathAccess::Hide);
    rules.extend(hidden.filter_map(|rule| {
        let below = rule.path.strip_prefix(source).ok().filter(|_| source != path)?;
        Some(ResolvedRule {
            path: path.join(below),
            ..rule.clone()
        })
    }));
    rules
}

fn nodes_of(rules: &[ResolvedRule]) -> Vec<(PathBuf, Node)> {
    let nodes = rules.iter();
    nodes
        .filter_map(|rule| Some((rule.path.clone(), node_of(&rule.path)?)))
        .collect()
}

fn layered(found: Toolchain, upper: PathBuf, work: PathBuf) -> Layered {
    let hidden = found
        .hidden
        .iter()
        .filter_map(|below| Some((found.tree.join(below), node_of(&found.source.join(below))?)))
        .collect();
    Layered {
        tree: found.tree,
        source: found.source,
        upper,
        work,
        hidden,
    }
}

fn readable(home: &Path) -> Vec<Shown> {
    READABLE
        .iter()
        .filter_map(|name| {
            let path = home.join(name);
            let source = std::fs::canonicalize(&path).ok()?;
            let node = node_of(&source)?;
            Some(Shown { path, source, node })
        })
        .collect()
}

fn relative(home: &Path, tree: &Path) -> PathBuf {
    tree.strip_prefix(home).unwrap_or(tree).to_owned()
}
