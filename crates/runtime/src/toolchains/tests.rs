use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A home folder that is thrown away. Names ending in `/` are folders, others files.
struct Home(TempDir);

impl Home {
    fn with(names: &[&str]) -> Self {
        let home = Self(TempDir::new().unwrap());
        for name in names {
            let place = home.at(name);
            if name.ends_with('/') {
                fs::create_dir_all(place).unwrap();
            } else {
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(&place, "").unwrap();
                fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
            }
        }
        home
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name.trim_end_matches('/'))
    }

    fn link(self, from: &str, to: &str) -> Self {
        let to = if to.starts_with('~') {
            self.at(&to[2..])
        } else {
            PathBuf::from(to)
        };
        fs::create_dir_all(self.at(from).parent().unwrap()).unwrap();
        symlink(to, self.at(from)).unwrap();
        self
    }

    fn find(&self, path: &[&str]) -> Toolchains {
        self.find_with(path, &[])
    }

    /// `~/` stands for the home in entries and values.
    fn find_with(&self, path: &[&str], variables: &[(&str, &str)]) -> Toolchains {
        let home = self.path();
        let text = |value: &str| value.replace('~', home.to_str().unwrap());
        let path = path.iter().map(|entry| text(entry)).collect::<Vec<_>>().join(":");
        let variables: Vec<(OsString, OsString)> = variables
            .iter()
            .map(|(name, value)| (name.into(), text(value).into()))
            .collect();
        find(&home, OsStr::new(&path), &variables, &[home.join("project")])
    }

    /// The trees relative to the home.
    fn trees(&self, found: &Toolchains) -> Vec<String> {
        found.trees.iter().map(|tree| self.short(&tree.tree)).collect()
    }

    fn hidden(&self, found: &Toolchains) -> Vec<String> {
        let whole = found
            .trees
            .iter()
            .flat_map(|tree| tree.hidden.iter().map(|name| tree.tree.join(name)));
        whole.map(|place| self.short(&place)).collect()
    }

    fn short(&self, place: &Path) -> String {
        place.strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned()
    }
}

#[test]
fn a_path_entry_shows_the_tree_it_belongs_to() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("~/.cargo/bin", &[".cargo/bin/", ".rustup/"], &[".cargo", ".rustup"]),
        ("~/.cargo/bin", &[".cargo/bin/"], &[".cargo"]),
        (
            "~/.rustup/toolchains/stable/bin",
            &[".cargo/bin/", ".rustup/toolchains/stable/bin/"],
            &[".cargo", ".rustup"],
        ),
        ("~/.pyenv/shims:~/.pyenv/bin", &[".pyenv/shims/"], &[".pyenv"]),
        (
            "~/.nvm/versions/node/v22/bin",
            &[".nvm/versions/node/v22/bin/"],
            &[".nvm"],
        ),
        ("~/go/bin", &["go/bin/", "go/pkg/"], &["go"]),
        (
            "~/miniconda3/envs/x/bin:~/miniconda3/condabin",
            &["miniconda3/envs/x/bin/"],
            &["miniconda3"],
        ),
        (
            "~/.bun/bin:~/.deno/bin:~/.volta/bin",
            &[".bun/bin/", ".deno/bin/", ".volta/bin/"],
            &[".bun", ".deno", ".volta"],
        ),
        (
            "~/.sdkman/candidates/java/current/bin",
            &[".sdkman/candidates/"],
            &[".sdkman"],
        ),
        (
            "~/.asdf/shims:~/.rbenv/shims",
            &[".asdf/shims/", ".rbenv/"],
            &[".asdf", ".rbenv"],
        ),
        (
            "~/bin:~/.npm-global/bin",
            &["bin/", ".npm-global/"],
            &[".npm-global", "bin"],
        ),
        (
            "~/.config/composer/vendor/bin",
            &[".config/composer/vendor/bin/", ".config/composer/auth.json"],
            &[".config/composer/vendor"],
        ),
        // Nothing known: the folder itself.
        (
            "~/work/tool/scripts",
            &["work/tool/scripts/", "work/tool/.env"],
            &["work/tool/scripts"],
        ),
        ("~/.config/thing/bin", &[".config/thing/bin/"], &[".config/thing/bin"]),
        // Spelled oddly.
        ("~//.cargo/./bin/../bin/", &[".cargo/bin/"], &[".cargo"]),
        // Absent, relative, empty, elsewhere.
        ("~/.absent/bin::bin:./bin:/usr/bin:/opt/x", &["bin/"], &[]),
        // A name that only starts alike.
        (
            "~/.cargo-old/bin",
            &[".cargo-old/bin/", ".cargo-old/x"],
            &[".cargo-old/bin"],
        ),
    ];
    for (path, names, expected) in cases {
        let home = Home::with(names);
        let found = home.find(&[path]);
        assert_eq!(home.trees(&found), *expected, "{path}");
        assert_eq!(found.warnings, [], "{path}");
    }
}

