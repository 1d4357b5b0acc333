//! Toolchains that live in the person's home.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::desk::{Desk, said};

/// The folder of the first cargo on the tester's own `PATH`, when it is in the tester's home.
fn cargo_in_home() -> Option<(PathBuf, PathBuf)> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let path = std::env::var_os("PATH")?;
    let folder = std::env::split_paths(&path).find(|folder| folder.join("cargo").is_file())?;
    folder.starts_with(&home).then_some((home, folder))
}

#[test]
fn cargo_from_home_builds_a_crate_with_a_build_script_and_leaves_the_home_as_it_is() {
    let Some((home, folder)) = cargo_in_home() else {
        eprintln!("not tested: there is no cargo in the home folder");
        return;
    };
    let desk = Desk::new();
    desk.file(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    desk.file(
        "build.rs",
        "fn main() { println!(\"cargo::rustc-env=FROM_BUILD=built\"); }",
    );
    desk.file("src/main.rs", "fn main() { println!(\"{}\", env!(\"FROM_BUILD\")); }");
    let script = "cargo run --quiet --offline && touch ~/.cargo/pinfold-was-here && test -e ~/.cargo/pinfold-was-here";
    let built = said(
        desk.pinfold()
            .env("HOME", &home)
            .env("XDG_DATA_HOME", desk.home().join("data"))
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .args(["--", "sh", "-c", script]),
    );
    assert_eq!((built.code, built.out.as_str()), (Some(0), "built\n"), "{built:?}");
    assert!(!home.join(".cargo/pinfold-was-here").exists());
}

/// A home with a tool in `.local/bin`, credentials beside it, and a second tree.
fn with_tools(home: &Path) {
    for (name, content) in [
        (".local/bin/tool", "#!/bin/sh\necho tool\n"),
        (".cargo/bin/other", "#!/bin/sh\necho other\n"),
        (".cargo/credentials.toml", "token"),
        (".cargo/registry/index", "index"),
        (".gitconfig", "[user]\n\tname = me\n"),
        (".ssh/id_ed25519", "key"),
    ] {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn path_of(home: &Path) -> String {
    format!("{0}/.local/bin:{0}/.cargo/bin:/usr/bin:/bin", home.display())
}

#[test]
fn tools_on_the_path_show_without_the_credentials_beside_them() {
    let desk = Desk::new();
    with_tools(&desk.home());
    let script = "tool; other; cat ~/.cargo/registry/index; echo; cat ~/.cargo/credentials.toml ~/.ssh/id_ed25519; git config user.name";
    let said = said(
        desk.pinfold()
            .env("PATH", path_of(&desk.home()))
            .args(["--", "sh", "-c", script]),
    );
    assert_eq!(said.out, "tool\nother\nindex\nme\n", "{said:?}");
    assert!(
        said.err.contains("Permission denied") && said.err.contains("No such file"),
        "{said:?}"
    );
}

#[test]
fn rules_hide_parts_of_a_toolchain_and_all_of_it() {
    let desk = Desk::new();
    with_tools(&desk.home());
    let table = [
        ("~/.cargo/registry", "tool\nother\nme\n"),
        ("~/.cargo", "tool\nme\n"),
        ("~/.gitconfig", "tool\nother\nindex"),
        ("~", ""),
    ];
    for (hidden, expected) in table {
        let hidden = hidden.replace('~', desk.home().to_str().unwrap());
        let script = "tool; other; cat ~/.cargo/registry/index; git config user.name";
        let said = said(
            desk.pinfold()
                .env("PATH", path_of(&desk.home()))
                .args(["--hide", &hidden, "--", "sh", "-c", script]),
        );
        assert_eq!(said.out, expected, "{hidden}: {said:?}");
    }
}

#[test]
fn a_rule_in_the_name_that_a_linked_tree_really_has_holds_for_the_link_too() {
    let desk = Desk::new();
    with_tools(&desk.home());
    let elsewhere = desk.home().parent().unwrap().join("elsewhere");
    std::fs::rename(desk.home().join(".cargo"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, desk.home().join(".cargo")).unwrap();
    let run = |flags: &[&str]| {
        said(desk.pinfold().env("PATH", path_of(&desk.home())).args(flags).args([
            "--",
            "sh",
            "-c",
            "other; cat ~/.cargo/registry/index",
        ]))
    };
    assert_eq!(run(&[]).out, "other\nindex");
    let hidden = elsewhere.join("registry/index");
    let said = run(&["--hide", hidden.to_str().unwrap()]);
    assert!(
        said.out == "other\n" && said.err.contains("Permission denied"),
        "{said:?}"
    );
}

#[test]
fn a_home_that_is_reached_through_a_link_has_its_tools_under_both_names() {
    let desk = Desk::new();
    with_tools(&desk.home());
    let name = desk.home().parent().unwrap().join("name");
    std::os::unix::fs::symlink(desk.home(), &name).unwrap();
    let said = said(desk.pinfold().env("HOME", &name).env("PATH", path_of(&name)).args([
        "--",
        "sh",
        "-c",
        "tool; command -v tool; echo $HOME; echo x > ~/x && cat ~/x",
    ]));
    let (name, home) = (name.display(), desk.home());
    let expected = format!("tool\n{name}/.local/bin/tool\n{}\nx\n", home.display());
    assert_eq!((said.code, said.out), (Some(0), expected), "{}", said.err);
    assert!(!desk.home().join("x").exists());
}
