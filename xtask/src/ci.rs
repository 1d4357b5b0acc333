//! The one entry point: what has to pass before a change lands.

use crate::generate::Mode;
use crate::{Outcome, generate, invoke, tidy};

/// Cheap checks first, so that a slip is told within seconds. The fuzz targets' bodies and the arrows between the crates
/// are part of `cargo test`.
pub(crate) fn run() -> Outcome {
    invoke::run(invoke::cargo().args(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    invoke::run(invoke::cargo().args(clippy))?;
    invoke::run(invoke::cargo().args(["test", "--workspace", "--locked", "--no-fail-fast"]))?;
    generate::run(Mode::Check)?;
    if invoke::find("cargo-deny").is_some() {
        invoke::run(invoke::cargo().args(["deny", "--workspace", "check"]))?;
    } else {
        eprintln!("xtask: advisories were not looked up: cargo-deny is not installed (licences were, by tidy)");
    }
    eprintln!("xtask: ci passed");
    Ok(())
}