#[test]
fn of_local_only_program_parts_are_shown() {
    let home = Home::with(&[
        ".local/bin/",
        ".local/lib/python3.12/",
        ".local/pipx/",
        ".local/share/uv/credentials/",
        ".local/share/uv/tools/",
        ".local/share/mise/",
        ".local/share/pnpm/",
        ".local/share/keyrings/login.keyring",
        ".local/share/pinfold/ca.key",
        ".local/share/applications/",
        ".local/state/",
    ]);
    let found = home.find(&["~/.local/bin"]);
    let expected = [
        ".local/bin",
        ".local/lib",
        ".local/pipx",
        ".local/share/mise",
        ".local/share/pnpm",
        ".local/share/uv",
    ];
    assert_eq!(home.trees(&found), expected);
    assert_eq!(home.hidden(&found), [".local/share/uv/credentials"]);
    for entry in ["~/.local", "~/.local/share/mise/shims"] {
        assert_eq!(home.trees(&home.find(&[entry])), expected, "{entry}");
    }
    for entry in [
        "~/.local/share",
        "~/.local/share/keyrings",
        "~/.local/share/pinfold",
        "~/.config",
        "~/.ssh",
    ] {
        assert_eq!(home.trees(&home.find(&[entry])), [""; 0], "{entry}");
    }
}

#[test]
fn credentials_in_a_tree_are_hidden() {
    let home = Home::with(&[
        ".cargo/bin/cargo",
        ".cargo/credentials.toml",
        ".cargo/credentials",
        ".cargo/config.toml",
        ".cargo/Token",
        ".npm-global/bin/",
        ".npm-global/.npmrc",
        "bin/.netrc",
        "bin/.pypirc",
        "bin/auth.json",
        "bin/hosts.yml",
        "bin/tool",
    ]);
    let found = home.find(&["~/.cargo/bin", "~/bin", "~/.npm-global/bin"]);
    let expected = [
        ".cargo/Token",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".npm-global/.npmrc",
        "bin/.netrc",
        "bin/.pypirc",
        "bin/auth.json",
        "bin/hosts.yml",
    ];
    assert_eq!(home.hidden(&found), expected);
}

#[test]
fn credentials_in_a_very_large_folder_are_hidden() {
    let home = Home::with(&["tools/.npmrc", "tools/token"]);
    for number in 0..4200 {
        fs::write(home.at(&format!("tools/{number}")), "").unwrap();
    }
    fs::write(home.at("tools/auth.json"), "").unwrap();
    assert_eq!(
        home.hidden(&home.find(&["~/tools"])),
        ["tools/.npmrc", "tools/auth.json", "tools/token"]
    );
}

#[test]
fn home_and_what_is_above_it_are_never_a_tree() {
    let home = Home::with(&["tool", ".cargo/bin/"]);
    let found = home.find(&["~", "~/", "~/.cargo/..", "/", "/tmp", "~/.cargo/bin"]);
    assert_eq!(home.trees(&found), [".cargo"]);
    let warning = Warning::ContainsHome {
        what: "PATH".to_owned(),
        path: home.path(),
    };
    assert_eq!(found.warnings, [warning]);
    assert!(found.warnings[0].to_string().contains("hint: "));
    let found = home.find_with(&[], &[("CARGO_HOME", "~"), ("GOPATH", "/")]);
    assert_eq!(
        (found.trees.len(), found.warnings.len(), found.variables.len()),
        (0, 2, 0)
    );
}

#[test]
fn a_link_of_home_to_something_broad_is_refused() {
    for target in ["~/", "/", "/usr", "~/.config"] {
        let home = Home::with(&["secret", ".config/"]).link(".cargo", target);
        let found = home.find(&["~/.cargo/bin", "~/.cargo"]);
        assert_eq!(home.trees(&found), [""; 0], "{target}");
        assert!(matches!(found.warnings[..], [Warning::TooBroad { .. }]), "{target}");
    }
}

#[test]
fn a_tree_that_was_moved_keeps_its_name_and_tells_where_it_is() {
    let elsewhere = Home::with(&["rust/cargo/bin/", "rust/cargo/credentials.toml"]);
    let home = Home::with(&[]).link(".cargo", elsewhere.at("rust/cargo").to_str().unwrap());
    let found = home.find(&["~/.cargo/bin"]);
    assert_eq!(home.trees(&found), [".cargo"]);
    assert_eq!(found.trees[0].source, elsewhere.at("rust/cargo"));
    assert_eq!(home.hidden(&found), [".cargo/credentials.toml"]);
}

#[test]
fn variables_name_trees_that_are_elsewhere_below_home_and_are_passed_on() {
    let home = Home::with(&["rust/cargo/bin/", "rust/up/", "a/bin/", "b/"]);
    let variables = [
        ("CARGO_HOME", "~/rust/cargo"),
        ("RUSTUP_HOME", "~/rust/up"),
        ("GOPATH", "~/a:~/b:/srv/go"),
        ("PYENV_ROOT", "~/absent"),
        ("NVM_DIR", "/usr/lib/nvm"),
        ("VOLTA_HOME", "relative"),
        ("UNKNOWN_HOME", "~/b"),
    ];
    let found = home.find_with(&["~/rust/cargo/bin"], &variables);
    assert_eq!(home.trees(&found), ["a", "b", "rust/cargo", "rust/up"]);
    assert_eq!(found.trees[0].reason, Reason::Variable("GOPATH"));
    assert_eq!(found.variables, ["CARGO_HOME", "GOPATH", "RUSTUP_HOME"]);
}

