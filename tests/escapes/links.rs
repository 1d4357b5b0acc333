//! Symbolic and hard links that lead somewhere else.

use std::fs;
use std::os::unix::fs::symlink;

use crate::case::{Case, SECRET};

#[test]
fn a_link_made_inside_leads_only_to_what_is_visible_inside() {
    let case = Case::new();
    let before = case.snapshot();
    let (outside, key) = (case.outside.display(), case.home.join(".ssh/id_ed25519"));
    let ran = case.attack(&format!(
        "for index, target in enumerate(['{outside}/file', '{key}', '/proc/1/root{outside}/file', '/proc/self/root/{outside}/file']):
    os.symlink(target, f'link{{index}}')
    attempt('read ' + target, lambda: print(read(f'link{{index}}')))
    os.unlink(f'link{{index}}')
os.symlink('/etc', 'etc')
attempt('create', lambda: create('etc/planted'))
attempt('write', lambda: write('etc/passwd'))
os.unlink('etc')",
        key = key.display()
    ));
    ran.assert_never_says(SECRET);
    ran.expect_all("ENOENT|EACCES|EROFS");
    before.assert_same_as_but_for_times(&case.snapshot(), &case.workspace);
}

#[test]
fn a_link_that_an_earlier_run_planted_does_not_widen_a_rule() {
    for target in ["/", "/etc", "/home", ".."] {
        let case = Case::new();
        case.link(target, "planted");
        let ran = case.run(
            &["--write", "planted"],
            &[
                "sh",
                "-c",
                "echo started; touch planted/escaped; ls planted/../../outside/file",
            ],
        );
        assert!(!ran.stdout.contains("outside/file"), "{target}: {ran:?}");
        assert!(
            !std::path::Path::new(target).join("escaped").exists() || target == "..",
            "{target}"
        );
        assert!(!case.home.join("escaped").exists(), "{target}");
    }
    let case = Case::new();
    case.link(&case.outside, "planted");
    let before = case.snapshot();
    let ran = case.run(
        &["--write", "planted"],
        &["sh", "-c", "cat planted/file; touch planted/escaped"],
    );
    ran.assert_never_says(SECRET);
    case.assert_unchanged(&before);
}

#[test]
fn a_hide_rule_on_a_link_hides_the_target_and_keeps_the_link() {
    let case = Case::new();
    case.put("real/secret", SECRET);
    case.link("real/secret", "alias");
    let ran = case.attack_with(
        &["--hide", "alias"],
        "attempt('through the link', lambda: print(read('alias')))
attempt('itself', lambda: print(read('real/secret')))
attempt('remove the link', lambda: os.unlink('alias'))
attempt('replace the link', lambda: os.rename('README', 'alias'))
attempt('move the folder', lambda: os.rename('real', 'other'))",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("through the link", "EACCES"),
        ("itself", "EACCES"),
        ("remove the link", "EBUSY"),
        ("replace the link", "EBUSY"),
        ("move the folder", "EBUSY"),
    ]);
}

#[test]
fn a_hide_rule_on_a_dangling_link_denies_the_target_name() {
    let case = Case::new();
    case.link("not-yet", "alias");
    case.run(&["--hide", "alias"], &["sh", "-c", "echo x >not-yet; echo x >alias"]);
    assert!(!case.workspace.join("not-yet").exists());
}

#[test]
fn a_link_cycle_in_a_rule_is_an_error_and_not_a_hole() {
    let case = Case::new();
    case.link("two", "one");
    case.link("one", "two");
    case.put("secret", SECRET);
    let ran = case.run(
        &["--hide", "one", "--hide", "secret"],
        &["sh", "-c", "echo started; cat secret"],
    );
    ran.assert_never_says(SECRET);
    ran.expect_code(65);
}

#[test]
fn a_protected_path_that_is_a_link_cannot_be_repointed() {
    let case = Case::new();
    case.put("dotfiles/bashrc", "mine");
    case.link("dotfiles/bashrc", ".bashrc");
    let ran = case.attack(
        "attempt('remove', lambda: os.unlink('.bashrc'))
attempt('replace', lambda: os.rename('README', '.bashrc'))
attempt('move', lambda: os.rename('.bashrc', 'b'))
attempt('write through', lambda: write('.bashrc'))
attempt('write the target', lambda: write('dotfiles/bashrc'))
attempt('move the target', lambda: os.rename('dotfiles/bashrc', 'b'))",
    );
    ran.expect_all("EBUSY|EROFS|EACCES|EXDEV");
    assert_eq!(
        fs::read_to_string(case.workspace.join("dotfiles/bashrc")).unwrap(),
        "mine"
    );
}

#[test]
fn a_link_cannot_be_swapped_under_a_pinned_rule() {
    let case = Case::new();
    case.put("a/b/secret", SECRET);
    let ran = case.attack_with(
        &["--hide", "a/b/secret"],
        "attempt('move a', lambda: os.rename('a', 'c'))
attempt('move b', lambda: os.rename('a/b', 'c'))
os.mkdir('fresh')
attempt('exchange', lambda: rename2('a', 'fresh', RENAME_EXCHANGE))
attempt('remove', lambda: os.rmdir('a/b'))
attempt('a sibling', lambda: create('a/b/sibling'))",
    );
    ran.expect(&[
        ("move a", "EBUSY"),
        ("move b", "EBUSY|EXDEV"),
        ("exchange", "EBUSY"),
        ("remove", "EBUSY|ENOTEMPTY"),
        ("a sibling", "ok"),
    ]);
}

#[test]
fn hard_links_to_files_outside_cannot_be_made() {
    let case = Case::new();
    let outside = case.outside.display().to_string();
    let ran = case.attack_with(
        &["--read", &outside],
        &format!(
            "for path in ['/etc/hostname', '/bin/sh', '{outside}/file', '/proc/self/exe', '/proc/1/exe']:
    attempt(path, lambda: os.link(path, 'stolen', follow_symlinks=True))"
        ),
    );
    ran.expect_all("EXDEV|EPERM|EACCES|EROFS|ENOENT");
    assert!(!case.workspace.join("stolen").exists());
}

#[test]
fn a_protected_or_hidden_file_is_covered_under_its_other_names() {
    let case = Case::new();
    let secret = case.put("secret", SECRET);
    let shell = case.put(".bashrc", "mine");
    fs::hard_link(&secret, case.workspace.join("other-secret")).unwrap();
    fs::hard_link(&shell, case.workspace.join("other-shell")).unwrap();
    let ran = case.run(
        &["--hide", "secret"],
        &["sh", "-c", "cat secret other-secret; echo evil >>other-shell; true"],
    );
    ran.assert_never_says(SECRET);
    assert_eq!(fs::read_to_string(shell).unwrap(), "mine", "{ran:?}");
}

#[test]
fn a_workspace_given_through_a_link_is_the_real_folder() {
    let case = Case::new();
    let alias = case.root().join("alias");
    symlink(&case.workspace, &alias).unwrap();
    let mut pinfold = case.pinfold();
    pinfold.args(["run", "-C"]).arg(&alias);
    pinfold.args(["--", "sh", "-c", "pwd -P; touch made"]);
    let ran = crate::case::finish(&mut pinfold);
    assert_eq!(ran.stdout.trim_end(), case.workspace.display().to_string(), "{ran:?}");
    assert!(case.workspace.join("made").exists());
}
