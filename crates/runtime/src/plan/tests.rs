//! Plans of made-up hosts: what is built, in which order, and what no combination of rules may bring about.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use pinfold_model::origin::Origin;
use pinfold_model::plan::{Access, Step};
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::ResolvedRule;
use proptest::prelude::*;

use super::*;

fn caller() -> Caller {
    Caller {
        uid: 1000,
        gid: 1000,
        user: "me".to_owned(),
        home: "/home/me".into(),
        shell: "/bin/bash".to_owned(),
    }
}

fn host() -> Host {
    Host {
        root: None,
        system: ["/usr", "/etc", "/opt"].map(PathBuf::from).to_vec(),
        links: vec![("/bin".into(), "usr/bin".into())],
        secrets: vec![
            ("/etc/shadow".into(), Node::File),
            ("/etc/ssl/private".into(), Node::Dir),
        ],
        resolv_conf: Some("/run/systemd/resolve/stub-resolv.conf".into()),
        databases: vec!["/etc/passwd", "/etc/group", "/etc/hosts"],
        root_bundle: None,
        memory: 8 << 30,
        hardware: Some("/sys/devices/system".into()),
    }
}

fn rule(path: &str, access: PathAccess) -> ResolvedRule {
    ResolvedRule {
        path: path.into(),
        access,
        origin: Origin::builtin("test"),
    }
}

/// A plan for the rules on top of the defaults.
fn plan(rules: &[ResolvedRule], nodes: &[(&str, Node)], protection: &Protection, home: &Home) -> Plan {
    let mut all = vec![
        rule("/usr", PathAccess::Read),
        rule("/etc", PathAccess::Read),
        rule("/opt", PathAccess::Read),
        rule("/home/me/app", PathAccess::Write),
    ];
    all.extend_from_slice(rules);
    compose(&Inputs {
        caller: &caller(),
        host: &host(),
        view: &View::new(all, []),
        nodes: &nodes.iter().map(|(path, node)| (PathBuf::from(path), *node)).collect(),
        protection,
        devices: &[],
        home,
        network: true,
        filter: Vec::new(),
        processes: 100,
    })
}

