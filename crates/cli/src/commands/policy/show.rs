//! `pinfold policy show`: the merged policy, each rule with its origin.

use std::io::{self, Write};

use clap::Args;
use pinfold_model::origin::Origin;
use pinfold_model::policy::path::shown_path;
use pinfold_model::policy::quantity::{cpus_text, duration_text, size_text};
use pinfold_model::policy::{DEFAULT_SCAN_DEPTH, PathAccess, Policy, harmless_text, is_harmless};
use pinfold_model::protected::Group;
use serde_json::{Value, json};

use super::current_folder;
use crate::error::say;
use crate::policy::{Folders, LoadError, PolicyArgs};

/// Show the merged policy of a run here, with the origin of each rule.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// Print JSON.
    #[arg(long, conflicts_with = "toml")]
    json: bool,
    /// Print a policy file that gives the same policy.
    #[arg(long)]
    toml: bool,
    // Last: its heading holds for what comes after it.
    #[command(flatten)]
    policy: PolicyArgs,
}

/// What holds before any source says anything.
const BUILT_IN: [(&str, &str); 5] = [
    ("write", "the workspace, except for protected paths"),
    ("read", "system folders, and the toolchains that PATH names"),
    ("private", "home, kept per project; /tmp and /var/tmp, gone at the end"),
    ("hide", "everything else"),
    ("deny", "every host that no rule allows"),
];

pub(super) fn run(args: &ShowArgs) -> Result<u8, LoadError> {
    let here = current_folder()?;
    let loaded = args.policy.load(&Folders::from_environment(), &here, &here)?;
    for note in &loaded.notes {
        say!("note: {}", harmless_text(note));
    }
    let policy = &loaded.policy;
    let text = if args.json {
        json_text(&as_json(policy))
    } else if args.toml {
        policy.to_toml()
    } else {
        as_table(policy)
    };
    LoadError::unless_written(io::stdout().lock().write_all(text.as_bytes()))
}

/// JSON on lines of its own, with what would steer a terminal escaped. Such characters stand in strings only.
fn json_text(value: &Value) -> String {
    let mut out = String::new();
    for character in format!("{value:#}\n").chars() {
        if character == '\n' || is_harmless(character) {
            out.push(character);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        }
    }
    out
}

/// One line of the table: what it does, to what, where that was said, and why.
struct Row {
    verb: &'static str,
    what: String,
    origin: Option<String>,
    reason: Option<String>,
}

impl Row {
    fn new(verb: &'static str, what: impl Into<String>, origin: &Origin, reason: Option<&String>) -> Self {
        Self {
            verb,
            what: what.into(),
            origin: Some(origin.to_string()),
            reason: reason.cloned(),
        }
    }
}

