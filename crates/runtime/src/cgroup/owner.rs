//! The names of cgroups: they carry their owner, so that a later start can tell an abandoned one from one in use.
//!
//! `pinfold.<pid>.<start time>.<pid namespace>.<random>`. A cgroup does not outlive a boot, so no boot id is needed.
//! The namespace keeps two containers that share a cgroup folder from judging each other's process numbers.

use std::fs;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};

const PREFIX: &str = "pinfold.";

/// A process that owns cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// Clock ticks between boot and the start of the process (field 22 of `/proc/<pid>/stat`).
    pub(super) start: u64,
    /// Inode of the process-number namespace.
    pub(super) namespace: u64,
}

impl Owner {
    /// This process; none without a usable `/proc`.
    pub(super) fn current() -> Option<Self> {
        let pid = std::process::id();
        Some(Self {
            pid,
            start: start_of(pid)?,
            namespace: namespace()?,
        })
    }

    /// A new name of a cgroup that belongs to this process.
    pub(super) fn name(&self) -> Option<String> {
        let mut random = [0_u8; 8];
        let filled = getrandom(&mut random, GetRandomFlags::empty()).ok()?;
        let random = (filled == random.len()).then(|| u64::from_ne_bytes(random))?;
        Some(format!(
            "{PREFIX}{}.{}.{}.{random:016x}",
            self.pid, self.start, self.namespace
        ))
    }

    /// The owner that a name carries; none for names of others.
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut fields = name.strip_prefix(PREFIX)?.split('.');
        let pid = fields.next()?.parse().ok()?;
        let start = fields.next()?.parse().ok()?;
        let namespace = fields.next()?.parse().ok()?;
        let random = fields.next()?;
        let sound =
            random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit()) && fields.next().is_none();
        sound.then_some(Self { pid, start, namespace })
    }

    /// Whether the process is gone, as far as `viewer` can tell: another namespace cannot be judged.
    fn is_dead(&self, viewer: &Self) -> bool {
        self.namespace == viewer.namespace && start_of(self.pid) != Some(self.start)
    }
}

/// Removes the empty cgroups directly below `parent` whose owner is dead. One that still has processes stays: the
/// kernel refuses to remove it.
pub(super) fn reclaim(parent: &Path, viewer: &Owner) -> usize {
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(Owner::of);
        if owner.is_some_and(|owner| owner.is_dead(viewer)) && fs::remove_dir(entry.path()).is_ok() {
            removed += 1;
        }
    }
    removed
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    start_in(&stat)
}

/// Field 22, counted behind the command in parentheses, which may hold anything.
fn start_in(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_carries_its_owner_and_no_two_are_equal() {
        let owner = Owner::current().unwrap();
        let names = [owner.name().unwrap(), owner.name().unwrap()];
        assert_ne!(names[0], names[1]);
        assert_eq!(Owner::of(&names[0]), Some(owner));
        assert!(!owner.is_dead(&owner));
    }

    #[test]
    fn names_of_others_have_no_owner() {
        for name in [
            "",
            "pinfold",
            "pinfold.",
            "pinfold.1.2.3",
            "pinfold.1.2.3.x",
            "pinfold.1.2.3.0123456789abcdef.4",
            "x.1.2.3.0123456789abcdef",
            "pinfold.-1.2.3.0123456789abcdef",
            "pinfold.1.2.3.0123456789abcdeg",
        ] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_owner() {
        let owner = Owner::current().unwrap();
        assert!(
            Owner {
                start: owner.start + 1,
                ..owner
            }
            .is_dead(&owner)
        );
        assert!(
            !Owner {
                start: owner.start + 1,
                namespace: owner.namespace + 1,
                ..owner
            }
            .is_dead(&owner)
        );
    }

    #[test]
    fn the_start_time_is_found_behind_any_command_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_in(format!("12 (a) S (b) {rest}").as_bytes()), Some(4711));
        assert_eq!(start_in(b"12 (a"), None);
        assert_eq!(start_in(b"12 (a)"), None);
    }

    #[test]
    fn only_empty_folders_of_dead_owners_are_reclaimed() {
        let parent = tempfile::TempDir::new().unwrap();
        let viewer = Owner::current().unwrap();
        let dead = Owner {
            start: viewer.start + 1,
            ..viewer
        };
        let elsewhere = Owner {
            namespace: viewer.namespace + 1,
            ..dead
        };
        let make = |name: &str| fs::create_dir(parent.path().join(name)).unwrap();
        let (alive, gone, busy, other) = (
            viewer.name().unwrap(),
            dead.name().unwrap(),
            dead.name().unwrap(),
            elsewhere.name().unwrap(),
        );
        for name in [&alive, &gone, &busy, &other, "pinfold.user"] {
            make(name);
        }
        fs::write(parent.path().join(&busy).join("process"), "").unwrap();
        assert_eq!(reclaim(parent.path(), &viewer), 1);
        for (name, stays) in [
            (&*alive, true),
            (&gone, false),
            (&busy, true),
            (&other, true),
            ("pinfold.user", true),
        ] {
            assert_eq!(parent.path().join(name).exists(), stays, "{name}");
        }
    }
}