fn private_home() -> Home {
    Home::Private {
        folder: "/state/home".into(),
        layers: vec![Layered {
            tree: "/home/me/.cargo".into(),
            source: "/home/me/.cargo".into(),
            upper: "/state/0/upper".into(),
            work: "/state/0/work".into(),
            hidden: vec![("/home/me/.cargo/credentials.toml".into(), Node::File)],
        }],
        shown: vec![Shown {
            path: "/home/me/.gitconfig".into(),
            source: "/home/me/.gitconfig".into(),
            node: Node::File,
        }],
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// One line a step, without the generated contents.
fn outline(plan: &Plan) -> String {
    let mut lines = String::new();
    for step in &plan.view {
        let line = match step {
            Step::Dir { path, mode } => format!("dir {} {mode:o}", text(path)),
            Step::File { path, .. } => format!("file {}", text(path)),
            Step::EmptyFile { path } => format!("point {}", text(path)),
            Step::Symlink { path, target } => format!("link {} {}", text(path), text(target)),
            Step::Tmpfs { path, mode, .. } => format!("tmpfs {} {mode:o}", text(path)),
            Step::Bind {
                source,
                target,
                access,
                node,
            } => {
                format!("bind {} {} {access:?} {node:?}", text(source), text(target))
            }
            Step::Rebind { source, target, .. } => format!("rebind {} {}", text(source), text(target)),
            Step::Mask { target, node } => format!("mask {} {node:?}", text(target)),
            Step::Overlay {
                lower, upper, target, ..
            } => {
                format!("overlay {} {} {}", text(lower), text(upper), text(target))
            }
            Step::Proc { path } => format!("proc {}", text(path)),
            Step::Devpts { path } => format!("devpts {}", text(path)),
            Step::Device { target, .. } => format!("device {}", text(target)),
            Step::Seal { path } => format!("seal {}", text(path)),
        };
        let _ = writeln!(lines, "{line}");
    }
    for grant in &plan.grants {
        let _ = writeln!(lines, "grant {} {:?}", text(&grant.path), grant.access);
    }
    lines
}

/// What the last mount on or above a path makes of it.
fn outcome(plan: &Plan, path: &str) -> &'static str {
    let mut nearest: (usize, &'static str) = (0, "nothing");
    for step in &plan.view {
        let (target, what) = match step {
            Step::Bind {
                target,
                access: Access::ReadOnly,
                ..
            } => (target, "read"),
            Step::Bind {
                target,
                access: Access::ReadWrite,
                ..
            } => (target, "write"),
            Step::Mask { target, .. } => (target, "hidden"),
            Step::Tmpfs { path, .. } => (path, "private"),
            Step::Overlay { target, .. } => (target, "layer"),
            _ => continue,
        };
        let target = Path::new(std::ffi::OsStr::from_bytes(target));
        let depth = target.components().count();
        if Path::new(path).starts_with(target) && depth >= nearest.0 {
            nearest = (depth, what);
        }
    }
    nearest.1
}

#[test]
fn the_plan_of_an_ordinary_start_is_as_recorded() {
    let mut protection = Protection::default();
    protection.pinned.push("/home/me/app/.git".into());
    protection
        .cuts
        .insert("/home/me/app/.git/config".into(), (Effective::ReadOnly, Node::File));
    protection
        .cuts
        .insert("/home/me/app/.git/hooks".into(), (Effective::ReadOnly, Node::Dir));
    insta::assert_snapshot!(outline(&plan(&[], &[], &protection, &private_home())));
}

#[test]
fn rules_end_in_the_access_that_they_ask_for() {
    use PathAccess::{Hide, Read, ReadOnly, Write};
    type Rules = &'static [(&'static str, PathAccess)];
    let table: [(Rules, &str, &str); 10] = [
        (&[], "/home/me/app/src", "write"),
        (&[], "/home/me/other", "write"),
        (&[], "/srv/data", "nothing"),
        (&[("/srv/data", Read)], "/srv/data/x", "read"),
        (&[("/home/me/app/secrets", Hide)], "/home/me/app/secrets/key", "hidden"),
        (&[("/home/me/app", ReadOnly)], "/home/me/app/src", "read"),
        (
            &[("/home/me/app/secrets", Hide), ("/home/me/app/secrets/open", Write)],
            "/home/me/app/secrets/open/x",
            "write",
        ),
        (
            &[("/home/me/app/secrets", Hide), ("/home/me/app/secrets/open", Write)],
            "/home/me/app/secrets/key",
            "private",
        ),
        (&[("/tmp/shared", Write)], "/tmp/shared/x", "write"),
        (&[("/tmp", Write)], "/tmp/x", "private"),
    ];
    for (rules, path, expected) in table {
        let rules: Vec<_> = rules.iter().map(|(path, access)| rule(path, *access)).collect();
        let plan = plan(&rules, &[], &Protection::default(), &private_home());
        assert_eq!(outcome(&plan, path), expected, "{rules:?} {path}");
    }
}

#[test]
fn a_write_rule_below_a_protected_path_does_not_open_it() {
    let mut protection = Protection::default();
    protection
        .cuts
        .insert("/home/me/app/.vscode".into(), (Effective::ReadOnly, Node::Dir));
    let plan = plan(
        &[rule("/home/me/app/.vscode/tasks", PathAccess::Write)],
        &[],
        &protection,
        &private_home(),
    );
    assert_eq!(outcome(&plan, "/home/me/app/.vscode/tasks/x"), "read");
}

#[test]
fn what_a_rule_hides_is_not_shown_again_by_protection() {
    let mut protection = Protection::default();
    protection
        .cuts
        .insert("/home/me/app/.git/hooks".into(), (Effective::ReadOnly, Node::Dir));
    let hidden = [rule("/home/me/app/.git/hooks", PathAccess::Hide)];
    let plan = plan(&hidden, &[], &protection, &private_home());
    assert_eq!(outcome(&plan, "/home/me/app/.git/hooks/pre-commit"), "hidden");
}

