//! A longer look at one fuzz target with libFuzzer.
//!
//! The bodies of the targets live in `tests/fuzz`, where a stable toolchain runs each of them over its corpus and a
//! bounded number of mutations in every `cargo test`. This command is for the hours after that.

use std::process::Command;

use crate::{Outcome, invoke};

pub(crate) fn run(target: &str, seconds: u64) -> Outcome {
    if invoke::find("cargo-fuzz").is_none() {
        return Err("cargo-fuzz is not installed\nhint: cargo install cargo-fuzz --locked".to_owned());
    }
    let corpus = invoke::root().join("tests/fuzz/corpus").join(target);
    let mut command = Command::new("cargo");
    command
        .current_dir(invoke::root())
        .args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target])
        .arg(corpus)
        .args([
            "--",
            &format!("-max_total_time={seconds}"),
            "-max_len=65536",
            "-timeout=5",
        ])
        // The outer cargo's own toolchain must not hold for the nightly one.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    invoke::run(&mut command)
}
