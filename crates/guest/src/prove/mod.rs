//! The self-test of a start: run by the command's own process, inside the finished walls, right before it is executed.
//!
//! Each check needs the expected answer; a check that cannot run counts as failed. Nothing here leaves a trace: every
//! attempt that is expected to fail is an open or a call without effect.

mod full;

use std::ffi::c_long;

use pinfold_model::plan::Proof;
use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::{Errno, capability, descriptor, probe};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatVfsMountFlags, StatxAttributes, StatxFlags, open, statvfs, statx};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::failure::{failure, shown};
pub(crate) use full::prove_all;

type Outcome = Result<(), Failure>;

/// Proves the walls of the calling process.
pub(crate) fn prove(proof: &Proof) -> Outcome {
    privileges()?;
    leftovers()?;
    files(proof)?;
    procfs()?;
    network()?;
    system_calls()
}

/// A wall that does not hold although no call failed.
fn contrary(what: impl Into<String>) -> Failure {
    Failure {
        layer: Layer::Proof,
        step: what.into(),
        errno: 0,
    }
}

fn broken(what: impl Into<String>, errno: Errno) -> Failure {
    failure(Layer::Proof, what, errno)
}

/// Passes when the attempt failed with one of the expected errors.
fn must_fail<T>(what: &str, attempt: Result<T, Errno>, expected: &[Errno]) -> Outcome {
    match attempt {
        Ok(_) => Err(contrary(format!("{what}: it was possible"))),
        Err(errno) if expected.contains(&errno) => Ok(()),
        Err(errno) => Err(broken(format!("{what}: it failed with an unexpected error"), errno)),
    }
}

fn privileges() -> Outcome {
    match capability::all_empty() {
        Ok(true) => {}
        Ok(false) => {
            return Err(contrary("the command would keep a capability"));
        }
        Err(errno) => return Err(broken("read the capability sets", errno)),
    }
    match rustix::thread::no_new_privs() {
        Ok(true) => {}
        _ => return Err(contrary("no-new-privileges is not set")),
    }
    match rustix::thread::secure_computing_mode() {
        Ok(rustix::thread::SecureComputingMode::Filter) => Ok(()),
        _ => Err(contrary("the system call filter is not active")),
    }
}

/// Descriptors that are looked at: of more, the sweep has answered for itself.
const DESCRIPTORS: std::ops::Range<i32> = 3..32;

fn leftovers() -> Outcome {
    if let Some(open) = DESCRIPTORS.clone().find(|fd| descriptor::survives_exec(*fd)) {
        return Err(contrary(format!("the command would get the descriptor {open}")));
    }
    core_limit()
}

fn core_limit() -> Outcome {
    let core = rustix::process::getrlimit(rustix::process::Resource::Core);
    match (core.current, core.maximum) {
        (Some(0 | 1), Some(0 | 1)) => Ok(()),
        _ => Err(contrary("core files are not limited")),
    }
}

fn procfs() -> Outcome {
    let step = "look at the sandbox's own procfs";
    let this = rustix::fs::readlink("/proc/self", Vec::new()).map_err(|errno| broken(step, errno))?;
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    if this.to_bytes() != pid.to_string().as_bytes() {
        return Err(contrary("procfs is not that of the sandbox"));
    }
    namespace_limit()?;
    must_fail(
        "change a setting of the kernel",
        open(
            "/proc/sys/user/max_user_namespaces",
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        ),
        &[Errno::ROFS, Errno::ACCESS],
    )
}

fn namespace_limit() -> Outcome {
    let step = "read the limit of user namespaces";
    let limit = open(
        "/proc/sys/user/max_user_namespaces",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| broken(step, errno))?;
    let mut text = [0_u8; 16];
    let read = rustix::io::read(&limit, &mut text).map_err(|errno| broken(step, errno))?;
    if text[..read].trim_ascii() == b"0" {
        Ok(())
    } else {
        Err(contrary("user namespaces are not limited to none"))
    }
}

/// A mount of its own keeps it where it is, and that mount is read-only.
fn protected(path: &[u8]) -> Outcome {
    let step = || format!("look at {}, which is protected", shown(path));
    let stat = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE).map_err(|errno| broken(step(), errno))?;
    if !stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Err(contrary(format!("{} could be replaced", shown(path))));
    }
    let mount = statvfs(path).map_err(|errno| broken(step(), errno))?;
    if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Ok(())
    } else {
        Err(contrary(format!("{} could be written", shown(path))))
    }
}

fn files(proof: &Proof) -> Outcome {
    open(
        proof.readable.as_slice(),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| broken(format!("read {}, which is allowed", shown(&proof.readable)), errno))?;
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    must_fail(
        "write outside the view's writable parts",
        open(proof.read_only.as_slice(), create, Mode::empty()),
        &[Errno::ROFS, Errno::ACCESS],
    )?;
    must_fail(
        "write where only landlock forbids it",
        open(proof.landlocked.as_slice(), create, Mode::empty()),
        &[Errno::ACCESS],
    )?;
    if let Some(hidden) = &proof.hidden {
        must_fail(
            "read a hidden path",
            open(hidden.as_slice(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()),
            &[Errno::ACCESS, Errno::NOENT],
        )?;
    }
    proof.protected.as_deref().map_or(Ok(()), |path| protected(path))
}

fn network() -> Outcome {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| broken("make a TCP socket, which is allowed", errno))?;
    // 192.0.2.1 is TEST-NET-1 (RFC 5737): it can only be unreachable, and no byte leaves without a route.
    let address = std::net::SocketAddr::from(([192, 0, 2, 1], 9));
    must_fail(
        "connect directly to the outside",
        rustix::net::connect(&socket, &address),
        &[Errno::NETUNREACH],
    )?;
    must_fail(
        "make a raw socket",
        socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None),
        &[Errno::PERM],
    )
}

fn system_calls() -> Outcome {
    // Arguments that the kernel would refuse by themselves with another error, should the filter let the call through.
    let checks: [(&str, c_long, [u64; 3], Errno); 5] = [
        ("set up io_uring", probe::IO_URING_SETUP, [0, 0, 0], Errno::PERM),
        ("use clone3", probe::CLONE3, [0, 0, 0], Errno::NOSYS),
        (
            "make a user namespace",
            probe::UNSHARE,
            [probe::NEW_USER_AND_INVALID, 0, 0],
            Errno::PERM,
        ),
        (
            "type into a terminal",
            probe::IOCTL,
            [u64::MAX, probe::TIOCSTI_UPPER_BITS, 0],
            Errno::PERM,
        ),
        ("trace a process", probe::PTRACE, [u64::MAX, 0, 0], Errno::PERM),
    ];
    for (what, number, arguments, expected) in checks {
        must_fail(what, probe::call(number, arguments), &[expected])?;
    }
    Ok(())
}
