//! The self-test that `pinfold doctor` asks for: every check, in a workspace that was made for it.
//!
//! Each check is named and has its opposite near it: something that is allowed and works, something that is denied and fails
//! as expected. The outcomes go to standard output, a line each, and the checks go on after one that failed.

use std::ffi::c_long;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use pinfold_model::plan::{Listeners, Plan, Proof, Trial};
use pinfold_model::wire::Finding;
use pinfold_sys::{Errno, descriptor, probe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, open};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};

use super::{Outcome, broken, contrary, core_limit, must_fail, namespace_limit, privileges, protected};

/// Runs every check; returns the exit code for the process: 0 when all held.
pub(crate) fn prove_all(plan: &Plan, trial: &Trial) -> i32 {
    let mut test = Test { failed: false };
    test.identity();
    test.namespaces();
    test.files(&plan.proof, trial);
    test.protection(trial);
    test.procfs();
    test.system_calls();
    test.sockets();
    test.network(plan.network);
    test.terminal(trial);
    if let Some(layered) = &trial.layered {
        test.check("layers", "a layer over a folder is read and written", || layer(layered));
    }
    i32::from(test.failed)
}

struct Test {
    failed: bool,
}

impl Test {
    fn check(&mut self, part: &str, check: &str, run: impl FnOnce() -> Outcome) {
        let failure = run().err().map(|failure| match failure.errno {
            0 => failure.step,
            errno => format!("{}: {}", failure.step, std::io::Error::from_raw_os_error(errno)),
        });
        self.failed |= failure.is_some();
        let finding = Finding {
            part: part.to_owned(),
            check: check.to_owned(),
            failure,
        };
        let line = finding.to_line() + "\n";
        if std::io::stdout().write_all(line.as_bytes()).is_err() {
            self.failed = true;
        }
    }

    fn identity(&mut self) {
        self.check("identity", "no capability, no new privileges, a filter", || {
            privileges()?;
            status()
        });
        self.check("identity", "no descriptor above 2 is handed on", descriptors);
        self.check("identity", "no core files", core_limit);
    }

    fn namespaces(&mut self) {
        self.check("namespaces", "only the sandbox's own processes are seen", processes);
        self.check("namespaces", "no user namespace may be made below", namespace_limit);
        self.check("namespaces", "the only network device is loopback", devices);
        self.check(
            "namespaces",
            "the host name is the sandbox's own",
            || match rustix::system::uname().nodename().to_bytes() {
                b"pinfold" => Ok(()),
                _ => Err(contrary("the host name is the host's")),
            },
        );
    }

    fn files(&mut self, proof: &Proof, trial: &Trial) {
        self.check("files", "the workspace can be written", || {
            make_and_remove(&below(&trial.workspace, "ordinary"))
        });
        self.check("files", "/tmp can be written", || {
            make_and_remove(b"/tmp/.pinfold-proof")
        });
        for place in [
            "/.pinfold-proof",
            "/usr/.pinfold-proof",
            "/etc/.pinfold-proof",
            "/dev/.pinfold-proof",
        ] {
            self.check("files", &format!("{place} cannot be made"), || {
                must_fail("make it", create(place.as_bytes()), &[Errno::ROFS, Errno::ACCESS])
            });
        }
        self.check("files", "a hidden file cannot be read", || {
            must_fail("read it", read(&trial.hidden), &[Errno::ACCESS])
        });
        for device in ["/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse"] {
            self.check("files", &format!("{device} is not there"), || {
                must_fail("open it", read(device.as_bytes()), &[Errno::NOENT])
            });
        }
        self.check("landlock", "a write that only landlock forbids fails", || {
            must_fail("make a file", create(&proof.landlocked), &[Errno::ACCESS])
        });
    }

