//! The rules of a view: the policy's own, and the built-in defaults as far as they hold beside them.
//!
//! A default gives way to a more specific rule, and on a tie to a stricter one, as every rule does. An imported settings file
//! takes more away: it says what all of the host is like, so no default gives more than the file does ([`lowered`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::{Effective, ResolvedRule, View};

use super::{PRIVATE, PrepareError, RESOLVE_BUDGET, Request, variable};
use crate::host::Host;
use crate::resolve::{self, Resolved};

/// The rules that a policy comes to on this host, with what they were made from.
pub(super) struct Judged {
    pub(super) rules: Vec<ResolvedRule>,
    pub(super) resolved: Resolved,
    pub(super) host: Host,
}

pub(super) fn judge(request: &Request<'_>) -> Result<Judged, PrepareError> {
    let host = match request.rootfs {
        None => Host::look(),
        Some(root) => {
            Host::look_at(root, &[request.workspace, &request.caller.home]).map_err(|source| PrepareError::Rootfs {
                folder: root.to_owned(),
                source,
            })?
        }
    };
    let private = PRIVATE.map(Path::new);
    let search_path = search_path(request);
    let context = resolve::Context {
        home: &request.caller.home,
        workspace: request.workspace,
        private: &private,
        search_path: &search_path.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
        budget: RESOLVE_BUDGET,
    };
    let resolved = resolve::resolve(&request.policy.filesystem, &context)?;
    if let (Some(root), Some(rule)) = (request.rootfs, in_rootfs(&resolved.rules, &host)) {
        return Err(PrepareError::RuleInRootfs {
            path: rule.path.clone(),
            origin: rule.origin.clone(),
            rootfs: root.to_owned(),
        });
    }
    let mut defaults = defaults(request.workspace, &host);
    // Of rules for one path the stricter holds, but a default is no rule: whoever opens its place for writing means it.
    let opened = |path: &Path| {
        let mut rules = resolved.rules.iter();
        rules.any(|rule| rule.access == PathAccess::Write && (rule.path == path || rule.path == Path::new("/")))
    };
    defaults.retain(|default| default.access != PathAccess::Read || !opened(&default.path));
    let mut rules = match imported(&resolved.rules) {
        Some(import) => lowered(defaults, &import),
        None => defaults,
    };
    for rule in &resolved.rules {
        if rule.path == Path::new("/") && matches!(rule.access, PathAccess::Read | PathAccess::Write) {
            rules.extend(whole_host(rule));
        } else {
            rules.push(rule.clone());
        }
    }
    Ok(Judged { rules, resolved, host })
}

/// What every sandbox sees without a rule.
fn defaults(workspace: &Path, host: &Host) -> Vec<ResolvedRule> {
    let rule = |path: &Path, access, what: &str| ResolvedRule {
        path: path.to_owned(),
        access,
        origin: Origin::builtin(what),
    };
    let mut rules: Vec<ResolvedRule> = host
        .system
        .iter()
        .chain(&host.hardware)
        .map(|path| rule(path, PathAccess::Read, "system folders are readable"))
        .collect();
    rules.push(rule(workspace, PathAccess::Write, "the workspace is writable"));
    rules
}

/// A rule about a path of the host that another root file system covers.
fn in_rootfs<'a>(rules: &'a [ResolvedRule], host: &Host) -> Option<&'a ResolvedRule> {
    let covered = |path: &Path| path == Path::new("/") || host.system.iter().any(|folder| path.starts_with(folder));
    rules.iter().find(|rule| covered(&rule.path))
}

/// What an imported settings file says by itself; none where nothing was imported.
fn imported(rules: &[ResolvedRule]) -> Option<View> {
    let of_import = |rule: &&ResolvedRule| matches!(rule.origin, Origin::Settings { .. });
    let rules: Vec<ResolvedRule> = rules.iter().filter(of_import).cloned().collect();
    (!rules.is_empty()).then(|| View::new(rules, []))
}

