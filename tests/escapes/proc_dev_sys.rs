//! What the kernel shows of the host through `/proc`, `/dev`, `/run`, `/sys` and names.

use std::fs;

use crate::case::Case;

#[test]
fn settings_of_the_kernel_cannot_be_written() {
    let case = Case::new();
    let before = fs::read("/proc/sys/kernel/core_pattern").unwrap();
    let ran = case.attack(
        "for path in ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/kernel/modprobe', '/proc/sys/vm/overcommit_memory',
    '/proc/sys/fs/binfmt_misc/register', '/proc/sys/net/ipv4/ip_unprivileged_port_start', '/proc/sys/net/ipv4/ip_forward',
    '/proc/sys/user/max_user_namespaces', '/proc/sysrq-trigger', '/proc/irq/default_smp_affinity', '/proc/bus/pci/devices']:
    attempt('write ' + path, lambda: write(path))
    attempt('open for both ' + path, lambda: os.close(os.open(path, os.O_RDWR)))
    attempt('append ' + path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_APPEND)))",
    );
    ran.expect_all("EROFS|EACCES|EPERM|ENOENT");
    assert_eq!(before, fs::read("/proc/sys/kernel/core_pattern").unwrap());
}

#[test]
fn kernel_memory_keys_and_timers_are_masked() {
    let case = Case::new();
    let ran = case.attack(
        "for path in ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/proc/latency_stats', '/proc/kmsg', '/proc/kpagecount', '/proc/kpageflags', '/proc/vmallocinfo']:
    try:
        content = read(path)
        say(path, 'empty' if not content else 'READ')
    except OSError as error:
        say(path, errno.errorcode[error.errno])
for path in ['/proc/acpi', '/proc/scsi']:
    try:
        say(path, 'empty' if not os.listdir(path) else 'READ')
    except OSError as error:
        say(path, errno.errorcode[error.errno])",
    );
    ran.expect_all("empty|EACCES|ENOENT|EPERM");
}

#[test]
fn the_process_table_shows_the_sandbox_and_nothing_else() {
    let case = Case::new();
    let mut visible = case.start(&[] as &[&str], &["sh", "-c", "echo ready; read line; true"]);
    visible.hear();
    let ran = case.attack(
        "pids = sorted(int(n) for n in os.listdir('/proc') if n.isdigit())
say('processes', ','.join(str(p) for p in pids))
say('itself', os.getpid())
attempt('host process', lambda: os.kill(99999, 0))
say('mount options', [l.split(' ')[5] for l in open('/proc/self/mountinfo') if l.split(' ')[4] == '/proc'][-1])",
    );
    let pids = ran.outcome("processes");
    assert!(pids.split(',').count() <= 3 && pids.starts_with("1,"), "{pids}");
    let options = ran.outcome("mount options");
    for option in ["nosuid", "nodev", "noexec"] {
        assert!(options.split(',').any(|found| found == option), "{options}");
    }
}

#[test]
fn dev_holds_a_few_harmless_devices_and_no_disk() {
    let case = Case::new();
    let ran = case.attack(
        "say('names', ','.join(sorted(os.listdir('/dev'))))
say('terminals', ','.join(sorted(os.listdir('/dev/pts'))))
for name in ['kvm', 'fuse', 'mem', 'kmsg', 'vda', 'sda', 'loop0', 'loop-control', 'net/tun', 'vsock', 'vhost-vsock', 'dri', 'console', 'tty0', 'mapper', 'uinput']:
    attempt(name, lambda: os.stat('/dev/' + name))
attempt('create', lambda: create('/dev/planted'))
attempt('replace', lambda: os.unlink('/dev/null'))
for name, target in [('fd', '/proc/self/fd'), ('stdin', '/proc/self/fd/0'), ('stdout', '/proc/self/fd/1'), ('stderr', '/proc/self/fd/2')]:
    say('link ' + name, os.readlink('/dev/' + name) == target)",
    );
    assert_eq!(
        ran.outcome("names"),
        "fd,full,null,ptmx,pts,random,shm,stderr,stdin,stdout,tty,urandom,zero"
    );
    assert_eq!(ran.outcome("terminals"), "ptmx");
    for (name, outcome) in ran.outcomes() {
        match name {
            "names" | "terminals" => {}
            "create" | "replace" => assert!(["EROFS", "EACCES", "EBUSY"].contains(&outcome), "{name}: {outcome}"),
            link if link.starts_with("link ") => assert_eq!(outcome, "True", "{link}"),
            device => assert_eq!(outcome, "ENOENT", "{device}"),
        }
    }
}

#[test]
fn a_device_node_of_the_host_in_the_workspace_opens_nothing() {
    if !crate::case::is_root() {
        eprintln!("only root can make the device node that this case starts with");
        return;
    }
    let case = Case::new();
    let status = case.host("mknod").args(["disk", "b", "7", "0"]).status().unwrap();
    assert!(status.success());
    let ran = case.attack("attempt('read', lambda: read('disk'))\nattempt('write', lambda: write('disk'))");
    ran.expect_all("EACCES|EPERM");
}

