//! The reference of the command line, for `docs/reference/cli.md`: the help of every command, as a person sees it.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::{Args, Command};

use crate::error::{Error, code};

/// Columns that the help is laid out for, whatever terminal is there.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The command line

Written by `cargo xtask gen` from the program's own help.
";

/// Print the reference of the command line.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReferenceArgs {}

/// # Errors
/// The output cannot be written.
pub(crate) fn run(_: &ReferenceArgs) -> Result<u8, Error> {
    io::stdout()
        .write_all(text().as_bytes())
        .map_err(|error| Error::new(code::IO, format!("The reference cannot be written: {error}.")))?;
    Ok(0)
}

fn text() -> String {
    let mut program = crate::command_line().term_width(WIDTH).disable_help_subcommand(true);
    program.build();
    let mut out = HEAD.to_owned();
    section(&mut program, &mut out);
    out
}

fn section(command: &mut Command, out: &mut String) {
    let name = command.get_bin_name().unwrap_or("pinfold").to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = write!(out, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    for command in command.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        section(command, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_command_has_its_section() {
        let text = super::text();
        for name in ["pinfold", "pinfold run", "pinfold policy check", "pinfold completions"] {
            assert!(text.contains(&format!("\n## `{name}`\n")), "{name}");
        }
        assert!(!text.contains("__reference"));
    }
}
