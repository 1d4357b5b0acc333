//! `filesystem`: reading the entries; what wins over what is in [`precedence`](super::precedence).

use super::precedence::{self, Lists};
use super::section::{At, Report, Section, quoted};
use super::{ImportContext, Source};
use crate::policy::path::PathFault;
use crate::policy::{Layer, Lift, PathAccess, PathPattern, PathRule};
use crate::protected::Group;

/// An entry of a path list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) pattern: PathPattern,
    /// Written with `/**` at its end: everything below the path, each entry by itself.
    pub(super) whole: bool,
}

pub(super) fn read(
    mut section: Section<'_>,
    denied_files: Vec<Listed>,
    context: &ImportContext<'_>,
    source: &Source<'_>,
    layer: &mut Layer,
    report: &mut Report,
) {
    let mut lists = Lists::default();
    let at = section.require("denyRead", report);
    lists.hide = entries(at.as_ref(), source, report);
    lists.hide.extend(denied_files);
    let at = section.take("allowRead");
    lists.read = entries(at.as_ref(), source, report);
    let at = section.require("allowWrite", report);
    lists.write = entries(at.as_ref(), source, report);
    lists.write.retain(|entry| is_write_root(entry, report));
    let at = section.require("denyWrite", report);
    lists.readonly = entries(at.as_ref(), source, report);

    let git_config = section.take("allowGitConfig");
    let disabled = section.take("disabled");
    section.close(report);
    if let Some(at) = git_config
        && at.bool(report) == Some(true)
    {
        layer.lift.push(Lift {
            group: Group::GitConfig,
            origin: source.origin(&at.key),
        });
    }
    if let Some(at) = disabled
        && at.bool(report) == Some(true)
    {
        switch_off(&at, context, source, layer, report);
        return;
    }
    let rules = precedence::rewrite(lists, context.cwd, report);
    layer.filesystem.extend(rules.into_iter().map(|rule| PathRule {
        access: rule.access,
        path: rule.pattern,
        reason: rule.reason.map(str::to_owned),
        origin: source.origin(&rule.key),
    }));
}

/// An entry of `denyRead`, or a file of `credentials`.
pub(super) fn denied(key: String, text: &str, source: &Source<'_>, report: &mut Report) -> Option<Listed> {
    entry(key, text, source, report)
}

fn entries(at: Option<&At<'_>>, source: &Source<'_>, report: &mut Report) -> Vec<Listed> {
    let texts = at.and_then(|at| at.strings(report)).unwrap_or_default();
    texts
        .into_iter()
        .filter_map(|(key, text)| entry(key, text, source, report))
        .collect()
}

fn entry(key: String, text: &str, source: &Source<'_>, report: &mut Report) -> Option<Listed> {
    // The format has no escapes: a backslash is a character of the name.
    let escaped = text.replace('\\', "\\\\");
    match PathPattern::parse(escaped.as_bytes(), &source.base) {
        Ok(pattern) => {
            let trimmed = text.trim_end_matches('/');
            Some(Listed {
                key,
                pattern,
                whole: trimmed == "**" || trimmed.ends_with("/**"),
            })
        }
        Err(fault) => {
            let hint = match fault {
                // Pinfold's own escapes do not exist here.
                PathFault::Variable { .. } => "write '~/' for home, or the folder in full",
                PathFault::Negation => "allow the exception in the list that allows",
                PathFault::Braces { .. } => "write one entry for each alternative",
                PathFault::Set { .. } => "a set looks like [abc], [a-z] or [!a-z]",
                _ => fault.hint(),
            };
            report.fault(&key, format!("{} cannot be enforced: {fault}", quoted(text)), hint);
            None
        }
    }
}

fn is_write_root(entry: &Listed, report: &mut Report) -> bool {
    if entry.pattern.glob.is_some() {
        report.fault(
            &entry.key,
            "a pattern cannot be a write root: Sandbox Runtime grants nothing for it on Linux, and neither does Pinfold",
            "name each folder",
        );
        return false;
    }
    if ["/tmp", "/tmp/claude"]
        .iter()
        .any(|tmp| entry.pattern.path.as_os_str() == *tmp)
    {
        report.note(format!(
            "`{}` means Pinfold's private `/tmp`, which is always writable; the host's stays out of view.",
            entry.key
        ));
        return false;
    }
    true
}

fn switch_off(at: &At<'_>, context: &ImportContext<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    if !context.allow_disabled_filesystem {
        report.fault(
            &at.key,
            "the key switches off every file rule, protected paths and credential files included",
            "remove it, or also give the flag of `pinfold run` that permits exactly this",
        );
        return;
    }
    layer.filesystem.push(PathRule {
        access: PathAccess::Write,
        path: PathPattern::literal("/".into()),
        reason: Some("every file rule is switched off".to_owned()),
        origin: source.origin(&at.key),
    });
    let groups = Group::all().iter().filter(|group| **group != Group::Pinfold);
    layer.lift.extend(groups.map(|group| Lift {
        group: *group,
        origin: source.origin(&at.key),
    }));
    report.note(
        "`filesystem.disabled` makes the whole host writable and lifts the protection of every path but Pinfold's own; \
         the other file rules of the settings file, credential files included, do not hold.",
    );
}
