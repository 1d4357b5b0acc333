//! Links: where denials end, and what permissions may not open.

use super::super::Widening;
use super::*;
use pinfold_model::plan::Node;
use rustix::fs::{Mode, OFlags};

fn widening(result: Result<Resolved, ResolveError>) -> Option<Widening> {
    match result {
        Err(ResolveError::Widens { widening, .. }) => Some(widening),
        Ok(_) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_denial_spelled_through_a_link_covers_the_target_and_keeps_the_link_in_place() {
    let host = Host::new();
    let key = host.file("out/keys/id");
    let inside = host.link("home/work/keys", "../../out/keys");
    host.link("out/alias", &host.workspace);
    let resolved = host
        .resolve(&[rule(Hide, host.root.join("out/alias/keys/id"))])
        .unwrap();
    assert_eq!(said(&resolved), [(Hide, key.clone())]);
    // The alias lies outside every write root, where nothing inside can replace it.
    assert_eq!(links(&resolved), std::slice::from_ref(&inside));
    assert_eq!(resolved.nodes, [(key, Node::File), (inside, Node::Symlink)].into());
}

#[test]
fn a_denied_link_that_dangles_denies_the_name_it_leads_to() {
    let host = Host::new();
    let first = host.link("home/work/a", "b/c");
    let second = host.link("home/work/b", "../../out/later");
    let resolved = host.resolve(&[rule(ReadOnly, &first)]).unwrap();
    assert_eq!(absent(&resolved), [(ReadOnly, host.root.join("out/later/c"))]);
    assert_eq!(links(&resolved), [first, second]);
    assert_eq!(said(&resolved), []);
}

#[test]
fn a_denied_link_through_something_missing_and_back_covers_what_it_would_open() {
    let host = Host::new();
    let secret = host.file("home/work/secret");
    let link = host.link("home/work/l", "missing/../secret");
    assert_eq!(said(&host.resolve(&[rule(Hide, &link)]).unwrap()), [(Hide, secret)]);
    // Nothing can be opened that way now, so there is nothing to permit.
    assert!(matches!(
        host.resolve(&[rule(Write, &link)]),
        Err(ResolveError::Missing { .. })
    ));
}

#[test]
fn a_cycle_is_an_error_that_names_rule_and_origin() {
    let host = Host::new();
    host.link("home/work/a", "b");
    host.link("home/work/b", "a");
    let itself = host.link("home/self", "self");
    for path in [host.workspace.join("a"), host.workspace.join("a/x"), itself] {
        for access in [Hide, ReadOnly, Read, Write] {
            let error = host.resolve(&[from(file_origin(), rule(access, &path))]).unwrap_err();
            assert!(matches!(error, ResolveError::Cycle { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains(path.to_str().unwrap()) && text.contains("pinfold.toml:3"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_cycle_below_a_profiles_permission_only_drops_it() {
    let host = Host::new();
    let cycle = host.link("home/a", "a");
    let resolved = host
        .resolve(&[from(profile_origin(), rule(Read, cycle)), rule(Hide, &host.workspace)])
        .unwrap();
    assert_eq!(said(&resolved), [(Hide, host.workspace.clone())]);
    assert!(resolved.warnings[0].contains("cycle"), "{:?}", resolved.warnings);
}

#[test]
fn a_denied_target_that_cannot_be_looked_at_hides_the_nearest_folder_above() {
    let host = Host::new();
    // Deeper than the kernel takes a path, reached through a link from halfway down.
    let name = "n".repeat(240);
    let mut folder = rustix::fs::openat(rustix::fs::CWD, &host.home, OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..20 {
        rustix::fs::mkdirat(&folder, name.as_str(), Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, name.as_str(), OFlags::PATH, Mode::empty()).unwrap();
    }
    let half: PathBuf = (0..10).map(|_| name.as_str()).collect();
    let link = host.link("home/work/l", host.home.join(&half));
    let far = link.join(&half);
    let depth = (4095 - host.home.as_os_str().len()) / 241;
    let nearest: PathBuf = std::iter::once(host.home.clone())
        .chain((0..depth).map(|_| name.clone().into()))
        .collect();
    for access in [Hide, ReadOnly] {
        let resolved = host.resolve(&[rule(access, &far)]).unwrap();
        assert_eq!(said(&resolved), [(Hide, nearest.clone())]);
        assert_eq!(links(&resolved), std::slice::from_ref(&link));
        assert!(
            resolved.warnings[0].contains("cannot be looked at"),
            "{:?}",
            resolved.warnings
        );
    }
    let error = host.resolve(&[rule(Read, &far)]).unwrap_err();
    assert!(matches!(error, ResolveError::Unreachable { .. }), "{error}");
}

#[test]
fn a_name_longer_than_any_can_be_denies_only_itself() {
    let host = Host::new();
    let name = host.home.join("n".repeat(256));
    let resolved = host.resolve(&[rule(Hide, &name)]).unwrap();
    assert_eq!(absent(&resolved), [(Hide, name)]);
    assert_eq!(said(&resolved), []);
}

#[test]
fn a_link_that_a_sandbox_could_have_made_opens_nothing_new() {
    let host = Host::new();
    let data = host.folder("out/data");
    host.folder("home/work/own");
    let escape = host.link("home/work/escape", &data);
    let stay = host.link("home/work/stay", "own");
    let cache = host.folder("out/cache");
    let planted = host.link("out/cache/planted", "../data");
    let grant = rule(Write, &cache);
    let table = [
        (
            "write out of the workspace",
            vec![rule(Write, &escape)],
            Some(Widening::Planted),
        ),
        (
            "read out of the workspace",
            vec![rule(Read, &escape)],
            Some(Widening::Planted),
        ),
        ("write inside the workspace", vec![rule(Write, &stay)], None),
        (
            "out of another write root",
            vec![grant.clone(), rule(Write, &planted)],
            Some(Widening::Planted),
        ),
        (
            "the same link where nothing is writable",
            vec![rule(Write, &planted)],
            None,
        ),
        (
            "a target that another rule opens",
            vec![rule(Write, &data), rule(Write, &escape)],
            None,
        ),
        (
            "a target that another rule opens for less",
            vec![rule(Read, &data), rule(Write, &escape)],
            Some(Widening::Planted),
        ),
        (
            "reading what is readable",
            vec![rule(Read, host.root.join("out")), rule(Read, &escape)],
            None,
        ),
        (
            "a target hidden in what is readable",
            vec![
                rule(Read, host.root.join("out")),
                rule(Hide, &data),
                rule(Read, &escape),
            ],
            Some(Widening::Planted),
        ),
        (
            "two links that vouch for each other",
            vec![grant, rule(Write, &planted), rule(Read, &escape)],
            Some(Widening::Planted),
        ),
    ];
    for (name, rules, expected) in table {
        assert_eq!(widening(host.resolve(&rules)), expected, "{name}");
    }
}

#[test]
fn a_link_to_a_folder_above_itself_or_a_system_folder_is_refused() {
    let host = Host::new();
    let up = host.link("out/a/up", "../..");
    let etc = host.link("out/etc", "/etc");
    let root = host.link("out/root", "/");
    for access in [Read, Write] {
        assert_eq!(widening(host.resolve(&[rule(access, &up)])), Some(Widening::Above));
        assert_eq!(widening(host.resolve(&[rule(access, &etc)])), Some(Widening::System));
    }
    assert_eq!(widening(host.resolve(&[rule(Read, &root)])), Some(Widening::Above));
    assert!(matches!(
        host.resolve(&[rule(Write, &root)]),
        Err(ResolveError::WritesEverything { .. })
    ));
    let builtin = from(Origin::builtin("system folders"), rule(Read, "/etc"));
    assert_eq!(widening(host.resolve(&[builtin, rule(Read, &etc)])), None);
}

#[test]
fn a_widening_permission_of_a_profile_is_left_out() {
    let host = Host::new();
    let escape = host.link("home/work/escape", "../../out");
    let resolved = host.resolve(&[from(profile_origin(), rule(Write, &escape))]).unwrap();
    assert_eq!(said(&resolved), []);
    let warning = &resolved.warnings[0];
    assert!(
        warning.contains("name the target itself") && !warning.contains('\n'),
        "{warning}"
    );
}

#[test]
fn an_imported_permission_to_read_a_link_opens_only_its_own_name() {
    let host = Host::new();
    host.file("out/folder/key");
    let imported = |access, path: &PathBuf| {
        let origin = Origin::Settings {
            path: "settings.json".into(),
            key: "filesystem.allowRead[0]".to_owned(),
        };
        from(origin, rule(access, path))
    };
    let (link, on_the_way) = (host.link("out/link", "folder"), host.root.join("out/link/key"));
    let resolved = host.resolve(&[imported(Read, &link)]).unwrap();
    assert_eq!(said(&resolved), []);
    assert!(
        resolved.warnings[0].contains("opens only its own name"),
        "{:?}",
        resolved.warnings
    );
    // A link on the way is a way like any other, and an open target needs no permission.
    for rules in [
        vec![imported(Read, &on_the_way)],
        vec![imported(Read, &link), imported(Read, &host.root.join("out/folder"))],
    ] {
        assert!(host.resolve(&rules).unwrap().warnings.is_empty(), "{rules:?}");
    }
}

#[test]
fn links_of_the_process_file_system_are_refused() {
    let host = Host::new();
    for path in ["/proc/self/root/etc", "/proc/self/cwd", "/proc/self/exe"] {
        for access in [Hide, Read, Write] {
            let error = host.resolve(&[rule(access, path)]).unwrap_err();
            assert!(matches!(error, ResolveError::PerProcess { .. }), "{error}");
        }
    }
}
