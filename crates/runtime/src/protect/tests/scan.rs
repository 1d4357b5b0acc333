use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn an_empty_workspace_has_nothing_to_protect_and_is_watched() {
    let place = Place::new();
    let scan = place.scan();
    assert_eq!(existing(&scan, &place.work), [""; 0]);
    assert!(scan.pinned.is_empty() && scan.closed.is_empty() && scan.warnings.is_empty());
    let watched: Vec<&Path> = scan.watched.iter().map(|watched| watched.folder.as_path()).collect();
    assert_eq!(watched, [place.work.as_path()]);
}

#[test]
fn names_are_found_in_any_case_down_to_the_depth_and_their_folders_are_pinned() {
    let place = Place::new();
    for path in [
        ".VSCODE/tasks.json",
        "a/.idea/x",
        "a/b/.bashrc",
        "a/b/c/.zed/x",
        "a/b/c/d/.vscode/x",
        ".config/fish/x",
    ] {
        place.file(path);
    }
    place.file("node_modules/p/.vscode/x");
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.work),
        [
            "d .VSCODE",
            "d .config/fish",
            "d a/.idea",
            "f a/b/.bashrc",
            "d a/b/c/.zed"
        ]
    );
    assert_eq!(pinned(&scan, &place.work), [".config", "a", "a/b", "a/b/c"]);

    let shallow = Place { depth: 1, ..place };
    assert_eq!(
        existing(&shallow.scan(), &shallow.work),
        ["d .VSCODE", "d .config/fish", "d a/.idea"]
    );
}

#[test]
fn agent_folders_are_watched_for_what_is_absent_and_left_open_beside_it() {
    let place = Place::new();
    for path in [
        ".claude/settings.local.json",
        ".claude/todos/x",
        ".claude/commands/x",
        "sub/.cursor/other",
    ] {
        place.file(path);
    }
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.work),
        ["d .claude/commands", "f .claude/settings.local.json"]
    );
    assert_eq!(pinned(&scan, &place.work), [".claude", "sub", "sub/.cursor"]);
    let mut known = watched(&scan, &place.work.join(".claude")).unwrap().known.clone();
    known.sort();
    assert_eq!(known, ["commands", "settings.local.json"]);
    assert!(watched(&scan, &place.work.join("sub/.cursor")).is_some());
    assert!(watched(&scan, &place.work.join("sub")).is_none());
}

#[test]
fn home_names_count_only_where_a_write_root_covers_home() {
    let mut place = Place::new();
    place.home = place.work.join("deep/er/than/depth/home");
    for path in [
        ".config/autostart/x",
        ".config/systemd/other/x",
        ".config/git/ignore",
        ".xprofile",
        ".ssh/config",
    ] {
        place.file(&format!("deep/er/than/depth/home/{path}"));
    }
    assert_eq!(existing(&place.scan(), &place.work), [""; 0]);
    place.covers_home = true;
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.home),
        [
            "d .config/autostart",
            "d .config/git",
            "d .config/systemd",
            "f .ssh/config",
            "f .xprofile"
        ]
    );
    assert!(watched(&scan, &place.home).is_some());
    assert!(pinned(&scan, &place.work).contains(&"deep/er/than/depth/home".to_owned()));
}

#[test]
fn a_lift_opens_its_group_and_no_other() {
    let mut place = Place::new();
    place.file(".vscode/x");
    place.file(".bashrc");
    place.file("pinfold.toml");
    place.lifts = Group::all()
        .iter()
        .copied()
        .filter(|group| *group != Group::ShellStart)
        .collect();
    assert_eq!(existing(&place.scan(), &place.work), ["f .bashrc", "f pinfold.toml"]);
}

