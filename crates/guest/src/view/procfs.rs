//! A new procfs of the sandbox's own PID namespace, with what reaches beyond it closed.

use std::os::fd::{AsFd, BorrowedFd};

use pinfold_model::plan::Access;
use pinfold_sys::Errno;
use pinfold_sys::mount::attribute;
use rustix::fs::{Mode, OFlags, openat};

use super::{locate_in, mounts};
use pinfold_model::plan::Node;

/// Host-wide settings and triggers: readable, never writable. They matter most when the caller is root, since the kernel
/// compares user ids there and not capabilities.
const READ_ONLY: [&str; 5] = ["sys", "bus", "fs", "irq", "sysrq-trigger"];

/// Host-wide secrets and information: covered.
const MASKED: [&str; 7] = [
    "kcore",
    "keys",
    "timer_list",
    "sched_debug",
    "latency_stats",
    "acpi",
    "scsi",
];

/// The same for what the kernel shows to user 0 alone, by comparing ids.
const MASKED_FROM_ROOT: [&str; 6] = [
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "vmallocinfo",
    "slabinfo",
    "pagetypeinfo",
];

/// Mounts a procfs on `target`.
pub(super) fn mount(target: BorrowedFd<'_>) -> Result<(), Errno> {
    let proc = mounts::new_filesystem(
        "proc",
        &[],
        &[],
        attribute::NO_SUID | attribute::NO_DEV | attribute::NO_EXEC,
    )?;
    mounts::attach(proc.as_fd(), target)?;
    // No user namespace may be made below this one, whatever the filter says. Before `sys` is closed.
    let limit = openat(
        &proc,
        "sys/user/max_user_namespaces",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    rustix::io::write(&limit, b"0")?;
    let root = rustix::process::geteuid().is_root();
    // The guest's own files belong to root as soon as it cannot be dumped: its place in the order of memory kills, for one.
    let guest = root.then_some("1");
    for name in READ_ONLY.into_iter().chain(guest) {
        if let Some(part) = existing(proc.as_fd(), name)? {
            mounts::bind_onto(part.as_fd(), part.as_fd(), Access::ReadOnly)?;
        }
    }
    let null = rustix::fs::open("/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let from_root: &[&str] = if root { &MASKED_FROM_ROOT } else { &[] };
    for name in MASKED.iter().chain(from_root) {
        let Some(part) = existing(proc.as_fd(), name)? else {
            continue;
        };
        let stat = rustix::fs::fstat(&part)?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory {
            let empty = mounts::tmpfs(0o555, 4096, 1)?;
            pinfold_sys::mount::set_attributes(
                empty.as_fd(),
                pinfold_sys::mount::Extent::ThisMount,
                attribute::READ_ONLY,
            )?;
            mounts::attach(empty.as_fd(), part.as_fd())?;
        } else {
            mounts::bind_onto(null.as_fd(), part.as_fd(), Access::ReadOnly)?;
        }
    }
    Ok(())
}

fn existing(proc: BorrowedFd<'_>, name: &str) -> Result<Option<std::os::fd::OwnedFd>, Errno> {
    match locate_in(proc, name.as_bytes(), Node::File) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
