//! Limits on memory, processor time and processes of a whole sandbox: a cgroup of its own.
//!
//! Owns finding where a cgroup can be made (version 1, version 2, or both side by side), the values, and taking it
//! away again. Nothing is made unless a limit was asked for: joining a cgroup costs milliseconds. A limit that was
//! asked for and cannot be held is an error, never a weaker limit.

mod delegation;
mod error;
mod hierarchy;
mod leaf;
mod owner;
#[cfg(test)]
mod tests;
mod usable;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use pinfold_model::policy;
use rustix::process::Pid;

use delegation::Nest;
pub use error::CgroupError;
use error::{HINT_CONTAINER, HINT_V1};
use hierarchy::{Hierarchy, Version};
use leaf::Leaf;
use owner::Owner;
pub use usable::{Usable, usable};

/// What the whole tree of a sandbox may use; none is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, swap included.
    pub memory: Option<u64>,
    /// Thousandths of one processor.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
}

impl From<&policy::Limits> for Limits {
    fn from(limits: &policy::Limits) -> Self {
        Self {
            memory: limits.memory.as_ref().map(|limit| limit.value),
            cpu_millis: limits.cpu_millis.as_ref().map(|limit| limit.value),
            pids: limits.pids.as_ref().map(|limit| limit.value),
        }
    }
}

impl Limits {
    /// Whether nobody asked for anything, so that no cgroup is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn controllers(&self) -> Vec<Controller> {
        let asked = [
            (Controller::Memory, self.memory.is_some()),
            (Controller::Cpu, self.cpu_millis.is_some()),
            (Controller::Pids, self.pids.is_some()),
        ];
        asked
            .iter()
            .filter(|(_, asked)| *asked)
            .map(|(controller, _)| *controller)
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Cpu,
    Pids,
}

impl Controller {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }
}

/// A sandbox's cgroup: one folder in each hierarchy that holds one of its limits.
///
/// Dropping it takes the folders away if the processes end soon; what stays is taken by a later [`Cgroup::create`].
#[derive(Debug)]
pub struct Cgroup {
    leaves: Vec<Leaf>,
    nest: Option<Nest>,
}

impl Cgroup {
    /// Makes a cgroup that holds `limits`, below the one this process is in.
    ///
    /// # Errors
    /// When one of the limits cannot be held here. Nothing is left behind then.
    pub fn create(limits: &Limits) -> Result<Self, CgroupError> {
        let hierarchies = hierarchies()?;
        let owner = Owner::current().ok_or_else(unreadable_self)?;
        Self::create_in(&hierarchies, &owner, limits)
    }

    fn create_in(hierarchies: &[Hierarchy], owner: &Owner, limits: &Limits) -> Result<Self, CgroupError> {
        let mut cgroup = Self {
            leaves: Vec::new(),
            nest: None,
        };
        let mut unified = Vec::new();
        for controller in limits.controllers() {
            match hierarchy::v1_of(hierarchies, controller) {
                Some(hierarchy) => cgroup.make_v1(hierarchy, owner, Some(controller))?,
                None => unified.push(controller),
            }
        }
        let v2 = hierarchies.iter().find(|hierarchy| hierarchy.version == Version::V2);
        match (v2, unified.first()) {
            (Some(v2), Some(_)) => cgroup.make_v2(v2, owner, unified)?,
            (None, Some(controller)) => {
                return Err(CgroupError::NoController {
                    controller: controller.name(),
                });
            }
            (_, None) => cgroup.make_killable(hierarchies, v2, owner),
        }
        for leaf in &cgroup.leaves {
            leaf.limit(limits)?;
        }
        Ok(cgroup)
    }

    fn make_v1(
        &mut self,
        hierarchy: &Hierarchy,
        owner: &Owner,
        controller: Option<Controller>,
    ) -> Result<(), CgroupError> {
        // Controllers that are mounted together share the folder.
        if let Some(leaf) = self
            .leaves
            .iter_mut()
            .find(|leaf| leaf.directory.starts_with(&hierarchy.mount))
        {
            leaf.controllers.extend(controller);
            return Ok(());
        }
        owner::reclaim(&hierarchy.own, owner);
        let directory = hierarchy.own.join(name(owner)?);
        fs::create_dir(&directory).map_err(|source| CgroupError::NotDelegated {
            controllers: controller.map_or("process", Controller::name).to_owned(),
            directory: hierarchy.own.clone(),
            source,
            hint: HINT_V1,
        })?;
        self.leaves.push(Leaf {
            version: Version::V1,
            directory,
            controllers: controller.into_iter().collect(),
        });
        Ok(())
    }

