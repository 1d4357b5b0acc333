//! Reading an imported Sandbox Runtime settings file.

use std::path::{Path, PathBuf};

use pinfold_model::policy::access::{Effective, ResolvedRule, View};
use pinfold_model::policy::srt::{ImportContext, Imported, UnknownKeys, import};
use pinfold_model::policy::{PathAccess, PathPattern, PathRule};
use pinfold_runtime::host::Host;

use super::read::read_own;
use super::{Folders, LoadError, PolicyArgs};

/// What `--settings` names, if it is given. Like every file named on the command line it has to exist.
pub(super) fn settings(
    args: &PolicyArgs,
    folders: &Folders,
    cwd: &Path,
    workspace: &Path,
) -> Result<Option<Imported>, LoadError> {
    let Some(file) = &args.settings else { return Ok(None) };
    let path = cwd.join(file);
    let content = read_own(&path)?.ok_or_else(|| LoadError::Missing { path: path.clone() })?;
    let context = ImportContext {
        file,
        home: folders.home.as_deref().ok_or(LoadError::NoHome)?,
        cwd,
        unknown_keys: if args.settings_skip_unknown {
            UnknownKeys::Note
        } else {
            UnknownKeys::Refuse
        },
        allow_disabled_filesystem: args.settings_open_filesystem,
    };
    let mut imported = import(&content, &context)?;
    let host = Host::look();
    let defaults: Vec<PathBuf> = host.system.into_iter().chain(host.hardware).collect();
    let more = over_defaults(&imported.layer.filesystem, &defaults, workspace);
    imported.layer.filesystem.extend(more);
    Ok(Some(imported))
}

/// Rules that take from the built-in defaults what the file does not give, so that the printed policy says all of it. The runtime
/// lowers the defaults once more, with links followed and patterns expanded.
fn over_defaults(rules: &[PathRule], shown: &[PathBuf], workspace: &Path) -> Vec<PathRule> {
    let literal = rules.iter().filter(|rule| rule.path.glob.is_none());
    let view = View::new(
        literal.map(|rule| ResolvedRule {
            path: rule.path.path.clone(),
            access: rule.access,
            origin: rule.origin.clone(),
        }),
        [],
    );
    let rule = |path: &Path, access| PathRule {
        access,
        path: PathPattern::literal(path.to_owned()),
        reason: Some("a default of Pinfold gives way to the file".to_owned()),
        origin: view.access(path).1.clone(),
    };
    let hidden = shown.iter().filter(|path| view.access(path).0 == Effective::Hidden);
    let mut more: Vec<PathRule> = hidden.map(|path| rule(path, PathAccess::Hide)).collect();
    match view.access(workspace).0 {
        Effective::Hidden => more.push(rule(workspace, PathAccess::Hide)),
        Effective::ReadOnly => more.push(rule(workspace, PathAccess::ReadOnly)),
        Effective::ReadWrite => {}
    }
    more.retain(|new| !rules.iter().any(|old| old.path == new.path && old.access == new.access));
    more
}

#[cfg(test)]
mod tests {
    use pinfold_model::origin::Origin;

    use super::*;

    type Short<'a> = &'a [(PathAccess, &'a str)];

    #[test]
    fn the_defaults_that_a_file_takes_away_are_named() {
        use PathAccess::{Hide, Read, ReadOnly, Write};
        let table: [(Short<'_>, Short<'_>); 5] = [
            (&[(Read, "/"), (Write, "/w")], &[]),
            (&[(Read, "/")], &[(ReadOnly, "/w/app")]),
            (&[(Read, "/"), (ReadOnly, "/w/app")], &[]),
            (&[(Hide, "/"), (Read, "/usr"), (Write, "/w/app")], &[(Hide, "/opt")]),
            (
                &[(Hide, "/"), (Read, "/usr/bin")],
                &[(Hide, "/usr"), (Hide, "/opt"), (Hide, "/w/app")],
            ),
        ];
        for (file, expected) in table {
            let origin = Origin::Settings {
                path: "s.json".into(),
                key: "filesystem".to_owned(),
            };
            let rules: Vec<PathRule> = file
                .iter()
                .map(|(access, path)| PathRule {
                    access: *access,
                    path: PathPattern::literal(path.into()),
                    reason: None,
                    origin: origin.clone(),
                })
                .collect();
            let more = over_defaults(&rules, &["/usr".into(), "/opt".into()], Path::new("/w/app"));
            let more: Vec<(PathAccess, &str)> = more
                .iter()
                .map(|rule| (rule.access, rule.path.path.to_str().expect("text")))
                .collect();
            assert_eq!(more, expected, "{file:?}");
        }
    }
}
