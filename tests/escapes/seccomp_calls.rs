//! System calls that the filter refuses, one by one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::case::Case;

#[test]
fn new_namespaces_cannot_be_made_or_entered() {
    let case = Case::new();
    let ran = case.attack(
        "flags = dict(user=0x10000000, mount=0x20000, pid=0x20000000, net=0x40000000, ipc=0x8000000, uts=0x4000000, cgroup=0x2000000, time=0x80)
for name, flag in flags.items():
    attempt('unshare ' + name, lambda: raw(NR['unshare'], flag))
    attempt('unshare all and ' + name, lambda: raw(NR['unshare'], flag | 0x10000000))
    attempt('unshare upper ' + name, lambda: raw(NR['unshare'], flag | (1 << 40)))
    if name != 'time':
        attempt('clone ' + name, lambda: raw(NR['clone'], flag | 17, 0, 0, 0, 0))
        attempt('clone upper ' + name, lambda: raw(NR['clone'], flag | 17 | (1 << 40), 0, 0, 0, 0))
own = os.open('/proc/self/ns/user', os.O_RDONLY)
attempt('setns', lambda: raw(NR['setns'], own, 0))
attempt('setns to the guest', lambda: raw(NR['setns'], raw(NR['pidfd_open'], 1, 0), 0x20000))",
    );
    ran.expect_all("EPERM");
}

#[test]
fn clone3_looks_as_if_the_kernel_did_not_have_it() {
    let case = Case::new();
    let ran = case.attack(
        "arguments = ctypes.create_string_buffer(struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0))
attempt('clone3', lambda: raw(NR['clone3'], ctypes.byref(arguments), 64))
attempt('openat2', lambda: raw(NR['openat2'], -100, b'/', ctypes.byref(arguments), 24))
import threading
done = []
thread = threading.Thread(target=lambda: done.append(1))
thread.start(); thread.join()
say('threads', 'ok' if done else 'none')",
    );
    ran.expect(&[("clone3", "ENOSYS"), ("openat2", "ENOSYS"), ("threads", "ok")]);
}

#[test]
fn the_view_cannot_be_changed_by_any_mount_call() {
    let case = Case::new();
    let ran = case.attack(
        "attempt('mount', lambda: raw(NR['mount'], b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('remount', lambda: raw(NR['mount'], 0, b'/usr', 0, 0x20 | 0x1000, 0))
attempt('bind', lambda: raw(NR['mount'], b'/tmp', b'/usr', 0, 0x1000, 0))
attempt('umount2', lambda: raw(NR['umount2'], b'/tmp', 2))
attempt('chroot', lambda: raw(NR['chroot'], b'/tmp'))
attempt('pivot_root', lambda: raw(NR['pivot_root'], b'.', b'.'))
for name, arguments in dict(open_tree=(-100, b'/', 1), move_mount=(-1, b'', -100, b'/tmp', 4), fsopen=(b'tmpfs', 0), fsconfig=(-1, 0, 0, 0, 0),
        fsmount=(-1, 0, 0), fspick=(-100, b'/tmp', 0), mount_setattr=(-100, b'/usr', 0, 0, 0), open_tree_attr=(-100, b'/', 1, 0, 0)).items():
    attempt(name, lambda: raw(NR[name], *arguments))",
    );
    ran.expect_all("EPERM");
}

#[test]
fn other_processes_cannot_be_read_traced_or_robbed() {
    let case = Case::new();
    let ran = case.attack(
        "child = os.fork()
if child == 0:
    signal.pause()
buffer = ctypes.create_string_buffer(16)
vector = struct.pack('QQ', ctypes.addressof(buffer), 16)
for name, pid in [('the guest', 1), ('its child', child)]:
    attempt('attach to ' + name, lambda: raw(NR['ptrace'], 16, pid, 0, 0))
    attempt('seize ' + name, lambda: raw(NR['ptrace'], 0x4206, pid, 0, 0))
    attempt('readv of ' + name, lambda: raw(NR['process_vm_readv'], pid, vector, 1, vector, 1, 0))
    attempt('writev of ' + name, lambda: raw(NR['process_vm_writev'], pid, vector, 1, vector, 1, 0))
    attempt('kcmp of ' + name, lambda: raw(NR['kcmp'], pid, os.getpid(), 0, 0, 0))
    descriptor = raw(NR['pidfd_open'], pid, 0)
    attempt('descriptor of ' + name, lambda: raw(NR['pidfd_getfd'], descriptor, 0, 0))
    attempt('advise ' + name, lambda: raw(NR['process_madvise'], descriptor, vector, 1, 4, 0))
attempt('traceme', lambda: raw(NR['ptrace'], 0, 0, 0, 0))
os.kill(child, 9)",
    );
    ran.expect_all("EPERM");
}