    fn protection(&mut self, trial: &Trial) {
        let (file, folder) = (trial.protected_file.as_slice(), trial.protected_folder.as_slice());
        let refused = [Errno::ROFS, Errno::ACCESS, Errno::PERM, Errno::BUSY, Errno::XDEV];
        self.check("protection", "a protected file can be read", || {
            read(file).map(drop).map_err(|errno| broken("read it", errno))
        });
        self.check("protection", "it cannot be written", || {
            protected(file)?;
            let write = open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            must_fail("write it", write, &refused)
        });
        self.check("protection", "its mode cannot be changed", || {
            must_fail(
                "change it",
                rustix::fs::chmod(file, Mode::from_raw_mode(0o777)),
                &refused,
            )
        });
        self.check("protection", "it cannot be moved, removed or replaced", || {
            let other = below(&trial.workspace, "other");
            create(&other).map_err(|errno| broken("make another file", errno))?;
            must_fail(
                "move it",
                rustix::fs::rename(file, below(&trial.workspace, "moved")),
                &refused,
            )?;
            must_fail("remove it", rustix::fs::unlink(file), &refused)?;
            must_fail("replace it", rustix::fs::rename(&other, file), &refused)?;
            let exchange = rustix::fs::renameat_with(CWD, &other, CWD, file, RenameFlags::EXCHANGE);
            must_fail("exchange it", exchange, &refused)?;
            must_fail(
                "link it",
                rustix::fs::link(file, below(&trial.workspace, "link")),
                &refused,
            )?;
            rustix::fs::unlink(&other).map_err(|errno| broken("remove the other file", errno))
        });
        self.check("protection", "a protected folder takes no new file", || {
            protected(folder)?;
            must_fail("make one", create(&below(folder, "new")), &refused)
        });
        self.check("protection", "the folder above it cannot be moved", || {
            let Some(above) = folder.iter().rposition(|byte| *byte == b'/').map(|at| &folder[..at]) else {
                return Err(contrary("there is none"));
            };
            must_fail(
                "move it",
                rustix::fs::rename(above, below(&trial.workspace, "moved")),
                &refused,
            )
        });
        // The host takes it away and says so in its own finding.
        self.check(
            "protection",
            "a protected name that is absent is left to the watcher",
            || match create(&trial.absent) {
                Ok(_) => Ok(()),
                Err(errno) if refused.contains(&errno) => Ok(()),
                Err(errno) => Err(broken("make it", errno)),
            },
        );
    }

    fn procfs(&mut self) {
        self.check("procfs", "settings of the kernel cannot be changed", || {
            for setting in [
                "/proc/sys/kernel/core_pattern",
                "/proc/sysrq-trigger",
                "/proc/sys/vm/drop_caches",
            ] {
                let write = open(setting, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
                must_fail(setting, write, &[Errno::ROFS, Errno::ACCESS, Errno::NOENT])?;
            }
            Ok(())
        });
        self.check("procfs", "the init cannot be looked into", || {
            for part in ["/proc/1/mem", "/proc/1/environ"] {
                must_fail(part, read(part.as_bytes()), &[Errno::ACCESS, Errno::PERM])?;
            }
            Ok(())
        });
        self.check("procfs", "the kernel's memory and keys are covered", || {
            for name in ["/proc/kcore", "/proc/keys", "/proc/timer_list"] {
                let nothing = match read(name.as_bytes()) {
                    Ok(file) => rustix::io::read(&file, &mut [0_u8; 1]) == Ok(0),
                    Err(errno) => [Errno::NOENT, Errno::ACCESS, Errno::PERM].contains(&errno),
                };
                if !nothing {
                    return Err(contrary(format!("{name} can be read")));
                }
            }
            Ok(())
        });
    }

    fn system_calls(&mut self) {
        const NOTHING: u64 = u64::MAX;
        // Without the filter each fails by itself, with another error.
        let calls: [(&str, c_long, [u64; 3], Errno); 12] = [
            ("io_uring", probe::IO_URING_SETUP, [0; 3], Errno::PERM),
            ("clone3", probe::CLONE3, [0; 3], Errno::NOSYS),
            (
                "a new user namespace",
                probe::UNSHARE,
                [probe::NEW_USER_AND_INVALID, 0, 0],
                Errno::PERM,
            ),
            ("entering a namespace", probe::SETNS, [NOTHING, 0, 0], Errno::PERM),
            ("mounting", probe::MOUNT, [0; 3], Errno::PERM),
            (
                "the newer mount interface",
                probe::OPEN_TREE,
                [NOTHING, 0, NOTHING],
                Errno::PERM,
            ),
            ("another root", probe::CHROOT, [0; 3], Errno::PERM),
            ("tracing a process", probe::PTRACE, [NOTHING, 0, 0], Errno::PERM),
            ("kernel keys", probe::KEYCTL, [NOTHING, 0, 0], Errno::PERM),
            ("performance events", probe::PERF_EVENT_OPEN, [0; 3], Errno::PERM),
            (
                "typing into a terminal",
                probe::IOCTL,
                [NOTHING, probe::TIOCSTI, 0],
                Errno::PERM,
            ),
            (
                "the same with upper bits",
                probe::IOCTL,
                [NOTHING, probe::TIOCSTI_UPPER_BITS, 0],
                Errno::PERM,
            ),
        ];
        for (what, number, arguments, expected) in calls {
            self.check("seccomp", &format!("{what} is refused"), || {
                must_fail(what, probe::call(number, arguments), &[expected])
            });
        }
        self.check("seccomp", "the console's commands are refused", || {
            let call = probe::call(probe::IOCTL, [NOTHING, probe::TIOCLINUX, 0]);
            must_fail("give one", call, &[Errno::PERM])
        });
    }

    fn sockets(&mut self) {
        for (name, family, kind) in [
            ("TCP over IPv4", AddressFamily::INET, SocketType::STREAM),
            ("Unix", AddressFamily::UNIX, SocketType::STREAM),
        ] {
            self.check("seccomp", &format!("a {name} socket can be made"), || {
                socket(family, kind).map(drop).map_err(|errno| broken("make it", errno))
            });
        }
        for (name, family, kind) in [
            ("packet", AddressFamily::PACKET, SocketType::RAW),
            ("raw IPv4", AddressFamily::INET, SocketType::RAW),
            ("raw IPv6", AddressFamily::INET6, SocketType::RAW),
            ("vsock", AddressFamily::from_raw(40), SocketType::STREAM),
            ("Bluetooth", AddressFamily::BLUETOOTH, SocketType::RAW),
            ("kernel crypto", AddressFamily::from_raw(38), SocketType::SEQPACKET),
            ("CAN", AddressFamily::CAN, SocketType::RAW),
        ] {
            self.check("seccomp", &format!("a {name} socket is refused"), || {
                must_fail("make it", socket(family, kind), &[Errno::PERM])
            });
        }
        self.check("seccomp", "netlink is refused but for routes", || {
            let netlink =
                |protocol| socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol);
            netlink(None).map_err(|errno| broken("make a route socket", errno))?;
            must_fail(
                "make an audit socket",
                netlink(Some(rustix::net::netlink::AUDIT)),
                &[Errno::PERM],
            )
        });
    }