fn as_table(policy: &Policy) -> String {
    let built_in = BUILT_IN.iter().map(|(verb, what)| Row {
        verb,
        what: (*what).to_owned(),
        origin: None,
        reason: None,
    });
    let sections = [
        ("network", network_rows(policy)),
        ("filesystem", filesystem_rows(policy)),
        ("environment", environment_rows(policy)),
        ("limits", limit_rows(policy)),
        ("built in", built_in.collect()),
        ("protected", protected_rows(policy)),
    ];
    let mut out = String::new();
    for (title, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(title);
        out.push('\n');
        let rows: Vec<(&str, String, String)> = rows.into_iter().map(cells).collect();
        let width = |cell: fn(&(&str, String, String)) -> usize| rows.iter().map(cell).max().unwrap_or(0);
        let (verbs, whats) = (
            width(|row| row.0.chars().count()),
            width(|row| row.1.chars().count()).min(60),
        );
        for (verb, what, rest) in &rows {
            let line = format!("  {verb:verbs$}  {what:whats$}  {rest}");
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

fn cells(row: Row) -> (&'static str, String, String) {
    let rest = [row.origin, row.reason]
        .into_iter()
        .flatten()
        .map(|text| harmless_text(&text))
        .collect::<Vec<_>>()
        .join("   ");
    (row.verb, harmless_text(&row.what), rest)
}

fn network_rows(policy: &Policy) -> Vec<Row> {
    let network = &policy.network;
    let mut rows = Vec::new();
    rows.extend(
        network
            .allow_all
            .iter()
            .map(|origin| Row::new("allow", "every host", origin, None)),
    );
    rows.extend(
        network
            .allow
            .iter()
            .map(|rule| Row::new("allow", rule.to_string(), &rule.origin, rule.reason.as_ref())),
    );
    rows.extend(
        network
            .deny
            .iter()
            .map(|rule| Row::new("deny", rule.to_string(), &rule.origin, rule.reason.as_ref())),
    );
    let refused = network.refused_addresses.iter();
    rows.extend(
        refused.map(|(addresses, origin)| Row::new("deny", format!("names that resolve to {addresses}"), origin, None)),
    );
    rows.extend(
        policy
            .deny_unix_sockets
            .iter()
            .map(|origin| Row::new("deny", "making Unix sockets", origin, None)),
    );
    rows
}

fn filesystem_rows(policy: &Policy) -> Vec<Row> {
    let mut rows = Vec::new();
    for (verb, access) in [
        ("write", PathAccess::Write),
        ("read", PathAccess::Read),
        ("readonly", PathAccess::ReadOnly),
        ("hide", PathAccess::Hide),
    ] {
        let rules = policy.filesystem.iter().filter(|rule| rule.access == access);
        rows.extend(rules.map(|rule| Row::new(verb, rule.path.to_text(), &rule.origin, rule.reason.as_ref())));
    }
    let trusted = policy.git_safe_directories.iter();
    rows.extend(trusted.map(|(path, origin)| Row::new("git trusts", shown_path(path), origin, None)));
    rows
}

fn environment_rows(policy: &Policy) -> Vec<Row> {
    let environment = &policy.environment;
    let mut rows = Vec::new();
    rows.extend(
        environment
            .pass
            .iter()
            .map(|(name, origin)| Row::new("pass", name, origin, None)),
    );
    rows.extend(
        environment
            .set
            .iter()
            .map(|(name, (value, origin))| Row::new("set", format!("{name}={value}"), origin, None)),
    );
    rows.extend(
        environment
            .deny
            .iter()
            .map(|(name, origin)| Row::new("deny", name, origin, None)),
    );
    rows
}

fn limit_rows(policy: &Policy) -> Vec<Row> {
    let limits = &policy.limits;
    let mut rows = Vec::new();
    rows.extend(
        limits
            .memory
            .iter()
            .map(|limit| Row::new("memory", size_text(limit.value), &limit.origin, None)),
    );
    rows.extend(
        limits
            .cpu_millis
            .iter()
            .map(|limit| Row::new("cpus", cpus_text(limit.value), &limit.origin, None)),
    );
    rows.extend(
        limits
            .pids
            .iter()
            .map(|limit| Row::new("pids", limit.value.to_string(), &limit.origin, None)),
    );
    rows.extend(
        limits
            .timeout
            .iter()
            .map(|limit| Row::new("timeout", duration_text(limit.value), &limit.origin, None)),
    );
    rows
}

fn protected_rows(policy: &Policy) -> Vec<Row> {
    let groups = Group::all().iter().map(|group| {
        let lift = policy.lift.iter().find(|lift| lift.group == *group);
        match lift {
            Some(lift) => Row::new("lifted", group.name(), &lift.origin, None),
            None => Row {
                verb: "readonly",
                what: group.name().to_owned(),
                origin: None,
                reason: Some(group.reason().to_owned()),
            },
        }
    });
    let mut rows: Vec<Row> = groups.collect();
    let depth = policy.scan_depth.as_ref();
    let what = format!(
        "searched {} folders deep",
        depth.map_or(DEFAULT_SCAN_DEPTH, |limit| limit.value)
    );
    rows.push(Row {
        verb: "",
        what,
        origin: depth.map(|limit| limit.origin.to_string()),
        reason: None,
    });
    rows
}

fn as_json(policy: &Policy) -> Value {
    let hosts = |rules: &[pinfold_model::net::NetRule]| -> Vec<Value> {
        rules
            .iter()
            .map(|rule| json!({ "host": rule.to_string(), "reason": rule.reason, "origin": origin(&rule.origin) }))
            .collect()
    };
    let names = |names: &[(String, Origin)]| -> Vec<Value> {
        names
            .iter()
            .map(|(name, from)| json!({ "name": name, "origin": origin(from) }))
            .collect()
    };
    let limits = &policy.limits;
    json!({
        "network": {
            "allow_all": policy.network.allow_all.as_ref().map(origin),
            "allow": hosts(&policy.network.allow),
            "deny": hosts(&policy.network.deny),
            "refuse_addresses": policy.network.refused_addresses.iter()
                .map(|(addresses, from)| json!({ "addresses": addresses.to_string(), "origin": origin(from) })).collect::<Vec<_>>(),
            "deny_unix_sockets": policy.deny_unix_sockets.as_ref().map(origin),
        },
        "filesystem": policy.filesystem.iter().map(|rule| json!({
            "access": rule.access, "path": rule.path.to_text(), "reason": rule.reason, "origin": origin(&rule.origin),
        })).collect::<Vec<_>>(),
        "protected": Group::all().iter().map(|group| json!({
            "group": group.name(),
            "lifted": policy.lift.iter().find(|lift| lift.group == *group).map(|lift| origin(&lift.origin)),
            "reason": group.reason(),
        })).collect::<Vec<_>>(),
        "scan_depth": policy.scan_depth.as_ref().map_or(DEFAULT_SCAN_DEPTH, |limit| limit.value),
        "environment": {
            "pass": names(&policy.environment.pass),
            "set": policy.environment.set.iter()
                .map(|(name, (value, from))| json!({ "name": name, "value": value, "origin": origin(from) })).collect::<Vec<_>>(),
            "deny": names(&policy.environment.deny),
        },
        "limits": {
            "memory": limits.memory.as_ref().map(|limit| json!({ "bytes": limit.value, "origin": origin(&limit.origin) })),
            "cpus": limits.cpu_millis.as_ref()
                .map(|limit| json!({ "cpus": f64::from(limit.value) / 1000.0, "origin": origin(&limit.origin) })),
            "pids": limits.pids.as_ref().map(|limit| json!({ "pids": limit.value, "origin": origin(&limit.origin) })),
            "timeout": limits.timeout.as_ref()
                .map(|limit| json!({ "milliseconds": limit.value.as_millis(), "origin": origin(&limit.origin) })),
        },
        "git_safe_directories": policy.git_safe_directories.iter()
            .map(|(path, from)| json!({ "path": shown_path(path), "origin": origin(from) })).collect::<Vec<_>>(),
        "quiet_denials": policy.quiet_denials,
    })
}

/// An origin as JSON. Not its own serial form, which cannot hold a path that is no UTF-8.
fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Builtin { what } => json!({ "kind": "builtin", "what": what }),
        Origin::Profile {
            name,
            line,
            column,
            key,
        } => {
            json!({ "kind": "profile", "name": name, "line": line, "column": column, "key": key })
        }
        Origin::File {
            scope,
            path,
            line,
            column,
            key,
        } => {
            json!({ "kind": "file", "path": shown_path(path), "line": line, "column": column, "key": key, "scope": scope })
        }
        Origin::Settings { path, key } => json!({ "kind": "settings", "path": shown_path(path), "key": key }),
        Origin::Flag { flag } => json!({ "kind": "flag", "flag": flag }),
    }
}

#[cfg(test)]
mod tests;
