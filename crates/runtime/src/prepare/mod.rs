//! From a merged policy to everything a start needs: looks at the host, scans the write roots, takes the project's private
//! layers, and has the plan made.
//!
//! The order is that of a start: judge the rules, gather the facts, compose. Nothing inside the workspace is changed.

mod hard_links;
mod home;
mod protection;
mod rules;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinfold_model::origin::Origin;
use pinfold_model::plan::{Node, Plan};
use pinfold_model::policy::access::{Effective, View};
use pinfold_model::policy::{PathAccess, Policy};
use pinfold_model::protected::Group;
use serde_bytes::ByteBuf;
use thiserror::Error;

use crate::environment;
use crate::host::{Caller, Host};
use crate::plan::{self, Inputs};
use crate::protect::{self, Scan, ScanError, Watch, WatchError};
use crate::resolve::{ResolveError, Resolved};
use crate::seccomp::{self, FilterOptions, UnixSockets};

/// How long patterns of rules may be searched for.
const RESOLVE_BUDGET: Duration = Duration::from_secs(10);

/// Folders of which every sandbox has its own.
const PRIVATE: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys"];

/// What a sandbox is prepared from.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub policy: &'a Policy,
    pub caller: &'a Caller,
    /// Absolute and canonical.
    pub workspace: &'a Path,
    /// A folder that the system folders come from, in place of the host's; canonical.
    pub rootfs: Option<&'a Path>,
    /// Pinfold's state folder, absolute.
    pub data: &'a Path,
    /// Files and folders of Pinfold's own that no sandbox may change: policy files, configuration.
    pub own_paths: &'a [PathBuf],
    /// The caller's environment.
    pub environment: &'a [(OsString, OsString)],
    /// The sandbox's id.
    pub id: &'a str,
}

/// Everything a start needs.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    /// `NAME=value`, complete.
    pub environment: Vec<ByteBuf>,
    /// Locks that the guest keeps.
    pub held: Vec<OwnedFd>,
    /// The rules by which each path is judged, protected paths included.
    pub view: View,
    pub scan: Scan,
    pub resolved: Resolved,
    write_roots: Vec<PathBuf>,
    own_paths: Vec<PathBuf>,
    /// Sentences for the person.
    pub warnings: Vec<String>,
}

/// Why a sandbox cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    #[error("The root file system {} cannot be listed: {source}. hint: name a folder that holds one with --rootfs FOLDER", folder.display())]
    Rootfs { folder: PathBuf, source: std::io::Error },
    #[error(
        "The rule for {} ({origin}) is about the host, but {} comes from the root file system {}. hint: leave the rule or --rootfs out",
        path.display(), path.display(), rootfs.display()
    )]
    RuleInRootfs {
        path: PathBuf,
        origin: Origin,
        rootfs: PathBuf,
    },
    #[error(transparent)]
    Rule(#[from] ResolveError),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("The workspace {} is hidden by a rule, so the command has nowhere to work: {rule}. hint: leave the rule out, or start from another folder.", folder.display())]
    Hidden { folder: PathBuf, rule: Origin },
    #[error("The denied file {} has more names than one, and the search for the others did not end, so it could be reached under another name. hint: replace the file by a copy of its own.", file.display())]
    HardLinks { file: PathBuf },
    #[error("The project's state in {} cannot be used: {source}. hint: make sure that the folder can be written and is not full.", folder.display())]
    State { folder: PathBuf, source: std::io::Error },
}

impl Prepared {
    /// Watches for protected names that appear while the command runs; to be started before the command. What is taken away
    /// is kept below `quarantine`.
    ///
    /// # Errors
    /// A folder cannot be watched.
    pub fn watch(&self, request: &Request<'_>, quarantine: &Path) -> Result<Watch, WatchError> {
        let lifts = lifts(request.policy);
        Watch::start(
            &scan_request(request, &self.write_roots, &lifts, &self.own_paths),
            &self.scan,
            quarantine,
            request.id,
        )
    }
}

