//! The caller's terminal: never typed into, never visible, always given back.

use std::process::Stdio;

use crate::attack;
use crate::case::{Case, finish, program};
use crate::outcome::Ran;

/// Runs pinfold under a terminal of its own, made by Python, and prints what came out of it and how the terminal was left.
const OUTER: &str = r"
import fcntl, os, select, sys, termios
arguments = sys.argv[1:]
master, slave = os.openpty()
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)
    os.execv(arguments[0], arguments)
before = termios.tcgetattr(slave)
output = b''
while b'\nthe end\treached' not in output:
    ready, _, _ = select.select([master], [], [], 60)
    if not ready:
        break
    try:
        chunk = os.read(master, 65536)
    except OSError:
        break
    if not chunk:
        break
    output += chunk
_, status = os.waitpid(pid, 0)
after = termios.tcgetattr(slave)
typed = select.select([slave], [], [], 0)[0]
sys.stdout.write(output.decode(errors='replace').replace('\r\n', '\n'))
print('outer terminal restored\t' + str(before == after))
print('typed into the outer terminal\t' + ('something' if typed else 'nothing'))
print('status\t' + str(os.waitstatus_to_exitcode(status)))
";

fn in_terminal(case: &Case, script: &str) -> Ran {
    attack::require_python();
    let mut outer = case.host("/usr/bin/env");
    outer.args(["python3", "-I", "-c", OUTER]).arg(program());
    outer.args([
        "run",
        "--",
        "/usr/bin/env",
        "python3",
        "-I",
        "-c",
        &attack::program(script),
    ]);
    finish(outer.env("TERM", "xterm").stdin(Stdio::null()))
}

const TYPING: &str = "
import fcntl
def typing(descriptor):
    for upper in [0, 1 << 32, 1 << 63, 0xdead << 32]:
        for name, request in [('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541c)]:
            attempt(f'{name} {upper:x}', lambda: raw(NR['ioctl'], descriptor, request | upper, b'x'))
";

#[test]
fn nothing_can_be_typed_into_a_terminal_whatever_the_upper_bits() {
    let case = Case::new();
    let ran = case.attack(&format!(
        "{TYPING}\nmaster, slave = os.openpty()\ntyping(slave)\ntyping(master)\ntyping(0)"
    ));
    ran.expect_all("EPERM");
}

#[test]
fn nothing_can_be_typed_into_the_callers_terminal() {
    let case = Case::new();
    let ran = in_terminal(
        &case,
        &format!("{TYPING}\nsay('terminal', os.isatty(0))\ntyping(0)\ntyping(os.open('/dev/tty', os.O_RDWR))"),
    );
    ran.expect(&[
        ("terminal", "True"),
        ("TIOCSTI 0", "EPERM"),
        ("TIOCSTI 100000000", "EPERM"),
        ("TIOCLINUX 0", "EPERM"),
        ("typed into the outer terminal", "nothing"),
        ("outer terminal restored", "True"),
        ("status", "0"),
    ]);
}

#[test]
fn the_terminal_inside_is_the_sandboxs_own() {
    let case = Case::new();
    let ran = in_terminal(
        &case,
        "own = os.stat('/dev/pts').st_dev
for descriptor in [0, 1, 2]:
    say(f'descriptor {descriptor}', os.fstat(descriptor).st_dev == own)
say('session', os.getsid(0) != 0 and os.tcgetpgrp(0) == os.getpgrp())
say('name', os.ttyname(0))
say('terminals', ','.join(sorted(os.listdir('/dev/pts'))))",
    );
    ran.expect(&[
        ("descriptor 0", "True"),
        ("descriptor 1", "True"),
        ("descriptor 2", "True"),
        ("session", "True"),
        ("name", "/dev/pts/0"),
        ("terminals", "0,ptmx"),
    ]);
}

#[test]
fn a_single_terminal_end_is_relayed_through_a_pipe() {
    let case = Case::new();
    attack::require_python();
    let script = attack::program(
        "for d in [0, 1, 2]:\n    say(f'terminal {d}', os.isatty(d))\nattempt('controlling', lambda: os.open('/dev/tty', os.O_RDWR))",
    );
    let mut outer = case.host("/usr/bin/env");
    outer.args([
        "python3",
        "-I",
        "-c",
        OUTER,
        "/bin/sh",
        "-c",
        "exec \"$@\" </dev/null",
        "sh",
    ]);
    outer
        .arg(program())
        .args(["run", "--", "/usr/bin/env", "python3", "-I", "-c", &script]);
    let ran = finish(outer.stdin(Stdio::null()));
    ran.expect(&[
        ("terminal 0", "False"),
        ("terminal 1", "False"),
        ("terminal 2", "False"),
        ("controlling", "ENXIO|EIO"),
    ]);
}

#[test]
fn without_a_terminal_the_command_has_no_controlling_one_and_streams_stay_apart() {
    let case = Case::new();
    let ran = case.sh("echo out; echo err >&2; if ( : </dev/tty ) 2>/dev/null; then echo terminal; fi");
    assert_eq!(ran.stdout, "out\n", "{ran:?}");
    assert!(ran.stderr.contains("err\n"), "{ran:?}");
}