#[test]
fn a_write_root_that_is_a_protected_path_is_closed_and_said_so() {
    let place = Place::new();
    place.folder(".git/hooks");
    place.file("other/.bashrc");
    place.folder("agent/.claude/commands");
    place.folder("x/.codex/worktrees/project");
    let roots = [
        ".git/hooks",
        "other/.bashrc",
        "agent/.claude",
        "x/.codex/worktrees/project",
    ];
    let roots = roots.map(|path| place.work.join(path));
    let scan = scan(place.request(&roots)).unwrap();
    assert_eq!(
        existing(&scan, &place.work),
        ["d .git/hooks", "d agent/.claude/commands", "f other/.bashrc"]
    );
    assert_eq!(scan.warnings.len(), 2);
    assert!(watched(&scan, &place.work.join("agent/.claude")).is_some());
}

#[test]
fn links_are_protected_with_what_they_lead_to_inside_the_write_root() {
    let place = Place::new();
    let outside = place.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    place.folder("dots/code");
    place.file("dots/claude/settings.json");
    place.link(".vscode", "middle");
    place.link("middle", "dots/code");
    place.link(".claude", "dots/claude");
    place.link(".idea", outside.to_str().unwrap());
    place.link(".zed", "dots/absent");
    place.link(".fleet", ".fleet");
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.work),
        [
            "l .claude",
            "l .fleet",
            "l .idea",
            "l .vscode",
            "l .zed",
            "f dots/claude/settings.json",
            "d dots/code",
            "l middle"
        ]
    );
    assert_eq!(scan.warnings.len(), 1);
    assert!(watched(&scan, &place.work.join("dots")).is_some());
    assert!(watched(&scan, &place.work.join("dots/claude")).is_some());
}

#[test]
fn a_protected_link_to_the_whole_workspace_refuses_the_start() {
    let place = Place::new();
    place.link(".vscode", ".");
    let error = place.try_scan().unwrap_err();
    assert!(matches!(error, ScanError::LinkCoversRoot { .. }), "{error}");
    assert!(error.to_string().contains("lift the group `ide`"));
}

#[test]
fn other_names_of_a_protected_file_are_protected_at_any_depth() {
    let place = Place::new();
    let file = place.file(".bashrc");
    place.folder("a/b/c/d/e");
    std::fs::hard_link(&file, place.work.join("a/b/c/d/e/other")).unwrap();
    std::fs::hard_link(&file, place.base.join("outside")).unwrap();
    let hook = place.file(".git/hooks/pre-commit");
    std::fs::hard_link(&hook, place.work.join("script")).unwrap();
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.work),
        ["f .bashrc", "d .git/hooks", "f a/b/c/d/e/other", "f script"]
    );
}

#[test]
fn other_names_that_cannot_be_searched_for_refuse_the_start() {
    let mut place = Place::new();
    let file = place.file(".bashrc");
    std::fs::hard_link(&file, place.base.join("outside")).unwrap();
    for number in 0..50 {
        place.folder(&format!("a/b/c/d/{number}/e"));
    }
    place.budget.entries = 20;
    assert!(matches!(place.try_scan(), Err(ScanError::HardLinks { .. })));
}

#[test]
fn links_in_a_hooks_folder_lead_to_protected_scripts() {
    let place = Place::new();
    place.file("scripts/check");
    place.link(".git/hooks/pre-commit", "../../scripts/check");
    assert_eq!(
        existing(&place.scan(), &place.work),
        ["d .git/hooks", "f scripts/check"]
    );
}

#[test]
fn a_spent_budget_closes_what_was_not_seen_and_says_so() {
    let mut place = Place::new();
    place.file(".vscode/x");
    for number in 0..40 {
        place.folder(&format!("a{number}/b"));
    }
    place.budget.entries = 60;
    let scan = place.scan();
    let stopped = scan.stopped_early.unwrap();
    assert!(matches!(stopped, Stopped::Entries { folders, .. } if folders == scan.closed.len()));
    assert!(!scan.closed.is_empty() && scan.closed.iter().all(|closed| closed.why == Why::Unscanned));
    assert_eq!(existing(&scan, &place.work), ["d .vscode"]);

    place.budget.time = Duration::ZERO;
    assert!(matches!(place.try_scan(), Err(ScanError::TooLarge { .. })));
}

