//! What can go wrong, by cause, each with what to do.

use std::io;
use std::path::PathBuf;

/// Why a limit cannot be held. The caller must refuse to start.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error(
        "the cgroups of this process could not be read from {}: {source}. hint: mount /proc, or leave the limit out",
        path.display()
    )]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "a {controller} limit was asked for, but no mounted cgroup hierarchy has the {controller} controller. \
         hint: mount cgroup2 on /sys/fs/cgroup and check that /proc/cgroups lists {controller} as enabled \
         (the memory controller may need cgroup_enable=memory on the kernel's command line), or leave the limit out"
    )]
    NoController { controller: &'static str },
    #[error(
        "a {controllers} limit was asked for, but this process may not divide its cgroup {} ({source}). hint: {hint}",
        directory.display()
    )]
    NotDelegated {
        controllers: String,
        directory: PathBuf,
        source: io::Error,
        hint: &'static str,
    },
    #[error("{} could not be set to {value} ({source}). hint: {hint}", file.display())]
    Refused {
        file: PathBuf,
        value: String,
        source: io::Error,
        hint: &'static str,
    },
    #[error(
        "{} was set to {wanted} and reads {found}, so the limit does not hold. \
         hint: look for a limit of the cgroup above it, or leave the limit out", file.display()
    )]
    NotHeld {
        file: PathBuf,
        wanted: String,
        found: String,
    },
    #[error(
        "the process {pid} could not be moved into {} ({source}). \
         hint: the process may have ended, or its present cgroup belongs to another user", directory.display()
    )]
    NotJoined {
        pid: i32,
        directory: PathBuf,
        source: io::Error,
    },
    #[error(
        "the cgroup {} could not be removed ({source}). \
         hint: the next start removes it once its processes have ended", directory.display()
    )]
    NotRemoved { directory: PathBuf, source: io::Error },
}

/// For an ordinary user on a host with systemd.
pub(super) const HINT_SYSTEMD: &str = "run it in a scope of your own, `systemd-run --user --scope -p Delegate=yes \
    pinfold run …`, or leave the limit out";

/// For root, or where a container manager has mounted the cgroups read-only.
pub(super) const HINT_CONTAINER: &str = "inside a container, start it with its own cgroup namespace and a writable \
    /sys/fs/cgroup, or set the limit on the container itself; elsewhere run it in a scope of its own, \
    `systemd-run --scope -p Delegate=yes pinfold run …`";

/// For version 1, which cannot be handed to a user by systemd.
pub(super) const HINT_V1: &str = "with version 1 cgroups, root must make a folder and give it to you, or you run as \
    root; a host with version 2 can hand one over by itself";

pub(super) const HINT_VALUE: &str = "choose a larger limit, or one within what the cgroup above permits";