/// The defaults, none giving more than the import does in its place.
fn lowered(defaults: Vec<ResolvedRule>, import: &View) -> Vec<ResolvedRule> {
    let lower = |rule: ResolvedRule| match (import.access(&rule.path), rule.access) {
        ((Effective::Hidden, _), _) => None,
        ((Effective::ReadOnly, origin), PathAccess::Write) => Some(ResolvedRule {
            path: rule.path,
            access: PathAccess::Read,
            origin: origin.clone(),
        }),
        _ => Some(rule),
    };
    defaults.into_iter().filter_map(lower).collect()
}

/// A rule that opens `/` stands for every folder in it: the root itself is always the sandbox's own.
fn whole_host(rule: &ResolvedRule) -> Vec<ResolvedRule> {
    let Ok(entries) = std::fs::read_dir("/") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| !PRIVATE.iter().any(|own| path == Path::new(own)))
        .map(|path| ResolvedRule { path, ..rule.clone() })
        .collect()
}

fn search_path(request: &Request<'_>) -> Vec<PathBuf> {
    let none = OsString::new();
    std::env::split_paths(variable(request.environment, "PATH").unwrap_or(&none))
        .filter(|entry| entry.is_absolute())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(access: PathAccess, path: &str, origin: Origin) -> ResolvedRule {
        ResolvedRule {
            path: path.into(),
            access,
            origin,
        }
    }

    fn from_settings(access: PathAccess, path: &str) -> ResolvedRule {
        let origin = Origin::Settings {
            path: "settings.json".into(),
            key: "filesystem".to_owned(),
        };
        rule(access, path, origin)
    }

    /// Rules of a settings file.
    type Import<'a> = &'a [(PathAccess, &'a str)];

    /// What the defaults leave of `/usr`, `/opt` and the workspace beside imported rules.
    fn beside(import: Import<'_>) -> [Effective; 3] {
        let import: Vec<ResolvedRule> = import
            .iter()
            .map(|(access, path)| from_settings(*access, path))
            .collect();
        let builtin = |access, path| rule(access, path, Origin::builtin("a default"));
        let defaults = vec![
            builtin(PathAccess::Read, "/usr"),
            builtin(PathAccess::Read, "/opt"),
            builtin(PathAccess::Write, "/w/app"),
        ];
        let view = imported(&import).expect("something was imported");
        let rules = lowered(defaults, &view).into_iter().chain(import);
        let view = View::new(rules, []);
        ["/usr/bin/env", "/opt/x", "/w/app/src"].map(|path| view.access(Path::new(path)).0)
    }

    #[test]
    fn no_default_gives_more_than_an_imported_settings_file() {
        use Effective::{Hidden, ReadOnly, ReadWrite};
        use PathAccess::{Hide, Read, ReadOnly as Close, Write};
        let table: [(Import<'_>, [Effective; 3]); 7] = [
            (&[(Read, "/")], [ReadOnly, ReadOnly, ReadOnly]),
            (&[(Read, "/"), (Write, "/w/app")], [ReadOnly, ReadOnly, ReadWrite]),
            (&[(Hide, "/")], [Hidden, Hidden, Hidden]),
            (
                &[(Hide, "/"), (Read, "/usr"), (Write, "/w")],
                [ReadOnly, Hidden, ReadWrite],
            ),
            (&[(Hide, "/"), (Read, "/usr/bin")], [ReadOnly, Hidden, Hidden]),
            (&[(Read, "/"), (Close, "/w")], [ReadOnly, ReadOnly, ReadOnly]),
            (&[(Read, "/"), (Hide, "/w"), (Hide, "/opt")], [ReadOnly, Hidden, Hidden]),
        ];
        for (import, expected) in table {
            assert_eq!(beside(import), expected, "{import:?}");
        }
    }

    #[test]
    fn without_an_import_every_default_holds() {
        let flag = rule(PathAccess::Hide, "/", Origin::flag("--hide"));
        assert!(imported(&[flag]).is_none());
    }
}