#[test]
fn many_unseen_folders_are_closed_by_the_folder_above() {
    let mut place = Place::new();
    for number in 0..300 {
        place.folder(&format!("top/a{number}/b"));
    }
    place.budget.entries = 350;
    let scan = place.scan();
    let closed: Vec<String> = scan
        .closed
        .iter()
        .map(|closed| relative(&closed.path, &place.work))
        .collect();
    assert_eq!(closed, ["top"]);
}

#[test]
fn ten_thousand_folders_are_searched_to_the_end() {
    // In memory where there is such a place: a disk's file system takes long to make so many.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        Place::at(memory)
    } else {
        Place::new()
    };
    for top in 0..100 {
        for below in 0..100 {
            std::fs::create_dir_all(place.work.join(format!("{top}/{below}"))).unwrap();
        }
    }
    place.file("77/13/.vscode/x");
    let scan = place.scan();
    assert_eq!(existing(&scan, &place.work), ["d 77/13/.vscode"]);
    assert!(scan.stopped_early.is_none());
}

#[test]
fn names_that_are_not_text_stay_as_they_are() {
    let place = Place::new();
    let folder = place.work.join(os(b"\xff\xfe"));
    std::fs::create_dir_all(folder.join(".vscode")).unwrap();
    std::fs::create_dir_all(place.work.join(os(b"\xff\xfd"))).unwrap();
    let scan = place.scan();
    assert_eq!(scan.existing[0].path, folder.join(".vscode"));
    assert_eq!(scan.pinned, [folder]);
}

#[test]
fn a_folder_that_cannot_be_listed_is_closed_as_a_whole() {
    let place = Place::new();
    let folder = place.folder("a/secret");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o0)).unwrap();
    let scan = place.scan();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        // Root may list every folder, so there is nothing to close.
        assert!(scan.closed.is_empty());
    } else {
        assert_eq!(
            scan.closed,
            [Closed {
                path: folder,
                why: Why::Unreadable(rustix::io::Errno::ACCESS)
            }]
        );
    }
}

#[test]
fn files_of_pinfold_are_protected_and_absent_ones_watched_for() {
    let place = Place::new();
    let policy = place.file("conf/sandbox.toml");
    let paths = [
        policy,
        place.work.join("conf/none/x.toml"),
        place.base.join("elsewhere"),
        place.base.clone(),
    ];
    let roots = std::slice::from_ref(&place.work);
    let scan = scan(ScanRequest {
        pinfold_paths: &paths,
        ..place.request(roots)
    })
    .unwrap();
    assert_eq!(existing(&scan, &place.work), ["f conf/sandbox.toml"]);
    assert_eq!(scan.existing[0].group, Group::Pinfold);
    assert!(watched(&scan, &place.work.join("conf")).is_some());
}

#[test]
fn a_scan_changes_no_time_stamp() {
    let place = Place::new();
    let config = place.file(".git/config");
    let folder = place.folder("a/b");
    let old = std::time::SystemTime::UNIX_EPOCH;
    for path in [&config, &folder, &place.work] {
        std::fs::File::open(path)
            .unwrap()
            .set_times(std::fs::FileTimes::new().set_accessed(old))
            .unwrap();
    }
    place.scan();
    for path in [&config, &folder, &place.work] {
        assert_eq!(path.metadata().unwrap().accessed().unwrap(), old, "{path:?}");
    }
}

#[test]
fn a_missing_write_root_is_an_error_with_its_name() {
    let place = Place::new();
    let roots = [place.base.join("none")];
    let error = scan(place.request(&roots)).unwrap_err().to_string();
    assert!(error.contains("none") && error.contains("hint:"), "{error}");
}
