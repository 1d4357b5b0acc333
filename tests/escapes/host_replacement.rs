//! A program on the host replaces a file that the sandbox may not change or not see, as editors do: by renaming.

use std::fs;

use crate::case::{Case, SECRET, eventually};

/// Answers each line with whether the file can be opened for writing, or be read.
const ANSWER: &str = "
import time
print('ready', flush=True)
for line in sys.stdin:
    mode, path = line.split()
    action = write if mode == 'write' else lambda path: print('content', read(path))
    # The cover is made again within moments; from then on it has to hold.
    for _ in range(2000):
        try:
            (write if mode == 'write' else read)(path)
            time.sleep(0.002)
        except OSError:
            break
    outcomes = set()
    for _ in range(200):
        try:
            (write if mode == 'write' else read)(path)
            outcomes.add('ok')
        except OSError as error:
            outcomes.add(errno.errorcode[error.errno])
    say('outcomes', ','.join(sorted(outcomes)))
";

fn replace(case: &Case, name: &str, content: &str) {
    let fresh = case.home.join("fresh");
    case.write(&fresh, content);
    fs::rename(fresh, case.workspace.join(name)).expect("the file can be replaced");
}

#[test]
fn a_protected_file_that_the_host_replaces_is_closed_again() {
    let case = Case::with_repository();
    case.put(".vscode/tasks.json", "{}");
    case.put(".bashrc", "old");
    let mut live = case.start_attack(&[] as &[&str], ANSWER);
    live.hear();
    for name in [".git/config", ".bashrc"] {
        for round in 0..3 {
            let content = fs::read_to_string(case.workspace.join(name)).unwrap();
            replace(&case, name, &format!("{content}# {round}\n"));
            live.say(&format!("write {name}"));
            assert_eq!(live.hear(), "outcomes\tEROFS", "{name}");
        }
    }
    let ran = live.end();
    ran.expect_code(0);
    assert!(ran.stderr.contains("replaced on the host"), "{}", ran.stderr);
}

#[test]
fn git_on_the_host_may_change_its_configuration_while_a_sandbox_runs() {
    let case = Case::with_repository();
    let mut live = case.start_attack(&[] as &[&str], ANSWER);
    live.hear();
    case.git(&["config", "user.email", "b@example.com"]);
    live.say("write .git/config");
    assert_eq!(live.hear(), "outcomes\tEROFS");
    live.end().expect_code(0);
    assert!(
        fs::read_to_string(case.workspace.join(".git/config"))
            .unwrap()
            .contains("b@example.com")
    );
}

#[test]
fn a_hidden_file_that_the_host_replaces_stays_hidden_or_ends_the_run() {
    let case = Case::new();
    case.put("secret", SECRET);
    let mut live = case.start_attack(&["--hide", "secret"], ANSWER);
    live.hear();
    replace(&case, "secret", "the-new-secret");
    live.say("read secret");
    let ran = live.end();
    let hidden = ran.stdout.contains("outcomes\tEACCES");
    let stopped = ran.code == 125 && !ran.stdout.contains("outcomes");
    assert!(hidden || stopped, "{ran:?}");
    ran.assert_never_says("the-new-secret");
}

#[test]
fn a_readonly_rule_survives_a_replacement() {
    let case = Case::new();
    case.put("lock.toml", "1");
    let mut live = case.start_attack(&["--readonly", "lock.toml"], ANSWER);
    live.hear();
    replace(&case, "lock.toml", "2");
    live.say("write lock.toml");
    assert_eq!(live.hear(), "outcomes\tEROFS");
    live.end().expect_code(0);
    assert_eq!(fs::read_to_string(case.workspace.join("lock.toml")).unwrap(), "2");
}

/// The kernel announces neither the move, which takes the cover along, nor the new name. See "Known limits" in SECURITY.md.
#[test]
fn a_protected_folder_that_the_host_replaces_is_closed_again() {
    let case = Case::new();
    case.put(".vscode/tasks.json", "{}");
    let mut live = case.start_attack(&[] as &[&str], ANSWER);
    live.hear();
    fs::rename(case.workspace.join(".vscode"), case.home.join("old")).unwrap();
    case.write(&case.home.join("new/tasks.json"), "{}");
    fs::rename(case.home.join("new"), case.workspace.join(".vscode")).unwrap();
    // The kernel announces no such move; the guest hears of it from the watcher a moment later.
    eventually("the new folder is closed", || {
        live.say("write .vscode/tasks.json");
        // Covered, or taken away when the place was seen empty in between.
        ["outcomes\tEROFS", "outcomes\tENOENT"].contains(&&*live.hear())
    });
    live.end();
}

#[test]
fn a_protected_file_that_the_host_removes_and_makes_again_is_closed_again() {
    let case = Case::new();
    case.put(".bashrc", "old");
    let mut live = case.start_attack(&[] as &[&str], ANSWER);
    live.hear();
    fs::remove_file(case.workspace.join(".bashrc")).unwrap();
    case.put(".bashrc", "new");
    live.say("write .bashrc");
    // Covered again, or already taken away: nothing tells the host's new file from one of the command's.
    let heard = live.hear();
    assert!(["outcomes\tEROFS", "outcomes\tENOENT"].contains(&&*heard), "{heard}");
    live.end();
    let now = fs::read_to_string(case.workspace.join(".bashrc")).ok();
    assert!(now.is_none_or(|content| content == "new"));
}
