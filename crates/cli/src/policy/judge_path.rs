//! What holds for a path in a run, in words for a person.
//!
//! The runtime's view decides about the host's paths. On top come what has no place in a view: credentials that are masked
//! wherever they show, toolchains that show in the private home, and protected names that do not exist yet.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::policy::Policy;
use pinfold_model::policy::access::{Effective, View};
use pinfold_model::protected::{Group, Place, classify};

/// Folders of which every sandbox has its own.
const PRIVATE: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys"];

/// Facts about the host. All paths are absolute and without links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    pub(crate) home: PathBuf,
    /// What of the real home shows in the private one.
    pub(crate) shown: Vec<PathBuf>,
    /// Credentials in system folders and toolchains, masked wherever they would show.
    pub(crate) secrets: Vec<PathBuf>,
}

/// What holds for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathAnswer {
    pub(crate) path: PathBuf,
    pub(crate) effective: Effective,
    pub(crate) origin: Origin,
    pub(crate) obstacle: Obstacle,
}

/// What kind of thing stands in the way of more access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A rule, or that there is none.
    Rule,
    Protected(Group),
    /// The sandbox has a folder of its own in this place.
    Private(String),
    Credential,
}

/// Judges `path`, which is absolute and without links.
#[must_use]
pub(crate) fn judge_path(policy: &Policy, view: &View, ground: &Ground, path: &Path) -> PathAnswer {
    let (effective, origin) = view.access(path);
    let answer = |effective, origin, obstacle| PathAnswer {
        path: path.to_owned(),
        effective,
        origin,
        obstacle,
    };
    let is_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    let no_rule = effective == Effective::Hidden && matches!(origin, Origin::Builtin { .. });
    let shows_in_home = no_rule && path.starts_with(&ground.home) && is_in(&ground.shown);

    if is_in(&ground.secrets) && (effective != Effective::Hidden || shows_in_home) {
        let origin = Origin::builtin("credentials of the system and of toolchains are hidden");
        return answer(Effective::Hidden, origin, Obstacle::Credential);
    }
    if shows_in_home {
        let origin = Origin::builtin("toolchains and git's settings show in the private home");
        return answer(Effective::ReadOnly, origin, Obstacle::Rule);
    }
    if no_rule && let Some(place) = private_place(ground, path) {
        return answer(effective, origin.clone(), Obstacle::Private(place));
    }
    match (effective, protected(policy, view, ground, path)) {
        (Effective::ReadWrite, Some(group)) => {
            let origin = Origin::builtin(&format!("protected, {}", group.reason().trim_end_matches('.')));
            answer(Effective::ReadOnly, origin, Obstacle::Protected(group))
        }
        (Effective::ReadOnly, Some(group)) if matches!(origin, Origin::Builtin { .. }) => {
            answer(effective, origin.clone(), Obstacle::Protected(group))
        }
        _ => answer(effective, origin.clone(), Obstacle::Rule),
    }
}

fn private_place(ground: &Ground, path: &Path) -> Option<String> {
    if path.starts_with(&ground.home) {
        return Some("home".to_owned());
    }
    PRIVATE.into_iter().find(|own| path.starts_with(own)).map(str::to_owned)
}

/// The group that protects `path` by its name, below any root that is writable, unless it is lifted.
fn protected(policy: &Policy, view: &View, ground: &Ground, path: &Path) -> Option<Group> {
    let writable = view
        .entries()
        .filter(|entry| entry.effective == Effective::ReadWrite && path.starts_with(entry.path));
    let roots: Vec<&Path> = writable.map(|entry| entry.path).collect();
    let home_is_covered = path.starts_with(&ground.home) && roots.iter().any(|root| ground.home.starts_with(root));
    let home = home_is_covered.then_some((ground.home.as_path(), Place::Home));
    let places = roots.iter().map(|root| (*root, Place::Root)).chain(home);
    let found = places.filter_map(|(start, place)| {
        let below = path.strip_prefix(start).ok()?;
        classify(below.as_os_str().as_bytes(), place)
    });
    found
        .map(|found| found.group)
        .find(|group| !policy.lift.iter().any(|lift| lift.group == *group))
}