#[test]
fn programs_of_the_workspace_are_left_to_it() {
    let home = Home::with(&["project/.venv/bin/", "project/node_modules/.bin/x", "project-two/bin/"])
        .link("bin/x", "~/project/node_modules/.bin/x");
    let path = [
        "~/project/.venv/bin",
        "~/project/node_modules/.bin",
        "~/project",
        "~/project-two/bin",
        "~/bin",
    ];
    let found = home.find_with(&path, &[("GOPATH", "~/project")]);
    assert_eq!(home.trees(&found), ["bin", "project-two/bin"]);
    assert_eq!(found.variables, [""; 0]);
}

#[test]
fn nested_trees_become_one() {
    let home = Home::with(&["tools/x/bin/", "tools/y/bin/"]);
    let found = home.find(&["~/tools/x/bin", "~/tools/y/bin", "~/tools"]);
    assert_eq!(home.trees(&found), ["tools"]);
    let found = home.find(&["~/tools", "~/tools/x/bin"]);
    assert_eq!(home.trees(&found), ["tools"]);
}

#[test]
fn links_of_programs_add_what_they_need_and_no_more() {
    let home = Home::with(&[
        ".local/bin/plain",
        ".local/share/claude/versions/2.0.1",
        ".local/share/helix/bin/hx",
        ".local/share/helix/auth.json",
        ".local/share/single",
        ".poetry/bin/poetry",
        ".cargo/bin/rg",
        ".rustup/",
        "work/tool/bin/tool",
        "work/tool/.env",
        "Downloads/x.AppImage",
        "Downloads/taxes.pdf",
        "tool.sh",
    ])
    .link(".local/bin/claude", "~/.local/share/claude/versions/2.0.1")
    .link(".local/bin/hx", "../share/helix/bin/hx")
    .link(".local/bin/single", "~/.local/share/single")
    .link(".local/bin/poetry", "~/.poetry/bin/poetry")
    .link(".local/bin/rg", "~/.cargo/bin/rg")
    .link(".local/bin/tool", "~/work/tool/bin/tool")
    .link(".local/bin/x", "~/Downloads/x.AppImage")
    .link(".local/bin/sh", "/bin/sh")
    .link(".local/bin/dangling", "~/nowhere/at/all")
    .link(".local/bin/home", "~/")
    .link(".local/bin/t", "~/tool.sh");
    let found = home.find(&["~/.local/bin"]);
    let expected = [
        ".cargo",
        ".local/bin",
        ".local/share/claude/versions",
        ".local/share/helix",
        ".local/share/single",
        ".poetry",
        "Downloads/x.AppImage",
        "tool.sh",
        "work/tool/bin",
    ];
    assert_eq!(home.trees(&found), expected);
    assert_eq!(home.hidden(&found), [".local/share/helix/auth.json"]);
    assert!(!found.trees[7].is_directory);
    assert_eq!(found.trees[2].reason, Reason::Link(home.at(".local/bin/claude")));
}

#[test]
fn a_chain_of_links_is_visible_at_every_hop_and_a_cycle_ends() {
    let home = Home::with(&[".tools/v2/run"])
        .link("current/run", "~/.tools/v2/run")
        .link("bin/run", "~/current/run")
        .link("bin/a", "~/loop/b")
        .link("loop/b", "~/loop/a")
        .link("loop/a", "~/loop/b");
    let found = home.find(&["~/bin"]);
    assert_eq!(home.trees(&found), [".tools/v2", "bin", "current"]);
}

#[test]
fn programs_linked_into_data_folders_do_not_show_them() {
    let home = Home::with(&[".ssh/helper", ".local/share/keyrings/x", "work/notes", "work/run"])
        .link("bin/helper", "~/.ssh/helper")
        .link("bin/keys", "~/.local/share/keyrings/x")
        .link("bin/folder", "~/work")
        .link("bin/notes", "~/work/notes");
    fs::set_permissions(home.at("work/notes"), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(home.trees(&home.find(&["~/bin"])), ["bin"]);
    let home = Home::with(&[".ssh/id_rsa"]).link(".bun", "~/.ssh");
    assert_eq!(home.trees(&home.find(&["~/.bun/bin"])), [""; 0]);
}

#[test]
fn a_home_of_root_or_a_relative_one_finds_nothing() {
    for home in ["/", "", "relative"] {
        assert_eq!(
            find(Path::new(home), OsStr::new("/bin:/usr/bin"), &[], &[]),
            Toolchains::default()
        );
    }
}
