//! What of a layer only a trusted source may say.

use super::path::shown_path;
use super::quantity::{cpus_text, duration_text, size_text};
use super::{Layer, Limit, PathAccess, Policy};
use crate::origin::Origin;

/// Scan depth where no source names one.
pub const DEFAULT_SCAN_DEPTH: u8 = 3;

/// One thing that a source would permit beyond what was said before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loosening {
    /// In words, such as `write /home/me/.cache` or `allow api.example.com`.
    pub rule: String,
    pub origin: Origin,
}

impl Layer {
    /// Everything in this layer that would loosen `before`, whatever its authority. Profiles are not looked into: whoever loads
    /// them judges them as layers of their own.
    #[must_use]
    pub fn loosenings(&self, before: &Policy) -> Vec<Loosening> {
        let mut found = Vec::new();
        let mut add = |rule: String, origin: &Origin| {
            found.push(Loosening {
                rule,
                origin: origin.clone(),
            })
        };
        if let Some(origin) = &self.network.allow_all {
            add("allow every host".to_owned(), origin);
        }
        for rule in &self.filesystem {
            match rule.access {
                PathAccess::Write => add(format!("write {}", rule.path.to_text()), &rule.origin),
                PathAccess::Read => add(format!("read {}", rule.path.to_text()), &rule.origin),
                PathAccess::ReadOnly | PathAccess::Hide => {}
            }
        }
        for lift in &self.lift {
            add(format!("lift {}", lift.group.name()), &lift.origin);
        }
        for rule in &self.network.allow {
            add(format!("allow {rule}"), &rule.origin);
        }
        for (name, origin) in &self.environment.pass {
            add(format!("pass {name}"), origin);
        }
        for (name, (_, origin)) in &self.environment.set {
            add(format!("set {name}"), origin);
        }
        for (path, origin) in &self.git_safe_directories {
            add(format!("git trusts {}", shown_path(path)), origin);
        }
        if !self.quiet_denials.is_empty() {
            let origin = self
                .quiet_origin
                .clone()
                .unwrap_or_else(|| Origin::builtin("report.quiet_denials"));
            add("leave denials out of the summary".to_owned(), &origin);
        }
        let limits = [
            above("memory", &self.limits.memory, &before.limits.memory, |value| {
                size_text(*value)
            }),
            above("cpus", &self.limits.cpu_millis, &before.limits.cpu_millis, |value| {
                cpus_text(*value)
            }),
            above("pids", &self.limits.pids, &before.limits.pids, u32::to_string),
            above("timeout", &self.limits.timeout, &before.limits.timeout, |value| {
                duration_text(*value)
            }),
        ];
        found.extend(limits.into_iter().flatten());
        if let Some(depth) = &self.scan_depth {
            let needed = before
                .scan_depth
                .as_ref()
                .map_or(DEFAULT_SCAN_DEPTH, |limit| limit.value);
            if depth.value < needed {
                let rule = format!("search protected names {} deep, not {needed}", depth.value);
                found.push(Loosening {
                    rule,
                    origin: depth.origin.clone(),
                });
            }
        }
        found
    }
}

fn above<T: PartialOrd>(
    name: &str,
    here: &Option<Limit<T>>,
    before: &Option<Limit<T>>,
    text: impl Fn(&T) -> String,
) -> Option<Loosening> {
    let (here, before) = (here.as_ref()?, before.as_ref()?);
    (here.value > before.value).then(|| Loosening {
        rule: format!("raise {name} from {} to {}", text(&before.value), text(&here.value)),
        origin: here.origin.clone(),
    })
}