#[test]
fn a_repository_outside_opens_what_its_worktree_needs_and_no_more() {
    let mut protection = Protection::default();
    for (path, effective, node) in [
        ("/home/me/main/.git", Effective::ReadWrite, Node::Dir),
        ("/home/me/main/.git/config", Effective::ReadOnly, Node::File),
        ("/home/me/main/.git/worktrees", Effective::ReadOnly, Node::Dir),
        ("/home/me/main/.git/worktrees/app", Effective::ReadWrite, Node::Dir),
    ] {
        protection.cuts.insert(path.into(), (effective, node));
    }
    let plan = plan(&[], &[], &protection, &private_home());
    for (path, expected) in [
        ("/home/me/main/.git/refs/heads/x", "write"),
        ("/home/me/main/.git/config", "read"),
        ("/home/me/main/.git/worktrees/other/HEAD", "read"),
        ("/home/me/main/.git/worktrees/app/HEAD", "write"),
        ("/home/me/main/src", "write"),
    ] {
        assert_eq!(outcome(&plan, path), expected, "{path}");
    }
    // The last one lies in the private home, where the main checkout is not.
    assert!(
        plan.view
            .iter()
            .all(|step| !matches!(step, Step::Bind { source, .. } if text(source) == "/home/me/main"))
    );
}

#[test]
fn mount_points_in_the_private_home_are_named_for_the_host_to_make() {
    let (caller, host, home) = (caller(), host(), private_home());
    let view = View::new([rule("/home/me/app", PathAccess::Write)], []);
    let points = home_points(&Inputs {
        caller: &caller,
        host: &host,
        view: &view,
        nodes: &BTreeMap::new(),
        protection: &Protection::default(),
        devices: &[],
        home: &home,
        network: true,
        filter: Vec::new(),
        processes: 1,
    });
    let expected = [(".cargo", Node::Dir), (".gitconfig", Node::File), ("app", Node::Dir)];
    assert_eq!(points, expected.map(|(path, node)| (PathBuf::from(path), node)));
}

#[test]
fn the_self_test_looks_where_only_landlock_stands_and_at_what_is_hidden() {
    let plan = plan(&[], &[], &Protection::default(), &private_home());
    assert_eq!(text(&plan.proof.landlocked), "/run/.pinfold-proof");
    assert!(plan.grants.iter().all(|grant| text(&grant.path) != "/run"));
    assert_eq!(
        plan.proof.hidden.map(|path| text(&path)),
        Some("/etc/shadow".to_owned())
    );
}

fn access() -> impl Strategy<Value = PathAccess> {
    prop_oneof![
        Just(PathAccess::Write),
        Just(PathAccess::Read),
        Just(PathAccess::ReadOnly),
        Just(PathAccess::Hide)
    ]
}

fn some_path() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec!["home", "me", "app", "usr", "srv", "tmp", "run", "x", "y"]);
    prop::collection::vec(names, 1..5).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    #[test]
    fn the_order_of_rules_does_not_matter_and_every_target_is_built_once(
        rules in prop::collection::vec((some_path(), access()), 0..12),
    ) {
        let rules: Vec<_> = rules.iter().map(|(path, access)| rule(path, *access)).collect();
        let reversed: Vec<_> = rules.iter().rev().cloned().collect();
        let there = plan(&rules, &[], &Protection::default(), &private_home());
        let back = plan(&reversed, &[], &Protection::default(), &private_home());
        prop_assert_eq!(outline(&there), outline(&back));

        let mut seen = HashSet::new();
        for step in &there.view {
            if let Step::Bind { target, .. } | Step::Mask { target, .. } | Step::Overlay { target, .. } = step {
                prop_assert!(seen.insert(target.clone()), "{} is built twice", text(target));
            }
        }
    }

    #[test]
    fn nothing_is_writable_that_no_rule_made_writable(
        rules in prop::collection::vec((some_path(), access()), 0..12),
        path in some_path(),
    ) {
        let rules: Vec<_> = rules.iter().map(|(path, access)| rule(path, *access)).collect();
        let permitted = rules.iter().any(|rule| rule.access == PathAccess::Write && Path::new(&path).starts_with(&rule.path));
        let own = ["/tmp", "/run", "/home/me"].iter().any(|own| Path::new(&path).starts_with(own));
        let plan = plan(&rules, &[], &Protection::default(), &private_home());
        if outcome(&plan, &path) == "write" {
            prop_assert!(permitted || own, "{path} is writable");
        }
    }
}
