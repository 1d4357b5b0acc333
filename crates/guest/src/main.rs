//! The init of every sandbox: builds the walls from a plan, proves them, starts the command inside and reaps what it leaves.
//!
//! It is the only process of ours inside the walls. It knows no policy, reads no file of the workspace, and takes orders
//! from the control socket alone. It runs single-threaded.
#![forbid(unsafe_code)]

mod channel;
mod command;
mod confine;
mod explain;
mod failure;
mod guard;
mod init;
mod network;
mod prove;
mod session;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    match init::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(125),
    }
}
