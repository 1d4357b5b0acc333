use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use super::hierarchy::parse;
use super::leaf::{cpu_quota, field};
use super::*;

const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 /box /sys/fs/cgroup/a\\040b rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

#[test]
fn hierarchies_are_found_by_version_controller_and_root() {
    let cgroup = "8:pids:/box/deep\n4:memory:/job\n3:cpu,cpuacct:/\n2:blkio:/x\n1:name=systemd:/u\n0::/user.slice\n";
    let found = parse(cgroup, V1);
    let place = |controller: Controller| hierarchy::v1_of(&found, controller).map(|known| known.own.to_str().unwrap());
    assert_eq!(place(Controller::Memory), Some("/sys/fs/cgroup/memory/job"));
    assert_eq!(place(Controller::Cpu), Some("/sys/fs/cgroup/cpu,cpuacct"));
    assert_eq!(place(Controller::Pids), Some("/sys/fs/cgroup/a b/deep"));
    let unified: Vec<&Hierarchy> = found.iter().filter(|known| known.version == Version::V2).collect();
    assert_eq!(unified.len(), 1);
    assert_eq!(unified[0].own, Path::new("/sys/fs/cgroup/unified/user.slice"));
}

#[test]
fn a_cgroup_that_cannot_be_reached_is_left_out() {
    let two = "29 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
    assert_eq!(parse("0::/../outside\n", two), []);
    assert_eq!(
        parse(
            "0::/elsewhere\n",
            "29 1 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        ),
        []
    );
    assert_eq!(
        parse("0::/box\n", "29 1 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")[0].own,
        Path::new("/sys/fs/cgroup")
    );
    assert_eq!(parse("", two), []);
    assert_eq!(
        parse("garbage\n::\n0:\n", "garbage\n - cgroup2\n1 2 3 - cgroup2 x y\n"),
        []
    );
    assert_eq!(parse("4:memory:/\n", two), []);
}

#[test]
fn quotas_and_fields_are_computed() {
    for (millis, expected) in [
        (0, (1000, 1_000_000)),
        (1, (1000, 1_000_000)),
        (9, (9000, 1_000_000)),
        (10, (1000, 100_000)),
        (500, (50_000, 100_000)),
        (2500, (250_000, 100_000)),
    ] {
        assert_eq!(cpu_quota(millis), expected, "{millis}");
    }
    assert_eq!(
        field("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"),
        Some(3)
    );
    assert_eq!(field("oom 1\noom_group_kill 2\n", "oom_kill"), None);
    assert!(
        Limits::default().is_empty()
            && !Limits {
                pids: Some(1),
                ..Limits::default()
            }
            .is_empty()
    );
}

#[test]
fn a_limit_that_no_hierarchy_can_hold_is_refused_with_what_to_do() {
    let owner = Owner::current().unwrap();
    let limits = Limits {
        memory: Some(1 << 20),
        ..Limits::default()
    };
    let error = Cgroup::create_in(&[], &owner, &limits).unwrap_err();
    assert!(matches!(error, CgroupError::NoController { controller: "memory" }));
    assert!(error.to_string().contains("hint: "));
}

/// A folder that looks like a version 2 cgroup with `files`.
fn fake_v2(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchy) {
    let mount = tempfile::TempDir::new().unwrap();
    let own = mount.path().join("own");
    fs::create_dir(&own).unwrap();
    for (name, content) in files {
        fs::write(mount.path().join(name), content).unwrap();
    }
    let hierarchy = Hierarchy {
        version: Version::V2,
        controllers: vec![],
        mount: mount.path().to_owned(),
        own,
    };
    (mount, hierarchy)
}

#[test]
fn a_version_2_leaf_goes_where_the_controllers_are() {
    let own_has_it = [
        ("own/cgroup.procs", ""),
        ("own/cgroup.controllers", "cpu memory"),
        ("own/cgroup.subtree_control", "memory"),
    ];
    let (_guard, hierarchy) = fake_v2(&own_has_it);
    let parent = delegation::parent(&hierarchy, &[Controller::Memory], "n").unwrap();
    assert_eq!((parent.directory, parent.nest.is_none()), (hierarchy.own.clone(), true));

    let above_has_it = [
        ("own/cgroup.procs", "1\n2\n"),
        ("own/cgroup.controllers", ""),
        ("own/cgroup.subtree_control", ""),
        ("cgroup.procs", ""),
        ("cgroup.controllers", "memory pids"),
        ("cgroup.subtree_control", "pids"),
    ];
    let (_guard, hierarchy) = fake_v2(&above_has_it);
    assert_eq!(
        delegation::parent(&hierarchy, &[Controller::Pids], "n")
            .unwrap()
            .directory,
        hierarchy.mount
    );

    let error = delegation::parent(&hierarchy, &[Controller::Cpu], "n").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the cpu controller is not handed down") && text.contains("systemd-run"),
        "{text}"
    );
}

