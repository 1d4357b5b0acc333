//! A command without a terminal: pipes, closed descriptors, signals, and the time limit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

fn shell(home: &Home, script: &str) -> (Option<i32>, String) {
    let output = home.command("sh").args(["-c", script]).output().expect("a shell");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("text"))
}

/// Started with pipes, after its first line.
fn started(home: &Home, script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = home
        .command("pinfold")
        .args(["run", "-q", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    (child, output)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is there");
}

#[test]
fn signals_reach_the_command() {
    let home = Home::new();
    for (sent, trap, code) in [
        (Signal::USR1, "trap 'exit 9' USR1;", 9),
        (Signal::USR2, "trap 'exit 8' USR2;", 8),
        (Signal::HUP, "trap 'exit 7' HUP;", 7),
        (Signal::TERM, "", 143),
        (Signal::INT, "", 130),
        (Signal::HUP, "", 129),
        (Signal::QUIT, "", 131),
    ] {
        let (mut child, _output) = started(&home, &format!("{trap} echo up; sleep 1000 & wait"));
        signal(&child, sent);
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{sent:?} {trap}");
    }
}

#[test]
fn a_hangup_that_the_caller_ignores_is_ignored_inside() {
    let home = Home::new();
    let script = "trap '' HUP; exec pinfold run -q -- sh -c 'echo up; read line; echo got-$line'";
    let mut child = home
        .command("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    output.read_line(&mut text).expect("a line");
    signal(&child, Signal::HUP);
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"more\n")
        .expect("it reads");
    output.read_to_string(&mut text).expect("text");
    assert_eq!(
        (child.wait().expect("it ends").code(), &*text),
        (Some(0), "up\ngot-more\n")
    );
}

#[test]
fn the_streams_are_the_commands_own() {
    let home = Home::new();
    for (script, code, text) in [
        ("echo in | pinfold run -q -- cat", 0, "in\n"),
        ("pinfold run -q -- yes </dev/null | head -1", 0, "y\n"),
        ("pinfold run -q -- cat <&-; echo $?", 0, "0\n"),
        ("pinfold run -q -- sh -c 'echo x' >&-; echo $?", 0, "0\n"),
        ("pinfold run -q -- sh -c 'sleep 1000 & echo done' | cat", 0, "done\n"),
        ("pinfold run -q -- sh -c 'echo o; echo e >&2' 2>/dev/null", 0, "o\n"),
        ("pinfold run -q -- seq 1 200000 </dev/null | tail -1", 0, "200000\n"),
        ("head -c 3000000 /dev/zero | pinfold run -q -- wc -c", 0, "3000000\n"),
    ] {
        assert_eq!(shell(&home, script), (Some(code), text.to_owned()), "{script}");
    }
}

#[test]
fn words_that_nobody_reads_change_no_exit_code() {
    let home = Home::new();
    for (command, code) in [
        ("-- sh -c 'curl -s http://x.example.com/; exit 5'", 5),
        ("-- frobnicate", 127),
        ("--alow", 64),
    ] {
        let script = format!("exec 3> >(exit); wait $!; pinfold run {command} 2>&3 >/dev/null");
        let status = home.command("bash").args(["-c", &script]).status().expect("a shell");
        assert_eq!(status.code(), Some(code), "{command}");
    }
}

#[test]
fn a_stream_that_leads_out_is_refused() {
    let home = Home::new();
    let (code, text) = shell(&home, "pinfold run -q -- true < /");
    assert_eq!(code, Some(64));
    assert!(text.starts_with("error: standard input is a directory"), "{text}");
}

#[test]
fn time_that_ran_out_ends_the_whole_tree_and_keeps_the_output() {
    let home = Home::new();
    let name = format!("1000.{}", std::process::id());
    let script = format!("pinfold run -q --timeout 1s -- sh -c 'echo partial; setsid sleep {name} & sleep {name}'");
    let (code, text) = shell(&home, &script);
    assert_eq!(code, Some(124));
    assert!(
        text.starts_with("partial\nerror: The command ran out of time"),
        "{text}"
    );
    let left: Vec<_> = std::fs::read_dir("/proc")
        .expect("procfs")
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(format!("sleep\0{name}").as_bytes()))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn pinfold_stops_when_it_is_asked_to_and_the_command_with_it() {
    let home = Home::new();
    let script = "set -m; pinfold run -q -- sh -c 'echo up; read line; echo on' < <(sleep 1; echo) & \
                  while ! grep -q '^State:.[ST]' /proc/$!/status; do :; done; kill -TSTP $!; \
                  while ! grep -q '^State:.T' /proc/$!/status; do :; done; echo stopped; fg >&2; echo code=$?";
    let output = home
        .command("timeout")
        .args(["-k", "1", "30", "bash", "-c", script])
        .output();
    let output = output.expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("stopped\n") && text.ends_with("on\ncode=0\n"), "{text}");
}

#[test]
fn a_command_that_stops_itself_without_a_terminal_leaves_pinfold_watching() {
    let home = Home::new();
    let script = "pinfold run -q --timeout 1s -- sh -c 'echo up; kill -STOP $$; echo on'; echo code=$?";
    let output = home
        .command("timeout")
        .args(["-k", "1", "30", "bash", "-c", script])
        .output();
    let text = String::from_utf8(output.expect("a shell").stdout).expect("text");
    assert!(text.ends_with("code=124\n"), "{text}");
}
