//! Nothing is left on the host: after an end of any kind, and not even while the sandbox runs.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::case::{Case, Live, SECRET, eventually, finish, kill};

/// The processes below one, on the host.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|text| text.parse().ok()) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// A process that is there and is no corpse.
fn lives(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn mount_table() -> String {
    fs::read_to_string("/proc/self/mountinfo").expect("the mount table can be read")
}

/// No shell: one that is interrupted between two commands goes on.
const BUSY: &str = "
import signal, subprocess
signal.signal(signal.SIGINT, signal.SIG_DFL)
subprocess.Popen(['sleep', '986'])
subprocess.Popen(['sleep', '986'], start_new_session=True)
subprocess.Popen(['sh', '-c', 'trap \"\" HUP TERM INT; sleep 986; :'])
print('ready', flush=True)
signal.pause()
";

/// A sandbox with a few processes, all of them running: the guest first.
fn busy(case: &Case) -> (Live, Vec<u32>) {
    let mut live = case.start(&[] as &[&str], &["/usr/bin/env", "python3", "-I", "-c", BUSY]);
    assert_eq!(live.hear(), "ready");
    let pids = descendants(live.pid());
    assert!(pids.len() >= 4, "the processes of the sandbox are {pids:?}");
    (live, pids)
}

#[track_caller]
fn assert_gone(case: &Case, pids: &[u32]) {
    eventually("every process of the sandbox is gone", || {
        !pids.iter().any(|pid| lives(*pid))
    });
    let place = case.root().display().to_string();
    assert!(!mount_table().contains(&place), "a mount is left");
}

#[test]
fn killing_pinfold_leaves_no_process_and_no_mount() {
    let case = Case::with_repository();
    let before = case.snapshot();
    let (live, pids) = busy(&case);
    kill(live.pid(), Signal::KILL);
    assert_gone(&case, &pids);
    case.assert_unchanged(&before);
}

#[test]
fn killing_the_guest_ends_the_run_and_everything_inside() {
    let case = Case::with_repository();
    let before = case.snapshot();
    let (live, pids) = busy(&case);
    kill(pids[0], Signal::KILL);
    let ran = live.end();
    assert_eq!(ran.code, 125, "{ran:?}");
    assert_gone(&case, &pids);
    case.assert_unchanged(&before);
}

#[test]
fn killing_the_command_from_the_host_ends_the_run_with_its_status() {
    let case = Case::new();
    let (live, pids) = busy(&case);
    let command = descendants(pids[0]);
    let shell = *command
        .iter()
        .find(|pid| !descendants(**pid).is_empty())
        .expect("the shell has children");
    kill(shell, Signal::KILL);
    live.end().expect_code(137);
    assert_gone(&case, &pids);
}

#[test]
fn killing_all_of_them_at_once_leaves_nothing() {
    let case = Case::with_repository();
    let before = case.snapshot();
    let (live, pids) = busy(&case);
    for pid in pids.iter().rev() {
        kill(*pid, Signal::KILL);
    }
    kill(live.pid(), Signal::KILL);
    assert_gone(&case, &pids);
    case.assert_unchanged(&before);
}

#[test]
fn pinfold_ends_on_a_signal_and_takes_everything_with_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let case = Case::new();
        let (live, pids) = busy(&case);
        kill(live.pid(), signal);
        let ran = live.end();
        assert_eq!(ran.code, 128 + signal.as_raw(), "{ran:?}");
        assert_gone(&case, &pids);
    }
}

#[test]
fn a_run_changes_nothing_on_the_host_by_itself() {
    let case = Case::with_repository();
    case.put(".vscode/tasks.json", "{}");
    case.put("secret", SECRET);
    // A folder that is closed as a whole: what it held before is the person's.
    case.put(".config/git/config", "");
    let (before, mounts) = (case.snapshot(), mount_table());
    let hide = [
        "--hide",
        "secret",
        "--hide",
        "not-there",
        "--readonly",
        "README",
        "--hide",
        "**/*.pem",
    ];
    let mut live = case.start(&hide, &["sh", "-c", "echo ready; read line; true"]);
    live.hear();
    // Not for a moment either.
    case.assert_unchanged(&before);
    assert_eq!(mounts, mount_table(), "a mount of the sandbox shows on the host");
    live.end().expect_code(0);
    case.assert_unchanged(&before);
    assert_eq!(mounts, mount_table());
}

#[test]
fn a_refused_start_changes_nothing_either() {
    let case = Case::with_repository();
    let before = case.snapshot();
    case.run(&["--hide", "[a"], &["true"]).expect_code(64);
    case.run(&["--write", "no/such/folder"], &["true"]);
    case.run(&[] as &[&str], &["/no/such/program"]).expect_code(127);
    case.assert_unchanged(&before);
}

#[test]
fn the_private_state_is_for_the_caller_alone() {
    use std::os::unix::fs::PermissionsExt;
    let case = Case::new();
    case.sh("echo private >~/file").expect_code(0);
    let state = case.data().join("pinfold");
    let mode = fs::metadata(&state).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", state.display());
}

#[test]
fn two_sandboxes_on_one_directory_do_not_disturb_each_other() {
    let case = Case::with_repository();
    case.put("secret", SECRET);
    let mut first = case.start_attack(
        &["--hide", "secret"],
        "print('ready', flush=True)
for line in sys.stdin:
    attempt('hidden', lambda: print(read('secret')))
    attempt('config', lambda: write('.git/config'))
    attempt('hook', lambda: create('.git/hooks/planted'))
    attempt('work', lambda: open('from-first', 'a').close())
    print('round', flush=True)",
    );
    first.hear();
    for _ in 0..3 {
        let second = case.sh("cat secret >/dev/null && : >from-second && ls from-first 2>/dev/null; ( : >>.git/config ) 2>/dev/null || echo closed");
        assert!(second.stdout.contains("closed"), "{second:?}");
        first.say("go");
        let lines: Vec<String> = (0..5).map(|_| first.hear()).collect();
        assert_eq!(
            lines,
            ["hidden\tEACCES", "config\tEROFS", "hook\tEROFS", "work\tok", "round"]
        );
    }
    let mut second = case.start(&[] as &[&str], &["sh", "-c", "echo ready; read line; true"]);
    second.hear();
    kill(second.pid(), Signal::KILL);
    drop(second);
    first.say("go");
    let lines: Vec<String> = (0..5).map(|_| first.hear()).collect();
    assert_eq!(lines[..3], ["hidden\tEACCES", "config\tEROFS", "hook\tEROFS"]);
    first.end().expect_code(0);
    assert!(case.workspace.join("from-first").exists() && case.workspace.join("from-second").exists());
}

#[test]
fn a_time_limit_ends_everything_and_has_its_own_status() {
    let case = Case::new();
    let mut pinfold = case.pinfold();
    pinfold.args([
        "run",
        "--timeout",
        "1s",
        "--",
        "sh",
        "-c",
        "setsid sleep 985 & echo out; sleep 985",
    ]);
    let ran = finish(pinfold.stdin(Stdio::null()));
    ran.expect_code(124);
    assert_eq!(ran.stdout, "out\n");
}