    fn network(&mut self, listeners: Option<Listeners>) {
        // TEST-NET-1 (RFC 5737) and the documentation prefix (RFC 3849): no byte can leave for them.
        let outside = [
            IpAddr::from(Ipv4Addr::new(192, 0, 2, 1)),
            IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        ];
        for (kind, name) in [(SocketType::STREAM, "TCP"), (SocketType::DGRAM, "UDP")] {
            self.check("network", &format!("no {name} leads out"), || {
                for address in outside {
                    must_fail(
                        "connect",
                        connect(address, 9, kind),
                        &[Errno::NETUNREACH, Errno::AFNOSUPPORT],
                    )?;
                }
                Ok(())
            });
        }
        let Some(ports) = listeners else {
            return;
        };
        for (name, port) in [("HTTP", ports.http), ("SOCKS", ports.socks)] {
            self.check("network", &format!("the {name} proxy answers on loopback"), || {
                connect(Ipv4Addr::LOCALHOST.into(), port, SocketType::STREAM)
                    .map(drop)
                    .map_err(|errno| broken("connect", errno))
            });
        }
        self.check("network", "it denies what no rule allows", || denied(ports.http));
        self.check("network", "nothing inside can listen in its place", || {
            let socket =
                socket(AddressFamily::INET, SocketType::STREAM).map_err(|errno| broken("make a socket", errno))?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.http + 1));
            must_fail(
                "listen below 1024",
                rustix::net::bind(&socket, &address),
                &[Errno::ACCESS],
            )
        });
    }

    fn terminal(&mut self, trial: &Trial) {
        self.check("terminal", "a terminal of its own can be opened", || {
            let step = |errno| broken("open one", errno);
            let master = open(
                "/dev/ptmx",
                OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(step)?;
            rustix::pty::unlockpt(&master).map_err(step)
        });
        self.check("inotify", "files can be watched", || {
            use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
            let step = |errno| broken("watch the workspace", errno);
            let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(step)?;
            add_watch(&watch, trial.workspace.as_slice(), WatchFlags::CREATE)
                .map(drop)
                .map_err(step)
        });
    }
}

fn below(folder: &[u8], name: &str) -> Vec<u8> {
    [folder, b"/", name.as_bytes()].concat()
}

fn create(path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    open(path, flags, Mode::RUSR | Mode::WUSR)
}

