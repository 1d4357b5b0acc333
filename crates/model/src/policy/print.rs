//! A merged policy as a policy file, each rule with its origin as a comment.
//!
//! What is printed loads again as a trusted file and merges to the same policy, origins aside.

use std::fmt::{Display, Write as _};
use std::path::Path;

use super::error::{harmless_text, is_harmless};
use super::path::shown_path;
use super::quantity::{cpus_text, duration_text, size_text};
use super::{Limit, PathAccess, PathPattern, Policy};
use crate::net::NetRule;
use crate::origin::Origin;

impl Policy {
    /// The policy in the format of policy files. Paths are absolute. What opens most comes first.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = String::from("version = 1\n");
        self.print_network(&mut out);
        self.print_filesystem(&mut out);
        self.print_environment(&mut out);
        self.print_limits(&mut out);
        if !self.git_safe_directories.is_empty() {
            out.push_str("\n[git]\n");
            let paths = self.git_safe_directories.iter();
            list(
                &mut out,
                "safe_directories",
                paths.map(|(path, origin)| (text(&literal(path)), origin)),
            );
        }
        if !self.quiet_denials.is_empty() {
            out.push_str("\n[report.quiet_denials]\n");
            for (command, texts) in &self.quiet_denials {
                let texts: Vec<String> = texts.iter().map(|quiet| text(quiet)).collect();
                let _ = writeln!(out, "{} = [{}]", text(command), texts.join(", "));
            }
        }
        out
    }

    fn print_network(&self, out: &mut String) {
        out.push_str("\n[network]\n");
        if let Some(origin) = &self.network.allow_all {
            line(out, "allow_all", &"true", origin);
        }
        list(
            out,
            "allow",
            self.network.allow.iter().map(|rule| (host(rule), &rule.origin)),
        );
        list(
            out,
            "deny",
            self.network.deny.iter().map(|rule| (host(rule), &rule.origin)),
        );
        let refused = self.network.refused_addresses.iter();
        list(
            out,
            "refuse_addresses",
            refused.map(|(network, origin)| (text(&network.to_string()), origin)),
        );
        if let Some(origin) = &self.deny_unix_sockets {
            line(out, "deny_unix_sockets", &"true", origin);
        }
    }

    fn print_filesystem(&self, out: &mut String) {
        out.push_str("\n[filesystem]\n");
        for (key, access) in [
            ("write", PathAccess::Write),
            ("read", PathAccess::Read),
            ("readonly", PathAccess::ReadOnly),
            ("hide", PathAccess::Hide),
        ] {
            let rules = self.filesystem.iter().filter(|rule| rule.access == access);
            list(
                out,
                key,
                rules.map(|rule| {
                    (
                        entry("path", &rule.path.to_text(), rule.reason.as_deref()),
                        &rule.origin,
                    )
                }),
            );
        }
        list(
            out,
            "lift",
            self.lift.iter().map(|lift| (text(lift.group.name()), &lift.origin)),
        );
        limit(out, "scan_depth", &self.scan_depth, u8::to_string);
    }

    fn print_environment(&self, out: &mut String) {
        let environment = &self.environment;
        if !environment.pass.is_empty() || !environment.deny.is_empty() {
            out.push_str("\n[environment]\n");
            list(
                out,
                "pass",
                environment.pass.iter().map(|(name, origin)| (text(name), origin)),
            );
            list(
                out,
                "deny",
                environment.deny.iter().map(|(name, origin)| (text(name), origin)),
            );
        }
        if !environment.set.is_empty() {
            out.push_str("\n[environment.set]\n");
            for (name, (value, origin)) in &environment.set {
                line(out, name, &text(value), origin);
            }
        }
    }

    fn print_limits(&self, out: &mut String) {
        let mut limits = String::new();
        limit(&mut limits, "memory", &self.limits.memory, |bytes| {
            text(&size_text(*bytes))
        });
        limit(&mut limits, "cpus", &self.limits.cpu_millis, |millis| {
            cpus_text(*millis)
        });
        limit(&mut limits, "pids", &self.limits.pids, u32::to_string);
        limit(&mut limits, "timeout", &self.limits.timeout, |duration| {
            text(&duration_text(*duration))
        });
        if !limits.is_empty() {
            let _ = write!(out, "\n[limits]\n{limits}");
        }
    }
}

fn list<'a>(out: &mut String, key: &str, items: impl Iterator<Item = (String, &'a Origin)>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "{key} = [");
    for (item, origin) in items {
        let _ = writeln!(out, "  {item},  # {}", comment(origin));
    }
    out.push_str("]\n");
}

fn line(out: &mut String, key: &str, value: &dyn Display, origin: &Origin) {
    let _ = writeln!(out, "{key} = {value}  # {}", comment(origin));
}

fn limit<T>(out: &mut String, key: &str, limit: &Option<Limit<T>>, show: impl Fn(&T) -> String) {
    if let Some(limit) = limit {
        line(out, key, &show(&limit.value), &limit.origin);
    }
}

fn host(rule: &NetRule) -> String {
    entry("host", &rule.to_string(), rule.reason.as_deref())
}

fn entry(key: &str, value: &str, reason: Option<&str>) -> String {
    reason.map_or_else(
        || text(value),
        |reason| format!("{{ {key} = {}, reason = {} }}", text(value), text(reason)),
    )
}

fn literal(path: &Path) -> String {
    PathPattern::literal(path.to_path_buf()).to_text()
}

/// A TOML string: literal where it can be, so that path escapes need no second escape.
fn text(value: &str) -> String {
    let plain = value
        .chars()
        .all(|character| is_harmless(character) && character != '\'');
    if plain && (value.contains('\\') || value.contains('"')) {
        return format!("'{value}'");
    }
    let mut out = String::from("\"");
    for character in value.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if !is_harmless(control) => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn comment(origin: &Origin) -> String {
    match origin {
        Origin::File { path, line, .. } => format!("{}:{line}", harmless_text(&shown_path(path))),
        other => harmless_text(&other.to_string()),
    }
}
