//! Precedence, judged by the same view that the plan is made from.

use super::*;
use crate::policy::access::{Effective, ResolvedRule, View};
use crate::policy::glob::Glob;
use Effective::{Hidden, ReadOnly, ReadWrite};

/// What a path rule of the layer covers among `existing` paths.
pub(super) fn resolve(rules: &[PathRule], existing: &[&str]) -> Vec<ResolvedRule> {
    let mut resolved = Vec::new();
    for rule in rules {
        let paths: Vec<PathBuf> = match &rule.path.glob {
            None => vec![rule.path.path.clone()],
            Some(glob) => {
                let glob = Glob::parse(glob).unwrap();
                let below = existing
                    .iter()
                    .map(Path::new)
                    .filter(|p| p.strip_prefix(&rule.path.path).is_ok_and(|r| glob.matches(r)));
                below.map(Path::to_owned).collect()
            }
        };
        resolved.extend(paths.into_iter().map(|path| ResolvedRule {
            path,
            access: rule.access,
            origin: rule.origin.clone(),
        }));
    }
    resolved
}

/// The imported rules and Pinfold's default of a writable workspace.
fn view(filesystem: &Json, existing: &[&str]) -> View {
    let mut rules = resolve(
        &imported(&json!({ "filesystem": filesystem })).layer.filesystem,
        existing,
    );
    let origin = Origin::builtin("the workspace");
    rules.push(ResolvedRule {
        path: "/home/u/proj".into(),
        access: PathAccess::Write,
        origin,
    });
    View::new(rules, [])
}

#[track_caller]
fn assert_access(filesystem: Json, existing: &[&str], expected: &[(&str, Effective)]) {
    let view = view(&filesystem, existing);
    for (path, effective) in expected {
        assert_eq!(view.access(Path::new(path)).0, *effective, "{path} with {filesystem}");
    }
}

#[test]
fn reading_is_open_and_writing_is_closed() {
    assert_access(
        json!({ "denyRead": ["~/.ssh"], "allowWrite": ["./src"] }),
        &[],
        &[
            ("/etc/passwd", ReadOnly),
            ("/home/u/.netrc", ReadOnly),
            ("/home/u/.ssh/id", Hidden),
            ("/home/u/proj/a", ReadOnly),
            ("/home/u/proj/src/a", ReadWrite),
        ],
    );
    assert_access(json!({ "allowWrite": [] }), &[], &[("/home/u/proj/a", ReadOnly)]);
    assert_access(
        json!({ "allowWrite": ["~"] }),
        &[],
        &[("/home/u/proj/a", ReadWrite), ("/home/u/x", ReadWrite)],
    );
}

#[test]
fn allow_read_beats_deny_read_for_the_same_path_and_a_deeper_denial_stays() {
    assert_access(
        json!({ "denyRead": ["~/a", "~/a/b/c", "~/f"], "allowRead": ["~/f", "~/a/b"] }),
        &[],
        &[
            ("/home/u/a/x", Hidden),
            ("/home/u/a/b/x", ReadOnly),
            ("/home/u/a/b/c/x", Hidden),
            ("/home/u/f", ReadOnly),
        ],
    );
    assert_access(
        json!({ "denyRead": ["~/a/"], "allowRead": ["/home/u//a"] }),
        &[],
        &[("/home/u/a/x", ReadOnly)],
    );
    assert_access(
        json!({ "denyRead": ["~/a/**"], "allowRead": ["~/a/**"] }),
        &[],
        &[("/home/u/a/x", ReadOnly)],
    );
}

#[test]
fn a_denied_file_survives_an_allowed_folder_around_it() {
    assert_access(
        json!({ "denyRead": ["~", "~/proj/.env"], "allowRead": ["~/proj"], "allowWrite": ["."] }),
        &[],
        &[
            ("/home/u/proj/.env", Hidden),
            ("/home/u/proj/x", ReadWrite),
            ("/home/u/x", Hidden),
        ],
    );
}