/// Limits that this machine can hold, or none with a reason in the output; for root in CI that is a failure. An ordinary user
/// holds limits only where a folder was handed down to them.
fn create(limits: &Limits) -> Option<Cgroup> {
    match Cgroup::create(limits) {
        Ok(cgroup) => Some(cgroup),
        Err(error @ (CgroupError::NotDelegated { .. } | CgroupError::NoController { .. })) => {
            let bound_to_work =
                rustix::process::geteuid().is_root() && std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(!bound_to_work, "cgroups have to be usable by root in CI: {error}");
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A shell that waits for a line on its input before it runs `script`, so that it can be moved first.
fn held(script: &str) -> Child {
    let script = format!("read -r go; {script}");
    Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap()).unwrap()
}

fn directories(cgroup: &Cgroup) -> Vec<PathBuf> {
    cgroup.leaves.iter().map(|leaf| leaf.directory.clone()).collect()
}

#[test]
fn values_are_read_back_and_folders_vanish_with_the_cgroup() {
    let limits = Limits {
        memory: Some((64 << 20) + 1),
        cpu_millis: Some(1500),
        pids: Some(32),
    };
    let Some(cgroup) = create(&limits) else { return };
    let made = directories(&cgroup);
    assert!(!made.is_empty() && made.iter().all(|directory| directory.is_dir()));
    assert!(!cgroup.oom_killed());
    cgroup.remove().unwrap();
    assert_eq!(made.iter().find(|directory| directory.exists()), None);
    let Some(cgroup) = create(&limits) else { return };
    let made = directories(&cgroup);
    drop(cgroup);
    assert_eq!(made.iter().find(|directory| directory.exists()), None);
}

#[test]
fn a_tree_over_its_memory_limit_is_killed_and_that_is_told() {
    let Some(cgroup) = create(&Limits {
        memory: Some(16 << 20),
        ..Limits::default()
    }) else {
        return;
    };
    let mut child = held("exec head -c 100000000 /dev/zero | tail");
    cgroup.add(pid(&child)).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child.wait().unwrap();
    assert!(cgroup.oom_killed());
    cgroup.remove().unwrap();
}

#[test]
fn more_processes_than_the_limit_cannot_be_made() {
    let Some(cgroup) = create(&Limits {
        pids: Some(3),
        ..Limits::default()
    }) else {
        return;
    };
    let mut child = held("sleep 60 & sleep 60 & sleep 60 & wait");
    cgroup.add(pid(&child)).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    // The shell gives up at the fork that fails.
    let status = child.wait().unwrap();
    assert!(!status.success());
    cgroup.kill_all().unwrap();
    cgroup.remove().unwrap();
}

#[test]
fn kill_all_ends_the_whole_tree() {
    let Some(cgroup) = create(&Limits {
        pids: Some(64),
        ..Limits::default()
    }) else {
        return;
    };
    let mut child = held("(trap '' TERM INT HUP; sleep 60 & setsid sleep 60 & sleep 60) & wait");
    cgroup.add(pid(&child)).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    cgroup.kill_all().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    cgroup.remove().unwrap();
}

#[test]
fn killing_works_with_the_freezer_and_with_nothing_but_signals() {
    let Some(probe) = create(&Limits {
        pids: Some(64),
        ..Limits::default()
    }) else {
        return;
    };
    if probe.leaves[0].version == Version::V2 {
        return;
    }
    let all = hierarchies().unwrap();
    let owner = Owner::current().unwrap();
    for known in ["freezer", "pids"] {
        let some: Vec<Hierarchy> = all
            .iter()
            .filter(|one| one.has(known) || one.has("pids"))
            .cloned()
            .collect();
        let cgroup = Cgroup::create_in(
            &some,
            &owner,
            &Limits {
                pids: Some(64),
                ..Limits::default()
            },
        )
        .unwrap();
        let mut child = held("(trap '' TERM INT HUP; sleep 60 & setsid sleep 60 & sleep 60) & wait");
        cgroup.add(pid(&child)).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        cgroup.kill_all().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "{known}");
        cgroup.remove().unwrap();
    }
}

#[test]
fn a_cgroup_with_processes_is_not_reclaimed_and_an_abandoned_one_is() {
    let Some(cgroup) = create(&Limits {
        pids: Some(64),
        ..Limits::default()
    }) else {
        return;
    };
    let parent = directories(&cgroup)[0].parent().unwrap().to_owned();
    let viewer = Owner::current().unwrap();
    let dead = Owner {
        start: viewer.start + 1,
        ..viewer
    };
    let (empty, busy) = (parent.join(dead.name().unwrap()), parent.join(dead.name().unwrap()));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&busy).unwrap();
    let mut child = held("true");
    write(&busy.join("cgroup.procs"), &child.id().to_string()).unwrap();
    reclaim_stale();
    assert!(!empty.exists() && busy.exists() && directories(&cgroup)[0].exists());
    drop(child.stdin.take());
    child.wait().unwrap();
    let busy = Leaf {
        version: Version::V1,
        directory: busy,
        controllers: vec![],
    };
    busy.remove().unwrap();
}
