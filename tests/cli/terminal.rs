//! A command on a terminal: it gets one of its own, and the caller's comes back as it was.

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, has};
use crate::pty::{CTRL_C, CTRL_D, Ends, Pty};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it is there");
}

fn only_child(pid: i32) -> i32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it runs");
    children.trim().parse().expect("one child")
}

#[test]
fn a_command_gets_a_terminal_of_its_own_in_the_size_of_the_callers() {
    let home = Home::new();
    let (code, screen) = Pty::run(
        &home,
        &["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && stty size"],
    )
    .finish();
    assert_eq!((code, &*screen), (Some(0), "/dev/pts/0\n33 101\n"));
}

#[test]
fn the_terminal_of_the_caller_is_not_there_inside() {
    let home = Home::new();
    // The sandbox's own is number 0.
    let mut pty = Pty::run(&home, &["cat"]);
    let mut others = Vec::new();
    while pty.path() == "/dev/pts/0" {
        others.push(std::mem::replace(&mut pty, Pty::run(&home, &["cat"])));
    }
    let path = pty.path();
    let script = format!("ls -1 /dev/pts; test -e {path} || echo absent; echo x > /dev/pts/7 || echo refused");
    let inside = Pty::run(&home, &["sh", "-c", &script]).finish();
    assert!(
        inside.1.starts_with("0\nptmx\nabsent\n") && inside.1.ends_with("refused\n"),
        "{inside:?}"
    );
}

#[test]
fn a_new_size_reaches_the_command() {
    let home = Home::new();
    let script = "trap 'stty size; exit 4' WINCH; echo up; sleep 1000 & wait";
    let mut pty = Pty::run(&home, &["sh", "-c", script]);
    pty.wait_for("up");
    pty.resize(12, 60);
    pty.wait_for("12 60");
    assert_eq!(pty.end().code(), Some(4));
}

#[test]
fn ctrl_c_ends_the_command_and_pinfold_tells_so() {
    let home = Home::new();
    let mut pty = Pty::run(&home, &["sh", "-c", "echo up; exec sleep 1000"]);
    pty.wait_for("up");
    pty.press(CTRL_C);
    assert_eq!(pty.end().code(), Some(130));
}

#[test]
fn ctrl_d_ends_the_input() {
    let home = Home::new();
    let mut pty = Pty::run(&home, &["sh", "-c", "echo up; cat; echo end"]);
    pty.wait_for("up");
    pty.press("typed\n");
    pty.wait_for("typed\r\ntyped");
    pty.press(CTRL_D);
    pty.wait_for("end");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn a_program_in_raw_mode_reads_every_key() {
    let home = Home::new();
    let script = "stty raw -echo; echo up; head -c 3 | od -An -tx1; stty sane";
    let mut pty = Pty::run(&home, &["sh", "-c", script]);
    pty.wait_for("up");
    pty.press("\x03\x1a\r");
    pty.wait_for(" 03 1a 0d");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn much_output_arrives_to_its_end() {
    let home = Home::new();
    let (code, screen) = Pty::run(&home, &["seq", "1", "200000"]).finish();
    assert_eq!(code, Some(0));
    let mut lines = screen.lines();
    assert!((1..=200_000).all(|number| lines.next() == Some(number.to_string().as_str())));
    assert_eq!(lines.next(), None);
}

#[test]
fn a_large_paste_arrives_whole() {
    let home = Home::new();
    let script = "stty raw -echo; echo up; head -c 300000 | cksum; stty sane";
    let mut pty = Pty::run(&home, &["sh", "-c", script]);
    pty.wait_for("up");
    let paste: String = (0..300_000_u32).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    let expected = {
        let mut cksum = home.command("sh");
        std::fs::write(home.workspace().join("paste"), &paste).expect("a file");
        let output = cksum.args(["-c", "cksum < paste"]).output().expect("cksum is there");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    pty.press(&paste);
    pty.wait_for(&expected);
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn what_a_command_left_in_the_background_does_not_hold_the_end() {
    let home = Home::new();
    let (code, screen) = Pty::run(&home, &["sh", "-c", "sleep 1000 & echo done"]).finish();
    assert_eq!((code, &*screen), (Some(0), "done\n"));
}

#[test]
fn a_terminal_at_standard_input_alone_is_relayed_and_not_seen() {
    let home = Home::new();
    let words = ["pinfold", "run", "-q", "sh", "-c", "tty; cat"];
    let mut pty = Pty::start(&home, Ends::OnlyStdin, &words);
    pty.press("typed\n");
    pty.press(CTRL_D);
    assert_eq!(pty.piped(), "not a tty\ntyped\n");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn a_terminal_at_standard_output_alone_is_relayed_and_not_seen() {
    let home = Home::new();
    let words = [
        "pinfold",
        "run",
        "-q",
        "sh",
        "-c",
        "test -t 1 || test -t 2 || cat; exit 3",
    ];
    let (code, screen) = Pty::start(&home, Ends::OnlyStdout, &words).finish();
    assert_eq!((code, &*screen), (Some(3), "piped\n"));
}

#[test]
fn the_callers_terminal_comes_back_as_it_was() {
    let home = Home::new();
    let before = Pty::start(&home, Ends::All, &["cat"]).modes();
    let raw = "stty raw -echo; echo up; ";
    for (end, words, code) in [
        ("", ["sh", "-c", "stty raw -echo; exit 3"], Some(3)),
        ("", ["/absent", "", ""], Some(127)),
        ("", ["sh", "-c", "cd /absent"], Some(2)),
        ("term", ["sh", "-c", &format!("{raw} exec sleep 1000")], Some(143)),
        ("hangup", ["sh", "-c", &format!("{raw} exec sleep 1000")], Some(129)),
        (
            "kill the guest",
            ["sh", "-c", &format!("{raw} exec sleep 1000")],
            Some(125),
        ),
        ("key", ["sh", "-c", "echo up; exec sleep 1000"], Some(130)),
    ] {
        let mut pty = Pty::run(&home, &words);
        if !end.is_empty() {
            pty.wait_for("up");
            assert_ne!(pty.modes(), before, "it is raw while the command runs");
        }
        match end {
            "term" => kill(pty.pid(), Signal::TERM),
            "hangup" => kill(pty.pid(), Signal::HUP),
            "kill the guest" => kill(only_child(pty.pid()), Signal::KILL),
            "key" => pty.press(CTRL_C),
            _ => {}
        }
        assert_eq!(pty.end().code(), code, "{end} {words:?}");
        assert_eq!(pty.modes(), before, "{end} {words:?}");
    }
}

#[test]
fn an_editor_works() {
    if !has("vim") {
        return;
    }
    let home = Home::new();
    let mut pty = Pty::run(&home, &["vim", "-u", "NONE", "-i", "NONE", "-N", "note.txt"]);
    pty.wait_for("note.txt");
    pty.press("ihello from inside\x1b:wq\r");
    assert_eq!(pty.end().code(), Some(0));
    let note = std::fs::read_to_string(home.workspace().join("note.txt")).expect("it was written");
    assert_eq!(note, "hello from inside\n");
}

#[test]
fn a_terminal_that_is_held_does_not_hold_the_end() {
    let home = Home::new();
    // Nobody reads what is written to it.
    let mut pty = Pty::held(
        &home,
        &["pinfold", "run", "-q", "--", "sh", "-c", "echo up > up; exec yes"],
    );
    while !home.workspace().join("up").exists() {
        std::thread::yield_now();
    }
    kill(pty.pid(), Signal::TERM);
    assert_eq!(pty.end().code(), Some(143));
}
