//! Patterns: what is found, what is not followed, and where the search ends.

use super::super::Bound;
use super::*;

#[test]
fn a_pattern_becomes_a_rule_for_each_match() {
    let host = Host::new();
    let one = host.file("home/work/.env");
    let two = host.file("home/work/a/b/.env");
    let odd = host.file(Path::new("home/work/a").join(OsStr::from_bytes(b"\xffx\n.env")));
    host.file("home/work/a/env");
    let resolved = host.resolve(&[pattern(Hide, &host.workspace, "**/*.env")]).unwrap();
    let mut expected = vec![(Hide, one), (Hide, two), (Hide, odd)];
    expected.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(said(&resolved), expected);
    assert_eq!(resolved.warnings, Vec::<String>::new());
}

#[test]
fn patterns_match_what_the_grammar_says() {
    let host = Host::new();
    for name in ["a/x", "a/b/x", "a/b/c/x", "d/x", ".h/x"] {
        host.file(Path::new("home/work").join(name));
    }
    let table: &[(&str, &[&str])] = &[
        ("*/x", &[".h/x", "a/x", "d/x"]),
        ("**/b/**/x", &["a/b/c/x", "a/b/x"]),
        ("a/**/x", &["a/b/c/x", "a/b/x", "a/x"]),
        ("[!a]/x", &["d/x"]),
        ("?/b", &["a/b"]),
        ("**/c", &["a/b/c"]),
    ];
    for (glob, expected) in table {
        let resolved = host.resolve(&[pattern(ReadOnly, &host.workspace, glob)]).unwrap();
        let expected: Vec<_> = expected
            .iter()
            .map(|path| (ReadOnly, host.workspace.join(path)))
            .collect();
        assert_eq!(said(&resolved), expected, "{glob}");
    }
}

#[test]
fn a_pattern_without_a_match_is_told_unless_a_profile_brought_it() {
    let host = Host::new();
    host.file("home/file");
    for base in ["home/work", "home/none", "home/file"] {
        let none = pattern(Hide, host.root.join(base), "*.pem");
        let resolved = host.resolve(&[none.clone(), from(profile_origin(), none)]).unwrap();
        assert_eq!(
            (resolved.warnings.len(), said(&resolved), absent(&resolved)),
            (1, vec![], vec![]),
            "{base}"
        );
        assert!(resolved.warnings[0].contains("matches nothing"));
    }
}

#[test]
fn no_link_is_searched_and_one_bad_link_does_not_empty_the_result() {
    let host = Host::new();
    host.file("out/deep/a.key");
    host.link("home/work/out", "../../out");
    host.link("home/work/loop", ".");
    host.link("home/work/cycle.key", "cycle.key");
    let good = host.file("home/work/good.key");
    let resolved = host.resolve(&[pattern(Hide, &host.workspace, "**/*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Hide, good)]);
    assert!(resolved.warnings[0].contains("cycle"), "{:?}", resolved.warnings);
}

#[test]
fn a_matched_link_denies_its_target_and_permits_nothing_outside() {
    let host = Host::new();
    let target = host.file("out/target");
    let link = host.link("home/work/a.key", "../../out/target");
    let dangling = host.link("home/work/b.key", "later");
    let resolved = host.resolve(&[pattern(Hide, &host.workspace, "*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Hide, target)]);
    assert_eq!(absent(&resolved), [(Hide, host.workspace.join("later"))]);
    assert_eq!(links(&resolved), [link, dangling]);

    let own = host.file("home/work/c.key");
    let resolved = host.resolve(&[pattern(Read, &host.workspace, "*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Read, own)]);
    assert_eq!(resolved.warnings.len(), 1, "{:?}", resolved.warnings);
}

#[test]
fn past_a_bound_the_start_is_refused_with_the_count() {
    let mut host = Host::new();
    for index in 0..20 {
        host.file(format!("home/work/d/f{index}"));
    }
    host.file("home/work/1/2/3/4/x");
    let wide = Bounds {
        entries: 1000,
        matches: 1000,
        depth: 5,
        time: Duration::from_secs(3600),
    };
    let table = [
        (wide, None),
        (Bounds { entries: 19, ..wide }, Some(Bound::Entries)),
        (Bounds { matches: 19, ..wide }, Some(Bound::Matches)),
        (Bounds { depth: 3, ..wide }, Some(Bound::Depth)),
        (
            Bounds {
                time: Duration::ZERO,
                ..wide
            },
            Some(Bound::Time),
        ),
    ];
    for (bounds, expected) in table {
        host.bounds = bounds;
        for access in [Hide, Read] {
            match (host.resolve(&[pattern(access, &host.workspace, "**/f*")]), expected) {
                (Ok(_), None) => {}
                (
                    Err(ResolveError::TooBig {
                        bound,
                        visited,
                        matches,
                        ..
                    }),
                    Some(expected),
                ) => {
                    assert_eq!(bound, expected);
                    assert!(visited > 0 && matches <= 20, "{visited} {matches}");
                }
                (result, _) => panic!("{expected:?}: {result:?}"),
            }
        }
    }
}

#[test]
fn a_hidden_match_is_not_searched_further_unless_something_in_it_is_permitted() {
    let mut host = Host::new();
    let modules = host.folder("home/work/node_modules");
    let inner = host.folder("home/work/node_modules/a/b/node_modules");
    host.bounds.depth = 1;
    let hide = pattern(Hide, &host.workspace, "**/node_modules");
    assert_eq!(
        said(&host.resolve(std::slice::from_ref(&hide)).unwrap()),
        [(Hide, modules.clone())]
    );
    host.bounds.depth = 10;
    let open = rule(Read, modules.join("a"));
    let resolved = host.resolve(&[hide, open]).unwrap();
    assert_eq!(
        said(&resolved),
        [(Hide, modules.clone()), (Read, modules.join("a")), (Hide, inner)]
    );
}

#[test]
fn the_search_stays_away_from_a_mount_that_may_not_answer() {
    let mut host = Host::new();
    let remote = host.folder("home/work/remote");
    host.file("home/work/remote/a.key");
    let near = host.file("home/work/near.key");
    host.mounts = format!("1 0 0:1 / {} rw - nfs4 server:/ rw\n", remote.display()).into_bytes();
    let resolved = host.resolve(&[pattern(Hide, &host.workspace, "**/*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Hide, near.clone()), (Hide, remote.clone())]);
    assert_eq!(resolved.warnings.len(), 1);
    let resolved = host.resolve(&[pattern(Read, &host.workspace, "**/*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Read, near.clone())]);
    // Named, it is searched.
    let resolved = host
        .resolve(&[pattern(Hide, &host.workspace, "**/*.key"), rule(Write, &remote)])
        .unwrap();
    assert_eq!(
        said(&resolved),
        [(Hide, near), (Write, remote.clone()), (Hide, remote.join("a.key"))]
    );
    let resolved = host.resolve(&[pattern(Hide, &remote, "*.key")]).unwrap();
    assert_eq!(said(&resolved), [(Hide, remote.join("a.key"))]);
}

#[test]
fn the_process_file_system_is_not_searched() {
    let host = Host::new();
    assert!(matches!(
        host.resolve(&[pattern(Hide, "/proc", "*/environ")]),
        Err(ResolveError::OwnView { .. })
    ));
}
