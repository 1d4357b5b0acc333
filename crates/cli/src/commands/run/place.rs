//! Where a run happens and who asks for it: everything that comes from the environment of the process.

use std::io;
use std::path::{Path, PathBuf};

use pinfold_runtime::host::Caller;

use crate::error::{Error, code};
use crate::policy::{FILE_NAME, Folders, PolicyArgs};

/// The place of a run. Paths are absolute and canonical.
pub(super) struct Place {
    pub(super) cwd: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) folders: Folders,
    /// Pinfold's state folder; need not exist yet.
    pub(super) data: PathBuf,
    pub(super) caller: Caller,
}

impl Place {
    pub(super) fn find(workspace: Option<&Path>, workspace_is_home: bool) -> Result<Self, Error> {
        let cwd = std::env::current_dir()
            .and_then(std::fs::canonicalize)
            .map_err(|error| missing(Path::new("."), &error))?;
        let workspace = match workspace {
            None => cwd.clone(),
            Some(folder) => std::fs::canonicalize(folder).map_err(|error| missing(folder, &error))?,
        };
        if !workspace.is_dir() {
            return Err(Error::new(
                code::USAGE,
                format!("The workspace {} is not a folder.", workspace.display()),
            )
            .hint("name a folder with --workspace FOLDER"));
        }
        let folders = Folders::from_environment();
        let home = home(&folders)?;
        if workspace == Path::new("/") {
            return Err(Error::new(
                code::USAGE,
                "The workspace is /, so the command could change the whole host.",
            )
            .hint("start from the project's folder, or name it with --workspace FOLDER"));
        }
        if home.starts_with(&workspace) && !workspace_is_home {
            let what = if home == workspace {
                "is your home folder"
            } else {
                "holds your home folder"
            };
            return Err(Error::new(
                code::USAGE,
                format!(
                    "The workspace {} {what}, so the command could read and change every key and file of yours.",
                    workspace.display()
                ),
            )
            .hint("start from the project's folder, or accept the danger with --workspace-is-home"));
        }
        let data = folders.data.clone().ok_or_else(no_home)?;
        let data = without_links(&data);
        let name = |variable: &str| std::env::var(variable).ok().filter(|value| is_plain(value));
        let uid = rustix::process::geteuid().as_raw();
        let caller = Caller {
            uid,
            gid: rustix::process::getegid().as_raw(),
            user: name("USER")
                .or_else(|| name("LOGNAME"))
                .unwrap_or_else(|| if uid == 0 { "root" } else { "user" }.to_owned()),
            home,
            shell: name("SHELL")
                .filter(|shell| shell.starts_with('/'))
                .unwrap_or_else(|| "/bin/sh".to_owned()),
        };
        Ok(Self {
            cwd,
            workspace,
            folders,
            data,
            caller,
        })
    }

    /// The working directory of the command: the caller's, where it lies in the workspace.
    pub(super) fn cwd_inside(&self) -> &Path {
        if self.cwd.starts_with(&self.workspace) {
            &self.cwd
        } else {
            &self.workspace
        }
    }

    /// Pinfold's own files, which no sandbox may change.
    pub(super) fn own_paths(&self, policy: &PolicyArgs) -> Vec<PathBuf> {
        let mut paths = vec![self.workspace.join(FILE_NAME), self.data.clone()];
        paths.extend(self.folders.config.as_deref().map(without_links));
        for file in [&policy.config, &policy.settings].into_iter().flatten() {
            let file = self.cwd.join(file);
            paths.push(std::fs::canonicalize(&file).unwrap_or(file));
        }
        paths
    }
}

/// A path of which the last names may not exist yet, without links.
fn without_links(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        let mut real = std::fs::canonicalize(above).ok()?;
        real.extend(below);
        Some(real)
    });
    real.unwrap_or_else(|| path.to_owned())
}

/// The folder of `--rootfs`.
pub(super) fn rootfs(folder: &Path) -> Result<PathBuf, Error> {
    let hint = "name a folder that holds usr, etc and so on, such as one that debootstrap made";
    let real = std::fs::canonicalize(folder).map_err(|error| {
        let message = format!("The root file system {} cannot be used: {error}.", folder.display());
        Error::new(code::USAGE, message).hint(hint)
    })?;
    if real == Path::new("/") || !["usr", "bin"].iter().any(|name| real.join(name).is_dir()) {
        let message = format!("The folder {} is not a root file system of its own.", folder.display());
        return Err(Error::new(code::USAGE, message).hint(hint));
    }
    Ok(real)
}

fn home(folders: &Folders) -> Result<PathBuf, Error> {
    let home = folders.home.as_ref().ok_or_else(no_home)?;
    let canonical = std::fs::canonicalize(home).map_err(|error| {
        Error::new(
            code::USAGE,
            format!("Your home folder {} cannot be looked at: {error}.", home.display()),
        )
        .hint("set HOME to a folder that exists")
    })?;
    if canonical == Path::new("/") {
        return Err(Error::new(
            code::USAGE,
            "HOME is /, so there is no home folder to keep out of the sandbox.",
        )
        .hint("set HOME to a folder of your own"));
    }
    Ok(canonical)
}

fn no_home() -> Error {
    Error::new(
        code::USAGE,
        "HOME is not set, so it is not known what has to stay hidden.",
    )
    .hint("set HOME to your home folder")
}

fn missing(folder: &Path, error: &io::Error) -> Error {
    let what = if error.kind() == io::ErrorKind::NotFound {
        "does not exist"
    } else {
        "cannot be used"
    };
    Error::new(
        code::USAGE,
        format!("The workspace {} {what}: {error}.", folder.display()),
    )
    .hint("name a folder that exists with --workspace FOLDER")
}

/// Fit for a line of a generated passwd file.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && c != ':')
}
