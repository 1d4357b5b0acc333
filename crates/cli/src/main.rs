//! `pinfold`: runs programs inside walls that the kernel holds.
#![forbid(unsafe_code)]

mod commands;
mod error;
mod policy;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

use commands::Command;

/// The static guest, built by the build script, and a name for this build of it.
static GUEST: &[u8] = include_bytes!(env!("PINFOLD_GUEST"));
const GUEST_ID: &str = env!("PINFOLD_GUEST_ID");

/// Runs AI agents and other programs inside walls that the kernel holds.
#[derive(Parser)]
#[command(name = "pinfold", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The command line as data, for what is generated from it.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}

fn main() -> ExitCode {
    // Before anything else is read: with privileges from its own file, everything below would be a way to misuse them.
    if let Err(error) = commands::refuse_privileges() {
        error::say!("{error}");
        return ExitCode::from(error.code());
    }
    // A sandbox's guest takes a moment to come up; it does so while the command line and the policy are read. Whatever comes
    // of those, a guest without a plan does nothing and ends with us.
    let guest = std::env::args_os()
        .nth(1)
        .filter(|command| command == "run")
        .map(|_| commands::start_guest());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no failure; a broken pipe is nobody's business here.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { error::code::USAGE } else { 0 });
        }
    };
    match cli.command.run(guest) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error::say!("{error}");
            ExitCode::from(error.code())
        }
    }
}
