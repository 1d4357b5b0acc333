//! What `cargo metadata` says, cut down to what the checks ask for.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Outcome, invoke};

/// The workspace and everything it is built from.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One package of the graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression; none where the package names a file instead.
    pub(crate) licence: Option<String>,
    pub(crate) ours: bool,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A declared dependency.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Only the package's own tests use it.
    pub(crate) dev: bool,
}

pub(crate) fn read() -> Outcome<Metadata> {
    let text = invoke::output(invoke::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = list(&json["packages"]).iter().map(package).collect();
    Ok(Metadata {
        target: PathBuf::from(word(&json["target_directory"])),
        packages,
    })
}

fn package(json: &Value) -> Package {
    Package {
        name: word(&json["name"]),
        version: word(&json["version"]),
        licence: json["license"].as_str().map(str::to_owned),
        // Everything that was not fetched lies in the work tree.
        ours: json["source"].is_null(),
        dependencies: list(&json["dependencies"])
            .iter()
            .map(|each| Dependency {
                name: word(&each["name"]),
                dev: each["kind"] == "dev",
            })
            .collect(),
    }
}

fn list(json: &Value) -> &[Value] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn word(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}
