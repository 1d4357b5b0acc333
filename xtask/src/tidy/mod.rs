//! The rules of the house that a program can hold.
//!
//! Each rule takes texts and returns findings; only this file lists and reads the tree.

mod arrows;
mod lexer;
mod licences;
mod links;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::{Outcome, invoke, metadata};

/// Files that have to be there.
const REQUIRED: [&str; 11] = [
    ".ci/run",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "deny.toml",
    "docs/decisions",
];

/// A broken rule, or a smell.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    message: String,
    smell: bool,
}

impl Finding {
    fn fault(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message: message.into(),
            smell: false,
        }
    }

    fn smell(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            smell: true,
            ..Self::fault(file, line, message)
        }
    }
}

/// A text file of the tree, by its path relative to the root.
struct Document {
    path: String,
    text: String,
}

pub(crate) fn run() -> Outcome {
    let paths = tracked()?;
    let documents: Vec<Document> = paths.iter().filter_map(|path| read(path)).collect();
    let machine_paths = text::machine_paths();
    let mut findings = Vec::new();
    for document in &documents {
        if document.path.ends_with(".rs") {
            findings.extend(source::check(&document.path, &document.text));
        }
        if document.path.ends_with(".md") {
            findings.extend(links::check(&document.path, &document.text, |target| {
                invoke::root().join(target).exists()
            }));
        }
        findings.extend(text::check(&document.path, &document.text, &machine_paths));
    }
    findings.extend(required(&paths));
    findings.extend(crates_forbid_unsafe(&documents));
    findings.extend(crates_share_lints(&documents));
    let graph = metadata::read()?;
    findings.extend(arrows::check(&graph.packages));
    findings.extend(licences::check(&graph.packages));
    report(&findings)
}

/// Everything git tracks or would track.
fn tracked() -> Outcome<Vec<String>> {
    let mut command = Command::new("git");
    command
        .current_dir(invoke::root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    Ok(invoke::output(&mut command)?
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Files that are not text, or that were deleted and not yet committed, have no rules.
fn read(path: &str) -> Option<Document> {
    let text = fs::read_to_string(invoke::root().join(path)).ok()?;
    Some(Document {
        path: path.to_owned(),
        text,
    })
}

fn required(paths: &[String]) -> Vec<Finding> {
    let missing = |name: &&&str| {
        !paths
            .iter()
            .any(|path| path == **name || path.starts_with(&format!("{name}/")))
    };
    REQUIRED
        .iter()
        .filter(missing)
        .map(|name| Finding::fault(name, 0, "is missing"))
        .collect()
}

/// `unsafe` is at home in one crate; each other one says so on its first screen.
fn crates_forbid_unsafe(documents: &[Document]) -> Vec<Finding> {
    let roots: BTreeSet<&str> = ["src/lib.rs", "src/main.rs"].into();
    let is_root = |path: &str| {
        let within = path
            .strip_prefix("crates/")
            .and_then(|rest| rest.split_once('/'))
            .map(|(_, file)| file);
        within.is_some_and(|file| roots.contains(file)) && !path.starts_with(source::UNSAFE_HOME)
    };
    documents
        .iter()
        .filter(|document| is_root(&document.path) && !document.text.contains("#![forbid(unsafe_code)]"))
        .map(|document| Finding::fault(&document.path, 1, "lacks #![forbid(unsafe_code)]"))
        .collect()
}

fn crates_share_lints(documents: &[Document]) -> Vec<Finding> {
    let is_ours = |path: &str| path.ends_with("/Cargo.toml") && !path.starts_with("fuzz/");
    documents
        .iter()
        .filter(|document| is_ours(&document.path) && !document.text.contains("[lints]\nworkspace = true"))
        .map(|document| Finding::fault(&document.path, 1, "does not take the lints of the workspace"))
        .collect()
}

fn report(findings: &[Finding]) -> Outcome {
    for finding in findings {
        let kind = if finding.smell { "smell" } else { "fault" };
        eprintln!("{kind}: {}:{}: {}", finding.file, finding.line, finding.message);
    }
    match findings.iter().filter(|finding| !finding.smell).count() {
        0 => Ok(()),
        1 => Err("tidy: one rule is broken (see above)".to_owned()),
        faults => Err(format!("tidy: {faults} rules are broken (see above)")),
    }
}