    fn make_v2(&mut self, hierarchy: &Hierarchy, owner: &Owner, needed: Vec<Controller>) -> Result<(), CgroupError> {
        let parent = delegation::parent(hierarchy, &needed, &name(owner)?)?;
        self.nest = parent.nest;
        owner::reclaim(&parent.directory, owner);
        let directory = parent.directory.join(name(owner)?);
        fs::create_dir(&directory).map_err(|source| CgroupError::NotDelegated {
            controllers: names(&needed),
            directory: parent.directory.clone(),
            source,
            hint: HINT_CONTAINER,
        })?;
        self.leaves.push(Leaf {
            version: Version::V2,
            directory,
            controllers: needed,
        });
        Ok(())
    }

    /// Where version 1 holds every limit, a folder in a hierarchy that can stop all processes at once, if there is one.
    /// Without it killing is repeated until nothing is left.
    fn make_killable(&mut self, hierarchies: &[Hierarchy], v2: Option<&Hierarchy>, owner: &Owner) {
        if self.leaves.is_empty() || v2.is_some_and(|v2| self.make_v2(v2, owner, Vec::new()).is_ok()) {
            return;
        }
        if let Some(freezer) = hierarchies.iter().find(|hierarchy| hierarchy.has("freezer")) {
            let _ = self.make_v1(freezer, owner, None);
        }
    }

    /// Moves a process, with its threads, into it. Children that it makes later are in it, too.
    ///
    /// # Errors
    /// When the kernel refuses; the process must not go on then.
    pub fn add(&self, pid: Pid) -> Result<(), CgroupError> {
        self.leaves.iter().try_for_each(|leaf| leaf.add(pid))
    }

    /// Whether the memory limit has killed a process. False where there is no such limit.
    #[must_use]
    pub fn oom_killed(&self) -> bool {
        self.leaves.iter().filter_map(Leaf::oom_kills).any(|kills| kills > 0)
    }

    /// Kills every process in it and waits until they have ended.
    ///
    /// # Errors
    /// When some do not end within seconds.
    pub fn kill_all(&self) -> io::Result<()> {
        // Of several leaves with the same processes the last one is the best for killing.
        self.leaves.iter().rev().try_for_each(Leaf::kill)
    }

    /// Takes the folders away; waits for a bounded time for processes that are ending.
    ///
    /// # Errors
    /// When processes are left. The folders are then taken by a later start.
    pub fn remove(mut self) -> Result<(), CgroupError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), CgroupError> {
        let mut result = Ok(());
        for leaf in self.leaves.drain(..) {
            if let Err(source) = leaf.remove() {
                result = Err(CgroupError::NotRemoved {
                    directory: leaf.directory,
                    source,
                });
            }
        }
        if let Some(nest) = self.nest.take() {
            nest.undo();
        }
        result
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = self.take_away();
    }
}

/// Removes the empty cgroups that dead processes of Pinfold have left beside the own one. Returns how many.
pub fn reclaim_stale() -> usize {
    let (Ok(hierarchies), Some(owner)) = (hierarchies(), Owner::current()) else {
        return 0;
    };
    let places = hierarchies.iter().flat_map(|hierarchy| match hierarchy.version {
        Version::V1 => hierarchy.own.ancestors().take(1),
        Version::V2 => hierarchy.own.ancestors().take(2),
    });
    places.map(|place| owner::reclaim(place, &owner)).sum()
}

fn hierarchies() -> Result<Vec<Hierarchy>, CgroupError> {
    let read = |path: &str| {
        let bytes = fs::read(path).map_err(|source| CgroupError::Unreadable {
            path: path.into(),
            source,
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(hierarchy::parse(
        &read("/proc/self/cgroup")?,
        &read("/proc/self/mountinfo")?,
    ))
}

fn unreadable_self() -> CgroupError {
    CgroupError::Unreadable {
        path: PathBuf::from("/proc/self/stat"),
        source: ErrorKind::InvalidData.into(),
    }
}

fn name(owner: &Owner) -> Result<String, CgroupError> {
    let no_random = || CgroupError::Unreadable {
        path: "getrandom(2)".into(),
        source: ErrorKind::UnexpectedEof.into(),
    };
    owner.name().ok_or_else(no_random)
}

fn names(controllers: &[Controller]) -> String {
    controllers
        .iter()
        .map(|controller| controller.name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Writes one value with one call, as the kernel wants it, to a file that exists.
fn write(file: &Path, value: &str) -> io::Result<()> {
    File::options().write(true).open(file)?.write_all(value.as_bytes())
}
