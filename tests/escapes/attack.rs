//! The words of an attack: small Python programs that try something and print how it ended, `name<TAB>outcome` a line.
//!
//! The outcome is `ok` or the name of the error number. The programs do not import anything outside the standard library.

use std::process::Command;
use std::sync::OnceLock;

/// Defined before every attack: `attempt(name, action)`, `say(name, outcome)`, `raw(number, *arguments)`, call numbers in `NR`.
const WORDS: &str = r#"
import ctypes, errno, os, platform, signal, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def raw(number, *arguments):
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if got < 0:
        raise OSError(ctypes.get_errno(), 'raw')
    return got
def say(name, outcome):
    print(f'{name}\t{outcome}', flush=True)
def attempt(name, action):
    try:
        action()
        outcome = 'ok'
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error.errno))
    say(name, outcome)
def create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def read(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT, AT_FDCWD = 1, 2, 4, -100
def rename2(source, target, flags):
    raw(NR['renameat2'], AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flags)
X86 = dict(zip(
    'ptrace process_vm_readv process_vm_writev kcmp unshare setns clone mount umount2 chroot pivot_root bpf perf_event_open '
    'userfaultfd fanotify_init open_by_handle_at name_to_handle_at add_key keyctl request_key init_module finit_module '
    'delete_module kexec_load reboot swapon swapoff acct quotactl syslog settimeofday clock_settime adjtimex clock_adjtime '
    'sethostname setdomainname personality mknodat fchmod fchmodat mkdirat openat ioctl socket getpid renameat2 '
    'kexec_file_load lookup_dcookie chmod open creat mkdir mknod iopl ioperm modify_ldt'.split(),
    [101, 310, 311, 312, 272, 308, 56, 165, 166, 161, 155, 321, 298,
     323, 300, 304, 303, 248, 250, 249, 175, 313,
     176, 246, 169, 167, 168, 163, 179, 103, 164, 227, 159, 305,
     170, 171, 135, 259, 91, 268, 258, 257, 16, 41, 39, 316,
     320, 212, 90, 2, 85, 83, 133, 172, 173, 154]))
ARM = dict(zip(
    'ptrace process_vm_readv process_vm_writev kcmp unshare setns clone mount umount2 chroot pivot_root bpf perf_event_open '
    'userfaultfd fanotify_init open_by_handle_at name_to_handle_at add_key keyctl request_key init_module finit_module '
    'delete_module kexec_load reboot swapon swapoff acct quotactl syslog settimeofday clock_settime adjtimex clock_adjtime '
    'sethostname setdomainname personality mknodat fchmod fchmodat mkdirat openat ioctl socket getpid renameat2 '
    'kexec_file_load lookup_dcookie'.split(),
    [117, 270, 271, 272, 97, 268, 220, 40, 39, 51, 41, 280, 241,
     282, 262, 265, 264, 217, 219, 218, 105, 273,
     106, 104, 142, 224, 225, 89, 60, 116, 170, 112, 171, 266,
     161, 162, 92, 33, 52, 53, 34, 56, 29, 198, 172, 276,
     294, 18]))
NR = ARM if platform.machine() == 'aarch64' else X86
NR.update(pidfd_send_signal=424, io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428, move_mount=429,
    fsopen=430, fsconfig=431, fsmount=432, fspick=433, pidfd_open=434, clone3=435, openat2=437, pidfd_getfd=438,
    process_madvise=440, mount_setattr=442, quotactl_fd=443, fchmodat2=452, statmount=457, listmount=458, open_tree_attr=467)
"#;

/// The program for `python3 -c`.
pub(crate) fn program(script: &str) -> String {
    format!("{WORDS}\n{script}\nsay('the end', 'reached')\n")
}

/// Fails where the attacks cannot be carried out; a test that cannot attack proves nothing.
pub(crate) fn require_python() {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let probe = Command::new("/usr/bin/env")
            .env("PATH", crate::case::PATH)
            .args(["python3", "-I", "-c", "import ctypes"])
            .status();
        probe.is_ok_and(|status| status.success())
    });
    assert!(
        *found,
        "the escape tests need python3 with ctypes in {}",
        crate::case::PATH
    );
}
