//! The folder in which the walls are tried.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::plan::{self, RawPath, Step};
use pinfold_model::policy::{PathAccess, PathPattern, PathRule, Policy};

use super::Request;
use crate::prepare;

/// A folder with a workspace, a state folder and a layer. Gone when dropped.
pub(super) struct Trial {
    folder: PathBuf,
    state: PathBuf,
    workspace: PathBuf,
    /// Parents that did not exist before.
    made: Vec<PathBuf>,
}

impl Trial {
    pub(super) fn make(data: &Path) -> io::Result<Self> {
        let made: Vec<PathBuf> = data
            .ancestors()
            .take_while(|above| !above.exists())
            .map(Path::to_owned)
            .collect();
        private(data)?;
        let data = std::fs::canonicalize(data)?;
        let folder = data.join(format!("doctor-{}", random()?));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let trial = Self {
            state: folder.join("state"),
            workspace: folder.join("workspace"),
            folder,
            made,
        };
        trial.fill()?;
        Ok(trial)
    }

    fn fill(&self) -> io::Result<()> {
        let git = self.workspace.join(".git");
        for folder in [
            self.state.clone(),
            git.join("hooks"),
            git.join("objects"),
            git.join("refs"),
            self.layered(),
            self.folder.join("lower"),
            self.folder.join("upper"),
            self.folder.join("work"),
        ] {
            private(&folder)?;
        }
        for (file, content) in [
            (git.join("HEAD"), "ref: refs/heads/main\n"),
            (git.join("config"), "[core]\n\trepositoryformatversion = 0\n"),
            (self.hidden(), "a secret that is none\n"),
            (self.folder.join("lower").join("lower"), "lower\n"),
        ] {
            std::fs::write(file, content)?;
        }
        Ok(())
    }

    fn hidden(&self) -> PathBuf {
        self.workspace.join("hidden")
    }

    fn layered(&self) -> PathBuf {
        self.workspace.join("layered")
    }

    /// A protected name that does not exist.
    pub(super) fn absent(&self) -> PathBuf {
        self.workspace.join(".mcp.json")
    }

    pub(super) fn quarantine(&self) -> PathBuf {
        self.folder.join("quarantine")
    }

    pub(super) fn workspace_bytes(&self) -> RawPath {
        raw(&self.workspace)
    }

    /// A policy that hides a file and allows nothing.
    pub(super) fn policy(&self) -> Policy {
        Policy {
            filesystem: vec![PathRule {
                access: PathAccess::Hide,
                path: PathPattern {
                    path: self.hidden(),
                    glob: None,
                },
                reason: None,
                origin: Origin::flag("--hide"),
            }],
            ..Policy::default()
        }
    }

    pub(super) fn request<'a>(&'a self, outer: &Request<'a>, policy: &'a Policy) -> prepare::Request<'a> {
        prepare::Request {
            policy,
            caller: outer.caller,
            workspace: &self.workspace,
            rootfs: None,
            data: &self.state,
            own_paths: &[],
            environment: outer.environment,
            id: "doctor",
        }
    }

    pub(super) fn for_the_guest(&self, with_layers: bool) -> plan::Trial {
        let git = self.workspace.join(".git");
        plan::Trial {
            workspace: raw(&self.workspace),
            protected_file: raw(&git.join("config")),
            protected_folder: raw(&git.join("hooks")),
            absent: raw(&self.absent()),
            hidden: raw(&self.hidden()),
            layered: with_layers.then(|| raw(&self.layered())),
        }
    }

    /// A layer over a folder, as toolchains in the home folder get it.
    pub(super) fn layer(&self) -> Step {
        let part = |name: &str| raw(&self.folder.join(name));
        Step::Overlay {
            lower: part("lower"),
            upper: part("upper"),
            work: part("work"),
            target: raw(&self.layered()),
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // The kernel keeps folders without any right in the work folder of a layer.
        for inner in ["work/work", "work/work/incompat", "work/work/incompat/volatile"] {
            let inner = self.folder.join(inner);
            let _ = std::fs::set_permissions(inner, std::os::unix::fs::PermissionsExt::from_mode(0o700));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        for folder in &self.made {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn private(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn raw(path: &Path) -> RawPath {
    path.as_os_str().as_bytes().to_vec().into()
}