#[test]
fn run_is_empty_but_for_a_fresh_runtime_folder() {
    let case = Case::new();
    let ran = case.attack(
        "say('run', ','.join(sorted(n for n in os.listdir('/run') if n != 'user')))
say('users', os.listdir('/run/user') == [str(os.getuid())])
found = os.stat(os.environ['XDG_RUNTIME_DIR'])
say('mode', oct(found.st_mode & 0o7777))
say('owner', found.st_uid == os.getuid())
say('content', ','.join(os.listdir(os.environ['XDG_RUNTIME_DIR'])))
for path in ['/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket', '/run/systemd/private', '/run/containerd/containerd.sock', '/tmp/.X11-unix/X0', '/run/udev/control']:
    attempt(path, lambda: os.stat(path))",
    );
    ran.expect(&[
        ("run", ""),
        ("users", "True"),
        ("mode", "0o700"),
        ("owner", "True"),
        ("content", ""),
    ]);
    for (name, outcome) in ran.outcomes().into_iter().filter(|(name, _)| name.starts_with('/')) {
        assert_eq!(outcome, "ENOENT", "{name}");
    }
}

#[test]
fn sys_is_absent_or_read_only_and_no_cgroup_can_be_steered() {
    let case = Case::new();
    let ran = case.attack(
        "say('writable', '')
def look(folder, level):
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = folder + '/' + name
        if os.path.islink(path):
            continue
        if name in ('release_agent', 'notify_on_release', 'cgroup.procs', 'uevent_helper', 'tasks'):
            attempt('write ' + path, lambda: write(path))
        if level < 4 and os.path.isdir(path):
            look(path, level + 1)
look('/sys', 0)
for path in ['/sys/kernel/debug', '/sys/kernel/tracing', '/sys/fs/bpf', '/sys/firmware/efi/efivars', '/sys/kernel/security']:
    try:
        say('entries of ' + path, len(os.listdir(path)))
    except OSError:
        say('entries of ' + path, 0)
attempt('mkdir', lambda: os.mkdir('/sys/fs/cgroup/escape'))
say('own cgroup', ','.join(sorted(set(l.strip().split(':', 2)[2] for l in open('/proc/self/cgroup')))))",
    );
    for (name, outcome) in ran.outcomes() {
        if name.starts_with("write ") || name == "mkdir" {
            assert!(
                ["EROFS", "EACCES", "ENOENT", "EPERM"].contains(&outcome),
                "{name}: {outcome}"
            );
        } else if name.starts_with("entries") {
            assert_eq!(outcome, "0", "{name}");
        }
    }
    assert_eq!(ran.outcome("own cgroup"), "/", "the place in the host's cgroups shows");
}

#[test]
fn the_names_of_the_host_do_not_show_and_cannot_be_set() {
    let case = Case::new();
    let before = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let ran = case.attack(
        "say('name', socket.gethostname())
attempt('set', lambda: socket.sethostname('escaped'))",
    );
    ran.expect(&[("name", "pinfold"), ("set", "EPERM")]);
    assert_eq!(before, fs::read_to_string("/proc/sys/kernel/hostname").unwrap());
}

#[test]
fn shared_memory_and_queues_of_the_host_are_not_reachable() {
    let case = Case::new();
    let made = case
        .host("/usr/bin/env")
        .args([
            "python3",
            "-I",
            "-c",
            &format!(
                "import ctypes\nl = ctypes.CDLL(None)\nprint(l.shmget({}, 4096, 0o1666))",
                key()
            ),
        ])
        .output()
        .unwrap();
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert_ne!(id, "-1", "a segment can be made on the host");
    let ran = case.attack(&format!(
        "say('by key', libc.shmget({}, 4096, 0))
say('by id', libc.shmat({id}, None, 0) == -1)
say('listed', len(open('/proc/sysvipc/shm').read().splitlines()) - 1)",
        key()
    ));
    let remove = format!("import ctypes\nctypes.CDLL(None).shmctl({id}, 0, None)");
    let _ = case
        .host("/usr/bin/env")
        .args(["python3", "-I", "-c", &remove])
        .status();
    ran.expect(&[("by key", "-1"), ("by id", "True"), ("listed", "0")]);
}

/// A System V key that no other run of the suite uses at the same time.
fn key() -> u32 {
    0x0e5c_0000 | (std::process::id() & 0xffff)
}

#[test]
fn process_substitution_works_because_the_links_of_dev_are_there() {
    let case = Case::new();
    let ran = case.run(&[] as &[&str], &["bash", "-c", "cat <(echo substituted)"]);
    assert_eq!(ran.stdout, "substituted\n", "{ran:?}");
}
