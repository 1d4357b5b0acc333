//! The commands, a file each.

mod audit_log;
mod completions;
mod doctor;
mod policy;
mod reference;
mod run;
mod schema;
mod trust;

use clap::Subcommand;

use pinfold_runtime::backend::process::{Guest, Image, StartError, refuse_privileged_file};

use crate::error::Error;
use crate::policy::Folders;
use crate::{GUEST, GUEST_ID};

/// A guest that waits for its plan, or why there is none.
pub(crate) type StartedGuest = Result<Guest, StartError>;

/// Refuses to go on with privileges that come from the program file itself.
pub(crate) fn refuse_privileges() -> Result<(), Error> {
    refuse_privileged_file().map_err(run::start_error::explain)
}

/// Starts a guest.
pub(crate) fn start_guest() -> StartedGuest {
    let folders = Folders::from_environment();
    // A home that is not there is an error of its own, and must not be made on the way to it.
    let home = folders.home.as_deref().is_some_and(std::path::Path::is_dir);
    let folder = folders.data.filter(|_| home).map(|data| data.join("guest"));
    Guest::start(&Image {
        content: GUEST,
        id: GUEST_ID,
        folder: folder.as_deref(),
    })
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<run::RunArgs>),
    Policy(policy::PolicyCommand),
    Trust(trust::TrustArgs),
    Doctor(doctor::DoctorArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    #[command(name = "__reference", hide = true)]
    Reference(reference::ReferenceArgs),
}

impl Command {
    /// `guest` was started early for a sandbox.
    pub(crate) fn run(self, guest: Option<StartedGuest>) -> Result<u8, Error> {
        Ok(match self {
            Self::Run(args) => run::run(&args, guest.unwrap_or_else(start_guest))?,
            Self::Policy(command) => policy::run(&command)?,
            Self::Trust(args) => trust::run(&args)?,
            Self::Doctor(args) => doctor::run(&args)?,
            Self::Schema(args) => schema::run(&args)?,
            Self::Completions(args) => completions::run(&args)?,
            Self::Reference(args) => reference::run(&args)?,
        })
    }
}
