//! Import of a Sandbox Runtime settings file: its JSON becomes one [`Layer`] in Pinfold's words.
//!
//! Owns the format's grammar, its order of precedence and what Pinfold does with each key. An import never gives more access
//! than the file gives under Sandbox Runtime; where it gives less, a note says so. A key that protects is enforced or refused,
//! never dropped. Refuses unknown and duplicate keys, wrong types anywhere, and every feature that this build does not have;
//! all faults are named at once.
//!
//! Pure: nothing is looked up, so links and the existence of paths are judged where the plan is made. Two things are left to
//! the caller because they need facts about the host: a built-in default that shows or opens a path must give way where these
//! rules hide it or take its writing away, and an `allowRead` entry that is a link opens its own name only.

mod credentials;
mod domain;
mod fault;
mod filesystem;
mod json;
mod network;
mod precedence;
mod section;
mod top;

use std::path::{Path, PathBuf};

pub use fault::{Fault, ImportError};

use self::json::Value;
use self::section::{Report, Section};
use super::path::Base;
use super::{Authority, Layer, PathAccess, PathPattern, PathRule};
use crate::origin::Origin;

/// Bytes of the largest settings file that is read.
pub const LARGEST_FILE: usize = 1024 * 1024;

/// What to do with keys that the format does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownKeys {
    Refuse,
    /// Outside `credentials`, where the format itself refuses them.
    Note,
}

/// What the import has to know besides the text.
#[derive(Clone, Debug)]
pub struct ImportContext<'a> {
    /// The settings file as named by the person; relative to `cwd`.
    pub file: &'a Path,
    /// The caller's home folder, absolute.
    pub home: &'a Path,
    /// The working directory of the command, absolute: relative paths start there.
    pub cwd: &'a Path,
    pub unknown_keys: UnknownKeys,
    /// Whether the person said, by Pinfold's own flag, that `filesystem.disabled` may switch off every file rule.
    pub allow_disabled_filesystem: bool,
}

/// What a settings file became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    pub layer: Layer,
    /// Whole sentences for standard error: what was ignored, and where Pinfold gives less.
    pub notes: Vec<String>,
}

/// Reads a settings file.
///
/// # Errors
/// Every fault of the file, each with its key path; nothing may run then (status 65).
pub fn import(text: &[u8], context: &ImportContext<'_>) -> Result<Imported, ImportError> {
    let mut report = Report::new(context.unknown_keys);
    let layer = read(text, context, &mut report);
    match layer {
        Some(layer) if report.faults.is_empty() => Ok(Imported {
            layer,
            notes: report.notes,
        }),
        _ => Err(ImportError {
            file: context.file.to_owned(),
            faults: report.faults,
        }),
    }
}

fn read(text: &[u8], context: &ImportContext<'_>, report: &mut Report) -> Option<Layer> {
    let value = parse(text, report)?;
    let mut root = Section::root(&value, report)?;
    let source = Source {
        file: context.file,
        base: Base {
            folder: context.cwd.to_owned(),
            home: Some(context.home.to_owned()),
        },
    };
    let mut layer = Layer::new(Authority::Full);

    if let Some(section) = root.require_section("network", report) {
        network::read(section, &source, &mut layer, report);
    }
    let credentials = root.section("credentials", report);
    let denied_files = credentials
        .map(|section| credentials::read(section, &source, &mut layer, report))
        .unwrap_or_default();
    if let Some(section) = root.require_section("filesystem", report) {
        filesystem::read(section, denied_files, context, &source, &mut layer, report);
    }
    top::read(&mut root, &source, &mut layer, report);
    root.close(report);

    layer.filesystem.push(PathRule {
        access: PathAccess::ReadOnly,
        path: PathPattern::literal(context.cwd.join(context.file).components().collect()),
        reason: Some("the sandbox must not rewrite the settings it runs under".to_owned()),
        origin: Origin::builtin("the settings file of this run"),
    });
    report.note(
        "Pinfold is stricter than Sandbox Runtime in two things no key governs: variables of your environment enter only when \
         Pinfold's policy passes them (`environment.pass`), and `~/.npm/_logs` and `~/.claude/debug` are writable only when \
         `filesystem.allowWrite` lists them.",
    );
    Some(layer)
}

fn parse(text: &[u8], report: &mut Report) -> Option<Value> {
    if text.len() > LARGEST_FILE {
        report.fault(
            "",
            format!("the file is larger than {} KiB", LARGEST_FILE / 1024),
            "name the settings file itself",
        );
        return None;
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        report.fault(
            "",
            "the file is empty",
            "write the required keys, or leave out `--settings`",
        );
        return None;
    }
    match json::parse(text) {
        Ok(value) => Some(value),
        Err(error) => {
            report.fault(
                "",
                format!("the file is not JSON: {error}"),
                "the format has no comments and no trailing commas",
            );
            None
        }
    }
}

/// Where entries come from and what their paths start at.
struct Source<'a> {
    file: &'a Path,
    base: Base,
}

impl Source<'_> {
    fn origin(&self, key: &str) -> Origin {
        Origin::Settings {
            path: PathBuf::from(self.file),
            key: key.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
