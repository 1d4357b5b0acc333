//! Git in repositories, linked worktrees and submodules.

use std::path::Path;

use crate::desk::{Desk, said};

/// Runs git outside, in a folder of the home.
#[track_caller]
fn git(desk: &Desk, folder: &str, arguments: &[&str]) {
    let settings = [
        "-c",
        "user.name=me",
        "-c",
        "user.email=me@localhost",
        "-c",
        "protocol.file.allow=always",
    ];
    let said = said(
        desk.outside("git")
            .current_dir(desk.home().join(folder))
            .args(settings)
            .args(arguments),
    );
    assert_eq!(said.code, Some(0), "git {arguments:?}: {said:?}");
}

/// A repository with one commit.
fn repository(desk: &Desk, folder: &str) {
    std::fs::create_dir_all(desk.home().join(folder)).unwrap();
    git(desk, folder, &["init", "--quiet", "--initial-branch=main"]);
    git(desk, folder, &["config", "user.name", "me"]);
    git(desk, folder, &["config", "user.email", "me@localhost"]);
    git(desk, folder, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
}

#[track_caller]
fn last_commit_outside(desk: &Desk, folder: &str, expected: &str) {
    let said = said(
        desk.outside("git")
            .current_dir(desk.home().join(folder))
            .args(["log", "-1", "--format=%s"]),
    );
    assert_eq!(said.out.trim(), expected, "{said:?}");
}

#[test]
fn a_repository_takes_commits_branches_tags_and_clean_up() {
    let desk = Desk::new();
    repository(&desk, "app");
    let script = "set -e; echo a > a; git add a; git commit -qm second; git branch other; git tag v1; git checkout -q other; \
                  echo b > a; git stash -q; git stash pop -q; git commit -qam third; git gc -q; git clone -q . copy; \
                  git status --short; ls copy";
    assert_eq!(desk.works(&[], script), "?? copy/\na\n");
    last_commit_outside(&desk, "app", "third");
}

#[test]
fn the_configuration_and_the_hooks_of_a_repository_stay_as_they_are_without_a_lift() {
    let desk = Desk::new();
    repository(&desk, "app");
    let before = std::fs::read(desk.workspace().join(".git/config")).unwrap();
    for script in [
        "git config core.editor evil",
        "git remote add origin /elsewhere",
        "echo evil > .git/hooks/pre-commit",
    ] {
        assert_ne!(desk.sh(&[], script).code, Some(0), "{script}");
    }
    assert_eq!(std::fs::read(desk.workspace().join(".git/config")).unwrap(), before);
    desk.works(&["--lift", "git-config"], "git remote add origin /elsewhere");
    assert_ne!(std::fs::read(desk.workspace().join(".git/config")).unwrap(), before);
}

#[test]
fn a_linked_worktree_takes_commits_although_its_repository_lies_outside_of_the_workspace() {
    for separate_settings in [false, true] {
        let desk = Desk::new();
        repository(&desk, "main");
        if separate_settings {
            git(&desk, "main", &["config", "extensions.worktreeConfig", "true"]);
        }
        git(
            &desk,
            "main",
            &["worktree", "add", "--quiet", "-b", "topic", "../app/tree"],
        );
        if separate_settings {
            git(&desk, "app/tree", &["config", "--worktree", "core.comment", "own"]);
        }
        let tree = desk.workspace().join("tree");
        let inside = |script: &str| said(desk.pinfold().current_dir(&tree).args(["--", "sh", "-c", script]));
        let commit =
            inside("echo a > a && git add a && git commit -qm second && git status --short && git branch --list topic");
        assert_eq!((commit.code, commit.out.as_str()), (Some(0), "* topic\n"), "{commit:?}");
        last_commit_outside(&desk, "app/tree", "second");
        for script in [
            "git config a.b c",
            "git config --worktree a.b c",
            "git worktree list | grep -q /nowhere",
        ] {
            assert_ne!(inside(script).code, Some(0), "{script}");
        }
        // Of the other checkout nothing shows but what git needs.
        assert_ne!(inside("ls ../../main/.git/../app").code, Some(0));
    }
}

#[test]
fn a_submodule_takes_commits_and_keeps_its_settings() {
    let desk = Desk::new();
    repository(&desk, "part");
    repository(&desk, "app");
    git(&desk, "app", &["submodule", "--quiet", "add", "../part", "part"]);
    git(&desk, "app", &["commit", "--quiet", "-m", "with a part"]);
    for (key, value) in [("user.name", "me"), ("user.email", "me@localhost")] {
        git(&desk, "app/part", &["config", key, value]);
    }
    let script = "set -e; cd part; echo a > a; git add a; git commit -qm inner; cd ..; git add part; git commit -qm outer; \
                  git submodule status | cut -c1";
    assert_eq!(desk.works(&[], script), " \n");
    last_commit_outside(&desk, "app", "outer");
    for script in ["git -C part config a.b c", "echo '[submodule \"x\"]' >> .gitmodules"] {
        assert_ne!(desk.sh(&[], script).code, Some(0), "{script}");
    }
}

#[test]
fn what_the_command_leaves_for_programs_outside_is_named_at_the_end() {
    let desk = Desk::new();
    let said = desk.sh(&[], "git init -q new && echo '#!/bin/sh' > new/.git/hooks/pre-commit");
    assert_eq!(said.code, Some(0), "{said:?}");
    for name in ["new/.git/config", "new/.git/hooks"] {
        let path = desk.workspace().join(Path::new(name));
        assert!(said.err.contains(path.to_str().unwrap()), "{name}: {}", said.err);
    }
}
