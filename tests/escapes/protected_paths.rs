//! Paths that programs on the host obey: they exist, and must come out of the run as they went in.

use std::fs;

use crate::case::Case;

/// Every way to change the file or folder `path` that the kernel has.
const TAMPER: &str = "
def tamper(path):
    is_dir = os.path.isdir(path) and not os.path.islink(path)
    if is_dir:
        attempt('create in ' + path, lambda: create(path + '/planted'))
        attempt('mkdir in ' + path, lambda: os.mkdir(path + '/planted'))
        attempt('remove ' + path, lambda: os.rmdir(path))
        attempt('move into ' + path, lambda: os.rename('payload', path + '/payload'))
        attempt('link into ' + path, lambda: os.link('payload', path + '/payload'))
        attempt('symlink in ' + path, lambda: os.symlink('/', path + '/planted'))
        attempt('exchange ' + path, lambda: rename2('payload-d', path, RENAME_EXCHANGE))
    else:
        attempt('write ' + path, lambda: write(path))
        attempt('append ' + path, lambda: open(path, 'a').close())
        attempt('truncate ' + path, lambda: os.truncate(path, 0))
        attempt('unlink ' + path, lambda: os.unlink(path))
        attempt('replace ' + path, lambda: os.rename('payload', path))
        attempt('exchange ' + path, lambda: rename2('payload', path, RENAME_EXCHANGE))
        attempt('whiteout ' + path, lambda: rename2(path, 'elsewhere', RENAME_WHITEOUT))
        attempt('link ' + path, lambda: os.link(path, 'elsewhere'))
    attempt('rename ' + path, lambda: os.rename(path, 'elsewhere'))
    attempt('chmod ' + path, lambda: os.chmod(path, 0o777))
    attempt('utime ' + path, lambda: os.utime(path))
    attempt('setxattr ' + path, lambda: os.setxattr(path, 'user.x', b'1'))
open('payload', 'w').close()
os.mkdir('payload-d')
";

const CLEAN: &str = "
os.unlink('payload')
os.rmdir('payload-d')
";

const REFUSED: &str = "EROFS|EBUSY|EXDEV|EACCES|EPERM|ENOTEMPTY|EEXIST";

/// Tampers with each path and checks that it failed and that nothing of it changed.
#[track_caller]
fn assert_safe(case: &Case, paths: &[&str], flags: &[&str]) {
    let state = |path: &str| {
        let path = case.workspace.join(path);
        (crate::snapshot::Snapshot::of(&[&path]), path)
    };
    let before: Vec<_> = paths.iter().map(|path| state(path)).collect();
    let list: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
    let ran = case.attack_with(
        flags,
        &format!("{TAMPER}\nfor path in [{}]:\n    tamper(path)\n{CLEAN}", list.join(",")),
    );
    ran.expect_all(REFUSED);
    for (before, path) in before {
        before.assert_same_as(&crate::snapshot::Snapshot::of(&[&path]));
    }
}

#[test]
fn git_hooks_and_configuration_cannot_be_changed() {
    let case = Case::with_repository();
    case.put(".git/hooks/pre-commit", "#!/bin/sh\n");
    case.put(".git/info/attributes", "");
    case.put(".git/config.worktree", "");
    assert_safe(
        &case,
        &[
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/config.worktree",
            ".git/info/attributes",
        ],
        &[],
    );
}

#[test]
fn folders_above_a_protected_path_cannot_be_moved_or_removed() {
    let case = Case::with_repository();
    case.put(".claude/commands/x.md", "");
    case.put("deep/er/.vscode/tasks.json", "{}");
    let ran = case.attack(
        "os.mkdir('other')
for path in ['.git', '.git/info', '.claude', 'deep', 'deep/er']:
    attempt('rename ' + path, lambda: os.rename(path, 'moved'))
    attempt('exchange ' + path, lambda: rename2(path, 'other', RENAME_EXCHANGE))
    attempt('replace ' + path, lambda: os.rename('other', path))
    attempt('remove ' + path, lambda: os.rmdir(path))
os.rmdir('other')",
    );
    let wrong: Vec<_> = ran
        .outcomes()
        .into_iter()
        .filter(|(name, outcome)| !name.ends_with(".git/info") && !["EBUSY", "ENOTEMPTY", "EXDEV"].contains(outcome))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(case.workspace.join("deep/er/.vscode/tasks.json").exists());
    assert!(case.workspace.join(".claude/commands/x.md").exists());
}

#[test]
fn work_inside_a_pinned_folder_goes_on_as_ever() {
    let case = Case::with_repository();
    case.put(".claude/commands/x.md", "");
    let ran = case.attack(
        "open('.claude/notes', 'w').close()
os.rename('.claude/notes', '.claude/notes-2')
os.mkdir('.claude/sub')
os.rename('.claude/notes-2', '.claude/sub/notes-3')
os.link('.claude/sub/notes-3', '.claude/notes-4')
os.rename('.claude/sub', '.claude/sub-2')
attempt('work', lambda: os.unlink('.claude/notes-4'))",
    );
    ran.expect(&[("work", "ok")]);
    let ran = case.sh("mv .claude/sub-2/notes-3 notes && test -e notes && echo more >>README && git add README && git commit -q -m more && git checkout -q -b side && git gc -q && git status --short");
    ran.expect_code(0);
    case.git(&["rev-parse", "--verify", "--quiet", "side"]);
}