/// Prepares a sandbox.
///
/// # Errors
/// A rule that cannot be carried out, a workspace that cannot be searched, state that cannot be written.
pub fn prepare(request: &Request<'_>) -> Result<Prepared, PrepareError> {
    let mut judged = rules::judge(request)?;
    let view = View::new(judged.rules.iter().cloned(), []);
    has_workspace(request, &view)?;
    let (write_roots, own_paths) = (write_roots(&view), own_paths(request, &judged.resolved));
    let scan = protect::scan(scan_request(request, &write_roots, &lifts(request.policy), &own_paths))?;
    let sockets = protect::sockets(readable_folders(&judged.resolved), scan_depth(request));
    let folders = write_roots.iter().map(PathBuf::as_path);
    let linked = hard_links::other_names(&judged.resolved, folders.chain(readable_folders(&judged.resolved)))?;
    let protection = protection::of(&scan, &judged.resolved, &sockets.paths, &linked, request.data);
    let mut warnings = judged.resolved.warnings.clone();
    if !sockets.complete {
        warnings.push(
            "The folders that rules show hold too many files to look for sockets in all of them; a socket of the host's that \
             lies deep in them can be connected to. hint: name smaller folders."
                .to_owned(),
        );
    }
    warnings.extend(scan.warnings.iter().map(ToString::to_string));
    warnings.extend(scan.stopped_early.iter().map(ToString::to_string));

    let home = home::choose(request, &view, &judged.resolved)?;
    judged.host.links.extend(home::other_name(request, &view));
    warnings.extend(home.warnings);
    judged.rules.extend(home.rules);
    judged.resolved.nodes.extend(home.nodes);
    let view = View::new(judged.rules.iter().cloned(), []);
    let devices: Vec<PathBuf> = judged.resolved.devices.iter().map(|rule| rule.path.clone()).collect();
    let inputs = Inputs {
        caller: request.caller,
        host: &judged.host,
        view: &view,
        nodes: &judged.resolved.nodes,
        protection: &protection,
        devices: &devices,
        home: &home.home,
        // Also without any rule: a refusal that names its hint is worth more than an unreachable port.
        network: true,
        filter: seccomp::program(&FilterOptions {
            unix_sockets: match request.policy.deny_unix_sockets {
                Some(_) => UnixSockets::Denied,
                None => UnixSockets::Allowed,
            },
        }),
        processes: request
            .policy
            .limits
            .pids
            .as_ref()
            .map_or(plan::DEFAULT_PROCESSES, |limit| u64::from(limit.value)),
    };
    let plan = plan::compose(&inputs);
    if let Some(project) = &home.project {
        project
            .make_home_points(&plan::home_points(&inputs))
            .map_err(state_error(request.data))?;
    }
    let protected = scan
        .existing
        .iter()
        .map(|found| (found.path.clone(), protection::origin(found.group)));
    let passed = environment::passed_secrets(request.environment, &request.policy.environment);
    warnings.extend(passed.map(|(name, origin)| {
        format!("{name} enters with its real value, which everything inside can read and send to every allowed host   ({origin})")
    }));
    let environment = environment_of(request, &judged.host, &home.variables);
    let view = View::new(judged.rules, protected.collect::<Vec<_>>());
    Ok(Prepared {
        plan,
        environment,
        held: home.held,
        view,
        scan,
        resolved: judged.resolved,
        write_roots,
        own_paths,
        warnings,
    })
}

/// The view of a policy without starting anything: what `policy check` asks.
///
/// # Errors
/// A rule that cannot be carried out, a workspace that cannot be searched.
pub fn view(request: &Request<'_>) -> Result<View, PrepareError> {
    let judged = rules::judge(request)?;
    let write_roots = write_roots(&View::new(judged.rules.iter().cloned(), []));
    let own_paths = own_paths(request, &judged.resolved);
    let scan = protect::scan(scan_request(request, &write_roots, &lifts(request.policy), &own_paths))?;
    let protected = scan
        .existing
        .iter()
        .map(|found| (found.path.clone(), protection::origin(found.group)));
    Ok(View::new(judged.rules, protected.collect::<Vec<_>>()))
}