#[test]
fn large_kernel_interfaces_are_closed() {
    let case = Case::new();
    let ran = case.attack(
        "zero = ctypes.create_string_buffer(256)
for name in ['io_uring_setup', 'io_uring_enter', 'io_uring_register', 'bpf', 'perf_event_open', 'userfaultfd', 'fanotify_init', 'open_by_handle_at', 'name_to_handle_at',
        'add_key', 'keyctl', 'request_key', 'init_module', 'finit_module', 'delete_module', 'kexec_load', 'kexec_file_load', 'swapon', 'swapoff',
        'acct', 'quotactl', 'quotactl_fd', 'syslog', 'settimeofday', 'clock_settime', 'adjtimex', 'clock_adjtime', 'sethostname', 'setdomainname', 'lookup_dcookie',
        'iopl', 'ioperm', 'modify_ldt']:
    if name in NR:
        attempt(name, lambda: raw(NR[name], 0, ctypes.byref(zero), 0, 0, 0, 0))
        attempt(name + ' with other arguments', lambda: raw(NR[name], 1, ctypes.byref(zero), 16, 1, 1, 0))
attempt('reboot', lambda: raw(NR['reboot'], 0, 0, 0, 0))
attempt('personality', lambda: raw(NR['personality'], 0x0400000))
attempt('read-implies-exec', lambda: raw(NR['personality'], 8))",
    );
    ran.expect_all("EPERM");
}

#[test]
fn unknown_and_foreign_call_numbers_do_nothing() {
    let case = Case::new();
    let ran = case.attack(
        "for number in [470, 500, 511, 548, 600, 999, 100000, 0x7fffffff]:
    attempt(f'call {number}', lambda: raw(number, 0, 0, 0))
for name in ['statmount', 'listmount']:
    attempt(name, lambda: raw(NR[name], 0, 0, 0, 0))
if platform.machine() == 'x86_64':
    for number in [39, 57, 101, 165, 41, 512, 520, 521, 534, 545]:
        attempt(f'x32 {number}', lambda: raw(0x40000000 | number, 0, 0, 0))
    for number in range(512, 548):
        attempt(f'x32 alias {number}', lambda: raw(number, 0, 0, 0))",
    );
    ran.expect_all("ENOSYS");
}

/// The 32-bit entry reaches other call numbers: `mount` is `getppid`'s neighbour there.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_32_bit_system_call_entry_kills() {
    let case = Case::new();
    crate::attack::require_python();
    let script = crate::attack::program(
        "import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
say('before', 'ok')
print('answer', ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))(), flush=True)",
    );
    let ran = case.run(&[] as &[&str], &["/usr/bin/env", "python3", "-I", "-c", &script]);
    assert!(ran.stdout.contains("before\tok"), "{ran:?}");
    assert!(!ran.stdout.contains("answer"), "{ran:?}");
    // SIGSYS by the filter, or SIGSEGV where the kernel has no 32-bit entry.
    assert!([128 + 31, 128 + 11].contains(&ran.code), "{ran:?}");
}

#[test]
fn device_nodes_cannot_be_made_and_pipes_can() {
    let case = Case::new();
    let ran = case.attack(
        "for name, kind in [('character', stat.S_IFCHR), ('block', stat.S_IFBLK)]:
    attempt(name, lambda: os.mknod('device', kind | 0o666, os.makedev(1, 3)))
    attempt(name + ' by mknodat', lambda: raw(NR['mknodat'], -100, b'device', kind | 0o666, os.makedev(1, 3)))
    if 'mknod' in NR:
        attempt(name + ' by mknod', lambda: raw(NR['mknod'], b'device', kind | 0o666, os.makedev(1, 3)))
    attempt(name + ' of overlayfs', lambda: os.mknod('device', kind | 0o666, 0))
attempt('pipe', lambda: os.mkfifo('pipe'))",
    );
    let mut outcomes = ran.outcomes();
    assert_eq!(outcomes.pop(), Some(("pipe", "ok")));
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == "EPERM"), "{outcomes:?}");
    assert!(!case.workspace.join("device").exists());
}

