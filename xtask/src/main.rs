//! What the project's own work is done with: `cargo xtask ci | tidy | gen | bench | as-user | fuzz`.
//!
//! Knows the work tree and the tools on the machine, never the product's crates: it drives the built `pinfold` as a
//! person would.
#![forbid(unsafe_code)]

mod as_user;
mod bench;
mod ci;
mod fuzz;
mod generate;
mod invoke;
mod metadata;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci                              everything that has to pass before a change lands
  tidy                            the rules of the house that a program can hold
  gen [--check]                   generated references: write them, or compare them
  as-user USER                    the built test-suite once more, as an ordinary user (needs root)
  fuzz TARGET [--seconds N]       libFuzzer on one target (needs a nightly toolchain and cargo-fuzz)
  bench start|files|proxy [--runs N] [--json] [--pinfold PATH]
                                  speed, as ratios to peers measured in the same run";

/// What went wrong, as a sentence for the person who typed the command.
type Outcome<T = ()> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Outcome {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => ci::run(),
        ["tidy"] => tidy::run(),
        ["gen"] => generate::run(generate::Mode::Write),
        ["gen", "--check"] => generate::run(generate::Mode::Check),
        ["as-user", user] => as_user::run(user),
        ["fuzz", target] => fuzz::run(target, 60),
        ["fuzz", target, "--seconds", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(target, seconds),
            Err(_) => Err(format!("{seconds} is not a number of seconds")),
        },
        ["bench", rest @ ..] => bench::run(rest),
        ["bench-client", rest @ ..] => bench::http::client(rest),
        ["bench-files", rest @ ..] => bench::files::work(rest),
        [] | ["--help" | "-h" | "help"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("no such command: {}\n{USAGE}", other.join(" "))),
    }
}
