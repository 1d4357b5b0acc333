//! Named policies: the user's own, and those that Pinfold brings.

use std::fs;
use std::path::Path;

use pinfold_model::policy::{Base, Layer, SourceName};

use super::read::read_own;
use super::{Folders, LoadError};

/// Shipped profiles by name, in alphabetical order.
const SHIPPED: [(&str, &str); 10] = [
    ("aider", include_str!("../../../../policies/aider.toml")),
    ("claude", include_str!("../../../../policies/claude.toml")),
    ("codex", include_str!("../../../../policies/codex.toml")),
    ("gemini", include_str!("../../../../policies/gemini.toml")),
    ("goose", include_str!("../../../../policies/goose.toml")),
    ("node", include_str!("../../../../policies/node.toml")),
    ("opencode", include_str!("../../../../policies/opencode.toml")),
    ("python", include_str!("../../../../policies/python.toml")),
    ("rust", include_str!("../../../../policies/rust.toml")),
    ("shell", include_str!("../../../../policies/shell.toml")),
];

/// Reads the profile `name`: the user's own where there is one, else the shipped one. The name was judged where it was given.
pub(super) fn profile(name: &str, folders: &Folders) -> Result<Layer, LoadError> {
    let own = folders
        .config
        .as_ref()
        .map(|config| config.join("profiles").join(format!("{name}.toml")));
    let own = own.map_or(Ok(None), |path| read_own(&path))?;
    let shipped = || {
        SHIPPED
            .iter()
            .find(|(shipped, _)| *shipped == name)
            .map(|(_, text)| text.as_bytes().to_vec())
    };
    let Some(text) = own.or_else(shipped) else {
        return Err(LoadError::UnknownProfile {
            name: name.to_owned(),
            known: known(folders.config.as_deref()),
        });
    };
    // Profiles name no relative paths, so the folder is never asked for.
    let base = Base {
        folder: "/".into(),
        home: folders.home.clone(),
    };
    Ok(Layer::parse(
        &text,
        &SourceName::Profile { name: name.to_owned() },
        &base,
    )?)
}

/// Every profile's name, for the message that a name is unknown.
fn known(config: Option<&Path>) -> Vec<String> {
    let own = config
        .and_then(|config| fs::read_dir(config.join("profiles")).ok())
        .into_iter()
        .flatten()
        .flatten();
    let own = own.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned));
    let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).chain(own).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use pinfold_model::net::HostPattern;

    use super::*;

    fn folders() -> Folders {
        Folders {
            home: Some("/home/me".into()),
            ..Folders::default()
        }
    }

    #[test]
    fn every_shipped_profile_is_valid_and_widens_nothing_beyond_its_hosts_and_variables() {
        for (name, text) in SHIPPED {
            let layer = profile(name, &folders()).unwrap_or_else(|error| panic!("{error}"));
            assert!(layer.network.allow_all.is_none() && layer.lift.is_empty(), "{name}");
            for rule in &layer.network.allow {
                assert!(
                    matches!(rule.host, HostPattern::Exact(_)),
                    "{name}: {} is not one host",
                    rule.text
                );
                assert!(
                    rule.reason.as_ref().is_some_and(|reason| !reason.is_empty()),
                    "{name}: {} has no reason",
                    rule.text
                );
            }
            for rule in &layer.filesystem {
                assert!(rule.reason.is_some(), "{name}: {} has no reason", rule.path.to_text());
            }
            let bare = text.lines().find(|line| line.trim_start().starts_with(['"', '\'']));
            assert_eq!(bare, None, "{name}: an entry has no reason");
            assert!(text.starts_with("# "), "{name} does not say what it is for");
        }
    }

    #[test]
    fn an_unknown_profile_is_answered_with_the_nearest() {
        let error = profile("cluade", &folders()).expect_err("unknown");
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            ("there is no profile 'cluade'", 65)
        );
        assert_eq!(error.hint(), "did you mean 'claude'?");
    }
}