#[cfg(test)]
mod tests {
    use pinfold_model::policy::access::ResolvedRule;
    use pinfold_model::policy::{Lift, PathAccess};

    use super::*;

    fn view(rules: &[(PathAccess, &str)]) -> View {
        let built_in = [
            (PathAccess::Read, "/usr"),
            (PathAccess::Read, "/etc"),
            (PathAccess::Write, "/home/me/app"),
        ];
        let built_in = built_in
            .iter()
            .map(|(access, path)| (*access, *path, Origin::builtin("a default")));
        let rules = rules
            .iter()
            .map(|(access, path)| (*access, *path, Origin::flag("--rule")));
        let rules = built_in.chain(rules);
        View::new(
            rules.map(|(access, path, origin)| ResolvedRule {
                path: path.into(),
                access,
                origin,
            }),
            [],
        )
    }

    fn ground() -> Ground {
        Ground {
            home: "/home/me".into(),
            shown: vec!["/home/me/.cargo".into(), "/home/me/.gitconfig".into()],
            secrets: vec!["/etc/shadow".into(), "/home/me/.cargo/credentials.toml".into()],
        }
    }

    #[test]
    fn paths_are_judged_by_the_view_and_by_what_has_no_place_in_it() {
        use Effective::{Hidden, ReadOnly, ReadWrite};
        let private = |place: &str| Obstacle::Private(place.to_owned());
        let view = view(&[
            (PathAccess::Hide, "/home/me/app/s"),
            (PathAccess::Read, "/home/me/notes"),
            (PathAccess::Read, "/etc/shadow"),
        ]);
        let table = [
            ("/home/me/app/main.rs", ReadWrite, Obstacle::Rule),
            ("/home/me/app/s/key", Hidden, Obstacle::Rule),
            (
                "/home/me/app/.git/hooks/pre-commit",
                ReadOnly,
                Obstacle::Protected(Group::GitHooks),
            ),
            (
                "/home/me/app/.vscode/tasks.json",
                ReadOnly,
                Obstacle::Protected(Group::Ide),
            ),
            ("/home/me/notes/x", ReadOnly, Obstacle::Rule),
            ("/home/me/.ssh/id_ed25519", Hidden, private("home")),
            ("/home/me/.cargo/bin/cargo", ReadOnly, Obstacle::Rule),
            ("/home/me/.cargo/credentials.toml", Hidden, Obstacle::Credential),
            ("/home/me/.gitconfig", ReadOnly, Obstacle::Rule),
            ("/usr/bin/env", ReadOnly, Obstacle::Rule),
            ("/etc/shadow", Hidden, Obstacle::Credential),
            ("/tmp/x", Hidden, private("/tmp")),
            ("/srv/x", Hidden, Obstacle::Rule),
        ];
        for (path, effective, obstacle) in table {
            let answer = judge_path(&Policy::default(), &view, &ground(), Path::new(path));
            assert_eq!((answer.effective, answer.obstacle), (effective, obstacle), "{path}");
        }
    }

    #[test]
    fn a_lift_opens_its_group_only() {
        let lift = Lift {
            group: Group::GitHooks,
            origin: Origin::flag("--lift"),
        };
        let policy = Policy {
            lift: vec![lift],
            ..Policy::default()
        };
        let judge = |path: &str| judge_path(&policy, &view(&[]), &ground(), Path::new(path));
        assert_eq!(
            judge("/home/me/app/.git/hooks/pre-commit").effective,
            Effective::ReadWrite
        );
        assert_eq!(
            judge("/home/me/app/.vscode/tasks.json").obstacle,
            Obstacle::Protected(Group::Ide)
        );
    }

    #[test]
    fn a_home_that_is_writable_keeps_its_start_files() {
        let answer = judge_path(
            &Policy::default(),
            &view(&[(PathAccess::Write, "/home/me")]),
            &ground(),
            Path::new("/home/me/.bashrc"),
        );
        assert_eq!(
            (answer.effective, answer.obstacle),
            (Effective::ReadOnly, Obstacle::Protected(Group::ShellStart))
        );
    }
}
