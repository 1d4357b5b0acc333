//! The command's environment: built from nothing, never copied from the caller.
//!
//! Owns which of the caller's variables enter (a fixed allow list and what the policy names) and which ones Pinfold
//! sets. Pure: the caller's variables and the facts come in as values. Later sources win: allow list, `pass`,
//! Pinfold's own, `set`.
//!
//! - An explicit `pass` is explicit: it also carries a name that looks like a secret or a loader hook, because the
//!   person asked for exactly that name. [`passed_secrets`] names the ones worth a warning. A `pass` of an untrusted
//!   file is ignored.
//! - `deny` removes a name whatever else says so, except the marker.
//! - Where a passed value cannot work inside (`HOME`, `TMPDIR`, proxies of the host) Pinfold's own value stays.
//! - Proxy variables are a convenience for tools, not a wall: the network namespace holds when they are unset.

mod network;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Scope;
use pinfold_model::plan::Listeners;
use pinfold_model::policy::EnvironmentPolicy;

pub use secrets::{looks_secret, passed_secrets};

/// What the host found out; none of it comes from the policy.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The home directory inside, which has the path it has outside.
    pub home: &'a Path,
    /// The private folder for temporary files, as seen inside.
    pub temporary: &'a Path,
    /// The fresh `XDG_RUNTIME_DIR`, as seen inside.
    pub runtime: Option<&'a Path>,
    pub user: &'a OsStr,
    /// The login shell, for a caller that has no `SHELL`.
    pub shell: Option<&'a Path>,
    /// Replaces the caller's `PATH`, when entries of it were dropped.
    pub path: Option<&'a OsStr>,
    /// Loopback ports of the proxy; none means no network.
    pub network: Option<Listeners>,
    /// A PEM bundle with every root that the command should trust, as seen inside.
    pub roots: Option<&'a Path>,
    /// The same as a Java key store.
    pub java_roots: Option<&'a Path>,
    /// Names of variables that say where a visible toolchain lives (`RUSTUP_HOME`); passed through.
    pub toolchains: &'a [&'a str],
    /// Directories that git is told to trust although somebody else owns them.
    pub git_safe_directories: &'a [PathBuf],
    /// The sandbox's id.
    pub sandbox: &'a str,
}

/// Passed from the caller when set there, besides `LC_*`.
const ALLOWED: &[&str] = &[
    "CI",
    "COLORTERM",
    "HOME",
    "LANG",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
];

/// For a caller without a `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tells a program that it runs inside. Nothing overrides it.
const MARKER: &str = "PINFOLD";
const SANDBOX: &str = "PINFOLD_SANDBOX";

type Variables = BTreeMap<OsString, OsString>;

/// The complete environment, sorted by name, each name once.
#[must_use]
pub fn build(
    caller: &[(OsString, OsString)],
    policy: &EnvironmentPolicy,
    facts: &Facts<'_>,
) -> Vec<(OsString, OsString)> {
    let denied = |name: &OsStr| policy.deny.iter().any(|(denied, _)| name == denied.as_str());
    let mut variables = Variables::new();
    for (name, value) in caller {
        let wanted = is_allowed(name) || is_passed(name, policy) || facts.toolchains.iter().any(|known| name == *known);
        if wanted && !variables.contains_key(name) && is_sound(name, value) {
            variables.insert(name.clone(), value.clone());
        }
    }
    let node_roots = caller.iter().any(|(name, _)| name == network::NODE_EXTRA_ROOTS);
    own(&mut variables, facts, node_roots);
    for (name, (value, _)) in &policy.set {
        if is_sound(name.as_ref(), value.as_ref()) {
            variables.insert(name.into(), value.into());
        }
    }
    git(&mut variables, facts.git_safe_directories);
    variables.retain(|name, _| !denied(name));
    variables.insert(MARKER.into(), "1".into());
    variables.insert(SANDBOX.into(), facts.sandbox.into());
    variables.into_iter().collect()
}

fn is_allowed(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LC_") || ALLOWED.iter().any(|allowed| name == *allowed)
}

fn is_passed(name: &OsStr, policy: &EnvironmentPolicy) -> bool {
    policy
        .pass
        .iter()
        .any(|(passed, origin)| name == passed.as_str() && origin.scope() == Scope::Trusted)
}

/// What `execve` can carry: anything else would end up as another variable.
fn is_sound(name: &OsStr, value: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0) && !value.as_bytes().contains(&0)
}

fn own(variables: &mut Variables, facts: &Facts<'_>, node_roots: bool) {
    let mut set = |name: &str, value: &OsStr| variables.insert(name.into(), value.into());
    set("HOME", facts.home.as_os_str());
    set("TMPDIR", facts.temporary.as_os_str());
    if let Some(path) = facts.path {
        set("PATH", path);
    }
    match facts.runtime {
        Some(runtime) => variables.insert("XDG_RUNTIME_DIR".into(), runtime.into()),
        None => variables.remove(OsStr::new("XDG_RUNTIME_DIR")),
    };
    set_default(variables, "PATH", OsStr::new(DEFAULT_PATH));
    set_default(variables, "USER", facts.user);
    set_default(variables, "LOGNAME", facts.user);
    if let Some(shell) = facts.shell {
        set_default(variables, "SHELL", shell.as_os_str());
    }
    if let Some(listeners) = facts.network {
        network::proxies(variables, listeners);
        network::trust(variables, facts.roots, facts.java_roots, node_roots);
    }
}

fn set_default(variables: &mut Variables, name: &str, value: &OsStr) {
    variables.entry(name.into()).or_insert_with(|| value.into());
}

/// Adds `safe.directory` entries behind the ones that the policy may have brought (`GIT_CONFIG_COUNT`, git-config(1)).
fn git(variables: &mut Variables, safe: &[PathBuf]) {
    if safe.is_empty() {
        return;
    }
    let count = variables
        .get(OsStr::new("GIT_CONFIG_COUNT"))
        .and_then(|count| count.to_str()?.parse::<u32>().ok());
    let mut next = count.unwrap_or(0);
    for directory in safe {
        variables.insert(format!("GIT_CONFIG_KEY_{next}").into(), "safe.directory".into());
        variables.insert(format!("GIT_CONFIG_VALUE_{next}").into(), directory.into());
        next = next.saturating_add(1);
    }
    variables.insert("GIT_CONFIG_COUNT".into(), next.to_string().into());
}
