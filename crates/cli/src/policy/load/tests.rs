use std::fs;
use std::path::PathBuf;

use pinfold_model::policy::{Flags, PathAccess, Policy};

use super::{Sources, load};
use crate::policy::{Folders, LoadError, Project, TrustStore};

struct World {
    _folder: tempfile::TempDir,
    root: PathBuf,
    folders: Folders,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let config = root.join("home/.config/pinfold");
        fs::create_dir_all(config.join("profiles")).expect("folders");
        fs::create_dir_all(root.join("app/sub")).expect("folders");
        let folders = Folders {
            home: Some(root.join("home")),
            config: Some(config),
            data: Some(root.join("data")),
        };
        Self {
            _folder: folder,
            root,
            folders,
        }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).expect("a file");
    }

    fn load_with(&self, config: Option<&str>, flags: &Flags) -> Result<Policy, LoadError> {
        let (cwd, workspace) = (self.root.join("app/sub"), self.root.join("app"));
        let config = config.map(PathBuf::from);
        load(&Sources {
            folders: &self.folders,
            cwd: &cwd,
            workspace: &workspace,
            config: config.as_deref(),
            settings: None,
            flags,
        })
    }

    fn load(&self) -> Result<Policy, LoadError> {
        self.load_with(None, &Flags::default())
    }

    fn said(&self, result: Result<Policy, LoadError>) -> (String, u8) {
        let error = result.expect_err("refused");
        assert!(!error.hint().is_empty());
        (
            error.to_string().replace(&*self.root.to_string_lossy(), "ROOT"),
            error.exit_code(),
        )
    }

    fn paths(&self, policy: &Policy) -> Vec<(PathAccess, String)> {
        let text = |path: String| path.replace(&*self.root.to_string_lossy(), "");
        policy
            .filesystem
            .iter()
            .map(|rule| (rule.access, text(rule.path.to_text())))
            .collect()
    }
}

#[test]
fn nothing_anywhere_is_the_strict_default() {
    assert_eq!(World::new().load().expect("loads"), Policy::default());
}

#[test]
fn relative_paths_start_where_they_were_written() {
    let world = World::new();
    world.write(
        "home/.config/pinfold/config.toml",
        "filesystem = { read = ['a', '~/b'] }",
    );
    world.write("app/pinfold.toml", "filesystem = { hide = ['c', '../d'] }");
    let flags = Flags {
        write: vec![b"e".to_vec(), b"../f".to_vec()],
        ..Flags::default()
    };
    let policy = world.load_with(None, &flags).expect("loads");
    let expected = [
        (PathAccess::Write, "/app/f"),
        (PathAccess::Write, "/app/sub/e"),
        (PathAccess::Hide, "/app/c"),
        (PathAccess::Hide, "/d"),
        (PathAccess::Read, "/home/.config/pinfold/a"),
        (PathAccess::Read, "/home/b"),
    ];
    let mut found = world.paths(&policy);
    found.sort_by(|one, other| one.1.cmp(&other.1));
    let mut expected = expected.map(|(access, path)| (access, path.to_owned()));
    expected.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(found, expected);
}

#[test]
fn a_given_file_takes_the_place_of_the_users_own_and_must_exist() {
    let world = World::new();
    world.write(
        "home/.config/pinfold/config.toml",
        "network.allow = ['own.example.com']",
    );
    world.write(
        "app/other.toml",
        "network.allow = ['given.example.com']\nfilesystem.read = ['x']",
    );
    let policy = world
        .load_with(Some("../other.toml"), &Flags::default())
        .expect("loads");
    assert_eq!(policy.network.allow[0].text, "given.example.com");
    assert_eq!(world.paths(&policy), [(PathAccess::Read, "/app/x".to_owned())]);
    let gone = world.said(world.load_with(Some("gone.toml"), &Flags::default()));
    assert_eq!(
        gone,
        ("the policy file ROOT/app/sub/gone.toml does not exist".to_owned(), 65)
    );
}

#[test]
fn a_workspace_file_loosens_only_after_exactly_its_content_was_trusted() {
    let world = World::new();
    let text = "network.allow = ['api.example.com']";
    world.write("app/pinfold.toml", text);
    let (message, code) = world.said(world.load());
    assert_eq!(code, 65);
    assert!(
        message.contains("allow api.example.com   (network.allow[0] (pinfold.toml:1))"),
        "{message}"
    );

    let project = Project::read(&world.root.join("app"))
        .expect("reads")
        .expect("is there");
    let store = TrustStore::new(&world.folders).expect("a store");
    store.add(&project.path, &project.content).expect("recorded");
    assert_eq!(world.load().expect("trusted").network.allow.len(), 1);

    world.write("app/pinfold.toml", &format!("{text} "));
    assert_eq!(world.said(world.load()).1, 65);
    world.write("app/pinfold.toml", text);
    store.revoke(&project.path).expect("revoked");
    assert_eq!(world.said(world.load()).1, 65);
}

#[test]
fn profiles_are_the_users_own_before_the_shipped_and_each_counts_once() {
    let world = World::new();
    world.write("home/.config/pinfold/config.toml", "profiles = ['claude', 'mine']");
    world.write(
        "home/.config/pinfold/profiles/mine.toml",
        "network.deny = ['claude.ai']",
    );
    world.write(
        "home/.config/pinfold/profiles/shell.toml",
        "environment.pass = ['MINE']",
    );
    let flags = Flags {
        profile: vec!["claude".to_owned(), "shell".to_owned()],
        ..Flags::default()
    };
    let policy = world.load_with(None, &flags).expect("loads");
    assert!(policy.network.allow.iter().any(|rule| rule.text == "api.anthropic.com"));
    assert!(policy.network.allow.iter().all(|rule| rule.text != "claude.ai"));
    assert!(policy.environment.pass.iter().any(|(name, _)| name == "MINE"));
    assert!(policy.environment.pass.iter().all(|(name, _)| name != "PAGER"));
}

#[test]
fn an_untrusted_file_may_choose_a_profile_that_only_tightens() {
    let world = World::new();
    world.write("home/.config/pinfold/profiles/tight.toml", "filesystem.hide = ['~/x']");
    world.write("app/pinfold.toml", "profiles = ['tight']");
    assert_eq!(
        world.paths(&world.load().expect("tightens")),
        [(PathAccess::Hide, "/home/x".to_owned())]
    );
    world.write("app/pinfold.toml", "profiles = ['tight', 'node']");
    let (message, code) = world.said(world.load());
    assert!(
        message.contains("chooses the profile 'node'") && message.contains("allow registry.npmjs.org"),
        "{message}"
    );
    assert_eq!(code, 65);
    let flags = Flags {
        profile: vec!["node".to_owned()],
        ..Flags::default()
    };
    assert!(world.load_with(None, &flags).is_ok());
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    let world = World::new();
    world.write("home/.config/pinfold/config.toml", "[network]\nalow = []");
    let (message, code) = world.said(world.load());
    assert_eq!(
        message,
        "unknown key 'alow'   (ROOT/home/.config/pinfold/config.toml:2:1)\n  2 | alow = []\n    | ^^^^"
    );
    assert_eq!(code, 65);
    let flags = Flags {
        cpus: Some("many".to_owned()),
        ..Flags::default()
    };
    assert_eq!(world.said(world.load_with(None, &flags)).1, 64);
}
