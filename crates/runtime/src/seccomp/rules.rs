//! The table: every refused call with its condition, its error and the reason. A call that no rule names is allowed,
//! up to [`NEWEST`].

use super::rule::{Call, Condition, Rule, both, recent, x86};
use super::{FilterOptions, UnixSockets};

/// The newest call that was reviewed for this table (`file_setattr`, Linux 6.17). Above it everything is `ENOSYS`,
/// which also refuses x32 numbers (bit 30) and the odd x32 aliases from 512 up that older kernels accept.
pub(super) const NEWEST: u32 = 469;

const EPERM: u16 = libc::EPERM as u16;
const ENOSYS: u16 = libc::ENOSYS as u16;

const fn deny(calls: &'static [Call], when: Condition, reason: &'static str) -> Rule {
    Rule {
        calls,
        when,
        errno: EPERM,
        reason,
    }
}

/// Refused as if the kernel did not have the call, so that callers take their older path.
const fn missing(calls: &'static [Call], reason: &'static str) -> Rule {
    Rule {
        calls,
        when: Condition::Always,
        errno: ENOSYS,
        reason,
    }
}

/// The rules that hold under `options`, in table order.
pub fn rules(options: &FilterOptions) -> impl Iterator<Item = &'static Rule> + use<> {
    let more: &[Rule] = match options.unix_sockets {
        UnixSockets::Allowed => &[],
        UnixSockets::Denied => UNIX_SOCKETS,
    };
    RULES.iter().chain(more)
}

use Condition::{Always, Among, Bits, Every, Outside, Upper};

/// `CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}`. `CLONE_NEWTIME` shares its bit with the exit signal of `clone` and
/// works with `unshare` and `clone3` only.
const NEW_NAMESPACES: u32 =
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;

/// What `unshare` may undo: `CLONE_FS`, `CLONE_FILES`, `CLONE_SYSVSEM`. No namespace, and libraries use them per
/// thread.
const HARMLESS_UNSHARE: u32 = 0x0200 | 0x0400 | 0x0004_0000;

/// `S_ISUID | S_ISGID`.
const SET_ID: u32 = 0o6000;

/// `O_CREAT | __O_TMPFILE`: without one of them the kernel ignores the mode, and the register holds anything.
const CREATES: u32 = 0o100 | 0o2000_0000;

const S_IFMT: u32 = 0o170_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFBLK: u32 = 0o060_000;

/// The guest is process 1 of the sandbox, alone in its process group.
const GUEST: u32 = 1;

const PRIO_PROCESS: u32 = 0;
const PRIO_PGRP: u32 = 1;
const PRIO_USER: u32 = 2;
const IOPRIO_WHO_PROCESS: u32 = 1;
const IOPRIO_WHO_PGRP: u32 = 2;
const IOPRIO_WHO_USER: u32 = 3;

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;

/// `SOCK_TYPE_MASK`: the type without `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
const TYPE: u32 = 0xf;
const STREAM: u32 = 1;
const DGRAM: u32 = 2;
const SEQPACKET: u32 = 5;

/// Default, TCP, and MPTCP, which Go's listeners ask for.
const STREAM_PROTOCOLS: &[u32] = &[0, 6, 262];
/// Default, ICMP echo, UDP, ICMPv6 echo.
const DGRAM_PROTOCOLS: &[u32] = &[0, 1, 17, 58];

const WORD: u32 = u32::MAX;

const SOCKET: &[Call] = &[both("socket", 41, 198)];
const SOCKETPAIR: &[Call] = &[both("socketpair", 53, 199)];

