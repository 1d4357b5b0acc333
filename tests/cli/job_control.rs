//! Stops and continuations, with a shell outside, and with another one inside.

use crate::home::Home;
use crate::pty::{CTRL_C, CTRL_Z, Pty};

#[test]
fn a_command_stops_and_goes_on_as_a_job_of_the_outer_shell() {
    let home = Home::new();
    let mut shell = Pty::shell(&home);
    let cooked = shell.modes();
    shell.press("stty -a | grep -q ' icanon' && echo co''oked\n");
    shell.wait_for("cooked");
    shell.wait_for("outside> ");
    shell.press(
        "pinfold run -q -- sh -c 'trap \"echo o\"\"n\" CONT; echo u\"\"p; while :; do sleep 1000 & wait; done'\n",
    );
    shell.wait_for("up\r\n");
    shell.press(CTRL_Z);
    shell.wait_for("Stopped");
    shell.wait_for("outside> ");
    shell.press("jo''bs; stty -a | grep -q ' icanon' && echo co''oked\n");
    shell.wait_for("Stopped");
    shell.wait_for("cooked");
    shell.press("fg\n");
    shell.wait_for("on\r\n");
    shell.press(CTRL_Z);
    shell.wait_for("Stopped");
    shell.wait_for("outside> ");
    shell.press("fg\n");
    shell.wait_for("on\r\n");
    shell.press(CTRL_C);
    shell.wait_for("outside> ");
    shell.press("echo code=$?\n");
    shell.wait_for("code=130");
    shell.wait_for("outside> ");
    assert_eq!(shell.modes(), cooked);
}

#[test]
fn a_job_of_a_shell_inside_stops_without_the_outer_shell() {
    let home = Home::new();
    let mut shell = Pty::shell(&home);
    shell.press("pinfold run -q -- bash --norc --noprofile -i\n");
    shell.wait_for("bash-");
    shell.press("PS1='in''side> '\n");
    shell.wait_for("inside> ");
    shell.press("sh -c 'trap \"echo o\"\"n\" CONT; echo u\"\"p; while :; do sleep 1000 & wait; done'\n");
    shell.wait_for("up\r\n");
    shell.press(CTRL_Z);
    shell.wait_for("Stopped");
    shell.wait_for("inside> ");
    shell.press("fg\n");
    shell.wait_for("on\r\n");
    shell.press(CTRL_C);
    shell.wait_for("inside> ");
    shell.press("echo code=$?\n");
    shell.wait_for("code=130");
    shell.press("suspend\n");
    shell.wait_for("Stopped");
    shell.wait_for("outside> ");
    shell.press("fg\n");
    shell.wait_for("inside> ");
    shell.press("exit 5\n");
    shell.wait_for("outside> ");
    shell.press("echo code=$?\n");
    shell.wait_for("code=5");
}

#[test]
fn a_stopped_command_goes_on_in_the_background_and_comes_back() {
    let home = Home::new();
    let mut shell = Pty::shell(&home);
    shell.press("pinfold run -q -- sh -c 'echo u\"\"p; read a; echo got-$a; read b; echo got-$b'\n");
    shell.wait_for("up\r\n");
    shell.press(CTRL_Z);
    shell.wait_for("Stopped");
    shell.wait_for("outside> ");
    shell.press("bg\n");
    shell.wait_for("outside> ");
    shell.press("echo still-''here\n");
    shell.wait_for("still-here");
    shell.press("jo''bs\n");
    shell.wait_for("Running");
    shell.press("fg\n");
    shell.wait_for("got-$b'\r\n");
    shell.press("one\n");
    shell.wait_for("got-one");
    shell.press("two\n");
    shell.wait_for("got-two");
    shell.wait_for("outside> ");
}

#[test]
fn a_command_in_the_background_is_not_stopped_by_what_is_typed_to_the_shell() {
    let home = Home::new();
    let mut shell = Pty::shell(&home);
    shell.press("mkfifo gate; pinfold run -q -- sh -c 'echo u\"\"p; cat gate; exit 6' > out &\n");
    shell.wait_for("outside> ");
    for word in ["one", "two", "three"] {
        shell.press(&format!("echo ty''ped-{word}\n"));
        shell.wait_for(&format!("typed-{word}"));
    }
    shell.press("jo''bs\n");
    shell.wait_for("Running");
    shell.press("echo free > gate; wait $!; echo code=$?; cat out\n");
    shell.wait_for("code=6");
    shell.wait_for("free");
}

#[test]
fn a_stop_that_nobody_could_end_is_passed_over() {
    let home = Home::new();
    // Without a shell behind it, pinfold is in an orphaned process group.
    let mut pty = Pty::run(&home, &["sh", "-c", "echo up; read a; echo got-$a"]);
    pty.wait_for("up");
    pty.press(CTRL_Z);
    pty.press("more\n");
    pty.wait_for("got-more");
    assert_eq!(pty.end().code(), Some(0));
}
