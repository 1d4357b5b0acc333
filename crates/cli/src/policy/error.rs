//! Why the policy of a run could not be put together.

use std::io;
use std::path::PathBuf;

use pinfold_model::net::HostError;
use pinfold_model::policy::path::shown_path;
use pinfold_model::policy::srt::ImportError;
use pinfold_model::policy::{Loosening, PolicyError};
use pinfold_runtime::prepare::PrepareError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the policy file {} does not exist", shown_path(path))]
    Missing { path: PathBuf },
    #[error("the policy file {} cannot be read: {source}", shown_path(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is {what}, and a policy is a plain file", shown_path(path))]
    NotAFile { path: PathBuf, what: &'static str },
    #[error(
        "{} has {bytes} bytes, and a policy has at most {}",
        shown_path(path),
        pinfold_model::policy::LARGEST_FILE
    )]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{} is a link that {leads}", shown_path(path))]
    Link { path: PathBuf, leads: &'static str },
    #[error("there is no profile '{name}'")]
    UnknownProfile { name: String, known: Vec<String> },
    #[error("a workspace file that is not trusted chooses the profile '{name}', which would loosen the policy\n  {}   ({})", first.rule, first.origin)]
    UntrustedProfile { name: String, first: Loosening },
    #[error(transparent)]
    Settings(#[from] ImportError),
    #[error("it is not known where home is, because HOME is not set")]
    NoHome,
    /// The runtime's text carries its hint behind a marker.
    #[error("{}", without_hint(source).0)]
    Prepare {
        #[from]
        source: PrepareError,
    },
    #[error("the answer cannot be written: {source}")]
    Output { source: io::Error },
    #[error("the folder {} cannot be looked at: {source}", shown_path(path))]
    Folder { path: PathBuf, source: io::Error },
    #[error("'{text}' is not a host: {source}")]
    Host { text: String, source: HostError },
    #[error("what is trusted cannot be kept in {}: {source}", shown_path(path))]
    Store { path: PathBuf, source: io::Error },
    #[error("it is not known where Pinfold keeps its state, because HOME is not set")]
    NoState,
}

impl LoadError {
    /// The exit code of an answer that was written. A reader that went away wanted no more of it.
    pub(crate) fn unless_written(written: io::Result<()>) -> Result<u8, Self> {
        match written {
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(Self::Output { source }),
            _ => Ok(0),
        }
    }

    /// The next step for the person, without the word "hint".
    #[must_use]
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Policy(error) => error.hint().to_owned(),
            Self::Missing { .. } => "check the spelling of the path".to_owned(),
            Self::Read { .. } => "make the file readable, or take it away".to_owned(),
            Self::NotAFile { .. } => "put a plain file in its place, or take it away".to_owned(),
            Self::TooLarge { .. } => "is this the right file? A pattern can take the place of many paths".to_owned(),
            Self::Link { .. } => {
                "put the file itself in its place: a workspace cannot bring in a policy from outside".to_owned()
            }
            Self::UnknownProfile { name, known } => {
                let near = pinfold_model::policy::closest(name, known.iter().map(String::as_str));
                near.map_or_else(
                    || format!("the profiles are {}", known.join(", ")),
                    |near| format!("did you mean '{near}'?"),
                )
            }
            Self::UntrustedProfile { name, .. } => {
                format!("choose it yourself with --profile {name}, or read the file and run `pinfold trust`")
            }
            Self::Settings(_) => {
                "change the settings file; what Pinfold does with each key is in its documentation".to_owned()
            }
            Self::Prepare {
                source: PrepareError::Rule(rule),
            } => rule.hint(),
            Self::Prepare { source } => without_hint(source).1,
            Self::NoHome => "set HOME".to_owned(),
            Self::Output { .. } => "make room where the output goes".to_owned(),
            Self::Folder { .. } => "run from a folder that exists and that you may enter".to_owned(),
            Self::Host { .. } => "write HOST or HOST:PORT, an IPv6 address in brackets".to_owned(),
            Self::Store { .. } => "make the folder writable".to_owned(),
            Self::NoState => "set HOME or XDG_DATA_HOME".to_owned(),
        }
    }

    /// The exit code (requirements: pinfold's own failures).
    #[must_use]
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Policy(PolicyError::Flag { .. }) | Self::Host { .. } => 64,
            Self::Policy(_)
            | Self::Settings(_)
            | Self::Prepare { .. }
            | Self::NoHome
            | Self::Missing { .. }
            | Self::NotAFile { .. }
            | Self::TooLarge { .. }
            | Self::Link { .. }
            | Self::UnknownProfile { .. }
            | Self::UntrustedProfile { .. } => 65,
            Self::Store { .. } | Self::NoState => 73,
            Self::Read { .. } | Self::Output { .. } | Self::Folder { .. } => 74,
        }
    }
}

fn without_hint(error: &PrepareError) -> (String, String) {
    let text = error.to_string();
    match text.split_once(" hint: ") {
        Some((message, hint)) => (message.to_owned(), hint.to_owned()),
        None => (text, "pinfold policy show prints the rules".to_owned()),
    }
}
