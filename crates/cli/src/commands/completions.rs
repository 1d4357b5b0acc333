//! `pinfold completions`: what a shell needs to complete pinfold's command line.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use crate::error::{Error, code};

/// Print completions for a shell.
///
/// For this session, in bash: `source <(pinfold completions bash)`; in zsh: `source <(pinfold completions zsh)`; in fish:
/// `pinfold completions fish | source`. To keep them, write the output to a file where your shell looks for completions.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that asks.
    shell: Supported,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

/// # Errors
/// The output cannot be written.
pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, Error> {
    let shell = match args.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
    };
    // Into memory first: the generator cannot tell of a reader that went away.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut crate::command_line(), "pinfold", &mut text);
    match io::stdout().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::new(
            code::IO,
            format!("The completions cannot be written: {error}."),
        )
        .hint("make room where the output goes")),
        _ => Ok(0),
    }
}
