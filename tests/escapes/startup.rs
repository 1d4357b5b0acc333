//! Fail closed: what cannot be walled in does not start, and says why.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Stdio;

use crate::case::{Case, finish, is_root, program};

#[track_caller]
fn assert_not_started(ran: &crate::outcome::Ran, code: i32) {
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(!ran.stdout.contains("started"), "{ran:?}");
    assert!(
        ran.stderr.contains("hint:"),
        "an error without a next step: {}",
        ran.stderr
    );
}

/// By another process: a file that this one has written could not be executed while a test beside forks.
fn copy_program(case: &Case, to: &Path) {
    let status = case
        .host("cp")
        .arg(program())
        .arg(to)
        .status()
        .expect("cp can be started");
    assert!(status.success());
}

#[test]
fn a_set_user_id_pinfold_refuses_to_run() {
    if !is_root() {
        eprintln!("only root can make a set-user-ID file of somebody else's");
        return;
    }
    let case = Case::new();
    for (owner, mode) in [((12_345, 0), 0o4755), ((0, 12_345), 0o2755)] {
        let copy = case.root().join("pinfold");
        let _ = fs::remove_file(&copy);
        copy_program(&case, &copy);
        chown(&copy, Some(owner.0), Some(owner.1)).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(case.root(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut pinfold = case.host(&copy);
        pinfold.args(["run", "--", "echo", "started"]);
        let ran = finish(pinfold.stdin(Stdio::null()));
        assert!(!ran.stdout.contains("started") && ran.code == 125, "{ran:?}");
        assert!(ran.stderr.contains("set-user-ID"), "{ran:?}");
    }
}

#[test]
fn a_pinfold_with_file_capabilities_refuses_to_run() {
    if !is_root() {
        eprintln!("only root can give a file capabilities");
        return;
    }
    let case = Case::new();
    let copy = case.root().join("pinfold");
    copy_program(&case, &copy);
    let give = "import os, struct, sys\nos.setxattr(sys.argv[1], 'security.capability', struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0))";
    assert!(
        case.host("python3")
            .args(["-I", "-c", give])
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    for folder in [
        case.root().to_owned(),
        case.home.clone(),
        case.workspace.clone(),
        case.data(),
        case.config(),
    ] {
        chown(&folder, Some(65_534), Some(65_534)).unwrap();
    }
    let mut outer = case.host("setpriv");
    outer
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy);
    outer.args(["run", "--", "echo", "started"]);
    let ran = finish(outer.stdin(Stdio::null()));
    assert!(!ran.stdout.contains("started") && ran.code == 125, "{ran:?}");
}

#[test]
fn the_whole_host_or_the_whole_home_is_no_workspace() {
    let case = Case::new();
    for folder in [Path::new("/"), &case.home, case.root()] {
        let mut pinfold = case.pinfold();
        pinfold.arg("run").arg("-C").arg(folder).args(["--", "echo", "started"]);
        let ran = finish(pinfold.stdin(Stdio::null()));
        assert_not_started(&ran, 64);
    }
}

#[test]
fn without_a_home_nothing_starts() {
    let case = Case::new();
    for home in [None, Some("/no/such/home"), Some("/")] {
        let mut pinfold = case.pinfold();
        pinfold.env_remove("HOME");
        if let Some(home) = home {
            pinfold.env("HOME", home);
        }
        pinfold.args(["run", "--", "echo", "started"]);
        let ran = finish(pinfold.stdin(Stdio::null()));
        assert_not_started(&ran, 64);
    }
}

#[test]
fn a_missing_write_root_is_not_made_in_silence() {
    let case = Case::new();
    let missing = case.outside.join("missing");
    let ran = case.run(&["--write", missing.to_str().unwrap()], &["sh", "-c", "echo started"]);
    assert!(!missing.exists(), "a rule made a folder on the host");
    assert!(ran.code != 0 || ran.stderr.contains("missing"), "{ran:?}");
}

#[test]
fn a_limit_that_cannot_be_held_is_refused_and_never_dropped() {
    let case = Case::new();
    let ran = case.run(
        &["--memory", "64MiB"],
        &["python3", "-c", "x = bytearray(512 << 20); print('started')"],
    );
    assert!(!ran.stdout.contains("started"), "{ran:?}");
    assert_ne!(ran.code, 0, "{ran:?}");
}

/// A limit of zero, as some hosts have it: the run must say so and not go on without.
#[test]
fn without_new_namespaces_nothing_starts() {
    let case = Case::new();
    let mut outer = case.host("unshare");
    outer.args(["--user", "--map-root-user", "sh", "-c"]);
    outer.arg("echo 0 >/proc/sys/user/max_user_namespaces && echo limited && exec \"$@\"");
    outer.arg("sh").arg(program()).args(["run", "--", "echo", "started"]);
    let ran = finish(outer.stdin(Stdio::null()));
    if !ran.stdout.contains("limited") {
        eprintln!("no user namespace with a limit can be made here: {}", ran.stderr);
        return;
    }
    assert_not_started(&ran, 125);
}

#[test]
fn a_sandbox_cannot_start_another_with_wider_walls() {
    let case = Case::new();
    let copy = case.workspace.join("pinfold");
    copy_program(&case, &copy);
    let ran = case.sh(&format!(
        "./pinfold run --write / --allow-all -- sh -c 'echo started; cat {}/file'",
        case.outside.display()
    ));
    assert!(!ran.stdout.contains("started"), "{ran:?}");
    assert_ne!(ran.code, 0);
}

#[test]
fn the_arguments_that_were_given_are_the_ones_that_run() {
    let case = Case::new();
    let odd = ["printf", "%s|", "", " ", "a b", "$(id)", "--", "-x", "é", "\n", "*"];
    let ran = case.run(&[] as &[&str], &odd);
    assert_eq!(ran.stdout, "| |a b|$(id)|--|-x|é|\n|*|", "{ran:?}");
}

#[test]
fn a_warning_names_the_risk_of_a_write_rule_on_a_system_folder_or_home() {
    let case = Case::new();
    let home = case.home.display().to_string();
    let ran = case.run(&["--write", &home], &["true"]);
    assert!(ran.code != 0 || !ran.stderr.is_empty(), "{ran:?}");
}
