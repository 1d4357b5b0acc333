//! `credentials`: what is denied is hidden or unset; what is masked is refused, because this build keeps no secrets.

use super::Source;
use super::filesystem::{Listed, denied};
use super::network::hosts;
use super::section::{At, Report, Section, quoted};
use crate::policy::Layer;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Deny,
    Mask,
}

/// Answers with the files that must not be readable.
pub(super) fn read(section: Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) -> Vec<Listed> {
    let mut section = section.strict();
    let mut files = Vec::new();
    for at in items(&mut section, "files", report) {
        files.extend(file(&at, source, report));
    }
    for at in items(&mut section, "envVars", report) {
        variable(&at, source, layer, report);
    }
    if let Some(at) = section.take("allowPlaintextInject")
        && at.bool(report) == Some(true)
    {
        report.ignored(&at, "no secret is put into any request");
    }
    for at in items(&mut section, "awsPairs", report) {
        pair(&at, report);
    }
    if let Some(sigv4) = section.section("sigv4", report) {
        signing(sigv4.strict(), report);
    }
    section.close(report);
    files
}

fn items<'v>(section: &mut Section<'v>, key: &'static str, report: &mut Report) -> Vec<At<'v>> {
    section.take(key).and_then(|at| at.list(report)).unwrap_or_default()
}

fn file(at: &At<'_>, source: &Source<'_>, report: &mut Report) -> Option<Listed> {
    let mut section = at.section(report)?.strict();
    let path = section.require("path", report);
    let path = path.and_then(|path| path.string(report).map(|text| (path.key, text)));
    let mode = mode(&mut section, report);
    section.bool("maskDuplicates", report);
    masking(&mut section, mode, at, report);
    section.close(report);
    if mode == Some(Mode::Mask) {
        report.fault(
            &at.key,
            "a masked file needs secrets, which this version of Pinfold does not keep: the real file would be visible",
            "set `mode` to \"deny\", which hides the file",
        );
    }
    let (key, text) = path?;
    denied(key, text, source, report)
}

fn variable(at: &At<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    let Some(section) = at.section(report) else { return };
    let mut section = section.strict();
    let name = section.require("name", report);
    let name = name.and_then(|name| name.string(report).map(|text| (name.key, text)));
    let mode = mode(&mut section, report);
    masking(&mut section, mode, at, report);
    section.close(report);
    if mode == Some(Mode::Mask) {
        report.fault(
            &at.key,
            "a masked variable needs secrets, which this version of Pinfold does not keep: the real value would be visible",
            "set `mode` to \"deny\", which keeps the variable out",
        );
    }
    let Some((key, name)) = name else { return };
    if is_variable(name) {
        layer.environment.deny.push((name.to_owned(), source.origin(&key)));
    } else {
        report.fault(
            &key,
            format!("{} is no name of a variable", quoted(name)),
            "write letters, digits and `_`, no digit first",
        );
    }
}

fn mode(section: &mut Section<'_>, report: &mut Report) -> Option<Mode> {
    let at = section.require("mode", report)?;
    match at.string(report)? {
        "deny" => Some(Mode::Deny),
        "mask" => Some(Mode::Mask),
        other => {
            report.fault(&at.key, format!("{} is no mode", quoted(other)), "write \"deny\"");
            None
        }
    }
}

/// The keys that say how something is masked; checked, and without effect on what is denied.
fn masking(section: &mut Section<'_>, mode: Option<Mode>, entry: &At<'_>, report: &mut Report) {
    let mut found = section.string("extract", report).is_some();
    found |= one_of(section, "onExtractNoMatch", &["warn", "deny", "error"], report);
    let decodes = one_of(section, "decode", &["jwt"], report);
    found |= decodes;
    if let Some(at) = section.take("maskClaims") {
        found = true;
        if at.strings(report).is_some_and(|claims| claims.is_empty()) {
            report.fault(
                &at.key,
                "the list is empty",
                "name at least one claim, or leave the key out to mask the whole token",
            );
        }
        if !decodes {
            report.fault(
                &at.key,
                "claims can only be found in a decoded token",
                "add `\"decode\": \"jwt\"`, or remove the key",
            );
        }
    }
    if let Some(at) = section.take("injectHosts") {
        found = true;
        hosts(Some(&at), true, report);
    }
    if found && mode == Some(Mode::Deny) {
        report.ignored(
            entry,
            "keys about masking mean nothing with mode \"deny\"; the credential stays out whole",
        );
    }
}

fn one_of(section: &mut Section<'_>, key: &'static str, words: &[&str], report: &mut Report) -> bool {
    let Some(at) = section.take(key) else { return false };
    if let Some(word) = at.string(report)
        && !words.contains(&word)
    {
        report.fault(
            &at.key,
            format!("{} is not a value of this key", quoted(word)),
            format!("write one of {}", words.join(", ")),
        );
    }
    true
}

fn pair(at: &At<'_>, report: &mut Report) {
    let Some(section) = at.section(report) else { return };
    let mut section = section.strict();
    for key in ["accessKeyIdVar", "secretAccessKeyVar"] {
        if let Some(name) = section.require(key, report) {
            name.string(report);
        }
    }
    section.string("sessionTokenVar", report);
    section.close(report);
    report.fault(
        &at.key,
        "requests cannot be signed in place of the command, because this version of Pinfold keeps no secrets",
        "remove the pair and deny its variables under `credentials.envVars`",
    );
}

fn signing(mut section: Section<'_>, report: &mut Report) {
    for key in ["streaming", "presigned", "sigv4a"] {
        let Some(at) = section.take(key) else { continue };
        match at.string(report) {
            None | Some("deny") => {}
            Some("passthrough") => report.fault(
                &at.key,
                "a request of this form cannot be signed again, and passing it on would send what the sandbox signed",
                "write \"deny\", or remove the key",
            ),
            Some(other) => report.fault(
                &at.key,
                format!("{} is not a value of this key", quoted(other)),
                "write \"deny\"",
            ),
        }
    }
    section.close(report);
}

fn is_variable(name: &str) -> bool {
    name.bytes()
        .enumerate()
        .all(|(at, b)| b == b'_' || b.is_ascii_alphabetic() || (at > 0 && b.is_ascii_digit()))
        && !name.is_empty()
}
