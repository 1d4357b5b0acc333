use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use super::*;

struct Run {
    place: Place,
    quarantine: PathBuf,
    watch: Watch,
    _elsewhere: Option<TempDir>,
}

impl Run {
    fn new(place: Place) -> Self {
        let quarantine = place.base.join("state/quarantine");
        Self::with(place, quarantine, None)
    }

    /// With the quarantine on another file system; none if the machine has only one to write to.
    fn across() -> Option<Self> {
        let place = Place::new();
        let elsewhere = tempfile::tempdir_in("/dev/shm").ok()?;
        if elsewhere.path().metadata().unwrap().dev() == place.work.metadata().unwrap().dev() {
            return None;
        }
        let quarantine = elsewhere.path().join("quarantine");
        Some(Self::with(place, quarantine, Some(elsewhere)))
    }

    fn with(place: Place, quarantine: PathBuf, elsewhere: Option<TempDir>) -> Self {
        let roots = [place.work.clone()];
        let request = place.request(&roots);
        let found = scan(request).unwrap();
        let mut watch = Watch::start(&request, &found, &quarantine, "box/1").unwrap();
        assert!(watch.arm().unwrap().is_empty());
        Self {
            place,
            quarantine,
            watch,
            _elsewhere: elsewhere,
        }
    }

    fn kept(&self) -> PathBuf {
        self.quarantine.join("box%2F1")
    }

    fn events(&mut self) -> Vec<String> {
        let taken = self.watch.handle_events();
        self.names(taken)
    }

    fn sweep(&mut self) -> Vec<String> {
        let taken = self.watch.sweep();
        self.names(taken)
    }

    fn names(&self, taken: Vec<Quarantined>) -> Vec<String> {
        taken
            .into_iter()
            .map(|taken| relative(&taken.path, &self.place.work))
            .collect()
    }
}

