//! Generated references: committed, and compared by `ci`, so that they cannot drift from the program.

use std::fs;
use std::path::PathBuf;

use crate::{Outcome, invoke};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

/// A file of the work tree and the command line of `pinfold` that prints it.
struct Reference {
    file: &'static str,
    arguments: &'static [&'static str],
}

const REFERENCES: [Reference; 2] = [
    Reference {
        file: "api/policy.schema.json",
        arguments: &["schema"],
    },
    Reference {
        file: "docs/reference/cli.md",
        arguments: &["__reference"],
    },
];

pub(crate) fn run(mode: Mode) -> Outcome {
    for reference in &REFERENCES {
        let path = invoke::root().join(reference.file);
        let mut command = invoke::cargo();
        command
            .args(["run", "--quiet", "--locked", "--package", "pinfold", "--"])
            .args(reference.arguments);
        let made = invoke::output(&mut command)?;
        match mode {
            Mode::Write => write(&path, &made)?,
            Mode::Check => {
                let kept = fs::read_to_string(&path).unwrap_or_default();
                if kept != made {
                    let file = reference.file;
                    return Err(format!(
                        "{file} is not what the program prints\nhint: cargo xtask gen, and look at the change"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn write(path: &PathBuf, text: &str) -> Outcome {
    let failed = |error: std::io::Error| format!("{} could not be written: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}
