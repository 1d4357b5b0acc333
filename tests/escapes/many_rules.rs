//! More rules than an argument list could carry.

use std::fmt::Write;
use std::fs;

use crate::case::{Case, SECRET};

#[test]
fn ten_thousand_hidden_files_start_and_are_hidden() {
    let case = Case::new();
    let mut policy = String::from("version = 1\n[filesystem]\nhide = [\n");
    for folder in 0..100 {
        let path = case.workspace.join(format!("d{folder}"));
        fs::create_dir(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("f{file}")), SECRET).unwrap();
            writeln!(policy, "  \"{}/f{file}\",", path.display()).unwrap();
        }
    }
    policy.push_str("]\n");
    case.policy(policy);
    let ran = case.attack(
        "denied = 0
for folder in range(100):
    for file in range(100):
        try:
            print(read(f'd{folder}/f{file}'))
        except PermissionError:
            denied += 1
say('denied', denied)",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[("denied", "10000")]);
}

#[test]
fn more_rules_than_the_kernel_has_mounts_for_are_refused_with_a_count() {
    let limit = fs::read_to_string("/proc/sys/fs/mount-max")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok())
        .expect("the kernel has a limit on mounts");
    if limit > 150_000 {
        eprintln!("fs.mount-max is {limit} here, too many files to make for a test");
        return;
    }
    let case = Case::new();
    for folder in 0..=limit / 1000 {
        let path = case.workspace.join(format!("d{folder}"));
        fs::create_dir(&path).unwrap();
        for file in 0..1000 {
            fs::write(path.join(format!("f{file}.pem")), "").unwrap();
        }
    }
    let ran = case.run(&["--hide", "**/*.pem"], &["echo", "started"]);
    assert!(!ran.stdout.contains("started"), "{ran:?}");
    assert!([65, 125].contains(&ran.code), "{ran:?}");
    assert!(ran.stderr.chars().any(|c| c.is_ascii_digit()), "{}", ran.stderr);
}