#[test]
fn every_way_to_make_a_name_is_noticed_and_undone() {
    let mut run = Run::new(Place::new());
    let work = run.place.work.clone();
    run.place.file("seed");
    run.place.folder("seeds/x");

    std::fs::write(work.join(".bashrc"), "evil").unwrap();
    std::fs::create_dir(work.join(".VSCODE")).unwrap();
    std::fs::rename(work.join("seeds"), work.join(".idea")).unwrap();
    std::fs::hard_link(work.join("seed"), work.join(".profile")).unwrap();
    symlink("/etc", work.join(".zed")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, work.join(".zshrc"), fifo, 0o600.into(), 0).unwrap();
    let _listener = UnixListener::bind(work.join(".fleet")).unwrap();
    std::fs::write(work.join("allowed"), "x").unwrap();

    let mut taken = run.events();
    taken.sort();
    assert_eq!(
        taken,
        [".VSCODE", ".bashrc", ".fleet", ".idea", ".profile", ".zed", ".zshrc"]
    );
    assert_eq!(names_in(&work), ["allowed", "seed"]);
    assert_eq!(
        names_in(&run.kept()),
        [
            "1-.bashrc",
            "2-.VSCODE",
            "3-.idea",
            "4-.profile",
            "5-.zed",
            "6-.zshrc",
            "7-.fleet"
        ]
    );
    assert_eq!(std::fs::read(run.kept().join("1-.bashrc")).unwrap(), b"evil");
    assert_eq!(
        std::fs::read_link(run.kept().join("5-.zed")).unwrap(),
        Path::new("/etc")
    );
    assert_eq!(run.kept().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(run.events().is_empty());
}

#[test]
fn nothing_is_made_for_a_run_that_makes_no_protected_name() {
    let mut run = Run::new(Place::new());
    run.place.file("a");
    assert!(run.sweep().is_empty());
    assert!(!run.quarantine.exists());
}

#[test]
fn a_new_agent_folder_stays_and_its_protected_names_go() {
    let mut run = Run::new(Place::new());
    run.place.file(".claude/settings.json");
    run.place.file(".claude/todos/x");
    assert_eq!(run.events(), [".claude/settings.json"]);
    run.place.file(".claude/Settings.Local.json");
    run.place.folder(".claude/hooks");
    assert_eq!(run.events(), [".claude/Settings.Local.json", ".claude/hooks"]);
    assert_eq!(names_in(&run.place.work.join(".claude")), ["todos"]);
}

#[test]
fn a_folder_that_is_filled_elsewhere_and_moved_into_place_is_looked_into() {
    let mut run = Run::new(Place::new());
    run.place.file("x/fish/config.fish");
    std::fs::rename(run.place.work.join("x"), run.place.work.join(".config")).unwrap();
    assert_eq!(run.events(), [".config/fish"]);
    // Out of the way, filled, and back again.
    std::fs::rename(run.place.work.join(".config"), run.place.work.join("y")).unwrap();
    run.place.file("y/fish/x");
    assert!(run.events().is_empty());
    std::fs::rename(run.place.work.join("y"), run.place.work.join(".config")).unwrap();
    assert_eq!(run.events(), [".config/fish"]);
}

#[test]
fn a_link_in_the_place_of_an_agent_folder_is_taken() {
    let mut run = Run::new(Place::new());
    run.place.file("other/settings.json");
    run.place.link(".claude", "other");
    assert_eq!(run.events(), [".claude"]);
    assert!(run.place.work.join("other/settings.json").exists());
}

#[test]
fn names_that_existed_are_left_alone_even_when_the_host_replaces_them() {
    let place = Place::new();
    place.repository(&place.work);
    place.file(".claude/settings.json");
    place.file(".vscode/x");
    let mut run = Run::new(place);
    run.place.git(&run.place.work, &["config", "a.b", "c"]);
    std::fs::write(run.place.work.join("new"), "x").unwrap();
    std::fs::rename(run.place.work.join("new"), run.place.work.join(".claude/settings.json")).unwrap();
    assert!(run.sweep().is_empty());
    // What is new beside them is not.
    run.place.file(".git/config.worktree");
    run.place.file(".git/info/attributes");
    run.place.file(".claude/settings.local.json");
    let mut taken = run.sweep();
    taken.sort();
    assert_eq!(
        taken,
        [
            ".claude/settings.local.json",
            ".git/config.worktree",
            ".git/info/attributes"
        ]
    );
    run.place.git(&run.place.work, &["status"]);
}

#[test]
fn a_repository_of_the_run_is_listed_and_not_taken() {
    let mut run = Run::new(Place::new());
    run.place.repository(&run.place.work);
    run.place.repository(&run.place.work.join("sub"));
    run.place.file("deep/.vscode/x");
    assert!(run.sweep().is_empty());
    let work = run.place.work.clone();
    let report = run.watch.finish();
    let made: Vec<String> = report.made.iter().map(|made| relative(&made.path, &work)).collect();
    assert_eq!(
        made,
        [
            ".git/config",
            ".git/hooks",
            "deep/.vscode",
            "sub/.git/config",
            "sub/.git/hooks"
        ]
    );
    assert_eq!(report.incomplete, None);
}

#[test]
fn a_lifted_group_is_not_watched_and_a_hint_names_the_lift_of_another() {
    let mut place = Place::new();
    place.lifts.insert(Group::Ide);
    let mut run = Run::new(place);
    run.place.folder(".vscode");
    run.place.file(".bashrc");
    let taken = run.watch.handle_events();
    assert_eq!(taken.len(), 1);
    let text = taken[0].to_string();
    assert!(
        text.contains(".bashrc") && text.contains("hint: lift the group `shell-start`"),
        "{text}"
    );
    assert!(run.place.work.join(".vscode").exists());
}

#[test]
fn an_absent_folder_of_hooks_is_watched_for_along_its_path() {
    let place = Place::new();
    place.repository(&place.work);
    place.git(&place.work, &["config", "core.hooksPath", "tools/git/hooks"]);
    let mut run = Run::new(place);
    run.place.file("tools/git/hooks/pre-commit");
    run.place.file("tools/git/other");
    assert_eq!(run.sweep(), ["tools/git/hooks"]);
    assert!(run.place.work.join("tools/git/other").exists());
}

#[test]
fn names_that_an_overflowing_queue_lost_are_found() {
    let mut run = Run::new(Place::new());
    let limit: usize = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if limit > 100_000 {
        // The queue of this machine is too long to be filled in a test.
        return;
    }
    let (one, two) = (run.place.file("one"), run.place.work.join("two"));
    for _ in 0..=limit / 2 {
        std::fs::rename(&one, &two).unwrap();
        std::fs::rename(&two, &one).unwrap();
    }
    run.place.file(".bashrc");
    let mut taken = run.events();
    while taken.is_empty() {
        // Each call reads a bounded number of events.
        taken = run.events();
    }
    assert_eq!(taken, [".bashrc"]);
}

#[test]
fn folders_without_permissions_are_taken_and_their_surroundings_stay_as_they_were() {
    for mut run in [Some(Run::new(Place::new())), Run::across()].into_iter().flatten() {
        let folder = run.place.folder(".vscode/deep");
        run.place.file(".vscode/deep/x");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o0)).unwrap();
        std::fs::set_permissions(run.place.work.join(".vscode"), std::fs::Permissions::from_mode(0o0)).unwrap();
        std::fs::set_permissions(&run.place.work, std::fs::Permissions::from_mode(0o555)).unwrap();
        assert_eq!(run.events(), [".vscode"]);
        assert_eq!(run.place.work.metadata().unwrap().permissions().mode() & 0o777, 0o555);
        std::fs::set_permissions(&run.place.work, std::fs::Permissions::from_mode(0o755)).unwrap();
        let kept = run.kept().join("1-.vscode");
        std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o755)).unwrap();
        let deep = kept.join("deep");
        std::fs::set_permissions(&deep, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(names_in(&deep), ["x"]);
    }
}

