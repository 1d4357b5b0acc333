//! Who the command is: no capability, nothing to gain, no core file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use crate::case::{Case, is_root};

#[test]
fn the_command_has_no_capability_and_cannot_get_one() {
    let case = Case::new();
    let ran = case.attack(
        "status = dict(line.strip().partition(':\\t')[::2] for line in open('/proc/self/status'))
for name in ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp']:
    say(name, status[name].lstrip('0') or '0')
say('ids', status['Uid'] == '\\t'.join([str(os.getuid())] * 4))
attempt('keep capabilities', lambda: [None for _ in [libc.prctl(8, 1)] if ctypes.get_errno()])
say('securebits', bin(libc.prctl(27)))
say('setuid', libc.setuid(os.getuid() + 1))
say('setgroups', libc.setgroups(0, None))
say('no-new-privs off', libc.prctl(38, 0, 0, 0, 0))
say('ambient', libc.prctl(47, 2, 0, 0, 0))",
    );
    ran.expect(&[
        ("CapInh", "0"),
        ("CapPrm", "0"),
        ("CapEff", "0"),
        ("CapBnd", "0"),
        ("CapAmb", "0"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("ids", "True"),
        ("setuid", "-1"),
        ("setgroups", "-1"),
        ("no-new-privs off", "-1"),
        ("ambient", "-1"),
    ]);
    let securebits = u32::from_str_radix(ran.outcome("securebits").trim_start_matches("0b"), 2).unwrap();
    // SECBIT_NOROOT and SECBIT_NO_CAP_AMBIENT_RAISE, each with its lock (linux/securebits.h).
    assert_eq!(securebits & 0b1100_0011, 0b1100_0011, "{securebits:#b}");
}

#[test]
fn every_child_and_every_exec_wears_the_same_walls() {
    let case = Case::new();
    let ran = case.sh(
        "status() { grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'; echo; }
status; sh -c 'grep -E \"^(CapEff|NoNewPrivs|Seccomp):\" /proc/self/status' | tr -d '\\t\\n'; echo; (status); status & wait",
    );
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{ran:?}");
    assert!(
        lines
            .iter()
            .all(|line| *line == "CapEff:0000000000000000NoNewPrivs:1Seccomp:2"),
        "{lines:?}"
    );
}

#[test]
fn the_ids_of_the_host_are_mapped_one_to_one_and_no_other_exists() {
    let case = Case::new();
    let ran = case.attack(
        "for name in ['uid_map', 'gid_map']:
    fields = open('/proc/self/' + name).read().split()
    own = os.getuid() if name == 'uid_map' else os.getgid()
    say(name, fields == [str(own), str(own), '1'])
    attempt('write ' + name, lambda: os.write(os.open('/proc/self/' + name, os.O_WRONLY), b'0 0 4294967295'))
say('setgroups file', open('/proc/self/setgroups').read().strip())",
    );
    ran.expect(&[
        ("uid_map", "True"),
        ("gid_map", "True"),
        ("setgroups file", "deny"),
        ("write uid_map", "EPERM|EACCES"),
        ("write gid_map", "EPERM|EACCES"),
    ]);
}

#[test]
fn a_set_user_id_program_of_the_system_gains_nothing() {
    let case = Case::new();
    let found = [
        "/usr/bin/su",
        "/bin/su",
        "/usr/bin/passwd",
        "/usr/bin/mount",
        "/usr/bin/newgrp",
    ]
    .into_iter()
    .find(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o4000 != 0));
    let Some(program) = found else {
        eprintln!("this system has no set-user-ID program to try");
        return;
    };
    // The loader shows what the kernel granted, and shows nothing for a program that did gain something.
    let ran = case.sh(&format!("LD_SHOW_AUXV=1 {program} --version </dev/null 2>&1; id -u"));
    let uid = rustix::process::geteuid().as_raw().to_string();
    let line = |name: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1))
            .unwrap_or("hidden")
            .to_owned()
    };
    assert_eq!((line("AT_SECURE:"), line("AT_EUID:")), ("0".to_owned(), uid), "{ran:?}");
}

#[test]
fn a_set_user_id_program_in_the_workspace_gains_nothing() {
    if !is_root() {
        eprintln!("only root can make a program of somebody else's; the system's own are tried in another test");
        return;
    }
    let case = Case::new();
    let program = case.workspace.join("id");
    assert!(
        case.host("cp")
            .arg("/usr/bin/id")
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    chown(&program, Some(12_345), Some(12_345)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    let outside = case.host(&program).arg("-u").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&outside.stdout).trim(),
        "12345",
        "the attack works without a sandbox"
    );
    let ran = case.sh("./id -u; ./id -g");
    assert_eq!(ran.stdout, "0\n0\n", "{ran:?}");
}

#[test]
fn a_crash_leaves_no_core_file_anywhere() {
    let case = Case::new();
    let before = case.snapshot();
    let ran = case.sh(
        "ulimit -c unlimited 2>/dev/null; ulimit -c; ulimit -Hc; sh -c 'kill -SEGV $$'; sh -c 'kill -ABRT $$'; ls -A",
    );
    assert!(!ran.stdout.contains("core"), "{ran:?}");
    case.assert_unchanged(&before);
    let ran = case.attack(
        "import resource
say('limit', resource.getrlimit(resource.RLIMIT_CORE))
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    say('raise', 'ok')
except (OSError, ValueError) as error:
    say('raise', 'refused')",
    );
    ran.expect(&[("limit", "(1, 1)|(0, 0)"), ("raise", "refused")]);
}

#[test]
fn the_number_of_processes_has_a_limit_for_an_ordinary_user() {
    let case = Case::new();
    let ran = case.attack("import resource\nsay('limit', resource.getrlimit(resource.RLIMIT_NPROC)[1] < 100000)");
    ran.expect(&[("limit", "True")]);
}