#[test]
fn deny_write_beats_allow_write_at_every_depth() {
    assert_access(
        json!({ "allowWrite": ["~/proj", "~/w", "~/w/deny/inner", "~/same"], "denyWrite": ["~/w/deny", "~/same", "./dist/**"] }),
        &[],
        &[
            ("/home/u/w/x", ReadWrite),
            ("/home/u/w/deny/x", ReadOnly),
            ("/home/u/w/deny/inner/x", ReadOnly),
            ("/home/u/same/x", ReadOnly),
            ("/home/u/proj/x", ReadWrite),
            ("/home/u/proj/dist/x", ReadOnly),
        ],
    );
    // Also when it lies above everything that is allowed, the workspace included.
    assert_access(
        json!({ "allowWrite": ["."], "denyWrite": ["~"] }),
        &[],
        &[("/home/u/proj/x", ReadOnly)],
    );
    assert_access(
        json!({ "allowWrite": ["/"], "denyWrite": ["~"] }),
        &[],
        &[("/home/u/proj/x", ReadOnly), ("/srv", ReadWrite)],
    );
    // And when it is a pattern.
    let existing = &["/home/u/proj", "/home/u/proj/a.lock"];
    assert_access(
        json!({ "allowWrite": ["."], "denyWrite": ["~/*"] }),
        existing,
        &[("/home/u/proj/x", ReadOnly)],
    );
    assert_access(
        json!({ "allowWrite": ["."], "denyWrite": ["**/*.lock"] }),
        existing,
        &[("/home/u/proj/a.lock", ReadOnly), ("/home/u/proj/x", ReadWrite)],
    );
}

#[test]
fn an_allowed_write_below_a_hidden_folder_is_visible_and_at_the_same_path_it_is_not() {
    assert_access(
        json!({ "denyRead": ["~", "~/both"], "allowWrite": [".", "~/both"] }),
        &[],
        &[
            ("/home/u/proj/x", ReadWrite),
            ("/home/u/other", Hidden),
            ("/home/u/both/x", Hidden),
        ],
    );
}

#[test]
fn allow_read_takes_no_writing_away_where_nothing_is_hidden() {
    assert_access(
        json!({ "denyRead": ["~"], "allowRead": ["./docs", "./*/keep", "~/.cache/**"], "allowWrite": ["."] }),
        &["/home/u/.cache/pip", "/home/u/proj/a/keep"],
        &[
            ("/home/u/proj/docs/x", ReadWrite),
            ("/home/u/proj/a/keep", ReadWrite),
            ("/home/u/.cache/pip/x", ReadOnly),
            ("/home/u/.cache/later", Hidden),
        ],
    );
    assert_access(
        json!({ "allowRead": ["."], "allowWrite": ["."] }),
        &[],
        &[("/home/u/proj/x", ReadWrite)],
    );
}

#[test]
fn the_root_itself_can_be_denied_and_allowed() {
    assert_access(
        json!({ "denyRead": ["/"], "allowRead": ["/usr"], "allowWrite": ["."] }),
        &[],
        &[("/etc", Hidden), ("/usr/bin", ReadOnly), ("/home/u/proj/x", ReadWrite)],
    );
    assert_access(
        json!({ "denyRead": ["/"], "allowRead": ["/"], "allowWrite": [] }),
        &[],
        &[("/etc", ReadOnly)],
    );
    assert_access(
        json!({ "denyRead": ["/"], "allowWrite": [] }),
        &[],
        &[("/etc", Hidden), ("/home/u/proj/x", Hidden)],
    );
    assert_access(
        json!({ "denyRead": ["/home"], "allowWrite": [] }),
        &[],
        &[("/home/u/proj/x", Hidden)],
    );
    assert_access(
        json!({ "denyRead": ["/home"], "allowRead": ["."], "allowWrite": [] }),
        &[],
        &[("/home/u/proj/x", ReadOnly)],
    );
    assert_access(
        json!({ "denyRead": ["/home/*"], "allowWrite": [] }),
        &["/home/u"],
        &[("/home/u/proj/x", Hidden)],
    );
}

#[test]
fn patterns_that_deny_are_kept_and_patterns_that_cannot_be_held_are_refused() {
    assert_access(
        json!({ "denyRead": ["**/.env", "~/.ssh/**", "/srv/[ab]?/k*"] }),
        &["/home/u/proj/x/.env", "/srv/a1/key"],
        &[
            ("/home/u/proj/x/.env", Hidden),
            ("/home/u/.ssh/id", Hidden),
            ("/home/u/.ssh", Hidden),
            ("/srv/a1/key", Hidden),
        ],
    );
    for (list, entry) in [
        ("denyRead", "/*/secrets"),
        ("denyRead", "/srv/a*/"),
        ("denyRead", ""),
        ("denyRead", "$HOME/.ssh"),
        ("denyRead", "~other/.ssh"),
        ("denyRead", "!~/.ssh"),
        ("denyRead", "a/../../b"),
        ("denyRead", "a**b"),
        ("denyRead", "[ab"),
        ("denyRead", "a\u{0}b"),
        ("allowRead", "/**/x"),
        ("allowWrite", "./*/out"),
        ("allowWrite", "/srv/a?"),
        ("denyWrite", "/*.lock"),
    ] {
        let found = faults(&json!({ "filesystem": { list: [entry] } }));
        assert_eq!(found.len(), 1, "{entry}");
        assert_eq!(found[0].key_path, format!("filesystem.{list}[0]"));
    }
}

