//! The policy flags that `run` and `policy show` share.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use pinfold_model::policy::{Flags, Policy};

use super::settings::settings;
use super::{Folders, LoadError, Sources, load};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// Read this policy file in place of your own.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Import a Sandbox Runtime settings file.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Skip keys of the settings file that its format does not have, with a note.
    #[arg(long, requires = "settings")]
    pub(super) settings_skip_unknown: bool,
    /// Obey `filesystem.disabled` of the settings file, which switches off every file rule.
    #[arg(long, requires = "settings")]
    pub(super) settings_open_filesystem: bool,
    /// Build on a named policy: a shipped profile or one of yours.
    #[arg(long, value_name = "NAME")]
    profile: Vec<String>,
    /// Make a path visible.
    #[arg(long, value_name = "PATH")]
    read: Vec<OsString>,
    /// Make a path visible and writable.
    #[arg(long, value_name = "PATH")]
    write: Vec<OsString>,
    /// Hide a path.
    #[arg(long, value_name = "PATH")]
    hide: Vec<OsString>,
    /// Make a path unwritable.
    #[arg(long, value_name = "PATH")]
    readonly: Vec<OsString>,
    /// Let a group of protected paths be written, such as git-hooks.
    #[arg(long, value_name = "GROUP")]
    lift: Vec<String>,
    /// Allow a host: HOST, *.DOMAIN, ADDRESS or RANGE, each with :PORTS.
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Deny a host, whatever else allows it.
    #[arg(long, value_name = "HOST")]
    deny: Vec<String>,
    /// Allow every host. Denials still hold.
    #[arg(long)]
    allow_all: bool,
    /// Pass a variable (NAME) or set one (NAME=VALUE).
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Limit the memory of the whole tree, such as 4GiB.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Limit the CPUs, such as 2 or 0.5.
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<String>,
    /// Limit the number of processes and threads.
    #[arg(long, value_name = "NUMBER")]
    pids: Option<String>,
    /// End the command after this time, such as 90s or 2h.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

/// A merged policy, and what the person should know about how it came to be.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) policy: Policy,
    /// Whole sentences for standard error.
    pub(crate) notes: Vec<String>,
}

impl PolicyArgs {
    /// The flags that name sources, and no others.
    #[must_use]
    pub(crate) fn naming(config: Option<PathBuf>, profile: Vec<String>) -> Self {
        Self {
            config,
            profile,
            ..Self::default()
        }
    }

    /// Loads every source that these flags and the folders name. `cwd` and `workspace` are canonical.
    pub(crate) fn load(&self, folders: &Folders, cwd: &Path, workspace: &Path) -> Result<Loaded, LoadError> {
        let (settings, notes) = settings(self, folders, cwd, workspace)?
            .map_or((None, Vec::new()), |imported| (Some(imported.layer), imported.notes));
        let sources = Sources {
            folders,
            cwd,
            workspace,
            config: self.config.as_deref(),
            settings,
            flags: &self.flags(),
        };
        Ok(Loaded {
            policy: load(&sources)?,
            notes,
        })
    }

    /// The flags as the model judges them.
    #[must_use]
    pub(crate) fn flags(&self) -> Flags {
        let bytes = |paths: &[OsString]| paths.iter().map(|path| path.clone().into_vec()).collect();
        Flags {
            profile: self.profile.clone(),
            read: bytes(&self.read),
            write: bytes(&self.write),
            hide: bytes(&self.hide),
            readonly: bytes(&self.readonly),
            lift: self.lift.clone(),
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            allow_all: self.allow_all,
            env: self.env.clone(),
            memory: self.memory.clone(),
            cpus: self.cpus.clone(),
            pids: self.pids.clone(),
            timeout: self.timeout.clone(),
        }
    }
}