/// The command needs a folder to start in, if only an empty one that holds what is visible below it.
fn has_workspace(request: &Request<'_>, view: &View) -> Result<(), PrepareError> {
    let folder = request.workspace;
    match view.access(folder) {
        (Effective::Hidden, rule)
            if view
                .entries()
                .all(|entry| !entry.path.starts_with(folder) || entry.path == folder) =>
        {
            Err(PrepareError::Hidden {
                folder: folder.to_owned(),
                rule: rule.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn write_roots(view: &View) -> Vec<PathBuf> {
    view.entries()
        .filter(|entry| entry.effective == Effective::ReadWrite && entry.path.is_dir())
        .filter(|entry| !PRIVATE.iter().any(|own| entry.path == Path::new(own)))
        .map(|entry| entry.path.to_owned())
        .collect()
}

/// Folders that are visible because a rule says so, not because they belong to the system.
fn readable_folders(resolved: &Resolved) -> impl Iterator<Item = &Path> {
    let rules = resolved.rules.iter();
    rules
        .filter(|rule| matches!(rule.access, PathAccess::Read | PathAccess::ReadOnly))
        .map(|rule| rule.path.as_path())
}

fn scan_depth(request: &Request<'_>) -> u8 {
    request.policy.scan_depth.as_ref().map_or(3, |depth| depth.value)
}

fn lifts(policy: &Policy) -> BTreeSet<Group> {
    policy.lift.iter().map(|lift| lift.group).collect()
}

/// Pinfold's own paths, and those that a rule denies and that do not exist yet: none of them may come into being.
fn own_paths(request: &Request<'_>, resolved: &Resolved) -> Vec<PathBuf> {
    request
        .own_paths
        .iter()
        .cloned()
        .chain(resolved.absent.iter().map(|absent| absent.path.clone()))
        .collect()
}

fn scan_request<'a>(
    request: &Request<'a>,
    write_roots: &'a [PathBuf],
    lifts: &'a BTreeSet<Group>,
    own_paths: &'a [PathBuf],
) -> protect::ScanRequest<'a> {
    protect::ScanRequest {
        write_roots,
        home: &request.caller.home,
        home_is_covered: write_roots.iter().any(|root| request.caller.home.starts_with(root)),
        depth: scan_depth(request),
        skip_node_modules: true,
        budget: protect::Budget::default(),
        lifts,
        pinfold_paths: own_paths,
    }
}

fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsString> {
    environment.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn environment_of(request: &Request<'_>, host: &Host, toolchains: &[&'static str]) -> Vec<ByteBuf> {
    let runtime = plan::runtime_dir(request.caller);
    let safe: Vec<PathBuf> = request
        .policy
        .git_safe_directories
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    let facts = environment::Facts {
        home: &request.caller.home,
        temporary: Path::new("/tmp"),
        runtime: Some(&runtime),
        user: request.caller.user.as_ref(),
        shell: Some(Path::new(&request.caller.shell)),
        path: None,
        network: Some(plan::LISTENERS),
        roots: host.root_bundle.as_deref(),
        java_roots: None,
        toolchains,
        git_safe_directories: &safe,
        sandbox: request.id,
    };
    environment::build(request.environment, &request.policy.environment, &facts)
        .into_iter()
        .map(|(name, value)| ByteBuf::from([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect()
}

fn state_error(folder: &Path) -> impl FnOnce(std::io::Error) -> PrepareError {
    let folder = folder.to_owned();
    move |source| PrepareError::State { folder, source }
}

/// The kind of a path that exists, a link followed.
fn node_of(path: &Path) -> Option<Node> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    Some(if kind.is_dir() { Node::Dir } else { Node::File })
}
