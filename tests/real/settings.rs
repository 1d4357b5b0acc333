//! Sandbox Runtime settings files, run with `--settings`.

use crate::desk::{Desk, Said, said};

/// A desk with files to ask for, and a run under the given file rules.
fn run(deny_read: &str, allow_read: &str, allow_write: &str, deny_write: &str, script: &str) -> Said {
    let desk = Desk::new();
    desk.file("src/main.c", "source");
    std::fs::create_dir_all(desk.home().join("notes/deep")).unwrap();
    std::fs::write(desk.home().join("notes/deep/n"), "note").unwrap();
    std::os::unix::fs::symlink("notes/deep", desk.home().join("link")).unwrap();
    let text = format!(
        r#"{{"network": {{"allowedDomains": [], "deniedDomains": []}}, "filesystem": {{"denyRead": [{deny_read}],
            "allowRead": [{allow_read}], "allowWrite": [{allow_write}], "denyWrite": [{deny_write}]}}}}"#
    );
    let file = desk.home().join("settings.json");
    std::fs::write(&file, text).unwrap();
    said(
        desk.pinfold()
            .arg("--settings")
            .arg(&file)
            .args(["--", "/bin/sh", "-c", script]),
    )
}

const SYSTEM: &str = r#""/usr", "/bin", "/lib", "/lib64", "/etc""#;

#[test]
fn reading_is_open_and_writing_closed_as_the_format_has_it() {
    let said = run("", "", r#"".""#, "", "cat ~/notes/deep/n; echo w > w; echo w > ~/w");
    assert_eq!(said.out, "note");
    assert!(said.err.contains("w: Read-only file system"), "{said:?}");
    let said = run("", "", "", "", "echo w > w");
    assert_ne!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_hidden_root_hides_the_system_folders_that_are_not_opened_again() {
    let said = run(
        r#""/""#,
        SYSTEM,
        r#"".""#,
        "",
        "ls -d /usr /etc /opt; echo w > w; cat w",
    );
    assert_eq!(said.out, "/etc\n/usr\nw\n", "{said:?}");
    let said = run(r#""/""#, "", r#"".""#, "", "true");
    assert_eq!(said.code, Some(127), "nothing is there to be run: {said:?}");
}

#[test]
fn a_hidden_home_hides_toolchains_and_settings_in_it() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home().join(".local/bin")).unwrap();
    std::fs::write(desk.home().join(".gitconfig"), "[user]\n\tname = me\n").unwrap();
    let file = desk.home().join("settings.json");
    let text = r#"{"network": {"allowedDomains": [], "deniedDomains": []},
                   "filesystem": {"denyRead": ["~"], "allowWrite": ["."], "denyWrite": []}}"#;
    std::fs::write(&file, text).unwrap();
    let path = format!("{}/.local/bin:/usr/bin:/bin", desk.home().display());
    let script = "ls -d ~/.local/bin; git config user.name; echo w > w";
    let said = said(
        desk.pinfold()
            .env("PATH", path)
            .arg("--settings")
            .arg(&file)
            .args(["--", "sh", "-c", script]),
    );
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn a_denial_above_the_workspace_takes_its_writing_away() {
    let said = run("", "", r#"".""#, r#""~""#, "cat src/main.c; echo w > w");
    assert!(said.out == "source" && said.code != Some(0), "{said:?}");
    let said = run("", "", r#"".""#, r#""./src""#, "echo w > w && echo w > src/w");
    assert!(said.err.contains("src/w: Read-only file system"), "{said:?}");
}

#[test]
fn an_opened_link_opens_its_own_name_only() {
    let said = run(r#""~""#, r#""~/link""#, r#"".""#, "", "cat ~/link/n ~/notes/deep/n");
    assert!(
        said.out.is_empty() && said.err.contains("opens only its own name"),
        "{said:?}"
    );
    let said = run(r#""~""#, r#""~/notes/deep""#, r#"".""#, "", "cat ~/notes/deep/n");
    assert_eq!(said.out, "note", "{said:?}");
}

#[test]
fn a_switched_off_file_section_needs_a_flag_of_its_own() {
    let desk = Desk::new();
    std::fs::write(desk.home().join("secret"), "s").unwrap();
    let file = desk.home().join("settings.json");
    let text = r#"{"network": {"allowedDomains": [], "deniedDomains": []},
                   "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": [], "disabled": true}}"#;
    std::fs::write(&file, text).unwrap();
    let run = |flags: &[&str]| {
        said(desk.pinfold().args(flags).arg("--settings").arg(&file).args([
            "--",
            "sh",
            "-c",
            "cat ~/secret; echo w > ~/w",
        ]))
    };
    assert_eq!(run(&[]).code, Some(65));
    assert!(!desk.home().join("w").exists());
}

#[test]
fn a_file_that_is_not_exactly_understood_runs_nothing() {
    for text in ["", "{", "{}", r#"{"network": 1}"#] {
        let desk = Desk::new();
        let file = desk.file("settings.json", text);
        let said = said(
            desk.pinfold()
                .arg("--settings")
                .arg(&file)
                .args(["--", "sh", "-c", "echo ran"]),
        );
        assert_eq!((said.code, said.out.as_str()), (Some(65), ""), "{text}: {said:?}");
    }
}

#[test]
fn the_printed_policy_of_a_file_loaded_again_builds_the_same() {
    let desk = Desk::new();
    desk.file("src/a", "a");
    let file = desk.home().join("settings.json");
    for (deny_read, allow_write, deny_write) in [
        ("", r#"".""#, r#""./src""#),
        (r#""/opt", "~""#, r#"".""#, ""),
        (r#""/""#, r#"".""#, ""),
    ] {
        let text = format!(
            r#"{{"network": {{"allowedDomains": ["example.com"], "deniedDomains": []}}, "filesystem": {{"denyRead": [{deny_read}],
                "allowRead": [{SYSTEM}], "allowWrite": [{allow_write}], "denyWrite": [{deny_write}]}}}}"#
        );
        std::fs::write(&file, text).unwrap();
        let pinfold = || desk.outside(env!("CARGO_BIN_EXE_pinfold"));
        let printed = said(pinfold().args(["policy", "show", "--toml", "--settings"]).arg(&file));
        let again = desk.home().join("again.toml");
        std::fs::write(&again, &printed.out).unwrap();
        let dry_run = |source: &str, file: &std::path::Path| {
            said(
                pinfold()
                    .args(["run", "--dry-run", source])
                    .arg(file)
                    .args(["--", "true"]),
            )
        };
        let (one, two) = (dry_run("--settings", &file), dry_run("--config", &again));
        // Each run also protects the file that it was given.
        let plan = |said: &Said| {
            let lines = said
                .out
                .lines()
                .filter(|line| !line.contains("settings.json") && !line.contains("again.toml"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(
            one.code == Some(0) && two.code == Some(0),
            "{printed:?}\n{one:?}\n{two:?}"
        );
        assert_eq!(plan(&one), plan(&two), "{}", printed.out);
    }
}
