use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Effective, ResolvedRule, View};
use crate::origin::Origin;
use crate::policy::PathAccess::{self, Hide, Read, ReadOnly, Write};

fn rule(access: PathAccess, path: &str) -> ResolvedRule {
    ResolvedRule {
        path: PathBuf::from(path),
        access,
        origin: Origin::flag(&format!("{access:?} {path}")),
    }
}

fn view(rules: &[(PathAccess, &str)], protected: &[&str]) -> View {
    View::new(
        rules.iter().map(|(access, path)| rule(*access, path)),
        protected
            .iter()
            .map(|path| (PathBuf::from(path), Origin::builtin("protected"))),
    )
}

#[test]
fn the_more_specific_rule_wins_and_on_a_tie_the_stricter() {
    use Effective::{Hidden, ReadOnly as Ro, ReadWrite as Rw};
    type Case = (
        &'static str,
        &'static [(PathAccess, &'static str)],
        &'static str,
        Effective,
    );
    let table: &[Case] = &[
        ("nothing matches", &[], "/etc/shadow", Hidden),
        ("the root itself", &[], "/", Hidden),
        ("below a read", &[(Read, "/usr")], "/usr/bin/env", Ro),
        ("a name that only starts alike", &[(Read, "/usr")], "/usrlocal", Hidden),
        ("write in a hidden tree", &[(Hide, "/h"), (Write, "/h/p")], "/h/p/x", Rw),
        (
            "beside a write in a hidden tree",
            &[(Hide, "/h"), (Write, "/h/p")],
            "/h/q",
            Hidden,
        ),
        (
            "the folder above a write in a hidden tree",
            &[(Hide, "/h"), (Write, "/h/p")],
            "/h",
            Hidden,
        ),
        (
            "hide in a write root",
            &[(Write, "/p"), (Hide, "/p/s")],
            "/p/s/key",
            Hidden,
        ),
        (
            "hide in a readonly tree",
            &[(Write, "/p"), (ReadOnly, "/p/m"), (Hide, "/p/m/s")],
            "/p/m/s",
            Hidden,
        ),
        (
            "readonly in a write root",
            &[(Write, "/p"), (ReadOnly, "/p/m")],
            "/p/m/1.sql",
            Ro,
        ),
        (
            "write in a readonly tree",
            &[(Write, "/p"), (ReadOnly, "/p/m"), (Write, "/p/m/new")],
            "/p/m/new/x",
            Rw,
        ),
        ("readonly alone", &[(ReadOnly, "/srv")], "/srv/x", Hidden),
        (
            "readonly in a hidden tree",
            &[(Read, "/"), (Hide, "/h"), (ReadOnly, "/h/x")],
            "/h/x",
            Hidden,
        ),
        (
            "readonly above a write",
            &[(ReadOnly, "/p"), (Write, "/p/a")],
            "/p/a",
            Rw,
        ),
        ("everything hidden, one write", &[(Hide, "/"), (Write, "/p")], "/p", Rw),
        ("everything readable", &[(Read, "/")], "/root/.ssh", Ro),
        ("tie of write and hide", &[(Write, "/p"), (Hide, "/p")], "/p", Hidden),
        ("tie of write and read", &[(Write, "/p"), (Read, "/p")], "/p", Ro),
        (
            "tie of write and readonly",
            &[(Write, "/p"), (ReadOnly, "/p")],
            "/p",
            Ro,
        ),
        ("tie of read and hide", &[(Read, "/p"), (Hide, "/p")], "/p", Hidden),
        ("tie of read and readonly", &[(Read, "/p"), (ReadOnly, "/p")], "/p", Ro),
    ];
    for (name, rules, path, expected) in table {
        assert_eq!(view(rules, &[]).access(Path::new(path)).0, *expected, "{name}");
    }
}

#[test]
fn a_protected_path_stays_read_only_below_any_write_rule() {
    let rules = [
        (Write, "/p"),
        (Write, "/p/.git/hooks/pre-commit"),
        (Hide, "/p/.git/hooks/secret"),
    ];
    let view = view(&rules, &["/p/.git/hooks"]);
    assert_eq!(view.access(Path::new("/p/.git/hooks")).0, Effective::ReadOnly);
    assert_eq!(
        view.access(Path::new("/p/.git/hooks/pre-commit")).0,
        Effective::ReadOnly
    );
    assert_eq!(view.access(Path::new("/p/.git/hooks/secret")).0, Effective::Hidden);
    assert_eq!(view.access(Path::new("/p/.git/index")).0, Effective::ReadWrite);
    assert_eq!(
        view.access(Path::new("/p/.git/hooks/x")).1,
        &Origin::builtin("protected")
    );
}

