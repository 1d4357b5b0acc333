//! The format's own precedence over a small file system, spelled out entry by entry, against what the import gives.

use proptest::prelude::*;

use super::paths::resolve;
use super::*;
use crate::policy::access::{Effective, ResolvedRule, View};
use crate::policy::glob::Glob;

const CWD: &str = "/u/a";

/// Every path that exists.
fn universe() -> Vec<String> {
    let mut paths = vec!["/".to_owned(), "/u".to_owned()];
    let mut level = vec!["/u".to_owned()];
    for _ in 0..4 {
        level = level
            .iter()
            .flat_map(|path| [format!("{path}/a"), format!("{path}/b")])
            .collect();
        paths.extend(level.clone());
    }
    paths
}

/// What the format makes of one entry: the existing paths that it names.
fn expand(entry: &str, universe: &[String]) -> Vec<PathBuf> {
    if !entry.contains('*') {
        return vec![PathBuf::from(entry)];
    }
    let glob = Glob::parse(entry.trim_start_matches('/')).unwrap();
    let matches = |path: &&String| glob.matches(Path::new(path.trim_start_matches('/')));
    let named = entry.strip_suffix("/**");
    universe
        .iter()
        .filter(matches)
        .filter(|path| named != Some(path.as_str()))
        .map(PathBuf::from)
        .collect()
}

struct Reference {
    hide: Vec<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    readonly: Vec<PathBuf>,
}

impl Reference {
    fn access(&self, path: &Path) -> Effective {
        let depth = |list: &[PathBuf]| {
            list.iter()
                .filter(|above| path.starts_with(above))
                .map(|p| p.components().count())
                .max()
        };
        let (hide, read, write) = (depth(&self.hide), depth(&self.read), depth(&self.write));
        if hide.is_some() && read < hide && write <= hide {
            Effective::Hidden
        } else if write.is_some() && depth(&self.readonly).is_none() {
            Effective::ReadWrite
        } else {
            Effective::ReadOnly
        }
    }
}

fn entries(patterns: bool) -> impl Strategy<Value = Vec<String>> {
    let literal = prop_oneof![Just("/".to_owned()), "/u(/[ab]){0,3}"];
    let pattern = prop_oneof![
        "/u(/[ab]){0,2}/\\*",
        "/u/\\*/[ab]",
        "/u/\\*\\*/[ab]",
        "/u(/[ab]){0,2}/\\*\\*",
        "/u/[ab]/\\*/\\*\\*"
    ];
    let entry = if patterns {
        prop_oneof![2 => literal, 1 => pattern].boxed()
    } else {
        literal.boxed()
    };
    proptest::collection::vec(entry, 0..4)
}

fn compare(
    hide: &[String],
    read: &[String],
    write: &[String],
    readonly: &[String],
) -> Option<Vec<(String, Effective, Effective)>> {
    let set =
        json!({ "filesystem": { "denyRead": hide, "allowRead": read, "allowWrite": write, "denyWrite": readonly } });
    let here = ImportContext {
        cwd: Path::new(CWD),
        file: Path::new("/s.json"),
        ..context()
    };
    let layer = import(settings(&set).as_bytes(), &here).ok()?.layer;
    let universe = universe();
    let existing: Vec<&str> = universe.iter().map(String::as_str).collect();
    let mut rules = resolve(&layer.filesystem, &existing);
    rules.push(ResolvedRule {
        path: CWD.into(),
        access: PathAccess::Write,
        origin: Origin::builtin("the workspace"),
    });
    let view = View::new(rules, []);
    let all = |list: &[String]| list.iter().flat_map(|entry| expand(entry, &universe)).collect();
    // Of patterns, the format takes only a final `/**` in the lists about writing; more is enforced here, never less.
    let roots = |list: &[String]| {
        list.iter()
            .map(|entry| PathBuf::from(entry.trim_end_matches("/**")))
            .collect()
    };
    let reference = Reference {
        hide: all(hide),
        read: all(read),
        write: roots(write),
        readonly: roots(readonly),
    };
    let paths = universe.into_iter().map(|path| {
        let (given, meant) = (view.access(Path::new(&path)).0, reference.access(Path::new(&path)));
        (path, given, meant)
    });
    Some(paths.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_import_never_gives_more_than_the_format(
        hide in entries(true), read in entries(true), write in entries(false), readonly in entries(true),
    ) {
        for (path, given, meant) in compare(&hide, &read, &write, &readonly).into_iter().flatten() {
            prop_assert!(given <= meant, "{path}: {given:?} where the format means {meant:?}");
        }
    }

    #[test]
    fn without_patterns_an_import_gives_exactly_what_the_format_reads(hide in entries(false), read in entries(false)) {
        for (path, given, meant) in compare(&hide, &read, &[], &[]).into_iter().flatten() {
            prop_assert_eq!(given, meant, "{}", path);
        }
    }

    #[test]
    fn without_hidden_paths_an_import_gives_exactly_what_the_format_writes(
        read in entries(false), write in entries(false), readonly in entries(false),
    ) {
        for (path, given, meant) in compare(&[], &read, &write, &readonly).into_iter().flatten() {
            prop_assert_eq!(given, meant, "{}", path);
        }
    }
}