#[test]
fn a_backslash_is_a_character_and_no_escape() {
    let layer = imported(&json!({ "filesystem": { "denyRead": ["/srv/a\\*b", "/srv/c\\d"] } })).layer;
    let patterns: Vec<&PathPattern> = layer
        .filesystem
        .iter()
        .filter(|r| r.access == PathAccess::Hide)
        .map(|r| &r.path)
        .collect();
    assert_eq!(patterns[1].path, Path::new("/srv/c\\d"));
    let glob = Glob::parse(patterns[0].glob.as_deref().unwrap()).unwrap();
    assert!(glob.matches(Path::new("a\\xb")) && !glob.matches(Path::new("a*b")));
}

#[test]
fn what_lies_below_a_folder_denied_entry_by_entry_cannot_be_opened() {
    for (set, key) in [
        (
            json!({ "denyRead": ["~/**"], "allowRead": ["~/proj"] }),
            "filesystem.allowRead[0]",
        ),
        (
            json!({ "denyRead": ["~/**"], "allowWrite": ["."] }),
            "filesystem.allowWrite[0]",
        ),
        (
            json!({ "denyRead": ["/srv/*/**"], "allowRead": ["/srv/a/b"] }),
            "filesystem.allowRead[0]",
        ),
        (
            json!({ "denyRead": ["/srv/**"], "allowRead": ["/srv/*/b"] }),
            "filesystem.allowRead[0]",
        ),
    ] {
        let found = faults(&json!({ "filesystem": set }));
        assert_eq!(found[0].key_path, key, "{set}");
    }
}

#[test]
fn the_private_tmp_stands_for_the_hosts() {
    let Imported { layer, notes } =
        imported(&json!({ "filesystem": { "allowWrite": [".", "/tmp", "/tmp/claude", "/tmp/mine"] } }));
    let writes: Vec<&Path> = layer
        .filesystem
        .iter()
        .filter(|r| r.access == PathAccess::Write)
        .map(|r| r.path.path.as_path())
        .collect();
    assert_eq!(writes, [Path::new("/home/u/proj"), Path::new("/tmp/mine")]);
    assert_eq!(notes.iter().filter(|note| note.contains("private `/tmp`")).count(), 2);
}

#[test]
fn the_order_of_entries_changes_nothing() {
    let lists = [
        ["~", "~/a", "~/a/b", "/srv/*/k"],
        ["~/a", "./docs", "~/a/b/c", "/srv/x"],
        [".", "~/a/w", "~/w", "~/w/no/in"],
        ["~/w/no", "./dist", "/srv", "./.git"],
    ];
    let rules = |turn: usize| {
        let mut lists = lists;
        lists.iter_mut().for_each(|list| list.rotate_left(turn));
        if turn % 2 == 1 {
            lists.iter_mut().for_each(|list| list.reverse());
        }
        let [hide, read, write, readonly] = lists;
        let set = json!({ "filesystem": { "denyRead": hide, "allowRead": read, "allowWrite": write, "denyWrite": readonly } });
        let mut rules: Vec<_> = imported(&set)
            .layer
            .filesystem
            .into_iter()
            .map(|r| (r.path, r.access))
            .collect();
        rules.sort();
        rules
    };
    for turn in 1..4 {
        assert_eq!(rules(0), rules(turn));
    }
}

#[test]
fn ten_thousand_entries_are_read_without_a_quadratic_search() {
    let many: Vec<String> = (0..10_000).map(|n| format!("/srv/d{n}/x")).collect();
    let layer = imported(&json!({ "filesystem": { "denyRead": many, "allowWrite": ["."], "denyWrite": many } })).layer;
    assert!(layer.filesystem.len() > 20_000);
}
