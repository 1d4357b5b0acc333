//! `pinfold doctor`.

use super::{Case, PINFOLD, ran};

#[test]
fn a_machine_that_runs_this_suite_is_ready_and_every_check_holds() {
    let case = Case::new();
    let ran = ran(case.command(PINFOLD).args(["doctor", "--json"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains(r#""state": "ready""#), "{}", ran.out);
    let failed = ran.out.matches(r#""works": false"#).count();
    // Limits need more than an ordinary user has, and layers a file system that takes them.
    let excused = ["cgroup", "layers"]
        .iter()
        .filter(|name| {
            ran.out
                .contains(&format!("\"name\": \"{name}\",\n        \"works\": false"))
        })
        .count();
    assert_eq!(failed, excused, "{}", ran.out);
    for check in [
        "it cannot be moved, removed or replaced",
        "no TCP leads out",
        "it denies what no rule allows",
        "a packet socket is refused",
        "a protected name that the command makes is taken away",
    ] {
        assert!(ran.out.contains(check), "{check} in {}", ran.out);
    }
}

#[test]
fn nothing_of_the_test_is_left_behind() {
    let case = Case::new();
    assert_eq!(ran(case.command(PINFOLD).arg("doctor")).code, 0);
    let state = case.path("home/.local/share/pinfold");
    let left: Vec<_> = std::fs::read_dir(state)
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("doctor")),
        "{left:?}"
    );
    assert_eq!(std::fs::read_dir(case.path("work")).unwrap().count(), 1);
}

#[test]
fn where_user_namespaces_are_limited_to_none_the_setting_is_named() {
    let case = Case::new();
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && {PINFOLD} doctor");
    let ran = ran(case.command("unshare").args(["-Ur", "sh", "-c", &script]));
    assert_eq!(ran.code, 69, "{ran:?}");
    assert!(ran.out.starts_with("process   not ready  "), "{}", ran.out);
    assert!(ran.out.contains("fix: user.max_user_namespaces is 0"), "{}", ran.out);
}
