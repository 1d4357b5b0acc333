use super::*;

fn grants(scan: &Scan, base: &Path) -> Vec<String> {
    scan.grants.iter().map(|grant| relative(&grant.path, base)).collect()
}

/// A main checkout outside the workspace, and a linked worktree of it inside.
fn linked_worktree() -> Place {
    let place = Place::new();
    let main = place.base.join("main");
    place.repository(&main);
    let work = place.work.to_str().unwrap().to_owned();
    place.git(&main, &["worktree", "add", "-q", &work, "-b", "topic"]);
    place.git(&main, &["worktree", "add", "-q", "../other", "-b", "second"]);
    place
}

#[test]
fn a_repository_is_closed_where_the_host_obeys_it_and_watched_where_it_could() {
    let place = Place::new();
    place.repository(&place.work);
    let scan = place.scan();
    assert_eq!(existing(&scan, &place.work), ["f .git/config", "d .git/hooks"]);
    assert_eq!(pinned(&scan, &place.work), [".git", ".git/info"]);
    assert!(watched(&scan, &place.work.join(".git")).is_some());
    assert!(watched(&scan, &place.work.join(".git/info")).is_some());
    assert_eq!(scan.git.len(), 1);
    assert!(scan.grants.is_empty());
}

#[test]
fn git_hooks_and_git_config_are_lifted_apart() {
    let mut place = Place::new();
    place.repository(&place.work);
    place.lifts.insert(Group::GitConfig);
    assert_eq!(existing(&place.scan(), &place.work), ["d .git/hooks"]);
    place.lifts = [Group::GitHooks].into();
    assert_eq!(existing(&place.scan(), &place.work), ["f .git/config"]);
}

#[test]
fn a_git_folder_in_another_case_is_one_as_well() {
    let place = Place::new();
    place.file(".GIT/Hooks/x");
    place.file(".GIT/CONFIG");
    assert_eq!(existing(&place.scan(), &place.work), ["f .GIT/CONFIG", "d .GIT/Hooks"]);
}

#[test]
fn submodules_are_protected_with_their_pointer_and_their_own_git_directory() {
    let place = Place::new();
    let library = place.base.join("library");
    place.repository(&library);
    place.repository(&place.work);
    place.git(
        &place.work,
        &["submodule", "--quiet", "add", "--name", "deep/lib", "../library", "lib"],
    );
    let scan = place.scan();
    assert_eq!(
        existing(&scan, &place.work),
        [
            "f .git/config",
            "d .git/hooks",
            "f .git/modules/deep/lib/config",
            "d .git/modules/deep/lib/hooks",
            "f .gitmodules",
            "f lib/.git"
        ]
    );
    assert!(scan.warnings.is_empty(), "{:?}", scan.warnings);
    assert!(watched(&scan, &place.work.join(".git/modules/deep/lib")).is_some());
}

#[test]
fn a_submodule_as_the_workspace_gets_its_git_directory() {
    let mut place = Place::new();
    let (library, outer) = (place.base.join("library"), place.base.join("outer"));
    place.repository(&library);
    place.repository(&outer);
    place.git(&outer, &["submodule", "--quiet", "add", "../library", "lib"]);
    place.work = outer.join("lib");
    let scan = place.scan();
    assert_eq!(grants(&scan, &place.base), ["outer/.git/modules/lib"]);
    assert_eq!(
        existing(&scan, &place.base),
        [
            "f outer/.git/modules/lib/config",
            "d outer/.git/modules/lib/hooks",
            "d outer/.git/modules/lib/info",
            "f outer/lib/.git"
        ]
    );
}

#[test]
fn a_bare_repository_and_a_root_that_is_one_are_found() {
    let place = Place::new();
    place.git(&place.work, &["init", "-q", "--bare", "up/stream.git"]);
    assert_eq!(
        existing(&place.scan(), &place.work),
        ["f up/stream.git/config", "d up/stream.git/hooks"]
    );
    let root = [place.work.join("up/stream.git")];
    let scan = scan(place.request(&root)).unwrap();
    assert_eq!(
        existing(&scan, &place.work),
        ["f up/stream.git/config", "d up/stream.git/hooks"]
    );
}

