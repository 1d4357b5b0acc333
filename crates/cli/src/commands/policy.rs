//! `pinfold policy`: what holds, what would happen, and what did, without running anything.

mod check;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::audit_log::{self, LogArgs};
use crate::policy::{Folders, LoadError};
use check::CheckArgs;
use show::ShowArgs;

/// Show the policy, ask it, or see what it did.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    pub(crate) question: Question,
}

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Question {
    Show(Box<ShowArgs>),
    Check(CheckArgs),
    Log(LogArgs),
}

/// # Errors
/// The policy cannot be loaded, or the answer cannot be written.
pub(crate) fn run(command: &PolicyCommand) -> Result<u8, LoadError> {
    match &command.question {
        Question::Show(args) => show::run(args),
        Question::Check(args) => check::run(args),
        Question::Log(args) => {
            let state = Folders::from_environment().data.ok_or(LoadError::NoState)?;
            Ok(audit_log::run(args, &state.join("audit")))
        }
    }
}

/// The working directory without links: the workspace of a run that would start here.
fn current_folder() -> Result<PathBuf, LoadError> {
    let here = || std::env::current_dir()?.canonicalize();
    here().map_err(|source| LoadError::Folder {
        path: PathBuf::from("."),
        source,
    })
}