#[test]
fn editor_and_agent_folders_cannot_be_changed() {
    let case = Case::new();
    for file in [
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".zed/tasks.json",
        ".fleet/run.json",
        ".devcontainer/devcontainer.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/commands/c.md",
        ".claude/hooks/h.sh",
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".cursor/rules/r.mdc",
        ".gemini/settings.json",
    ] {
        case.put(file, "{}");
    }
    assert_safe(
        &case,
        &[
            ".vscode",
            ".vscode/tasks.json",
            ".idea",
            ".zed",
            ".fleet",
            ".devcontainer",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/commands",
            ".claude/hooks/h.sh",
            ".codex",
            ".cursor/mcp.json",
            ".cursor/rules",
            ".gemini",
        ],
        &[],
    );
}

#[test]
fn shell_and_tool_start_files_cannot_be_changed() {
    let case = Case::new();
    let files = [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zprofile",
        ".zshenv",
        ".zlogin",
        ".zlogout",
        ".config/fish/config.fish",
        ".ripgreprc",
        ".mcp.json",
        ".ssh/config",
        ".ssh/authorized_keys",
        ".ssh/rc",
        ".ssh/environment",
        ".gitconfig",
        ".gitmodules",
        ".config/git/config",
        ".hg/hgrc",
    ];
    for file in files {
        case.put(file, "");
    }
    assert_safe(&case, &files, &[]);
}

#[test]
fn protected_names_in_another_case_are_protected_too() {
    let case = Case::new();
    let files = [".BashRC", ".VSCode/tasks.json", ".Claude/Settings.json", ".MCP.json"];
    for file in files {
        case.put(file, "");
    }
    assert_safe(&case, &files, &[]);
}

#[test]
fn protected_paths_below_the_workspace_root_are_found() {
    let case = Case::new();
    let files = [
        "app/.vscode/tasks.json",
        "packages/one/.mcp.json",
        "a/b/.claude/settings.json",
    ];
    for file in files {
        case.put(file, "");
    }
    assert_safe(&case, &files, &[]);
}

#[test]
fn a_more_specific_write_rule_does_not_open_a_protected_path() {
    let case = Case::with_repository();
    case.put(".git/hooks/pre-commit", "#!/bin/sh\n");
    case.put(".vscode/tasks.json", "{}");
    assert_safe(
        &case,
        &[".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json"],
        &[
            "--write",
            ".git/hooks",
            "--write",
            ".git/config",
            "--write",
            ".vscode",
            "--write",
            ".vscode/tasks.json",
        ],
    );
}

#[test]
fn a_lift_opens_its_own_group_and_no_other() {
    let case = Case::with_repository();
    case.put(".git/hooks/pre-commit", "#!/bin/sh\n");
    case.put(".bashrc", "");
    let ran = case.attack_with(
        &["--lift", "git-config"],
        "attempt('config', lambda: write('.git/config'))
attempt('hook', lambda: write('.git/hooks/pre-commit'))
attempt('shell', lambda: write('.bashrc'))",
    );
    ran.expect(&[("config", "ok"), ("hook", "EROFS"), ("shell", "EROFS")]);
}

#[test]
fn a_writable_home_keeps_its_start_files_closed() {
    let case = Case::new();
    for file in [
        ".bashrc",
        ".config/autostart/x.desktop",
        ".config/systemd/user/x.service",
        ".xprofile",
        ".pam_environment",
    ] {
        case.write(&case.home.join(file), "");
    }
    let home = case.home.display().to_string();
    let ran = case.attack_with(
        &["--write", &home],
        &format!(
            "{TAMPER}
os.chdir('{home}')
open('payload', 'w').close()
os.mkdir('payload-d')
for path in ['.bashrc', '.config/autostart', '.config/systemd/user', '.xprofile', '.pam_environment', '.config/systemd/user/x.service']:
    tamper(path)
os.unlink('payload')
os.rmdir('payload-d')
os.unlink('project/payload')
os.rmdir('project/payload-d')"
        ),
    );
    ran.expect_all(REFUSED);
    assert!(fs::read(case.home.join(".bashrc")).unwrap().is_empty());
}

#[test]
fn a_command_that_needs_a_protected_file_fails_and_is_told_the_lift_when_it_is_explained() {
    let case = Case::with_repository();
    let script = "git config user.name Mallory; git remote add evil https://example.com/x; true";
    let flags: [&[&str]; 2] = [&[], &["--explain"]];
    for flags in flags {
        let ran = case.run(flags, &["sh", "-c", script]);
        let config = fs::read_to_string(case.workspace.join(".git/config")).unwrap();
        assert!(!config.contains("Mallory") && !config.contains("evil"));
        assert!(!case.workspace.join(".git/config.lock").exists());
        let told = ran.stderr.contains("--lift git-config");
        assert!(told || flags.is_empty(), "no hint: {}", ran.stderr);
    }
}
