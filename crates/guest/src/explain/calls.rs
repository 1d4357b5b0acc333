//! The system calls that are about a path: where the path is, and whether the call would change something.

use libc::c_long;

/// Where a call names what it is about. Numbers are those of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A path, relative to the working directory.
    Path(usize),
    /// A path, relative to a descriptor; the descriptor itself when the path is empty or null.
    At(usize, usize),
    /// An open descriptor.
    Descriptor(usize),
    /// A socket address and its length; a path when it is a Unix one.
    Address(usize, usize),
}

/// Whether a call changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
    /// As the open flags in this argument say.
    Open(usize),
    /// As the access mode in this argument says.
    Access(usize),
}

/// Whether a link at the end of the path is what the call is about, or what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Followed,
    Itself,
}

/// What is known of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    number: c_long,
    pub(super) places: &'static [Place],
    pub(super) effect: Effect,
    pub(super) last: Last,
}

impl About {
    /// Whether the call would have changed something.
    pub(super) fn writes(&self, arguments: &[u64; 6]) -> bool {
        let flags = |at: usize| arguments[at] & u64::from(u32::MAX);
        match self.effect {
            Effect::Read => false,
            Effect::Write => true,
            Effect::Open(at) => flags(at) & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u64 != 0,
            Effect::Access(at) => flags(at) & libc::W_OK as u64 != 0,
        }
    }
}

/// What is known of the call with a number; none when it is not about a path.
pub(super) fn about(number: u64) -> Option<&'static About> {
    let number = c_long::try_from(number).ok()?;
    CALLS.iter().chain(OLDER_CALLS).find(|known| known.number == number)
}

use Effect::{Access, Open, Read, Write};
use Last::{Followed, Itself};
use Place::{Address, At, Descriptor, Path};

const fn row(number: c_long, places: &'static [Place], effect: Effect, last: Last) -> About {
    About {
        number,
        places,
        effect,
        last,
    }
}

const CALLS: &[About] = &[
    row(libc::SYS_openat, &[At(0, 1)], Open(2), Followed),
    row(libc::SYS_execve, &[Path(0)], Read, Followed),
    row(libc::SYS_execveat, &[At(0, 1)], Read, Followed),
    row(libc::SYS_newfstatat, &[At(0, 1)], Read, Followed),
    row(libc::SYS_statx, &[At(0, 1)], Read, Followed),
    row(libc::SYS_faccessat, &[At(0, 1)], Access(2), Followed),
    row(libc::SYS_faccessat2, &[At(0, 1)], Access(2), Followed),
    row(libc::SYS_readlinkat, &[At(0, 1)], Read, Itself),
    row(libc::SYS_chdir, &[Path(0)], Read, Followed),
    row(libc::SYS_statfs, &[Path(0)], Read, Followed),
    row(libc::SYS_inotify_add_watch, &[Path(1)], Read, Followed),
    row(libc::SYS_getxattr, &[Path(0)], Read, Followed),
    row(libc::SYS_lgetxattr, &[Path(0)], Read, Itself),
    row(libc::SYS_listxattr, &[Path(0)], Read, Followed),
    row(libc::SYS_llistxattr, &[Path(0)], Read, Itself),
    row(libc::SYS_connect, &[Address(1, 2)], Read, Followed),
    row(libc::SYS_bind, &[Address(1, 2)], Write, Itself),
    row(libc::SYS_truncate, &[Path(0)], Write, Followed),
    row(libc::SYS_mkdirat, &[At(0, 1)], Write, Itself),
    row(libc::SYS_mknodat, &[At(0, 1)], Write, Itself),
    row(libc::SYS_unlinkat, &[At(0, 1)], Write, Itself),
    row(libc::SYS_symlinkat, &[At(1, 2)], Write, Itself),
    row(libc::SYS_linkat, &[At(0, 1), At(2, 3)], Write, Itself),
    row(libc::SYS_renameat2, &[At(0, 1), At(2, 3)], Write, Itself),
    row(libc::SYS_fchmodat, &[At(0, 1)], Write, Followed),
    row(libc::SYS_fchmodat2, &[At(0, 1)], Write, Followed),
    row(libc::SYS_fchownat, &[At(0, 1)], Write, Followed),
    row(libc::SYS_utimensat, &[At(0, 1)], Write, Followed),
    row(libc::SYS_setxattr, &[Path(0)], Write, Followed),
    row(libc::SYS_lsetxattr, &[Path(0)], Write, Itself),
    row(libc::SYS_removexattr, &[Path(0)], Write, Followed),
    row(libc::SYS_lremovexattr, &[Path(0)], Write, Itself),
    row(libc::SYS_fchmod, &[Descriptor(0)], Write, Followed),
    row(libc::SYS_fchown, &[Descriptor(0)], Write, Followed),
    row(libc::SYS_fsetxattr, &[Descriptor(0)], Write, Followed),
    row(libc::SYS_fremovexattr, &[Descriptor(0)], Write, Followed),
];

#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: &[About] = &[
    row(libc::SYS_open, &[Path(0)], Open(1), Followed),
    row(libc::SYS_creat, &[Path(0)], Write, Followed),
    row(libc::SYS_stat, &[Path(0)], Read, Followed),
    row(libc::SYS_lstat, &[Path(0)], Read, Itself),
    row(libc::SYS_access, &[Path(0)], Access(1), Followed),
    row(libc::SYS_readlink, &[Path(0)], Read, Itself),
    row(libc::SYS_mkdir, &[Path(0)], Write, Itself),
    row(libc::SYS_rmdir, &[Path(0)], Write, Itself),
    row(libc::SYS_mknod, &[Path(0)], Write, Itself),
    row(libc::SYS_unlink, &[Path(0)], Write, Itself),
    row(libc::SYS_symlink, &[Path(1)], Write, Itself),
    row(libc::SYS_link, &[Path(0), Path(1)], Write, Itself),
    row(libc::SYS_rename, &[Path(0), Path(1)], Write, Itself),
    row(libc::SYS_renameat, &[At(0, 1), At(2, 3)], Write, Itself),
    row(libc::SYS_chmod, &[Path(0)], Write, Followed),
    row(libc::SYS_chown, &[Path(0)], Write, Followed),
    row(libc::SYS_lchown, &[Path(0)], Write, Itself),
    row(libc::SYS_utime, &[Path(0)], Write, Followed),
    row(libc::SYS_utimes, &[Path(0)], Write, Followed),
    row(libc::SYS_futimesat, &[At(0, 1)], Write, Followed),
];

#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: &[About] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_changes_something_only_with_flags_that_say_so() {
        let open = about(libc::SYS_openat as u64).unwrap();
        for (flags, writes) in [
            (libc::O_RDONLY | libc::O_CLOEXEC, false),
            (libc::O_WRONLY, true),
            (libc::O_RDWR, true),
            (libc::O_CREAT, true),
            (libc::O_TRUNC, true),
            (libc::O_PATH | libc::O_DIRECTORY, false),
        ] {
            assert_eq!(open.writes(&[0, 0, flags as u64, 0, 0, 0]), writes, "{flags:#o}");
        }
    }

    #[test]
    fn no_call_is_listed_twice_and_no_argument_is_out_of_range() {
        let mut numbers: Vec<_> = CALLS.iter().chain(OLDER_CALLS).map(|known| known.number).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        for known in CALLS.iter().chain(OLDER_CALLS) {
            for place in known.places {
                let (Path(last) | At(_, last) | Descriptor(last) | Address(_, last)) = place;
                assert!(*last < 6, "{}", known.number);
            }
        }
        assert!(about(u64::MAX).is_none());
    }
}
