//! The keys outside `network`, `filesystem` and `credentials`.

use super::Source;
use super::section::{At, Report, Section, quoted};
use crate::policy::path::PathFault;
use crate::policy::{Layer, Limit, PathPattern};

const WINDOWS: &str = "it is for Windows";

pub(super) fn read(root: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    violations(root, layer, report);
    if let Some(at) = root.take("mandatoryDenySearchDepth")
        && let Some(depth) = at.integer(1, 10, report).and_then(|depth| u8::try_from(depth).ok())
    {
        layer.scan_depth = Some(Limit {
            value: depth,
            origin: source.origin(&at.key),
        });
    }
    if let Some(at) = root.take("enableWeakerNestedSandbox")
        && at.bool(report) == Some(true)
    {
        report.ignored(&at, "Pinfold never weakens its walls; where they cannot be set up whole, the start fails and says what to change");
    }
    git(root, source, layer, report);
    programs(root, report);
    flags(root, report);
    windows(root, report);
}

fn violations(root: &mut Section<'_>, layer: &mut Layer, report: &mut Report) {
    let entries = root
        .take("ignoreViolations")
        .and_then(|at| at.entries(report))
        .unwrap_or_default();
    for (command, at) in entries {
        let texts = at.strings(report).unwrap_or_default();
        let quiet = layer.quiet_denials.entry(command.to_owned()).or_default();
        quiet.extend(texts.into_iter().map(|(_, text)| text.to_owned()));
    }
}

fn git(root: &mut Section<'_>, source: &Source<'_>, layer: &mut Layer, report: &mut Report) {
    let Some(mut git) = root.section("git", report) else {
        return;
    };
    for (key, text) in git.strings("safeDirectories", report).unwrap_or_default() {
        match PathPattern::parse(text.replace('\\', "\\\\").as_bytes(), &source.base) {
            Ok(PathPattern { path, glob: None }) if !text.contains('*') => {
                layer.git_safe_directories.push((path, source.origin(&key)));
            }
            Ok(_) | Err(PathFault::GlobAtRoot) => report.fault(
                &key,
                format!("{} would make git trust folders that nobody named", quoted(text)),
                "name each folder; those below it are trusted with it",
            ),
            Err(fault) => report.fault(&key, fault.to_string(), fault.hint()),
        }
    }
    git.close(report);
}

/// Programs that only Sandbox Runtime starts.
fn programs(root: &mut Section<'_>, report: &mut Report) {
    for key in ["bwrapPath", "socatPath", "javaAgentJarPath"] {
        let Some(at) = root.take(key) else { continue };
        let Some(path) = at.string(report) else { continue };
        if path.starts_with('/') {
            report.ignored(&at, "Pinfold does not need that program");
        } else {
            report.fault(
                &at.key,
                format!("{} is no absolute path", quoted(path)),
                "start the path with '/'",
            );
        }
    }
    if let Some(at) = root.take("seccomp")
        && let Some(mut seccomp) = at.section(report)
    {
        seccomp.string("applyPath", report);
        seccomp.string("argv0", report);
        seccomp.close(report);
        report.ignored(&at, "Pinfold's own system call filter always applies");
    }
    if let Some(at) = root.take("ripgrep")
        && let Some(mut ripgrep) = at.section(report)
    {
        ripgrep.string("command", report);
        ripgrep.strings("args", report);
        ripgrep.string("argv0", report);
        ripgrep.close(report);
        report.ignored(&at, "Pinfold searches by itself and never runs that program");
    }
}

fn flags(root: &mut Section<'_>, report: &mut Report) {
    for key in ["allowPty", "enableWeakerNetworkIsolation", "allowAppleEvents"] {
        if let Some(at) = root.take(key)
            && at.bool(report).is_some()
        {
            report.ignored(&at, "it is for macOS");
        }
    }
}

fn windows(root: &mut Section<'_>, report: &mut Report) {
    let Some(at) = root.take("windows") else { return };
    let Some(mut windows) = at.section(report) else { return };
    if let Some(user) = windows.take("sandboxUser")
        && user.string(report).is_some_and(|name| name.chars().count() > 20)
    {
        report.fault(&user.key, "the name is longer than 20 characters", "shorten it");
    }
    for key in ["sublayerGuid", "wfpSublayerGuid"] {
        if let Some(guid) = windows.take(key)
            && guid.string(report).is_some_and(|text| !is_guid(text))
        {
            report.fault(
                &guid.key,
                "the value is no GUID",
                "write it as 01234567-89ab-cdef-0123-456789abcdef",
            );
        }
    }
    if let Some(range) = windows.take("proxyPortRange") {
        port_range(&range, report);
    }
    if let Some(mut program) = windows.section("srtWin", report) {
        program.string("path", report);
        program.close(report);
    }
    windows.close(report);
    report.ignored(&at, WINDOWS);
}

fn port_range(at: &At<'_>, report: &mut Report) {
    let Some(ports) = at.list(report) else { return };
    let count = ports.len();
    let ports: Vec<u16> = ports
        .iter()
        .filter_map(|port| port.integer(1, u16::MAX, report))
        .collect();
    match ports[..] {
        [low, high] if low <= high && high - low <= 64 => {}
        _ if ports.len() < count => {}
        _ => report.fault(
            &at.key,
            "the value is no range of ports",
            "write [low, high], at most 64 apart",
        ),
    }
}

fn is_guid(text: &str) -> bool {
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(text);
    let lengths = [8, 4, 4, 4, 12];
    inner.split('-').count() == lengths.len()
        && inner
            .split('-')
            .zip(lengths)
            .all(|(part, length)| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit()))
}
