//! One straight way from the sources to the merged policy.

use std::path::Path;

use pinfold_model::origin::{Origin, Scope};
use pinfold_model::policy::{Authority, Base, Flags, Layer, Policy, SourceName, merge};

use super::profiles::profile;
use super::read::read_own;
use super::{Folders, LoadError, Project, TrustStore};

/// Where the policy of a run comes from. `cwd` and `workspace` are canonical.
#[derive(Clone, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) folders: &'a Folders,
    pub(crate) cwd: &'a Path,
    pub(crate) workspace: &'a Path,
    /// A trusted file in place of the user's own.
    pub(crate) config: Option<&'a Path>,
    /// What an imported settings file says.
    pub(crate) settings: Option<Layer>,
    pub(crate) flags: &'a Flags,
}

/// Reads every source and merges them: user file, profiles, workspace file, settings, flags.
///
/// # Errors
/// The first source that cannot be read, understood, or obeyed as far as it is trusted.
pub(crate) fn load(sources: &Sources<'_>) -> Result<Policy, LoadError> {
    let folders = sources.folders;
    let flags = Layer::from_flags(
        sources.flags,
        &Base {
            folder: sources.cwd.to_owned(),
            home: folders.home.clone(),
        },
    )?;
    let user = user_layer(sources)?;
    let project = Project::read(sources.workspace)?;
    let store = project.as_ref().and_then(|_| TrustStore::new(folders));
    let project = project
        .map(|project| project.layer(project.scope(store.as_ref()), folders.home.as_deref()))
        .transpose()?;

    let trusted_project = project
        .as_ref()
        .filter(|layer| layer.authority != Authority::TightenOnly);
    let mut chosen: Vec<&(String, Origin)> = Vec::new();
    let trusted = [user.as_ref(), Some(&flags), sources.settings.as_ref(), trusted_project];
    for choice in trusted.into_iter().flatten().flat_map(|layer| &layer.profiles) {
        if chosen.iter().all(|(name, _)| *name != choice.0) {
            chosen.push(choice);
        }
    }
    let mut layers: Vec<Layer> = user.iter().cloned().collect();
    for (name, _) in &chosen {
        layers.push(profile(name, folders)?);
    }
    let untrusted_project = project
        .as_ref()
        .filter(|layer| layer.authority == Authority::TightenOnly);
    for (name, _) in untrusted_project.iter().flat_map(|layer| &layer.profiles) {
        if chosen.iter().all(|(taken, _)| taken != name) {
            layers.push(tightening_profile(name, folders, &layers)?);
        }
    }
    layers.extend(project);
    layers.extend(sources.settings.clone());
    layers.push(flags);
    Ok(merge(layers)?)
}

/// What holds before a workspace's own file speaks: the user's file and the profiles it builds on.
pub(crate) fn before_project(folders: &Folders) -> Result<Policy, LoadError> {
    let flags = Flags::default();
    let nowhere = Path::new("/");
    let sources = Sources {
        folders,
        cwd: nowhere,
        workspace: nowhere,
        config: None,
        settings: None,
        flags: &flags,
    };
    let user = user_layer(&sources)?;
    let mut layers: Vec<Layer> = user.iter().cloned().collect();
    for (name, _) in user.iter().flat_map(|layer| &layer.profiles) {
        layers.push(profile(name, folders)?);
    }
    Ok(merge(layers)?)
}

/// A profile that an untrusted file chose: it may tighten, as the file itself may.
fn tightening_profile(name: &str, folders: &Folders, before: &[Layer]) -> Result<Layer, LoadError> {
    let mut layer = profile(name, folders)?;
    if let Some(first) = layer.loosenings(&merge(before.to_vec())?).into_iter().next() {
        return Err(LoadError::UntrustedProfile {
            name: name.to_owned(),
            first,
        });
    }
    layer.authority = Authority::TightenOnly;
    Ok(layer)
}

fn user_layer(sources: &Sources<'_>) -> Result<Option<Layer>, LoadError> {
    let path = match (sources.config, &sources.folders.config) {
        (Some(given), _) => sources.cwd.join(given),
        (None, Some(folder)) => folder.join("config.toml"),
        (None, None) => return Ok(None),
    };
    let Some(content) = read_own(&path)? else {
        return if sources.config.is_some() {
            Err(LoadError::Missing { path })
        } else {
            Ok(None)
        };
    };
    // Relative paths in the file start at its folder; without links, so that a `..` in front means what the kernel would mean.
    let folder = path.parent().unwrap_or(Path::new("/"));
    let folder = folder.canonicalize().map_err(|source| LoadError::Read {
        path: folder.to_owned(),
        source,
    })?;
    let name = SourceName::File {
        path,
        scope: Scope::Trusted,
    };
    Ok(Some(Layer::parse(
        &content,
        &name,
        &Base {
            folder,
            home: sources.folders.home.clone(),
        },
    )?))
}

#[cfg(test)]
mod tests;
