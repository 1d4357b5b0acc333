use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinfold_model::origin::{Origin, Scope};
use pinfold_model::policy::PathAccess::{self, Hide, Read, ReadOnly, Write};
use pinfold_model::policy::{PathPattern, PathRule};
use tempfile::TempDir;

use super::mounts::Mounts;
use super::search::Bounds;
use super::{Context, ResolveError, Resolved, resolve_with};

mod links;
mod patterns;
mod places;

/// A home with a workspace in it, and a folder beside.
struct Host {
    _folder: TempDir,
    root: PathBuf,
    home: PathBuf,
    workspace: PathBuf,
    mounts: Vec<u8>,
    bounds: Bounds,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (home, workspace) = (root.join("home"), root.join("home/work"));
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir(root.join("out")).unwrap();
        let bounds = Bounds::within(Duration::from_secs(3600));
        Self {
            _folder: folder,
            root,
            home,
            workspace,
            mounts: Vec::new(),
            bounds,
        }
    }

    /// Makes a file, and its folders, below the root.
    fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"x").unwrap();
        path
    }

    fn folder(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, &path).unwrap();
        path
    }

    fn resolve(&self, rules: &[PathRule]) -> Result<Resolved, ResolveError> {
        self.resolve_beside(rules, &[])
    }

    fn resolve_beside(&self, rules: &[PathRule], private: &[&Path]) -> Result<Resolved, ResolveError> {
        let context = Context {
            home: &self.home,
            workspace: &self.workspace,
            private,
            search_path: &[Path::new("/usr/bin"), &self.root.join("home/bin")],
            budget: self.bounds.time,
        };
        resolve_with(rules, &context, Mounts::parse(&self.mounts), self.bounds)
    }
}

fn file_origin() -> Origin {
    Origin::File {
        scope: Scope::Trusted,
        path: "/p/pinfold.toml".into(),
        line: 3,
        column: 1,
        key: "filesystem".into(),
    }
}

fn profile_origin() -> Origin {
    Origin::Profile {
        name: "claude".into(),
        line: 7,
        column: 1,
        key: "filesystem".into(),
    }
}

fn rule(access: PathAccess, path: impl AsRef<Path>) -> PathRule {
    PathRule {
        access,
        path: PathPattern::literal(path.as_ref().to_path_buf()),
        reason: None,
        origin: Origin::flag("--rule"),
    }
}

fn pattern(access: PathAccess, base: impl AsRef<Path>, glob: &str) -> PathRule {
    let path = PathPattern {
        path: base.as_ref().to_path_buf(),
        glob: Some(glob.to_owned()),
    };
    PathRule {
        access,
        path,
        reason: None,
        origin: Origin::flag("--rule"),
    }
}

fn from(origin: Origin, rule: PathRule) -> PathRule {
    PathRule { origin, ..rule }
}

/// The rules of a result, without what tests of other things do not look at.
fn said(resolved: &Resolved) -> Vec<(PathAccess, PathBuf)> {
    resolved
        .rules
        .iter()
        .map(|rule| (rule.access, rule.path.clone()))
        .collect()
}

fn absent(resolved: &Resolved) -> Vec<(PathAccess, PathBuf)> {
    resolved
        .absent
        .iter()
        .map(|rule| (rule.access, rule.path.clone()))
        .collect()
}

fn links(resolved: &Resolved) -> Vec<PathBuf> {
    resolved.links.iter().map(|(link, _)| link.clone()).collect()
}

#[test]
fn no_rules_come_to_nothing_and_need_no_host() {
    let context = Context {
        home: Path::new("/no/such/home"),
        workspace: Path::new("/no/such/home/work"),
        private: &[],
        search_path: &[],
        budget: Duration::ZERO,
    };
    assert_eq!(super::resolve(&[], &context).unwrap(), Resolved::default());
}

#[test]
fn a_public_call_reads_the_mount_table_of_this_host() {
    let host = Host::new();
    let secret = host.file("home/work/.env");
    let context = Context {
        home: &host.home,
        workspace: &host.workspace,
        private: &[],
        search_path: &[],
        budget: Duration::from_secs(60),
    };
    let resolved = super::resolve(&[rule(Hide, &secret)], &context).unwrap();
    assert_eq!(said(&resolved), [(Hide, secret)]);
}

#[test]
fn names_are_bytes_from_end_to_end() {
    let host = Host::new();
    let odd = host.file(Path::new("out").join(OsStr::from_bytes(b"a\nb\xff")));
    let other = host.file(Path::new("out").join(OsStr::from_bytes(b"a\nb\xfe")));
    let gone = host.root.join(OsStr::from_bytes(b"out/\xf0none"));
    let led = host.link("out/led", &odd);
    let rules = [
        rule(Hide, &odd),
        rule(ReadOnly, &other),
        rule(Hide, &gone),
        rule(ReadOnly, &led),
    ];
    let resolved = host.resolve(&rules).unwrap();
    assert_eq!(
        said(&resolved),
        [(ReadOnly, other), (ReadOnly, odd.clone()), (Hide, odd)]
    );
    assert_eq!(absent(&resolved), [(Hide, gone)]);
}

#[test]
fn ten_thousand_denied_paths_are_resolved() {
    let host = Host::new();
    let folder = host.folder("home/work/many");
    let rules: Vec<PathRule> = (0..10_000)
        .map(|index| {
            let path = folder.join(format!("f{index}"));
            if index % 2 == 0 {
                fs::write(&path, b"").unwrap();
            }
            rule(Hide, path)
        })
        .collect();
    let resolved = host.resolve(&rules).unwrap();
    assert_eq!(
        (resolved.rules.len(), resolved.absent.len(), resolved.nodes.len()),
        (5_000, 5_000, 5_000)
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn the_order_of_the_rules_does_not_change_the_result(keys in proptest::collection::vec(0_u32..1000, 14)) {
        let host = Host::new();
        let outside = host.folder("out/data");
        host.file("home/work/a/.env");
        host.link("home/work/l", "a");
        host.link("home/work/escape", &outside);
        host.link("home/work/x.env", "gone");
        let (work, origin) = (&host.workspace, profile_origin);
        let rules = [
            rule(Hide, work.join("a")),
            from(file_origin(), rule(Hide, work.join("a"))),
            rule(Write, work.join("a")),
            rule(ReadOnly, work.join("l/.env")),
            from(origin(), rule(Hide, work.join("l/none"))),
            from(origin(), rule(Hide, work.join("a/none"))),
            rule(Write, &outside),
            rule(Write, work.join("escape")),
            from(origin(), rule(Read, work.join("escape"))),
            pattern(Hide, work, "**/*.env"),
            pattern(Hide, work, "**/none-of-it"),
            pattern(ReadOnly, work, "**/*.env"),
            from(file_origin(), rule(Read, host.root.join("nothing"))),
            rule(Read, &host.home),
        ];
        let expected = host.resolve(&rules).unwrap();
        let mut order: Vec<usize> = (0..rules.len()).collect();
        order.sort_by_key(|index| keys[*index]);
        let shuffled: Vec<PathRule> = order.into_iter().map(|index| rules[index].clone()).collect();
        proptest::prop_assert_eq!(host.resolve(&shuffled).unwrap(), expected);
    }
}