#[test]
fn set_user_id_bits_cannot_be_planted_by_any_call() {
    let case = Case::new();
    let program = case.put("program", "#!/bin/sh\n");
    let ran = case.attack(
        "AT = -100
file = os.open('program', os.O_RDWR)
for bit in [0o4000, 0o2000, 0o6000]:
    mode = bit | 0o755
    attempt(f'chmod {bit:o}', lambda: os.chmod('program', mode))
    attempt(f'fchmod {bit:o}', lambda: raw(NR['fchmod'], file, mode))
    attempt(f'fchmodat {bit:o}', lambda: raw(NR['fchmodat'], AT, b'program', mode))
    attempt(f'fchmodat2 {bit:o}', lambda: raw(NR['fchmodat2'], AT, b'program', mode, 0))
    attempt(f'upper bits {bit:o}', lambda: raw(NR['fchmod'], file, mode | (1 << 40)))
    attempt(f'openat {bit:o}', lambda: raw(NR['openat'], AT, b'new', os.O_CREAT | os.O_WRONLY, mode))
    attempt(f'tmpfile {bit:o}', lambda: raw(NR['openat'], AT, b'.', os.O_TMPFILE | os.O_WRONLY, mode))
    attempt(f'mkdirat {bit:o}', lambda: raw(NR['mkdirat'], AT, b'folder', mode))
    attempt(f'mknodat {bit:o}', lambda: raw(NR['mknodat'], AT, b'node', stat.S_IFREG | mode, 0))
    if 'open' in NR:
        attempt(f'raw chmod {bit:o}', lambda: raw(NR['chmod'], b'program', mode))
        attempt(f'open {bit:o}', lambda: raw(NR['open'], b'new', os.O_CREAT | os.O_WRONLY, mode))
        attempt(f'creat {bit:o}', lambda: raw(NR['creat'], b'new', mode))
        attempt(f'mkdir {bit:o}', lambda: raw(NR['mkdir'], b'folder', mode))
        attempt(f'mknod {bit:o}', lambda: raw(NR['mknod'], b'node', stat.S_IFREG | mode, 0))",
    );
    ran.expect_all("EPERM");
    assert_eq!(fs::metadata(program).unwrap().permissions().mode() & 0o6000, 0);
    for name in ["new", "folder", "node"] {
        assert!(!case.workspace.join(name).exists(), "{name}");
    }
}

#[test]
fn file_capabilities_cannot_be_planted() {
    let case = Case::new();
    case.put("program", "");
    let ran = case.attack(
        "value = struct.pack('<IIIII', 0x02000001, 0xffffffff, 0, 0xffffffff, 0)
attempt('set', lambda: os.setxattr('program', 'security.capability', value))
attempt('trusted', lambda: os.setxattr('program', 'trusted.overlay.opaque', b'y'))",
    );
    ran.expect_all("EPERM|ENOTSUP");
}

#[test]
fn what_common_runtimes_need_stays_allowed() {
    let case = Case::new();
    let ran = case.attack(
        "attempt('memfd', lambda: os.close(os.memfd_create('x')))
attempt('pidfd', lambda: os.close(raw(NR['pidfd_open'], os.getpid(), 0)))
attempt('personality query', lambda: raw(NR['personality'], 0xffffffff))
attempt('unshare files', lambda: raw(NR['unshare'], 0x400))
import multiprocessing
say('pool', sum(multiprocessing.Pool(2).map(abs, [-1, -2])))",
    );
    ran.expect(&[
        ("memfd", "ok"),
        ("pidfd", "ok"),
        ("personality query", "ok"),
        ("unshare files", "ok"),
        ("pool", "3"),
    ]);
}
