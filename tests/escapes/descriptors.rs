//! Descriptors that leak, and descriptors that lead out.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::attack;
use crate::case::{Case, SECRET, finish, program};

/// The descriptors of the attack's process, and what they lead to.
const COUNT: &str = "
found = []
import fcntl
for descriptor in range(3, 2048):
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFD)
        found.append(os.readlink(f'/proc/self/fd/{descriptor}'))
    except OSError:
        pass
say('open', ','.join(found))
for descriptor in [7, 700]:
    attempt(f'read {descriptor}', lambda: print(os.pread(descriptor, 100, 0)))
    attempt(f'at {descriptor}', lambda: print(os.listdir(f'/proc/self/fd/{descriptor}/')))
";

#[test]
fn descriptors_that_the_caller_left_open_do_not_go_in() {
    let case = Case::new();
    attack::require_python();
    let mut shell = case.host("bash");
    shell.args(["-c", "exec 7<../../outside/file 700<../../outside; exec \"$0\" \"$@\""]);
    shell.arg(program()).args([
        "run",
        "--",
        "/usr/bin/env",
        "python3",
        "-I",
        "-c",
        &attack::program(COUNT),
    ]);
    let ran = finish(shell.stdin(Stdio::null()));
    ran.assert_ran_to_its_end();
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("open", ""),
        ("read 7", "EBADF"),
        ("read 700", "EBADF"),
        ("at 7", "ENOENT"),
        ("at 700", "ENOENT"),
    ]);
}

#[test]
fn the_guest_holds_no_descriptor_of_the_callers() {
    let case = Case::new();
    let mut shell = case.host("bash");
    shell.args(["-c", "exec 7<../../outside/file 700<../../outside; exec \"$0\" \"$@\""]);
    shell
        .arg(program())
        .args(["run", "--", "sh", "-c", "echo ready; read line; true"]);
    let mut live = crate::case::Live::spawn(&mut shell);
    live.hear();
    for pid in crate::leftovers::descendants(live.pid()) {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            // As an ordinary user the guest cannot be looked at: it is not dumpable.
            continue;
        };
        for entry in entries.flatten() {
            let leads = fs::read_link(entry.path()).unwrap_or_default();
            assert!(
                !leads
                    .as_os_str()
                    .as_bytes()
                    .starts_with(case.outside.as_os_str().as_bytes()),
                "process {pid} of the sandbox holds {}",
                leads.display()
            );
        }
    }
    live.end().expect_code(0);
}

#[test]
fn a_directory_as_a_standard_stream_is_refused() {
    let case = Case::new();
    for redirection in ["<../../outside", "<.", "2<../../outside", ">&3 3<../../outside"] {
        let mut shell = case.host("bash");
        shell.args(["-c", &format!("exec 3<../../outside; exec \"$0\" \"$@\" {redirection}")]);
        shell.arg(program()).args([
            "run",
            "--",
            "sh",
            "-c",
            "echo started; ls /proc/self/fd/0/; ls /proc/self/fd/0/../..",
        ]);
        let ran = finish(&mut shell);
        ran.expect_code(64);
        assert!(!ran.stdout.contains("started"), "{redirection}: {ran:?}");
    }
}

#[test]
fn a_path_descriptor_as_a_standard_stream_is_refused() {
    let case = Case::new();
    attack::require_python();
    let mut outer = case.host("/usr/bin/env");
    outer.args([
        "python3",
        "-I",
        "-c",
        "import os, sys\nos.dup2(os.open('README', os.O_PATH), 0)\nos.execv(sys.argv[1], sys.argv[1:])",
    ]);
    outer.arg(program()).args(["run", "--", "echo", "started"]);
    let ran = finish(&mut outer);
    ran.expect_code(64);
    assert!(!ran.stdout.contains("started"), "{ran:?}");
}

#[test]
fn a_device_as_a_standard_stream_is_refused() {
    let case = Case::new();
    let device = ["/dev/kmsg", "/dev/fuse", "/dev/net/tun", "/dev/rtc0", "/dev/autofs"]
        .into_iter()
        .find(|path| fs::File::open(path).is_ok());
    let Some(device) = device else {
        eprintln!("no device that this user may open but the harmless ones");
        return;
    };
    let mut shell = case.host("bash");
    shell.args(["-c", &format!("exec \"$0\" \"$@\" <{device}")]);
    shell.arg(program()).args(["run", "--", "echo", "started"]);
    let ran = finish(&mut shell);
    ran.expect_code(64);
    assert!(!ran.stdout.contains("started"), "{ran:?}");
}

#[test]
fn closed_standard_streams_become_dev_null() {
    let case = Case::new();
    let mut shell = case.host("bash");
    shell.args(["-c", "exec \"$0\" \"$@\" <&-"]);
    shell
        .arg(program())
        .args(["run", "--", "sh", "-c", "readlink /proc/self/fd/0; echo x >made"]);
    let ran = finish(&mut shell);
    assert_eq!(ran.stdout, "/dev/null\n", "{ran:?}");
    let mut shell = case.host("bash");
    shell.args(["-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"]);
    shell.arg(program()).args([
        "run",
        "--",
        "sh",
        "-c",
        "for d in 0 1 2; do readlink /proc/self/fd/$d >>found; done",
    ]);
    finish(&mut shell).expect_code(0);
    let found = fs::read_to_string(case.workspace.join("found")).unwrap();
    // The second is where the output of readlink itself goes.
    assert_eq!(found.lines().filter(|line| *line == "/dev/null").count(), 2, "{found}");
}

#[test]
fn a_file_as_standard_input_can_be_read_and_not_reopened_for_writing() {
    let case = Case::new();
    let path = case.outside.join("input");
    case.write(&path, "input");
    let mut pinfold = case.pinfold();
    pinfold.args([
        "run",
        "--",
        "sh",
        "-c",
        "cat; ( echo evil >/proc/self/fd/0 ) 2>/dev/null || echo refused",
    ]);
    let ran = finish(pinfold.stdin(fs::File::open(&path).unwrap()));
    assert_eq!(ran.stdout, "inputrefused\n", "{ran:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), "input");
}
