//! Which cgroup hierarchies this process is in, from `/proc/self/cgroup` and `/proc/self/mountinfo`. Pure.

use std::path::{Component, Path, PathBuf};

use super::Controller;

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// Of version 1; version 2 tells by `cgroup.controllers`.
    pub(super) controllers: Vec<String>,
    pub(super) mount: PathBuf,
    /// The folder of the cgroup that this process is in.
    pub(super) own: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Hierarchy {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.version == Version::V1 && self.controllers.iter().any(|known| known == controller)
    }
}

/// The version 1 hierarchy of a controller; none when version 2 has it or nothing does.
pub(super) fn v1_of(hierarchies: &[Hierarchy], controller: Controller) -> Option<&Hierarchy> {
    hierarchies.iter().find(|hierarchy| hierarchy.has(controller.name()))
}

/// The hierarchies that are mounted and in which the own cgroup is visible, each once (cgroups(7),
/// proc_pid_mountinfo(5)).
pub(super) fn parse(cgroup: &str, mountinfo: &str) -> Vec<Hierarchy> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    cgroup.lines().filter_map(|line| hierarchy(line, &mounts)).collect()
}

struct Mount {
    version: Version,
    root: PathBuf,
    point: PathBuf,
    options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (unescaped(mount.next()?), unescaped(mount.next()?));
        let mut file_system = file_system.split(' ');
        let version = match file_system.next()? {
            "cgroup" => Version::V1,
            "cgroup2" => Version::V2,
            _ => return None,
        };
        let options = file_system.nth(1).unwrap_or("").split(',').map(str::to_owned).collect();
        Some(Self {
            version,
            root,
            point,
            options,
        })
    }
}

/// One line is `id:controllers:path`; version 2 is `0::path`.
fn hierarchy(line: &str, mounts: &[Mount]) -> Option<Hierarchy> {
    let mut fields = line.splitn(3, ':');
    let id = fields.next()?;
    let controllers: Vec<String> = fields
        .next()?
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let path = Path::new(fields.next()?);
    // A cgroup outside the cgroup namespace is spelled with `..`: nothing of it can be reached.
    if path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let version = if id == "0" && controllers.is_empty() {
        Version::V2
    } else {
        Version::V1
    };
    mounts
        .iter()
        .filter(|mount| mount.version == version)
        .find_map(|mount| {
            let named = |controller: &String| mount.options.contains(controller);
            if version == Version::V1 && !controllers.iter().all(named) {
                return None;
            }
            let below = path.strip_prefix(&mount.root).ok()?;
            let own = if below == Path::new("") {
                mount.point.clone()
            } else {
                mount.point.join(below)
            };
            Some(Hierarchy {
                version,
                controllers: controllers.clone(),
                mount: mount.point.clone(),
                own,
            })
        })
}

/// Undoes the octal escapes of space, tab, newline and backslash.
fn unescaped(field: &str) -> PathBuf {
    let mut text = field.to_owned();
    for (escape, plain) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        text = text.replace(escape, plain);
    }
    text.into()
}
