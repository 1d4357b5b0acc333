//! The guest is out of the command's reach: it cannot be read, traced, stopped or imitated.

use crate::case::Case;

#[test]
fn nothing_of_the_guest_can_be_read_or_written() {
    let case = Case::new();
    let ran = case.attack(
        "for name in ['mem', 'environ', 'maps', 'auxv', 'syscall', 'stack', 'pagemap', 'smaps', 'io', 'personality', 'timerslack_ns', 'map_files', 'task/1/mem', 'task/1/environ']:
    def look():
        path = '/proc/1/' + name
        content = os.listdir(path) if os.path.isdir(path) and not os.path.isfile(path) else read(path)
        if not content:
            raise OSError(errno.EACCES, 'empty')
    attempt('read ' + name, look)
for name in ['mem', 'clear_refs', 'coredump_filter', 'oom_score_adj', 'oom_adj', 'comm', 'uid_map', 'setgroups', 'loginuid', 'attr/exec']:
    attempt('write ' + name, lambda: os.write(os.open('/proc/1/' + name, os.O_WRONLY), b'0'))
for name in ['exe', 'cwd', 'root', 'ns/net', 'ns/mnt', 'ns/user', 'fd/0', 'fd/3']:
    attempt('follow ' + name, lambda: os.readlink('/proc/1/' + name))
    attempt('open ' + name, lambda: os.open('/proc/1/' + name, os.O_RDONLY))",
    );
    ran.expect_all("EACCES|EPERM|ENOENT|EROFS|EINVAL");
}

#[test]
fn the_guests_program_cannot_be_overwritten() {
    let case = Case::new();
    let ran = case.attack(
        "for path in ['/proc/1/exe', '/proc/1/task/1/exe']:
    attempt('write ' + path, lambda: write(path))
    attempt('execute ' + path, lambda: os.execv(path, ['x']))
    attempt('truncate ' + path, lambda: os.truncate(path, 0))",
    );
    ran.expect_all("EACCES|EPERM|ENOENT|ETXTBSY");
}

#[test]
fn no_signal_from_inside_stops_or_ends_the_guest() {
    let case = Case::new();
    let ran = case.attack(
        "import time
for number in list(range(1, 32)) + list(range(34, 65)):
    try:
        os.kill(1, number)
    except OSError:
        pass
descriptor = raw(NR['pidfd_open'], 1, 0)
for number in [9, 19, 15, 2]:
    try:
        raw(NR['pidfd_send_signal'], descriptor, number, 0, 0)
    except OSError:
        pass
say('state', [l.split()[1] for l in open('/proc/1/status') if l.startswith('State')][0] != 'T')
# The guest still reaps what is left to it.
child = os.fork()
if child == 0:
    if os.fork() == 0:
        os._exit(0)
    os._exit(0)
os.waitpid(child, 0)
for _ in range(1000):
    zombies = [p for p in os.listdir('/proc') if p.isdigit() and p not in ('1', str(os.getpid()))]
    if not zombies:
        break
    time.sleep(0.005)
say('orphans left', len(zombies))",
    );
    ran.expect(&[("state", "True"), ("orphans left", "0")]);
}

#[test]
fn killing_everything_inside_ends_the_run_as_what_it_is() {
    let case = Case::new();
    let ran = case.sh("kill -9 -1; kill -9 $$");
    ran.expect_code(137);
}

#[test]
fn the_guests_limits_and_priority_cannot_be_changed() {
    let case = Case::new();
    let ran = case.attack(
        "import resource
for policy in [0, 3, 5]:
    attempt(f'policy {policy}', lambda: os.sched_setscheduler(1, policy, os.sched_param(0)))
attempt('processors', lambda: os.sched_setaffinity(1, [0]))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
attempt('priority of its group', lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
attempt('priority of its user', lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt('processor time', lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)))
attempt('own limit', lambda: resource.setrlimit(resource.RLIMIT_CPU, (100000, 100000)))
attempt('own priority', lambda: os.nice(1))
attempt('limit', lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
attempt('limit memory', lambda: resource.prlimit(1, resource.RLIMIT_AS, (0, 0)))
say('alive', os.path.exists('/proc/1'))",
    );
    for (name, outcome) in ran.outcomes() {
        match name {
            "alive" => assert_eq!(outcome, "True"),
            "own limit" | "own priority" => assert_eq!(outcome, "ok", "{name}"),
            _ => assert!(["EPERM", "EACCES"].contains(&outcome), "{name}: {outcome}"),
        }
    }
}

#[test]
fn background_processes_die_with_the_command_and_do_not_hold_it_up() {
    let case = Case::new();
    let ran = case
        .sh("sleep 987 & setsid sleep 987 & nohup sleep 987 >/dev/null 2>&1 & (trap '' TERM HUP; sleep 987) & exit 5");
    ran.expect_code(5);
}

#[test]
fn a_failed_set_up_never_looks_like_the_command() {
    let case = Case::new();
    case.run(&[] as &[&str], &["/no/such/program"]).expect_code(127);
    case.run(&[] as &[&str], &["/etc/passwd"]).expect_code(126);
    case.sh("exit 42").expect_code(42);
    case.sh("kill -TERM $$").expect_code(143);
    case.sh("kill -KILL $$").expect_code(137);
}