#[test]
fn another_file_system_gets_a_copy_and_the_workspace_keeps_nothing() {
    let Some(mut run) = Run::across() else {
        // This machine has one writable file system only.
        return;
    };
    let work = run.place.work.clone();
    run.place.file(".vscode/a/b/file");
    run.place.link(".vscode/a/link", "/etc/passwd");
    let _listener = UnixListener::bind(work.join(".vscode/socket")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, work.join(".zshrc"), fifo, 0o600.into(), 0).unwrap();
    symlink("/etc", work.join(".zed")).unwrap();
    run.place.file(".bashrc");

    let taken = run.watch.handle_events();
    assert_eq!(taken.len(), 4);
    let copied = taken
        .iter()
        .filter(|taken| matches!(taken.fate, Fate::Copied { .. }))
        .count();
    assert_eq!(copied, 3);
    assert_eq!(names_in(&work), [""; 0]);
    let kept = run.kept();
    assert_eq!(std::fs::read(kept.join("1-.vscode/a/b/file")).unwrap(), b"x");
    let link = kept.join("1-.vscode/a/link").symlink_metadata().unwrap();
    assert!(link.is_symlink() && !link.file_type().is_socket());
    assert_eq!(names_in(&kept.join("1-.vscode")), ["a"]);
    assert!(Path::new("/etc/passwd").exists());
}

#[test]
fn what_is_too_large_or_too_deep_to_be_copied_is_removed_all_the_same() {
    let Some(mut run) = Run::across() else { return };
    let file = std::fs::File::create(run.place.work.join(".bashrc")).unwrap();
    file.set_len(1 << 40).unwrap();
    let mut deep = run.place.folder(".vscode");
    for _ in 0..150 {
        deep.push("d");
        std::fs::create_dir(&deep).unwrap();
    }
    let wide = run.place.folder(".idea");
    for number in 0..10_100 {
        std::fs::write(wide.join(number.to_string()), "").unwrap();
    }
    let taken = run.watch.sweep();
    assert_eq!(taken.len(), 3);
    assert!(
        taken.iter().all(|taken| matches!(taken.fate, Fate::Removed { .. })),
        "{taken:?}"
    );
    assert_eq!(names_in(&run.place.work), [""; 0]);
}

