//! What is named, and what is not.

use super::{Case, exists};

#[test]
fn a_write_to_a_git_hook_is_named_with_its_group_and_the_lift() {
    let case = Case::new();
    let ran = case.explain("touch .git/hooks/pre-commit");
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("pinfold: 1 write blocked\n"), "{}", ran.err);
    ran.says(
        ".git/hooks/pre-commit",
        &["protected: git hooks run on the host", "lift: --lift git-hooks"],
    );
    assert!(!exists(&case.path("work/.git/hooks/pre-commit")));
}

#[test]
fn each_wall_is_named_for_what_it_refuses() {
    let case = Case::new();
    std::fs::write(case.path("home/notes"), "mine").unwrap();
    std::fs::write(case.path("work/secret"), "hidden").unwrap();
    std::fs::create_dir(case.path("other")).unwrap();
    let (notes, other) = (case.path("home/notes"), case.path("other/new"));
    let script = format!(
        "cat {}; touch {}; touch /usr/new; mv .git moved; cat secret; echo x > /proc/sys/kernel/hostname; true",
        notes.display(),
        other.display()
    );
    let ran = case.run(&["--explain", "--hide", "secret", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let real = |path: &std::path::Path| std::fs::canonicalize(path).unwrap().display().to_string();
    ran.says(&real(&notes), &["your home stays outside", "allow: --read"]);
    let other = format!("{}/new", real(&case.path("other")));
    ran.says(&other, &["temporary folders of its own", "allow: --write"]);
    ran.says("/usr/new", &["system folders are read-only"]);
    ran.says(".git ", &["must stay where it is"]);
    ran.says("secret", &["hidden by command line, --hide"]);
    ran.says("/proc/sys/kernel/hostname", &["whole host"]);
}

#[test]
fn refused_system_calls_are_named_with_their_reason() {
    let ran = Case::new().explain("unshare -U true; true");
    assert_eq!(ran.code, 0);
    ran.says("unshare by unshare", &["a new namespace gives back capabilities"]);
}

#[test]
fn refusals_of_children_of_children_are_named() {
    let ran = Case::new().explain("echo | (cat | sh -c 'touch .git/hooks/deep'); true");
    ran.says(".git/hooks/deep", &["--lift git-hooks"]);
}

#[test]
fn a_command_that_is_not_visible_is_named() {
    let case = Case::new();
    std::fs::create_dir_all(case.path("tools")).unwrap();
    std::fs::write(case.path("tools/hello"), "#!/bin/sh\n").unwrap();
    let tool = std::fs::canonicalize(case.path("tools/hello"))
        .unwrap()
        .display()
        .to_string();
    let ran = case.run(&["--explain", "--", &tool]);
    assert_eq!(ran.code, 127);
    ran.says(&tool, &["allow: --read"]);
}

#[test]
fn a_run_without_a_refusal_says_so_and_missing_files_are_no_refusals() {
    let ran = Case::new().explain("cat nothing /usr/nothing 2>/dev/null; exit 0");
    assert!(
        ran.err.ends_with("pinfold: the kernel refused nothing\n"),
        "{}",
        ran.err
    );
}
