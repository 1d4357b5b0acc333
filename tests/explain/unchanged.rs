//! A traced command behaves as one that is not.

use super::Case;

#[test]
fn exit_codes_and_signals_pass_through() {
    let case = Case::new();
    for (script, code) in [
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -TRAP $$", 133),
        ("exec sh -c 'exit 9'", 9),
    ] {
        assert_eq!(case.explain(script).code, code, "{script}");
    }
    assert_eq!(case.run(&["--explain", "--", "no-such-command"]).code, 127);
    assert_eq!(case.run(&["--explain", "--", "/etc"]).code, 126);
}

#[test]
fn signals_reach_handlers_and_ignored_ones_stay_ignored() {
    let ran = Case::new().explain("trap 'echo caught' USR1; trap '' USR2; kill -USR2 $$; kill -USR1 $$; echo after");
    assert_eq!((ran.code, ran.out.as_str()), (0, "caught\nafter\n"));
}

#[test]
fn a_stopped_child_is_continued_and_ends_as_it_wants() {
    // Waiting for another command collects the child as well, and then there is nothing to continue.
    let script = "sh -c 'kill -STOP $$; exit 5' & pid=$!
        while kill -CONT $pid 2> /dev/null; do cat /dev/null; done
        wait $pid";
    assert_eq!(Case::new().explain(script).code, 5);
}

#[test]
fn the_shell_sees_its_child_stop() {
    // WUNTRACED, as a shell with job control waits.
    let script = "set -m; sh -c 'kill -STOP $$; exit 6' & wait; jobs; kill -CONT %1; wait %1; echo $?";
    let ran = Case::new().run(&["--explain", "--", "bash", "-c", script]);
    assert!(ran.out.contains("Stopped") && ran.out.ends_with("6\n"), "{ran:?}");
}

#[test]
fn pipelines_and_many_processes_come_to_the_same() {
    let script = "seq 200 | while read n; do echo $(expr $n + 1); done | tail -n 1";
    let ran = Case::new().explain(script);
    assert_eq!((ran.code, ran.out.as_str()), (0, "201\n"));
}

#[test]
fn only_an_explained_command_is_traced() {
    let case = Case::new();
    let script = "grep TracerPid /proc/self/status";
    assert_eq!(case.explain(script).out, "TracerPid:\t1\n");
    assert_eq!(case.run(&["--", "sh", "-c", script]).out, "TracerPid:\t0\n");
}

#[test]
fn the_walls_are_the_same() {
    let script = "grep -E 'NoNewPrivs|^Seccomp:|Cap' /proc/self/status; ulimit -c";
    let case = Case::new();
    assert_eq!(case.explain(script).out, case.run(&["--", "sh", "-c", script]).out);
}