#[test]
fn a_protected_path_in_a_hidden_tree_stays_hidden() {
    assert_eq!(
        view(&[(Hide, "/h")], &["/h/.bashrc"]).access(Path::new("/h/.bashrc")).0,
        Effective::Hidden
    );
}

#[test]
fn the_origin_is_the_rule_that_decides() {
    let view = view(&[(Write, "/p"), (ReadOnly, "/p/m"), (ReadOnly, "/h")], &[]);
    assert_eq!(view.access(Path::new("/p/x")).1, &Origin::flag("Write /p"));
    assert_eq!(view.access(Path::new("/p/m/x")).1, &Origin::flag("ReadOnly /p/m"));
    assert_eq!(
        view.access(Path::new("/h")).1,
        &Origin::builtin("only what a rule names is visible")
    );
}

#[test]
fn entries_name_only_the_paths_where_access_changes() {
    let rules = [
        (Hide, "/"),
        (Read, "/usr"),
        (Read, "/usr/lib"),
        (Write, "/home/me/p"),
        (Hide, "/home/me/p/s"),
        (Hide, "/home/me/p/s/deeper"),
        (ReadOnly, "/home/me/other"),
        (ReadOnly, "/home/me/p/m"),
        (Write, "/home/me/p.d"),
    ];
    let view = view(&rules, &["/home/me/p/m/.git"]);
    let entries: Vec<_> = view
        .entries()
        .map(|entry| (entry.path.to_str().unwrap_or("?"), entry.effective))
        .collect();
    assert_eq!(
        entries,
        [
            ("/home/me/p", Effective::ReadWrite),
            ("/home/me/p/m", Effective::ReadOnly),
            ("/home/me/p/s", Effective::Hidden),
            ("/home/me/p.d", Effective::ReadWrite),
            ("/usr", Effective::ReadOnly),
        ]
    );
}

#[test]
fn names_that_are_not_utf_8_are_told_apart() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let hide = ResolvedRule {
        path: path(b"/p/\xff"),
        access: Hide,
        origin: Origin::flag("--hide"),
    };
    let view = View::new([rule(Write, "/p"), hide], []);
    assert_eq!(view.access(&path(b"/p/\xff/x")).0, Effective::Hidden);
    assert_eq!(view.access(&path(b"/p/\xfe/x")).0, Effective::ReadWrite);
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "a.b"]), 0..4)
        .prop_map(|parts| parts.into_iter().fold(PathBuf::from("/"), |path, part| path.join(part)))
}

fn any_rule() -> impl Strategy<Value = ResolvedRule> {
    (any_path(), prop::sample::select(vec![Hide, Read, ReadOnly, Write])).prop_map(|(path, access)| ResolvedRule {
        path,
        access,
        origin: Origin::flag("--x"),
    })
}

proptest! {
    #[test]
    fn the_order_of_rules_does_not_matter(rules in prop::collection::vec(any_rule(), 0..12), path in any_path()) {
        let forth = View::new(rules.clone(), []);
        let back = View::new(rules.into_iter().rev(), []);
        prop_assert_eq!(forth.access(&path).0, back.access(&path).0);
    }

    #[test]
    fn adding_hide_readonly_or_protection_never_widens(
        rules in prop::collection::vec(any_rule(), 0..12),
        more in prop::collection::vec((any_path(), prop::sample::select(vec![Hide, ReadOnly])), 0..6),
        protected in prop::collection::vec(any_path(), 0..3),
        path in any_path(),
    ) {
        let before = View::new(rules.clone(), []).access(&path).0;
        let more = more.into_iter().map(|(path, access)| ResolvedRule { path, access, origin: Origin::flag("--y") });
        let protected = protected.into_iter().map(|path| (path, Origin::builtin("p")));
        let after = View::new(rules.into_iter().chain(more), protected).access(&path).0;
        prop_assert!(after <= before, "{:?} became {:?}", before, after);
    }

    #[test]
    fn walking_the_entries_gives_the_same_answer_as_asking(rules in prop::collection::vec(any_rule(), 0..12), path in any_path()) {
        let view = View::new(rules, []);
        let walked = view.entries().filter(|entry| path.starts_with(entry.path)).last().map_or(Effective::Hidden, |entry| entry.effective);
        prop_assert_eq!(walked, view.access(&path).0);
    }
}