fn read(path: &[u8]) -> Result<OwnedFd, Errno> {
    open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

fn socket(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, Errno> {
    // Protocols are looked at after the type, which has to be refused first.
    let protocol: Option<Protocol> = None;
    socket_with(family, kind, SocketFlags::CLOEXEC, protocol)
}

fn connect(address: IpAddr, port: u16, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket(family, kind)?;
    rustix::net::connect(&socket, &SocketAddr::new(address, port))?;
    Ok(socket)
}

fn make_and_remove(path: &[u8]) -> Outcome {
    let file = create(path).map_err(|errno| broken("make a file", errno))?;
    rustix::io::write(&file, b"x").map_err(|errno| broken("write it", errno))?;
    rustix::fs::unlink(path).map_err(|errno| broken("remove it", errno))
}

/// What the kernel says of this process to everybody (proc_pid_status(5)).
fn status() -> Outcome {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|_| contrary("read /proc/self/status"))?;
    let zero = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte == b'0');
    for (name, holds) in [
        ("NoNewPrivs", (|value: &str| value == "1") as fn(&str) -> bool),
        ("Seccomp", |value| value == "2"),
        ("CapInh", zero),
        ("CapPrm", zero),
        ("CapEff", zero),
        ("CapBnd", zero),
        ("CapAmb", zero),
    ] {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim);
        if !value.is_some_and(holds) {
            return Err(contrary(format!("{name} is {}", value.unwrap_or("missing"))));
        }
    }
    Ok(())
}

/// The names in a folder that are numbers.
fn numbers_in(folder: &str) -> Result<Vec<i32>, pinfold_model::wire::Failure> {
    let entries = std::fs::read_dir(folder).map_err(|_| contrary(format!("list {folder}")))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

fn descriptors() -> Outcome {
    let open = numbers_in("/proc/self/fd")?;
    if ![0, 1, 2].iter().all(|stream| open.contains(stream)) {
        return Err(contrary("the standard streams are missing"));
    }
    match open.iter().find(|fd| **fd > 2 && descriptor::survives_exec(**fd)) {
        None => Ok(()),
        Some(fd) => Err(contrary(format!("the descriptor {fd} would be handed on"))),
    }
}

/// The guest, this process, and between them the leader of a session.
fn processes() -> Outcome {
    let seen = numbers_in("/proc")?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if seen.contains(&own) && seen.contains(&1) && seen.len() <= 3 && seen.iter().all(|pid| *pid <= own) {
        Ok(())
    } else {
        Err(contrary(format!("{} processes are seen", seen.len())))
    }
}

fn devices() -> Outcome {
    let text = std::fs::read_to_string("/proc/self/net/dev").map_err(|_| contrary("list the devices"))?;
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .collect();
    // Tunnels that some kernels put into every network namespace are down and lead nowhere.
    if names.contains(&"lo")
        && names.iter().all(|name| name.ends_with('0') || *name == "lo")
        && !names.contains(&"eth0")
    {
        Ok(())
    } else {
        Err(contrary(format!("there are {}", names.join(", "))))
    }
}

/// Asks the proxy for an address that the empty policy does not allow.
fn denied(port: u16) -> Outcome {
    let step = |errno| broken("ask the proxy", errno);
    let socket = connect(Ipv4Addr::LOCALHOST.into(), port, SocketType::STREAM).map_err(step)?;
    let request = b"CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n\r\n";
    rustix::io::write(&socket, request).map_err(step)?;
    let mut answer = [0_u8; 12];
    let mut got = 0;
    while got < answer.len() {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        if poll(
            &mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)],
            Some(&patience),
        )
        .map_err(step)?
            == 0
        {
            return Err(contrary("the proxy does not answer"));
        }
        match rustix::io::read(&socket, &mut answer[got..]).map_err(step)? {
            0 => break,
            read => got += read,
        }
    }
    if &answer[..got] == b"HTTP/1.1 403" {
        Ok(())
    } else {
        Err(contrary(format!("the proxy says {}", answer[..got].escape_ascii())))
    }
}

/// One file is there; a second can be made beside it.
fn layer(folder: &[u8]) -> Outcome {
    read(&below(folder, "lower")).map_err(|errno| broken("read what is below the layer", errno))?;
    make_and_remove(&below(folder, "new"))?;
    let write = open(
        below(folder, "lower").as_slice(),
        OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| broken("write over what is below the layer", errno))?;
    rustix::io::write(&write, b"x")
        .map(drop)
        .map_err(|errno| broken("write it", errno))?;
    rustix::fs::accessat(CWD, folder, rustix::fs::Access::WRITE_OK, AtFlags::empty())
        .map_err(|errno| broken("write the folder", errno))
}
