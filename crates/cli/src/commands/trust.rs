//! `pinfold trust`: accept what a workspace's policy file loosens, for exactly its present content.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use pinfold_model::origin::Scope;
use pinfold_model::policy::path::shown_path;
use pinfold_model::policy::{Loosening, harmless_text};

use crate::policy::{FILE_NAME, Folders, LoadError, Project, TrustStore, before_project};

/// Trust a workspace's policy file as it is now. A change of the file ends the trust.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrustArgs {
    /// The workspace, or its pinfold.toml.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Take the trust back, for every content.
    #[arg(long)]
    revoke: bool,
}

/// # Errors
/// The file cannot be read or understood, or the record cannot be kept.
pub(crate) fn run(args: &TrustArgs) -> Result<u8, LoadError> {
    let folders = Folders::from_environment();
    LoadError::unless_written(trust(args, &folders, &mut io::stdout().lock())?)
}

fn trust(args: &TrustArgs, folders: &Folders, out: &mut dyn Write) -> Result<io::Result<()>, LoadError> {
    let store = TrustStore::new(folders).ok_or(LoadError::NoState)?;
    let workspace = workspace(&args.path)?;
    let path = workspace.join(FILE_NAME);
    if args.revoke {
        let said = if store.revoke(&path)? {
            "is no longer trusted"
        } else {
            "was not trusted"
        };
        return Ok(writeln!(out, "{} {said}", shown_path(&path)));
    }
    let Some(project) = Project::read(&workspace)? else {
        return Err(LoadError::Missing { path });
    };
    // Read as a trusted file, so that nothing stops at the first rule that loosens.
    let layer = project.layer(Scope::Trusted, folders.home.as_deref())?;
    let mut found: Vec<Loosening> = layer
        .profiles
        .iter()
        .map(|(name, origin)| Loosening {
            rule: format!("use the profile {name}"),
            origin: origin.clone(),
        })
        .collect();
    found.extend(layer.loosenings(&before_project(folders)?));
    store.add(&project.path, &project.content)?;
    Ok(report(&path, &found, out))
}

/// The folder that is meant: the path itself, or the one that holds the file.
fn workspace(given: &Path) -> Result<PathBuf, LoadError> {
    let named_file = given.file_name().is_some_and(|name| name == FILE_NAME) && !given.is_dir();
    let folder = match given.parent() {
        Some(parent) if named_file && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if named_file => parent,
        _ => given,
    };
    folder.canonicalize().map_err(|source| LoadError::Folder {
        path: folder.to_owned(),
        source,
    })
}

fn report(path: &Path, found: &[Loosening], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", shown_path(path))?;
    for Loosening { rule, origin } in found {
        writeln!(
            out,
            "  {}   ({})",
            harmless_text(rule),
            harmless_text(&origin.to_string())
        )?;
    }
    if found.is_empty() {
        writeln!(out, "  loosens nothing")?;
    }
    writeln!(
        out,
        "trusted until the file changes; to take it back: pinfold trust --revoke"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn told(args: &TrustArgs, folders: &Folders) -> Result<String, LoadError> {
        let mut out = Vec::new();
        trust(args, folders, &mut out)?.expect("memory takes everything");
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn trust_lists_what_is_loosened_and_revoke_takes_it_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let folders = Folders {
            data: Some(root.join("data")),
            ..Folders::default()
        };
        fs::create_dir(root.join("app")).expect("a folder");
        let file = root.join("app").join(FILE_NAME);
        let text =
            "profiles = ['node']\nnetwork.allow = ['api.example.com']\nfilesystem = { write = ['/srv'], hide = ['x'] }";
        fs::write(&file, text).expect("a file");
        let args = TrustArgs {
            path: file.clone(),
            revoke: false,
        };
        let expected = format!(
            "{}\n  use the profile node   (profiles[0] (pinfold.toml:1))\n  write /srv   (filesystem.write[0] (pinfold.toml:3))\n  \
             allow api.example.com   (network.allow[0] (pinfold.toml:2))\n\
             trusted until the file changes; to take it back: pinfold trust --revoke\n",
            file.display()
        );
        assert_eq!(told(&args, &folders).expect("trusted"), expected);
        let store = TrustStore::new(&folders).expect("a store");
        assert!(store.holds(&file, text.as_bytes()));
        let revoke = TrustArgs {
            path: root.join("app"),
            revoke: true,
        };
        assert_eq!(
            told(&revoke, &folders).expect("revoked"),
            format!("{} is no longer trusted\n", file.display())
        );
        assert!(!store.holds(&file, text.as_bytes()));
    }

    #[test]
    fn a_link_out_of_the_workspace_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let folders = Folders {
            data: Some(root.join("data")),
            ..Folders::default()
        };
        fs::create_dir(root.join("app")).expect("a folder");
        fs::write(root.join("outside.toml"), "version = 1").expect("a file");
        symlink("../outside.toml", root.join("app").join(FILE_NAME)).expect("a link");
        let error = told(
            &TrustArgs {
                path: root.join("app"),
                revoke: false,
            },
            &folders,
        )
        .expect_err("refused");
        assert!(
            error.to_string().ends_with("is a link that leads out of the workspace"),
            "{error}"
        );
        assert!(!root.join("data").exists());
    }

    #[test]
    fn a_file_that_is_wrong_or_absent_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders = Folders {
            data: Some(folder.path().join("data")),
            ..Folders::default()
        };
        let args = TrustArgs {
            path: folder.path().to_owned(),
            revoke: false,
        };
        assert!(matches!(told(&args, &folders), Err(LoadError::Missing { .. })));
        fs::write(folder.path().join(FILE_NAME), "nonsense").expect("a file");
        assert!(matches!(told(&args, &folders), Err(LoadError::Policy(_))));
        assert!(!folder.path().join("data").exists());
    }
}
