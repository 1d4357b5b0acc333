//! Workspaces of every kind of name and size, several sandboxes at once, and one inside the other.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::desk::{Desk, said};

#[test]
fn a_workspace_may_have_any_name() {
    let names: [&[u8]; 6] = [
        b"with space",
        b"new\nline",
        b"not \xff utf-8",
        "\u{1f980}".as_bytes(),
        b"quote'\"$x",
        b"-dash",
    ];
    for name in names {
        let desk = Desk::in_folder(&std::env::temp_dir());
        let folder = desk.workspace().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(folder.join(".git/hooks")).unwrap();
        let script = "pwd > out && ! touch .git/hooks/pre-commit 2>/dev/null && touch .git/index";
        let said = said(desk.pinfold().current_dir(&folder).args(["--", "sh", "-c", script]));
        assert_eq!(said.code, Some(0), "{name:?}: {said:?}");
        let out = std::fs::read(folder.join("out")).unwrap();
        let mut expected = folder.as_os_str().as_bytes().to_vec();
        expected.push(b'\n');
        assert_eq!(out, expected);
    }
}

#[test]
fn a_deep_and_a_wide_workspace_are_searched_in_bounds_and_written_in_whole() {
    let desk = Desk::new();
    for folder in 0..50 {
        let folder = desk.workspace().join(format!("wide/{folder}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..40 {
            std::fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    let deep = desk.workspace().join("deep/".repeat(60));
    std::fs::create_dir_all(&deep).unwrap();
    let script = "find wide -type f | wc -l; cd $(find deep -type d | tail -1) && echo x > x";
    assert_eq!(desk.works(&[], script).trim(), "2000");
    assert!(deep.join("x").is_file());
}

#[test]
fn two_sandboxes_of_one_project_run_at_once() {
    let desk = Desk::new();
    // The first waits for what the second writes.
    let mut first = desk.pinfold();
    first.args([
        "--",
        "sh",
        "-c",
        "until test -s second; do :; done; cat second; echo x > ~/first",
    ]);
    let first = first.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let second = desk.sh(&[], "echo from the second > second.new && mv second.new second");
    // Whatever came of the second: the first must not wait for ever.
    std::fs::write(desk.workspace().join("second"), "from the second\n").unwrap();
    let first = first.wait_with_output().unwrap();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(
        (first.status.code(), first.stdout.as_slice()),
        (Some(0), &b"from the second\n"[..])
    );
    assert_eq!(desk.works(&[], "cat ~/first"), "x\n", "the private home lasts");
}

#[test]
fn a_sandbox_inside_a_sandbox_is_refused_in_words_that_say_so() {
    let desk = Desk::new();
    let program = OsString::from(env!("CARGO_BIN_EXE_pinfold"));
    let copy = desk.workspace().join("pinfold-copy");
    std::fs::copy(&program, &copy).unwrap();
    let said = said(desk.pinfold().arg("--").arg(&copy).args(["run", "--", "echo", "ran"]));
    assert_eq!((said.code, said.out.as_str()), (Some(125), ""), "{said:?}");
    assert!(said.err.contains("inside of a Pinfold sandbox"), "{said:?}");
}

#[test]
fn rules_about_the_workspace_and_the_system_hold_on_a_tie_with_the_defaults() {
    let desk = Desk::new();
    desk.file("src/a", "a");
    let readonly = desk.sh(&["--readonly", "."], "cat src/a; echo x > x");
    assert!(readonly.out == "a" && readonly.code != Some(0), "{readonly:?}");
    let hidden = desk.sh(&["--hide", "."], "true");
    assert!(
        hidden.code == Some(65) && hidden.err.contains("nowhere to work"),
        "{hidden:?}"
    );
    let share = desk.sh(&["--hide", "/usr/share"], "ls /usr/share");
    assert!(share.out.is_empty(), "{share:?}");
    let whole = desk.works(
        &["--read", "/"],
        "ls -d /usr /etc /var; test -e ~/app/src/a && echo home",
    );
    assert_eq!(whole, "/etc\n/usr\n/var\nhome\n");
}
