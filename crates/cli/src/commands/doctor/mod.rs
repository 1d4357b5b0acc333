//! `pinfold doctor`: what works on this host, and the exact fix for what does not.

mod page;

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use pinfold_runtime::doctor::{self, Report, Request};
use pinfold_runtime::host::Caller;

use super::start_guest;
use crate::error::{Error, code};
use crate::policy::Folders;

/// Tell what works on this host, and how to mend what does not.
///
/// Starts a sandbox in a folder made for it and tries every wall from the inside. Ends with 0 when sandboxes can be started,
/// else with 69.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print the report as JSON, with the name of every check.
    #[arg(long)]
    json: bool,
}

/// Prints the report; returns the exit code.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Error> {
    let no_home = || {
        Error::new(
            code::USAGE,
            "HOME is not set, so it is not known where pinfold keeps its state.",
        )
    };
    let folders = Folders::from_environment();
    let home = folders
        .home
        .as_ref()
        .ok_or_else(|| no_home().hint("set HOME to your home folder"))?;
    let home = std::fs::canonicalize(home).map_err(|error| {
        let message = format!("Your home folder {} cannot be looked at: {error}.", home.display());
        Error::new(code::USAGE, message).hint("set HOME to a folder that exists")
    })?;
    let data = folders
        .data
        .ok_or_else(|| no_home().hint("set HOME to your home folder"))?;
    let caller = Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        user: "user".to_owned(),
        home,
        shell: "/bin/sh".to_owned(),
    };
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let request = Request {
        caller: &caller,
        data: &data,
        environment: &environment,
    };
    let reports = [doctor::process(&request, start_guest)];
    let text = if args.json {
        as_json(&reports)?
    } else {
        page::page(&reports)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Error::new(code::IO, format!("The report cannot be written: {error}.")))?;
    Ok(if reports.iter().any(Report::is_ready) {
        0
    } else {
        code::NOT_AVAILABLE
    })
}

fn as_json(reports: &[Report]) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(reports)
        .map_err(|error| Error::new(code::BUG, format!("The report cannot be written as JSON: {error}.")))?;
    text.push('\n');
    Ok(text)
}
