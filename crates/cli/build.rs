//! Builds the static guest that pinfold carries inside itself.
//!
//! The guest has to run in any image, so it is linked without a dynamic linker; that needs other flags than the rest of the
//! build has, hence a build of its own in a target folder of its own.

use std::env;
use std::path::PathBuf;
use std::process::{Command, exit};

/// What the guest is made of; a change in any of these builds it anew.
const SOURCES: [&str; 5] = ["crates/guest", "crates/model", "crates/sys", "Cargo.toml", "Cargo.lock"];

fn main() {
    let variable = |name: &str| env::var_os(name).unwrap_or_else(|| fail(&format!("cargo did not set {name}")));
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let target = variable("TARGET");
    let folder = PathBuf::from(variable("OUT_DIR")).join("guest");

    let status = Command::new(variable("CARGO"))
        .current_dir(&root)
        .args(["build", "--package", "pinfold-guest", "--profile", "guest", "--target"])
        .arg(&target)
        .arg("--target-dir")
        .arg(&folder)
        // The outer build's flags and wrappers are not meant for the guest.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("building the guest ended with {status}")),
        Err(error) => fail(&format!("cargo could not be started to build the guest: {error}")),
    }
    let program = folder.join(target).join("guest").join("pinfold-guest");
    let content = std::fs::read(&program).unwrap_or_else(|error| fail(&format!("the guest cannot be read: {error}")));
    println!("cargo::rustc-env=PINFOLD_GUEST={}", program.display());
    println!("cargo::rustc-env=PINFOLD_GUEST_ID={}", id(&content));
}

/// A name for this build of the guest.
fn id(content: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(content)
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
