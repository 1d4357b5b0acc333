//! The policy file that a workspace brings. It is hostile until the person has trusted its content.

use std::path::{Path, PathBuf};

use pinfold_model::origin::Scope;
use pinfold_model::policy::{Base, Layer, SourceName};

use super::read::read_beneath;
use super::{LoadError, TrustStore};

/// The file's name in the root of a workspace.
pub(crate) const FILE_NAME: &str = "pinfold.toml";

/// A workspace's policy file as read, once.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// Below the workspace's canonical path.
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

impl Project {
    /// Reads the file of `workspace`, which is canonical. None when there is none.
    pub(crate) fn read(workspace: &Path) -> Result<Option<Self>, LoadError> {
        let content = read_beneath(workspace, FILE_NAME)?;
        Ok(content.map(|content| Self {
            path: workspace.join(FILE_NAME),
            content,
        }))
    }

    /// How far exactly this content is trusted.
    #[must_use]
    pub(crate) fn scope(&self, store: Option<&TrustStore>) -> Scope {
        let trusted = store.is_some_and(|store| store.holds(&self.path, &self.content));
        if trusted { Scope::Trusted } else { Scope::Workspace }
    }

    /// What the file says, as a source of the given scope.
    pub(crate) fn layer(&self, scope: Scope, home: Option<&Path>) -> Result<Layer, LoadError> {
        let folder = self.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let base = Base {
            folder,
            home: home.map(Path::to_path_buf),
        };
        let name = SourceName::File {
            path: self.path.clone(),
            scope,
        };
        Ok(Layer::parse(&self.content, &name, &base)?)
    }
}
