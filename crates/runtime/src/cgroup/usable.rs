//! Which limits could be held here, found out by holding each for a moment.

use super::hierarchy::Version;
use super::{Cgroup, CgroupError, Limits};

/// What a sandbox could be limited in.
#[derive(Debug, Default)]
pub struct Usable {
    /// `v1`, `v2`, or `v1+v2` where each has some.
    pub version: String,
    pub controllers: Vec<&'static str>,
    /// Limits that could not be held, and why.
    pub refused: Vec<(&'static str, CgroupError)>,
}

/// Tries every limit. Leaves nothing behind.
#[must_use]
pub fn usable() -> Usable {
    let mut usable = Usable::default();
    let mut versions = Vec::new();
    let limits = [
        (
            "memory",
            Limits {
                memory: Some(1 << 30),
                ..Limits::default()
            },
        ),
        (
            "cpu",
            Limits {
                cpu_millis: Some(1000),
                ..Limits::default()
            },
        ),
        (
            "pids",
            Limits {
                pids: Some(1000),
                ..Limits::default()
            },
        ),
    ];
    for (name, limit) in limits {
        match Cgroup::create(&limit) {
            Ok(cgroup) => {
                usable.controllers.push(name);
                versions.extend(
                    cgroup
                        .leaves
                        .iter()
                        .filter(|leaf| !leaf.controllers.is_empty())
                        .map(|leaf| match leaf.version {
                            Version::V1 => "v1",
                            Version::V2 => "v2",
                        }),
                );
            }
            Err(error) => usable.refused.push((name, error)),
        }
    }
    versions.sort_unstable();
    versions.dedup();
    usable.version = versions.join("+");
    usable
}
