//! Git directories of every shape, and pointers that lie.

use std::fs;

use crate::case::{Case, SECRET};

#[test]
fn bare_repositories_and_submodules_keep_hooks_and_configuration() {
    let case = Case::with_repository();
    case.git(&["init", "--quiet", "--bare", "bare.git"]);
    case.git(&["init", "--quiet", "--bare", ".git/modules/lib"]);
    case.put("lib/.git", "gitdir: ../.git/modules/lib\n");
    let ran = case.attack(
        "for folder in ['bare.git', '.git/modules/lib']:
    attempt('config of ' + folder, lambda: write(folder + '/config'))
    attempt('hook of ' + folder, lambda: create(folder + '/hooks/post-update'))
    attempt('move hooks of ' + folder, lambda: os.rename(folder + '/hooks', folder + '/h'))
attempt('pointer', lambda: write('lib/.git'))
attempt('replace pointer', lambda: os.rename('README', 'lib/.git'))
attempt('remove pointer', lambda: os.unlink('lib/.git'))",
    );
    ran.expect_all("EROFS|EBUSY|EXDEV|EACCES");
    for folder in ["bare.git", ".git/modules/lib"] {
        assert!(!case.workspace.join(folder).join("hooks/post-update").exists());
    }
}

#[test]
fn a_linked_worktree_can_commit_and_cannot_change_what_git_obeys() {
    let case = Case::with_repository();
    let tree = case.home.join("tree");
    case.git(&["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    let mut pinfold = case.pinfold();
    pinfold.current_dir(&tree);
    pinfold.args([
        "run",
        "--",
        "sh",
        "-c",
        "echo new >new && git add new && git commit -q -m new && git log --oneline && git status --short && git branch -a && echo committed
common=$(git rev-parse --git-common-dir); own=$(git rev-parse --git-dir)
for file in $common/config $own/config.worktree $own/commondir $own/gitdir .git $common/hooks/pre-commit; do
  if ( : >>$file ) 2>/dev/null; then echo opened $file; fi
done
echo checked",
    ]);
    let ran = crate::case::finish(&mut pinfold);
    assert!(
        ran.stdout.contains("committed") && ran.stdout.contains("checked"),
        "{ran:?}"
    );
    let opened: Vec<_> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("opened") && !line.ends_with("config.worktree"))
        .collect();
    assert!(opened.is_empty(), "{opened:?}");
    assert!(!case.workspace.join(".git/hooks/pre-commit").exists());
    assert!(!case.workspace.join(".git/worktrees/tree/config.worktree").exists());
    case.git(&["rev-parse", "--verify", "--quiet", "side:new"]);
}

#[test]
fn a_pointer_file_that_was_planted_opens_nothing_outside() {
    let case = Case::new();
    let victim = case.outside.join("victim");
    fs::create_dir(&victim).unwrap();
    case.git_in(&case.outside, &["init", "--quiet", "victim"]);
    case.write(&victim.join(".git/refs/heads/main"), SECRET);
    case.put(".git", &format!("gitdir: {}\n", victim.join(".git").display()));
    let before = case.snapshot();
    let path = victim.join(".git").display().to_string();
    let ran = case.attack(&format!(
        "attempt('object', lambda: create('{path}/objects/planted'))
attempt('ref', lambda: create('{path}/refs/heads/planted'))
attempt('hook', lambda: create('{path}/hooks/planted'))
attempt('config', lambda: write('{path}/config'))"
    ));
    ran.expect_all("ENOENT|EROFS|EACCES");
    case.assert_unchanged(&before);
}

#[test]
fn a_common_directory_that_was_planted_opens_nothing_outside() {
    let case = Case::with_repository();
    let target = case.outside.join("common");
    for folder in ["objects", "refs", "hooks", "worktrees/w"] {
        fs::create_dir_all(target.join(folder)).unwrap();
    }
    case.put(".git/commondir", &format!("{}\n", target.display()));
    let before = case.snapshot();
    let path = target.display().to_string();
    let ran = case.attack(&format!(
        "attempt('object', lambda: create('{path}/objects/planted'))
attempt('hook', lambda: create('{path}/hooks/planted'))
attempt('pointer', lambda: write('.git/commondir'))"
    ));
    ran.expect_all("ENOENT|EROFS|EACCES");
    case.assert_unchanged(&before);
}

#[test]
fn a_hooks_folder_that_the_configuration_moved_into_the_workspace_is_closed() {
    let case = Case::with_repository();
    case.put(".githooks/pre-commit", "#!/bin/sh\n");
    case.git(&["config", "core.hooksPath", ".githooks"]);
    let ran = case.attack(
        "attempt('write', lambda: write('.githooks/pre-commit'))
attempt('plant', lambda: create('.githooks/post-checkout'))
attempt('move', lambda: os.rename('.githooks', 'h'))",
    );
    ran.expect_all("EROFS|EBUSY|EACCES");
}

#[test]
fn pinfold_never_makes_a_lock_file_of_gits() {
    let case = Case::with_repository();
    let ran = case.sh("ls -A .git; git status --short; test ! -e .git/config.worktree && echo absent");
    assert!(!ran.stdout.contains(".lock"), "{ran:?}");
    assert!(
        ran.stdout.contains("absent"),
        "an absent file has to stay absent: {ran:?}"
    );
}