const RULES: &[Rule] = &[
    deny(
        &[
            both("ptrace", 101, 117),
            both("process_vm_readv", 310, 270),
            both("process_vm_writev", 311, 271),
            recent("pidfd_getfd", 438),
            both("kcmp", 312, 272),
            recent("process_madvise", 440),
        ],
        Always,
        "reads or steers other processes, or takes their descriptors",
    ),
    deny(
        &[
            both("prlimit64", 302, 261),
            both("sched_setaffinity", 203, 122),
            both("sched_setscheduler", 144, 119),
            both("sched_setparam", 142, 118),
            both("sched_setattr", 314, 274),
        ],
        Among {
            argument: 0,
            mask: WORD,
            values: &[GUEST],
        },
        "steers the guest, which the kernel lets every process of the same user do",
    ),
    deny(
        &[both("setpriority", 141, 140)],
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[PRIO_PROCESS, PRIO_PGRP],
            },
            Among {
                argument: 1,
                mask: WORD,
                values: &[GUEST],
            },
        ]),
        "steers the guest, which the kernel lets every process of the same user do",
    ),
    deny(
        &[both("ioprio_set", 251, 30)],
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP],
            },
            Among {
                argument: 1,
                mask: WORD,
                values: &[GUEST],
            },
        ]),
        "steers the guest, which the kernel lets every process of the same user do",
    ),
    deny(
        &[both("setpriority", 141, 140)],
        Among {
            argument: 0,
            mask: WORD,
            values: &[PRIO_USER],
        },
        "reaches every process of the user, the guest among them",
    ),
    deny(
        &[both("ioprio_set", 251, 30)],
        Among {
            argument: 0,
            mask: WORD,
            values: &[IOPRIO_WHO_USER],
        },
        "reaches every process of the user, the guest among them",
    ),
    deny(
        &[both("unshare", 272, 97)],
        Bits {
            argument: 0,
            bits: !HARMLESS_UNSHARE,
        },
        "a new namespace gives back capabilities and a large kernel surface",
    ),
    deny(
        &[both("unshare", 272, 97)],
        Upper { argument: 0 },
        "flags that are not known yet",
    ),
    deny(&[both("setns", 308, 268)], Always, "enters another namespace"),
    deny(
        &[both("clone", 56, 220)],
        Bits {
            argument: 0,
            bits: NEW_NAMESPACES,
        },
        "a new namespace gives back capabilities and a large kernel surface",
    ),
    missing(
        &[recent("clone3", 435)],
        "its flags lie in memory; C libraries fall back to clone",
    ),
    deny(
        &[
            both("mount", 165, 40),
            both("umount2", 166, 39),
            both("chroot", 161, 51),
            both("pivot_root", 155, 41),
            recent("open_tree", 428),
            recent("move_mount", 429),
            recent("fsopen", 430),
            recent("fsconfig", 431),
            recent("fsmount", 432),
            recent("fspick", 433),
            recent("mount_setattr", 442),
            recent("open_tree_attr", 467),
        ],
        Always,
        "changes the view of the file system",
    ),
    missing(
        &[recent("statmount", 457), recent("listmount", 458)],
        "mount queries fall back to /proc/self/mountinfo",
    ),
    deny(
        &[
            recent("io_uring_setup", 425),
            recent("io_uring_enter", 426),
            recent("io_uring_register", 427),
        ],
        Always,
        "opens sockets and files without the calls that are filtered",
    ),
    deny(
        &[
            both("bpf", 321, 280),
            both("perf_event_open", 298, 241),
            both("userfaultfd", 323, 282),
            both("fanotify_init", 300, 262),
        ],
        Always,
        "kernel attack surface, side channels and tools for races",
    ),
    deny(
        &[both("open_by_handle_at", 304, 265), both("name_to_handle_at", 303, 264)],
        Always,
        "opens files by handle, past the view",
    ),
    deny(
        &[
            both("add_key", 248, 217),
            both("keyctl", 250, 219),
            both("request_key", 249, 218),
        ],
        Always,
        "kernel keyrings are shared with the user outside",
    ),
    deny(
        &[
            both("init_module", 175, 105),
            both("finit_module", 313, 273),
            both("delete_module", 176, 106),
            both("kexec_load", 246, 104),
            both("kexec_file_load", 320, 294),
            both("reboot", 169, 142),
            both("swapon", 167, 224),
            both("swapoff", 168, 225),
            both("acct", 163, 89),
            both("quotactl", 179, 60),
            recent("quotactl_fd", 443),
            both("syslog", 103, 116),
            both("settimeofday", 164, 170),
            both("clock_settime", 227, 112),
            both("adjtimex", 159, 171),
            both("clock_adjtime", 305, 266),
            both("sethostname", 170, 161),
            both("setdomainname", 171, 162),
            both("vhangup", 153, 58),
        ],
        Always,
        "administers the host or reads its state",
    ),
    deny(
        &[
            x86("iopl", 172),
            x86("ioperm", 173),
            x86("modify_ldt", 154),
            x86("uselib", 134),
            x86("sysfs", 139),
            x86("_sysctl", 156),
            both("nfsservctl", 180, 42),
            both("lookup_dcookie", 212, 18),
        ],
        Always,
        "rarely used legacy of the kernel",
    ),
    deny(
        &[both("personality", 135, 92)],
        Outside {
            argument: 0,
            mask: WORD,
            values: &[0, WORD],
        },
        "another execution domain brings rarely used kernel code; the default and a query are allowed",
    ),
    deny(
        &[x86("mknod", 133)],
        Among {
            argument: 1,
            mask: S_IFMT,
            values: &[S_IFCHR, S_IFBLK],
        },
        "reaches a device; FIFOs and sockets are allowed",
    ),
    deny(
        &[both("mknodat", 259, 33)],
        Among {
            argument: 2,
            mask: S_IFMT,
            values: &[S_IFCHR, S_IFBLK],
        },
        "reaches a device; FIFOs and sockets are allowed",
    ),
    deny(
        &[
            x86("chmod", 90),
            both("fchmod", 91, 52),
            x86("creat", 85),
            x86("mkdir", 83),
            x86("mknod", 133),
        ],
        Bits {
            argument: 1,
            bits: SET_ID,
        },
        "plants a set-user-ID or set-group-ID file in a folder of the host",
    ),
    deny(
        &[
            both("fchmodat", 268, 53),
            recent("fchmodat2", 452),
            both("mkdirat", 258, 34),
            both("mknodat", 259, 33),
        ],
        Bits {
            argument: 2,
            bits: SET_ID,
        },
        "plants a set-user-ID or set-group-ID file in a folder of the host",
    ),
    deny(
        &[x86("open", 2)],
        Every(&[
            Bits {
                argument: 1,
                bits: CREATES,
            },
            Bits {
                argument: 2,
                bits: SET_ID,
            },
        ]),
        "plants a set-user-ID or set-group-ID file in a folder of the host",
    ),
    deny(
        &[both("openat", 257, 56)],
        Every(&[
            Bits {
                argument: 2,
                bits: CREATES,
            },
            Bits {
                argument: 3,
                bits: SET_ID,
            },
        ]),
        "plants a set-user-ID or set-group-ID file in a folder of the host",
    ),
    missing(
        &[recent("openat2", 437)],
        "its mode bits lie in memory; callers fall back to openat",
    ),
    deny(
        SOCKET,
        Outside {
            argument: 0,
            mask: WORD,
            values: &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK],
        },
        "a socket family that leads out of the network namespace or that nothing needs",
    ),
    deny(
        SOCKET,
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[AF_INET, AF_INET6],
            },
            Outside {
                argument: 1,
                mask: TYPE,
                values: &[STREAM, DGRAM],
            },
        ]),
        "raw and packet sockets, and transports other than TCP and UDP",
    ),
    deny(
        SOCKET,
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[AF_INET, AF_INET6],
            },
            Among {
                argument: 1,
                mask: TYPE,
                values: &[STREAM],
            },
            Outside {
                argument: 2,
                mask: WORD,
                values: STREAM_PROTOCOLS,
            },
        ]),
        "transports other than TCP and UDP load kernel modules that nothing needs",
    ),
    deny(
        SOCKET,
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[AF_INET, AF_INET6],
            },
            Among {
                argument: 1,
                mask: TYPE,
                values: &[DGRAM],
            },
            Outside {
                argument: 2,
                mask: WORD,
                values: DGRAM_PROTOCOLS,
            },
        ]),
        "transports other than TCP and UDP load kernel modules that nothing needs",
    ),
    deny(
        SOCKET,
        Every(&[
            Among {
                argument: 0,
                mask: WORD,
                values: &[AF_NETLINK],
            },
            Outside {
                argument: 2,
                mask: WORD,
                values: &[NETLINK_ROUTE],
            },
        ]),
        "only the route protocol of netlink, which lists network interfaces, is needed",
    ),
    deny(
        SOCKETPAIR,
        Outside {
            argument: 0,
            mask: WORD,
            values: &[AF_UNIX],
        },
        "only Unix sockets come in pairs that anything needs",
    ),
    deny(
        &[both("ioctl", 16, 29)],
        Among {
            argument: 1,
            mask: WORD,
            values: &[TIOCSTI, TIOCLINUX],
        },
        "types into a terminal on behalf of the person",
    ),
];

/// In force when the policy forbids Unix sockets. A datagram half can be sent to any name, so only connected types
/// remain.
const UNIX_SOCKETS: &[Rule] = &[
    deny(
        SOCKET,
        Among {
            argument: 0,
            mask: WORD,
            values: &[AF_UNIX],
        },
        "the policy forbids Unix sockets",
    ),
    deny(
        SOCKETPAIR,
        Outside {
            argument: 1,
            mask: TYPE,
            values: &[STREAM, SEQPACKET],
        },
        "the policy forbids Unix sockets that can reach a name",
    ),
];
