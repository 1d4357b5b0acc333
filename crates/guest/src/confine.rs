//! What every command gives up right before it is executed, in the one order that works.

use pinfold_model::plan::{GrantAccess, Plan, Rlimits};
use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::{Errno, capability, landlock, seccomp};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Resource, Rlimit};

use crate::failure::{During, failure, shown};

/// The layers of a command, prepared once by the guest and put on by each child.
pub(crate) struct Walls {
    ruleset: landlock::Ruleset,
    filter: Vec<seccomp::Instruction>,
    rlimits: Rlimits,
}

impl Walls {
    /// Prepares the layers in the finished view.
    pub(crate) fn prepare(plan: &Plan) -> Result<Self, Failure> {
        Ok(Self {
            ruleset: ruleset(plan)?,
            filter: plan
                .filter
                .iter()
                .map(|i| seccomp::instruction(i.code, i.jt, i.jf, i.k))
                .collect(),
            rlimits: plan.rlimits,
        })
    }

    /// Gives up everything the command must not have. Each step is for good; the caller executes the command or exits.
    pub(crate) fn put_on(&self) -> Result<(), Failure> {
        limit(self.rlimits)?;
        capability::drop_all().during(Layer::Capabilities, || "drop every capability".to_owned())?;
        rustix::thread::set_no_new_privs(true).during(Layer::Capabilities, || "set no-new-privileges".to_owned())?;
        self.ruleset
            .restrict_self()
            .during(Layer::Landlock, || "apply the landlock rules".to_owned())?;
        seccomp::install(&self.filter).during(Layer::Seccomp, || "install the system call filter".to_owned())
    }
}

fn ruleset(plan: &Plan) -> Result<landlock::Ruleset, Failure> {
    let abi = landlock::abi().during(Layer::Landlock, || "ask for the landlock version".to_owned())?;
    let rules = landlock::Ruleset::new(abi).during(Layer::Landlock, || "make the landlock rules".to_owned())?;
    for grant in &plan.grants {
        let step = || format!("grant {} in landlock", shown(&grant.path));
        let path = rustix::fs::open(grant.path.as_slice(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .during(Layer::Landlock, step)?;
        let is_dir = rustix::fs::fstat(&path)
            .map(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            .during(Layer::Landlock, step)?;
        let rights = match grant.access {
            GrantAccess::Read => landlock::right::READ,
            GrantAccess::Use => {
                landlock::right::READ
                    | landlock::right::WRITE_FILE
                    | landlock::right::TRUNCATE
                    | landlock::right::IOCTL_DEV
            }
            GrantAccess::Write => landlock::all_rights(abi),
        };
        let rights = if is_dir {
            rights
        } else {
            rights & landlock::right::ON_FILES
        };
        rules
            .grant(rustix::fd::AsFd::as_fd(&path), rights)
            .during(Layer::Landlock, step)?;
    }
    Ok(rules)
}

fn limit(rlimits: Rlimits) -> Result<(), Failure> {
    // One byte: zero would stop core files, but not a core handler at the end of a pipe.
    set_limit(Resource::Core, 1)?;
    if let Some(processes) = rlimits.processes {
        set_limit(Resource::Nproc, processes)?;
    }
    Ok(())
}

fn set_limit(resource: Resource, value: u64) -> Result<(), Failure> {
    let hard = rustix::process::getrlimit(resource)
        .maximum
        .map_or(value, |hard| hard.min(value));
    rustix::process::setrlimit(
        resource,
        Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        },
    )
    .during(Layer::Limits, || format!("set the limit {resource:?} to {hard}"))?;
    if rustix::process::getrlimit(resource).current == Some(hard) {
        Ok(())
    } else {
        Err(failure(
            Layer::Limits,
            format!("read back the limit {resource:?}"),
            Errno::INVAL,
        ))
    }
}