#[test]
fn a_name_that_is_swapped_for_a_link_never_leads_the_host_away() {
    let Some(mut run) = Run::across() else { return };
    let outside = run.place.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "x").unwrap();
    let work = run.place.work.clone();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = std::fs::create_dir_all(work.join(".vscode/a"));
                let _ = std::fs::write(work.join(".vscode/a/precious"), "y");
                let _ = std::fs::rename(work.join(".vscode/a"), work.join("aside"));
                let _ = symlink(&outside, work.join(".vscode/a"));
                let _ = std::fs::rename(work.join(".vscode"), work.join("aside2"));
                let _ = symlink(&outside, work.join(".vscode"));
                let _ = std::fs::remove_dir_all(work.join("aside"));
                let _ = std::fs::remove_dir_all(work.join("aside2"));
            }
        });
        for _ in 0..2_000 {
            run.watch.handle_events();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        swapper.join().unwrap();
    });
    run.watch.sweep();
    assert_eq!(std::fs::read(outside.join("precious")).unwrap(), b"x");
    assert!(!names_in(&work).contains(&".vscode".to_owned()));
}

#[test]
fn names_of_any_bytes_are_kept_apart_and_readable() {
    let place = Place::new();
    place.folder(".cursor");
    let mut run = Run::new(place);
    let folder = run.place.work.join(".cursor");
    for name in [b"hooks\xff".as_slice(), b"hooks\xfe", b"hooks\n", b"hooks%"] {
        std::fs::write(folder.join(os(name)), "x").unwrap();
    }
    let long = [b"hooks".as_slice(), &[0xff; 200]].concat();
    std::fs::write(folder.join(os(&long)), "x").unwrap();
    let taken = run.watch.handle_events();
    assert_eq!(taken.len(), 5);
    assert_eq!(taken[0].path.as_os_str().as_bytes().last(), Some(&0xff));
    let kept = names_in(&run.kept());
    assert_eq!(kept[..4], ["1-hooks%FF", "2-hooks%FE", "3-hooks%0A", "4-hooks%25"]);
    assert_eq!(kept.len(), 5);
}

#[test]
fn a_lost_quarantine_folder_is_made_again() {
    let mut run = Run::new(Place::new());
    run.place.file(".bashrc");
    assert_eq!(run.events(), [".bashrc"]);
    std::fs::remove_dir_all(&run.quarantine).unwrap();
    run.place.file(".bashrc");
    assert_eq!(run.events(), [".bashrc"]);
    assert_eq!(names_in(&run.kept()), ["2-.bashrc"]);
}

#[test]
fn a_quarantine_that_cannot_be_used_does_not_keep_the_name_in_place() {
    let place = Place::new();
    let blocked = place.base.join("file");
    std::fs::write(&blocked, "x").unwrap();
    let mut run = Run::with(place, blocked, None);
    run.place.file(".vscode/a/b");
    let taken = run.watch.handle_events();
    assert!(matches!(taken[0].fate, Fate::Removed { .. }), "{taken:?}");
    assert_eq!(names_in(&run.place.work), [""; 0]);
}

#[test]
fn what_appears_before_the_watch_is_armed_is_found_when_it_is_and_at_the_end() {
    let place = Place::new();
    let quarantine = place.base.join("quarantine");
    let roots = [place.work.clone()];
    let request = place.request(&roots);
    let found = scan(request).unwrap();
    let names = |taken: Vec<Quarantined>| {
        taken
            .iter()
            .map(|taken| relative(&taken.path, &place.work))
            .collect::<Vec<_>>()
    };

    let mut watch = Watch::start(&request, &found, &quarantine, "1").unwrap();
    place.file(".bashrc");
    place.file(".claude/settings.json");
    assert!(watch.handle_events().is_empty());
    assert_eq!(names(watch.arm().unwrap()), [".bashrc", ".claude/settings.json"]);
    place.file(".claude/settings.json");
    assert_eq!(names(watch.handle_events()), [".claude/settings.json"]);

    let watch = Watch::start(&request, &found, &quarantine, "2").unwrap();
    place.file(".claude/hooks/x");
    assert_eq!(names(watch.finish().quarantined), [".claude/hooks"]);
    assert_eq!(names_in(&place.work.join(".claude")), [""; 0]);
}

#[test]
fn a_file_in_the_place_of_an_agent_folder_may_not_become_a_link() {
    let place = Place::new();
    let file = place.file(".claude");
    place.file("other/settings.json");
    let mut run = Run::new(place);
    std::fs::remove_file(&file).unwrap();
    run.place.link(".claude", "other");
    assert_eq!(run.events(), [".claude"]);
}
