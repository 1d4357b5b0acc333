//! Protected and denied names that do not exist at the start: none may be there when pinfold returns.

use std::fs;

use crate::attack;
use crate::case::{Case, SECRET};

/// Every way to bring a name into being.
const WAYS: [(&str, &str); 9] = [
    ("open", "create(name)"),
    ("mkdir", "os.mkdir(name)"),
    ("rename", "(create('tmp-file'), os.rename('tmp-file', name))"),
    (
        "rename a folder",
        "(os.mkdir('tmp-dir'), create('tmp-dir/tasks.json'), os.rename('tmp-dir', name))",
    ),
    ("link", "(create('tmp-link'), os.link('tmp-link', name))"),
    ("symlink", "os.symlink('/etc/hostname', name)"),
    ("mknod", "os.mknod(name, stat.S_IFIFO | 0o644)"),
    ("mknod a file", "os.mknod(name, stat.S_IFREG | 0o644)"),
    ("bind", "socket.socket(socket.AF_UNIX).bind(name)"),
];

const NAMES: [&str; 8] = [
    ".bashrc",
    ".zshrc",
    ".vscode",
    ".mcp.json",
    ".gitmodules",
    ".idea",
    ".devcontainer",
    ".codex",
];

/// Each name in each way, at once and after a while, when the watch is armed.
#[test]
fn absent_protected_names_are_gone_whichever_way_they_were_made() {
    for (way, action) in WAYS {
        for wait in [0, 40] {
            let case = Case::new();
            let ran = case.attack(&format!(
                "import time
time.sleep({wait} / 1000)
for name in {NAMES:?}:
    try:
        {action}
    except OSError:
        pass
    for name in ['tmp-link']:
        if os.path.exists(name):
            os.unlink(name)"
            ));
            for name in NAMES {
                assert!(
                    fs::symlink_metadata(case.workspace.join(name)).is_err(),
                    "{name} was made by {way} and is still there"
                );
            }
            assert!(ran.stderr.contains(".vscode"), "{way} is not reported: {}", ran.stderr);
        }
    }
}

#[test]
fn what_is_taken_away_is_kept_in_quarantine_and_reported_with_its_lift() {
    let case = Case::new();
    let ran = case.sh("mkdir innocent && echo evil-task >innocent/tasks.json && mv innocent .vscode; exit 7");
    ran.expect_code(7);
    assert!(!case.workspace.join(".vscode").exists());
    assert!(
        ran.stderr.contains("lift") && ran.stderr.contains("ide"),
        "{}",
        ran.stderr
    );
    let kept = walk(&case.data());
    assert!(kept.iter().any(|content| content == b"evil-task\n"), "nothing was kept");
}

fn walk(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed").flatten() {
        if entry.file_type().expect("the entry has a type").is_dir() {
            contents.extend(walk(&entry.path()));
        } else {
            contents.extend(fs::read(entry.path()));
        }
    }
    contents
}

#[test]
fn absent_names_in_another_case_are_gone_too() {
    let case = Case::new();
    case.sh("for n in .BASHRC .VsCode .Mcp.Json PINFOLD.TOML; do echo x >$n; done; mkdir .Git; mkdir .Git/HOOKS; true");
    for name in [".BASHRC", ".VsCode", ".Mcp.Json", "PINFOLD.TOML"] {
        assert!(!case.workspace.join(name).exists(), "{name}");
    }
}

#[test]
fn absent_names_two_levels_deep_are_gone() {
    let case = Case::with_repository();
    let hooks = case.workspace.join(".git/hooks");
    fs::remove_dir_all(&hooks).unwrap();
    case.sh("mkdir -p .claude/commands .cursor .config/git .config/fish .ssh
echo x >.claude/settings.json; echo x >.cursor/mcp.json; echo x >.config/git/config; echo x >.ssh/authorized_keys
echo x >.config/fish/config.fish; mkdir .git/hooks; echo x >.git/hooks/pre-commit; echo x >.git/config.worktree
echo x >.git/commondir; mkdir -p .git/info; echo x >.git/info/attributes; true");
    for name in [
        ".claude/settings.json",
        ".claude/commands",
        ".cursor/mcp.json",
        ".config/git/config",
        ".config/fish",
        ".ssh/authorized_keys",
        ".git/hooks/pre-commit",
        ".git/config.worktree",
        ".git/commondir",
        ".git/info/attributes",
    ] {
        assert!(!case.workspace.join(name).exists(), "{name}");
    }
}

#[test]
fn a_prepared_folder_that_is_renamed_into_place_is_gone() {
    let case = Case::new();
    case.sh("mkdir -p innocent/commands && echo x >innocent/settings.json && mv innocent .claude; true");
    assert!(!case.workspace.join(".claude/settings.json").exists());
    assert!(!case.workspace.join(".claude/commands").exists());
}

#[test]
fn a_literal_hide_that_does_not_exist_yet_does_not_come_into_being() {
    let case = Case::new();
    for script in [
        "echo x >later.env",
        "mkdir later.env",
        "ln -s README later.env",
        "mv README later.env; cp later.env README",
    ] {
        case.run(&["--hide", "later.env"], &["sh", "-c", script]);
        assert!(
            fs::symlink_metadata(case.workspace.join("later.env")).is_err(),
            "{script}"
        );
        case.put("README", "a project\n");
    }
}

#[test]
fn a_name_that_is_made_again_and_again_is_gone_at_the_end() {
    let case = Case::new();
    let attack = attack::program(
        "import time
end = time.monotonic() + 0.3
while time.monotonic() < end:
    for name in ['.bashrc', '.mcp.json']:
        try:
            create(name)
        except OSError:
            pass
if os.fork() == 0:
    while True:
        try:
            create('.bashrc')
        except OSError:
            pass",
    );
    let ran = case.run::<&str>(&[], &["/usr/bin/env", "python3", "-I", "-c", &attack]);
    // One that makes them faster than they can be taken away is killed; a slower one ends by itself.
    assert!([0, 125].contains(&ran.code), "{ran:?}");
    assert!(!case.workspace.join(".bashrc").exists(), "{}", ran.stderr);
    assert!(!case.workspace.join(".mcp.json").exists());
}

#[test]
fn a_link_in_the_place_of_a_protected_name_is_taken_away_without_being_followed() {
    let case = Case::new();
    let target = case.outside.join("file");
    let before = case.snapshot();
    case.sh(&format!(
        "ln -s {} .bashrc; ln -s {} .vscode",
        target.display(),
        case.outside.display()
    ));
    before.assert_same_as_but_for_times(&case.snapshot(), &case.workspace);
    assert_eq!(fs::read_to_string(target).unwrap(), SECRET);
}

#[test]
fn an_absent_protected_name_looks_absent_to_readers() {
    let case = Case::with_repository();
    let ran = case.attack(
        "for name in ['.bashrc', '.vscode', '.mcp.json', '.git/config.worktree', '.gitmodules', 'pinfold.toml']:
    attempt(name, lambda: os.stat(name))",
    );
    ran.expect_all("ENOENT");
}

#[test]
fn new_repositories_of_the_run_are_listed_at_its_end() {
    let case = Case::new();
    let ran = case.sh(
        "git init -q fresh && echo '#!/bin/sh' >fresh/.git/hooks/pre-commit && chmod +x fresh/.git/hooks/pre-commit",
    );
    ran.expect_code(0);
    assert!(ran.stderr.contains("fresh/.git"), "{}", ran.stderr);
}
