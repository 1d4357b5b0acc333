use proptest::prelude::*;

use super::*;

fn group(path: &str, place: Place) -> Option<Group> {
    classify(path.as_bytes(), place).map(|found| found.group)
}

#[test]
fn every_name_of_the_table_is_protected_in_any_case_and_below() {
    for entry in ENTRIES {
        let place = if entry.home_only { Place::Home } else { Place::Nested };
        let path = entry
            .path
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("/")
            .replace('*', "x");
        assert_eq!(group(&path, place), Some(entry.group), "{path}");
        assert_eq!(group(&path.to_ascii_uppercase(), place), Some(entry.group), "{path}");
        let below = format!("{path}/a/b");
        assert_eq!(group(&below, place), Some(entry.group), "{below}");
        if !entry.home_only {
            assert_eq!(
                group(&format!("src/deep/{path}"), Place::Root),
                Some(entry.group),
                "{path}"
            );
        }
        assert!(!entry.reason.is_empty());
    }
}

#[test]
fn git_directories_are_open_where_git_writes_and_closed_where_the_host_obeys() {
    let table = [
        (".git/hooks", Some(Group::GitHooks)),
        (".GIT/Hooks/pre-commit", Some(Group::GitHooks)),
        (".git/config", Some(Group::GitConfig)),
        (".git/config.worktree", Some(Group::GitConfig)),
        (".git/info/attributes", Some(Group::GitConfig)),
        (".git/info/exclude", None),
        (".git/commondir", Some(Group::GitConfig)),
        (".git/gitdir", Some(Group::GitConfig)),
        (".git/worktrees/w/gitdir", Some(Group::GitConfig)),
        (".git/worktrees/w/commondir", Some(Group::GitConfig)),
        (".git/worktrees/w/config.worktree", Some(Group::GitConfig)),
        (".git/worktrees/w/HEAD", None),
        (".git/worktrees/w/index", None),
        (".git/modules/lib/config", Some(Group::GitConfig)),
        (".git/modules/deep/lib/hooks/x", Some(Group::GitHooks)),
        (".git/modules/lib/modules/inner/config", Some(Group::GitConfig)),
        (".git/modules/lib/refs/heads/hooks", None),
        (".git/refs/heads/config", None),
        (".git/HEAD", None),
        (".git/config.lock", None),
        (".git", None),
        ("sub/.git/hooks/x", Some(Group::GitHooks)),
        (".gitmodules", Some(Group::GitConfig)),
        (".github/workflows/x.yml", None),
    ];
    for (path, expected) in table {
        assert_eq!(group(path, Place::Root), expected, "{path}");
    }
    assert_eq!(classify_in_git_dir(b"refs/heads/hooks"), GitName::Writable);
    assert_eq!(classify_in_git_dir(b"packed-refs.lock"), GitName::Writable);
    assert_eq!(classify_in_git_dir(b"description"), GitName::Other);
    assert!(matches!(
        classify_in_git_dir(b"hooks/pre-commit"),
        GitName::Protected(_)
    ));
}

#[test]
fn home_names_count_in_home_only() {
    assert_eq!(
        group(".config/autostart/x.desktop", Place::Home),
        Some(Group::Autostart)
    );
    assert_eq!(group(".config/autostart/x.desktop", Place::Root), None);
    assert_eq!(group("sub/.xprofile", Place::Home), None);
    assert_eq!(group(".config/systemd/other", Place::Home), Some(Group::Autostart));
    assert_eq!(group(".config/systemd", Place::Home), None);
    assert_eq!(group(".config/git/ignore", Place::Nested), Some(Group::GitConfig));
}

#[test]
fn agent_folders_stay_open_beside_the_protected_names() {
    assert_eq!(group(".claude/settings.local.json", Place::Root), Some(Group::Agents));
    assert_eq!(group(".claude/settings.txt", Place::Root), None);
    assert_eq!(group(".claude/todos/x", Place::Root), None);
    assert_eq!(group(".cursor/hooks.json", Place::Root), Some(Group::Agents));
    assert_eq!(group(".cursor/skills-cursor/x", Place::Root), Some(Group::Agents));
}

#[test]
fn a_match_says_how_much_of_the_path_is_the_protected_name() {
    let found = classify(b"a/./b//.git/modules/x/y/hooks/z", Place::Root);
    assert_eq!(found.map(|found| found.components), Some(7));
    let found = classify(b".git/worktrees/w/gitdir", Place::Root);
    assert_eq!(found.map(|found| found.components), Some(4));
    assert_eq!(classify(b"a/../.vscode", Place::Root), None);
}

#[test]
fn groups_are_parsed_by_name_and_a_slip_is_pointed_out() {
    for group in Group::all() {
        assert_eq!(Group::parse(group.name()), Ok(*group));
        assert_eq!(serde_json::to_value(group).ok(), Some(group.name().into()));
        assert!(group.reason().ends_with('.'));
    }
    assert_eq!(Group::parse("Git_Hooks"), Ok(Group::GitHooks));
    let error = Group::parse("git-hook").map_err(|error| error.to_string());
    assert_eq!(
        error,
        Err(
            "`git-hook` is not a group of protected paths; did you mean `git-hooks`? The groups are: git-hooks, \
             git-config, version-control, shell-start, tool-start, autostart, ide, agents, pinfold."
                .to_owned()
        )
    );
    assert_eq!(Group::parse("everything").map_err(|error| error.nearest), Err(None));
    assert_eq!(
        Group::parse(&"x".repeat(100_000)).map_err(|error| error.nearest),
        Err(None)
    );
    let fixed: Vec<_> = Group::all().iter().filter(|group| !group.may_be_lifted()).collect();
    assert_eq!(fixed, [&Group::Pinfold]);
}

proptest! {
    #[test]
    fn classifying_never_panics_and_ignores_case(path in proptest::collection::vec(any::<u8>(), 0..80)) {
        for place in [Place::Root, Place::Home, Place::Nested] {
            prop_assert_eq!(classify(&path, place), classify(&path.to_ascii_uppercase(), place));
        }
        prop_assert_eq!(classify_in_git_dir(&path), classify_in_git_dir(&path.to_ascii_uppercase()));
    }

    #[test]
    fn paths_of_known_words_are_classified_alike_in_any_case(
        words in proptest::collection::vec(
            prop_oneof![
                Just(".git"), Just("hooks"), Just("modules"), Just("worktrees"), Just("info"), Just("attributes"),
                Just(".config"), Just("git"), Just("systemd"), Just("x"), Just(".claude"), Just("settings.json"), Just("refs"),
            ],
            0..8,
        )
    ) {
        let path = words.join("/");
        for place in [Place::Root, Place::Home, Place::Nested] {
            let found = classify(path.as_bytes(), place);
            prop_assert_eq!(found, classify(path.to_ascii_uppercase().as_bytes(), place));
            if let Some(found) = found {
                prop_assert!(found.components >= 1 && found.components <= words.len());
            }
        }
    }
}
