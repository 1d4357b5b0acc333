//! Where in a version 2 hierarchy a leaf with the needed controllers can be made.
//!
//! A cgroup that has processes cannot hand controllers to children (cgroups(7), "no internal processes"). So the
//! parent of the leaf is, in this order: the own cgroup when it may hand them on already; the own cgroup after this
//! process, alone in it, has moved to a child (what a delegated scope is for); the nearest writable ancestor.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::error::{CgroupError, HINT_CONTAINER, HINT_SYSTEMD};
use super::hierarchy::Hierarchy;
use super::{Controller, names, write};

/// The place for a leaf.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) directory: PathBuf,
    /// Undone when the cgroup is removed.
    pub(super) nest: Option<Nest>,
}

/// This process has moved from `own` into `child`, so that `own` can hand on controllers.
#[derive(Debug)]
pub(super) struct Nest {
    own: PathBuf,
    child: PathBuf,
    enabled: Vec<Controller>,
}

pub(super) fn parent(hierarchy: &Hierarchy, needed: &[Controller], name: &str) -> Result<Parent, CgroupError> {
    let first = match usable(&hierarchy.own, needed) {
        Ok(()) => {
            return Ok(Parent {
                directory: hierarchy.own.clone(),
                nest: None,
            });
        }
        Err(error) => error,
    };
    if first.kind() == ErrorKind::ResourceBusy
        && is_alone(&hierarchy.own)
        && let Ok(nest) = Nest::make(&hierarchy.own, needed, name)
    {
        return Ok(Parent {
            directory: hierarchy.own.clone(),
            nest: Some(nest),
        });
    }
    let above = hierarchy
        .own
        .ancestors()
        .skip(1)
        .take_while(|directory| directory.starts_with(&hierarchy.mount));
    for directory in above {
        match usable(directory, needed) {
            Ok(()) => {
                return Ok(Parent {
                    directory: directory.to_owned(),
                    nest: None,
                });
            }
            // Moving a process needs a writable common ancestor: nothing above can help.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
            Err(_) => {}
        }
    }
    let hint = if rustix::process::geteuid().is_root() {
        HINT_CONTAINER
    } else {
        HINT_SYSTEMD
    };
    Err(CgroupError::NotDelegated {
        controllers: names(needed),
        directory: hierarchy.own.clone(),
        source: first,
        hint,
    })
}

/// Whether a leaf below `directory` has the controllers, after enabling them where that is possible. What it lists as
/// enabled is no proof against it: only the attempt tells.
fn usable(directory: &Path, needed: &[Controller]) -> io::Result<()> {
    for place in [directory, &directory.join("cgroup.procs")] {
        access(place, Access::WRITE_OK)?;
    }
    let offered = listed(&directory.join("cgroup.controllers"))?;
    if let Some(absent) = needed
        .iter()
        .find(|controller| !offered.iter().any(|name| name == controller.name()))
    {
        let message = format!("the {} controller is not handed down to it", absent.name());
        return Err(io::Error::new(ErrorKind::Unsupported, message));
    }
    enable(directory, needed)
}

fn enable(directory: &Path, needed: &[Controller]) -> io::Result<()> {
    let file = directory.join("cgroup.subtree_control");
    let lacks = |enabled: &[String], controller: &Controller| !enabled.iter().any(|name| name == controller.name());
    let enabled = listed(&file)?;
    let missing: Vec<&Controller> = needed.iter().filter(|controller| lacks(&enabled, controller)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let change: Vec<String> = missing
        .iter()
        .map(|controller| format!("+{}", controller.name()))
        .collect();
    write(&file, &change.join(" "))?;
    let enabled = listed(&file)?;
    if needed.iter().any(|controller| lacks(&enabled, controller)) {
        return Err(io::Error::new(
            ErrorKind::Unsupported,
            "the kernel took the change and did not keep it",
        ));
    }
    Ok(())
}

fn listed(file: &Path) -> io::Result<Vec<String>> {
    Ok(fs::read_to_string(file)?
        .split_ascii_whitespace()
        .map(str::to_owned)
        .collect())
}

fn is_alone(directory: &Path) -> bool {
    let own = std::process::id().to_string();
    fs::read_to_string(directory.join("cgroup.procs")).is_ok_and(|list| list.trim_end() == own)
}

impl Nest {
    fn make(own: &Path, needed: &[Controller], name: &str) -> io::Result<Self> {
        let enabled = listed(&own.join("cgroup.subtree_control"))?;
        let enabled = needed
            .iter()
            .filter(|controller| !enabled.iter().any(|name| name == controller.name()));
        let nest = Self {
            own: own.to_owned(),
            child: own.join(name),
            enabled: enabled.copied().collect(),
        };
        fs::create_dir(&nest.child)?;
        let made = write(&nest.child.join("cgroup.procs"), "0").and_then(|()| enable(own, needed));
        match made {
            Ok(()) => Ok(nest),
            Err(error) => {
                nest.undo();
                Err(error)
            }
        }
    }

    /// Moves this process back. What cannot be undone vanishes with the scope.
    pub(super) fn undo(&self) {
        let change: Vec<String> = self
            .enabled
            .iter()
            .map(|controller| format!("-{}", controller.name()))
            .collect();
        let _ = write(&self.own.join("cgroup.subtree_control"), &change.join(" "));
        let _ = write(&self.own.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&self.child);
    }
}