#[test]
fn a_hooks_path_inside_the_write_root_is_a_hooks_folder() {
    let place = Place::new();
    place.repository(&place.work);
    place.git(&place.work, &["config", "core.hooksPath", "tools/hooks"]);
    assert!(
        watched(&place.scan(), &place.work)
            .unwrap()
            .wanted
            .iter()
            .any(|wanted| wanted.group == Group::GitHooks)
    );
    place.file("tools/hooks/pre-commit");
    assert!(existing(&place.scan(), &place.work).contains(&"d tools/hooks".to_owned()));

    place.git(&place.work, &["config", "core.hooksPath", "."]);
    place.file("pre-commit");
    let scan = place.scan();
    assert!(existing(&scan, &place.work).contains(&"f pre-commit".to_owned()));
    assert!(
        watched(&scan, &place.work)
            .unwrap()
            .wanted
            .iter()
            .any(|wanted| wanted.group == Group::GitHooks)
    );
}

#[test]
fn a_hooks_path_of_the_user_and_an_included_file_count_too() {
    let place = Place::new();
    place.repository(&place.work);
    place.folder("shared");
    std::fs::write(place.home.join(".gitconfig"), "[core]\nhooksPath = shared\n").unwrap();
    place.git(&place.work, &["config", "include.path", "../team.gitconfig"]);
    place.file("team.gitconfig");
    let found = existing(&place.scan(), &place.work);
    assert!(
        found.contains(&"d shared".to_owned()) && found.contains(&"f team.gitconfig".to_owned()),
        "{found:?}"
    );
}

#[test]
fn a_linked_worktree_is_granted_what_commits_need_and_no_more() {
    let place = linked_worktree();
    let scan = place.scan();
    assert_eq!(grants(&scan, &place.base), ["main/.git", "main/.git/worktrees/work"]);
    assert_eq!(
        existing(&scan, &place.base),
        [
            "f main/.git/config",
            "d main/.git/hooks",
            "d main/.git/info",
            "d main/.git/worktrees",
            "f main/.git/worktrees/work/commondir",
            "f main/.git/worktrees/work/gitdir",
            "f work/.git"
        ]
    );
    assert!(
        scan.pinned.is_empty() && scan.hidden.is_empty() && scan.warnings.is_empty(),
        "{scan:?}"
    );
    let folders: Vec<String> = scan
        .watched
        .iter()
        .map(|watched| relative(&watched.folder, &place.base))
        .collect();
    assert_eq!(folders, ["main/.git", "main/.git/worktrees/work", "work"]);
}

#[test]
fn worktree_configuration_is_protected_where_it_exists() {
    let place = linked_worktree();
    place.git(&place.work, &["config", "extensions.worktreeConfig", "true"]);
    place.git(&place.work, &["config", "--worktree", "core.editor", "true"]);
    let found = existing(&place.scan(), &place.base);
    assert!(
        found.contains(&"f main/.git/worktrees/work/config.worktree".to_owned()),
        "{found:?}"
    );
}

#[test]
fn a_worktree_whose_main_checkout_lies_inside_needs_no_grant() {
    let place = Place::new();
    let main = place.work.join("main");
    place.repository(&main);
    place.git(&main, &["worktree", "add", "-q", "../tree", "-b", "topic"]);
    let scan = place.scan();
    assert!(scan.grants.is_empty());
    assert_eq!(
        existing(&scan, &place.work),
        [
            "f main/.git/config",
            "d main/.git/hooks",
            "f main/.git/worktrees/tree/commondir",
            "f main/.git/worktrees/tree/gitdir",
            "f tree/.git"
        ]
    );
    assert_eq!(
        pinned(&scan, &place.work),
        [
            "main",
            "main/.git",
            "main/.git/info",
            "main/.git/worktrees",
            "main/.git/worktrees/tree",
            "tree"
        ]
    );
}

#[test]
fn checkouts_beside_a_shared_bare_repository_are_covered() {
    let mut place = Place::new();
    let main = place.base.join("main");
    place.repository(&main);
    let bare = place.base.join("bare");
    place.git(&place.base, &["clone", "-q", "--bare", "main", "bare"]);
    place.git(&bare, &["worktree", "add", "-q", "mine", "-b", "mine"]);
    place.git(&bare, &["worktree", "add", "-q", "theirs", "-b", "theirs"]);
    place.work = bare.join("mine");
    place.folder(".vscode");
    let scan = place.scan();
    assert_eq!(scan.hidden, [bare.join("theirs")]);
    assert!(existing(&scan, &bare).contains(&"d mine/.vscode".to_owned()));
}

#[test]
fn a_pointer_is_not_believed_unless_its_target_points_back() {
    let place = linked_worktree();
    let pointer = place.work.join(".git");
    let other = place.base.join("main/.git/worktrees/other");
    let fake = place.base.join("fake");
    std::fs::create_dir_all(fake.join("x")).unwrap();
    std::fs::write(fake.join("x/gitdir"), format!("{}\n", pointer.display())).unwrap();
    std::fs::write(fake.join("x/commondir"), "../../main/.git\n").unwrap();
    let long = format!("gitdir: {}", "a/".repeat(5000));
    let table = [
        format!("gitdir: {}\n", other.display()),
        format!("gitdir: {}\n", place.base.join("main/.git").display()),
        format!("gitdir: {}\n", fake.join("x").display()),
        "gitdir: /etc\n".to_owned(),
        "gitdir: /\n".to_owned(),
        "gitdir: ../none\n".to_owned(),
        "gitdir: \n".to_owned(),
        "gitdir: /proc/self/root\n".to_owned(),
        "gitdir: /etc\0/x\n".to_owned(),
        "something else\n".to_owned(),
        String::new(),
        long,
    ];
    for text in table {
        std::fs::write(&pointer, &text).unwrap();
        let scan = place.scan();
        assert!(scan.grants.is_empty(), "{text:?}");
        assert!(
            matches!(scan.warnings[..], [Warning::PointerNotBelieved { .. }]),
            "{text:?}: {:?}",
            scan.warnings
        );
        assert_eq!(existing(&scan, &place.work), ["f .git"], "{text:?}");
    }
}

#[test]
fn a_hostile_thing_in_the_place_of_a_pointer_does_not_hold_up_the_scan() {
    let place = linked_worktree();
    let pointer = place.work.join(".git");
    let target = std::fs::read_to_string(&pointer).unwrap();

    std::fs::write(&pointer, &target).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&pointer)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    assert!(place.scan().grants.is_empty());

    std::fs::remove_file(&pointer).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &pointer, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let scan = place.scan();
    assert_eq!(existing(&scan, &place.work), ["f .git"]);

    std::fs::remove_file(&pointer).unwrap();
    place.link(".git", "../main/.git/worktrees/work");
    let scan = place.scan();
    assert!(scan.grants.is_empty());
    assert_eq!(existing(&scan, &place.work), ["l .git"]);

    std::fs::remove_file(&pointer).unwrap();
    place.link(".git", ".");
    place.scan();
}

#[test]
fn a_pointer_inside_the_write_root_only_adds_protection() {
    let place = Place::new();
    place.file("elsewhere/hooks/x");
    place.file("elsewhere/config");
    place.folder("tree");
    std::fs::write(place.work.join("tree/.git"), "gitdir: ../elsewhere\n").unwrap();
    std::fs::write(place.work.join("elsewhere/commondir"), "/etc\n").unwrap();
    let scan = place.scan();
    assert!(scan.grants.is_empty());
    assert_eq!(
        existing(&scan, &place.work),
        [
            "f elsewhere/commondir",
            "f elsewhere/config",
            "d elsewhere/hooks",
            "f tree/.git"
        ]
    );
}
