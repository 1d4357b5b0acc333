//! From what was found to what a person has to know. Pure.

use pinfold_model::wire::Finding;
use serde::Serialize;

use crate::cgroup::Usable;

/// What works of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub backend: &'static str,
    #[serde(flatten)]
    pub state: State,
    pub parts: Vec<Part>,
    /// Sentences about this host, whether the backend is ready or not.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    Ready {
        /// The layers in few words.
        summary: String,
    },
    NotReady(Obstacle),
}

/// Why a backend does not work, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    pub cause: String,
    pub fix: Option<String>,
}

/// One part of the walls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    pub name: String,
    pub works: bool,
    pub detail: String,
    /// The checks that held, by name.
    pub held: Vec<String>,
    /// The checks that failed, and why.
    pub failed: Vec<Failed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub check: String,
    pub reason: String,
}

/// What to do about a wall that was put up and does not hold.
pub(super) const BROKEN: &str =
    "update the kernel; if it is a recent one, please report this with what pinfold doctor --json prints";

impl Report {
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }
}

/// The sandbox started, and its walls were tried.
pub(super) fn judged(
    landlock: Option<u32>,
    cgroup: &Usable,
    findings: Vec<Finding>,
    mut warnings: Vec<String>,
) -> Report {
    let mut parts: Vec<Part> = Vec::new();
    for finding in findings {
        let part = match parts.iter_mut().find(|part| part.name == finding.part) {
            Some(part) => part,
            None => {
                parts.push(Part {
                    name: finding.part.clone(),
                    works: true,
                    detail: String::new(),
                    held: Vec::new(),
                    failed: Vec::new(),
                });
                match parts.last_mut() {
                    Some(part) => part,
                    None => continue,
                }
            }
        };
        match finding.failure {
            None => part.held.push(finding.check),
            Some(why) => {
                part.works = false;
                part.failed.push(Failed {
                    check: finding.check,
                    reason: why,
                });
            }
        }
    }
    for part in &mut parts {
        let (held, all) = (part.held.len(), part.held.len() + part.failed.len());
        part.detail = match (part.name.as_str(), landlock) {
            ("landlock", Some(abi)) => format!("ABI {abi}, {held} of {all} checks"),
            _ => format!("{held} of {all} checks"),
        };
    }
    let failed = parts
        .iter()
        // A home without toolchains needs no layer.
        .filter(|part| part.name != "layers")
        .flat_map(|part| part.failed.iter().map(move |failed| (&part.name, failed)))
        .collect::<Vec<_>>();
    let state = match failed.first() {
        None => State::Ready {
            summary: summary(landlock, cgroup),
        },
        Some((part, Failed { check, reason })) => State::NotReady(Obstacle {
            cause: format!(
                "{} of the walls {} not hold; {part}: {check}: {reason}",
                failed.len(),
                if failed.len() == 1 { "does" } else { "do" }
            ),
            fix: Some(BROKEN.to_owned()),
        }),
    };
    if parts.iter().any(|part| part.name == "layers" && !part.works) {
        warnings.push(
            "overlayfs cannot be used in a user namespace here (Linux 5.11 or later, state folder on a file system with \
             user.* attributes), so a start fails when PATH leads into your home folder   hint: take those folders out of \
             PATH, or put XDG_DATA_HOME on another file system"
                .to_owned(),
        );
    }
    parts.push(of_cgroup(cgroup));
    Report {
        backend: "process",
        state,
        parts,
        warnings,
    }
}

/// There was no sandbox to try.
pub(super) fn not_started(obstacle: Obstacle, landlock: Option<u32>, cgroup: &Usable, warnings: Vec<String>) -> Report {
    let landlock = Part {
        name: "landlock".to_owned(),
        works: landlock.is_some(),
        detail: landlock.map_or_else(|| "not there, or not enabled".to_owned(), |abi| format!("ABI {abi}")),
        held: Vec::new(),
        failed: Vec::new(),
    };
    Report {
        backend: "process",
        state: State::NotReady(obstacle),
        parts: vec![landlock, of_cgroup(cgroup)],
        warnings,
    }
}

fn summary(landlock: Option<u32>, cgroup: &Usable) -> String {
    let landlock = landlock.map_or_else(|| "landlock".to_owned(), |abi| format!("landlock {abi}"));
    let cgroup = if cgroup.controllers.is_empty() {
        "no cgroup for limits".to_owned()
    } else {
        format!("cgroup {} ({})", cgroup.version, cgroup.controllers.join(", "))
    };
    format!("user namespaces, {landlock}, seccomp, {cgroup}")
}

/// Limits that nobody asked for are no wall: without a cgroup a sandbox still starts.
fn of_cgroup(cgroup: &Usable) -> Part {
    let controllers = cgroup.controllers.join(", ");
    Part {
        name: "cgroup".to_owned(),
        works: cgroup.refused.is_empty(),
        detail: match (cgroup.controllers.is_empty(), cgroup.refused.is_empty()) {
            (true, _) => "no limit can be held: runs with --memory, --cpus or --pids are refused".to_owned(),
            (false, true) => format!("{} ({controllers})", cgroup.version),
            (false, false) => format!("{} ({controllers}); other limits are refused", cgroup.version),
        },
        held: cgroup.controllers.iter().map(|name| (*name).to_owned()).collect(),
        failed: cgroup
            .refused
            .iter()
            .map(|(name, error)| Failed {
                check: (*name).to_owned(),
                reason: error.to_string(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(part: &str, check: &str, failure: Option<&str>) -> Finding {
        Finding {
            part: part.to_owned(),
            check: check.to_owned(),
            failure: failure.map(str::to_owned),
        }
    }

    fn cgroup() -> Usable {
        Usable {
            version: "v1".to_owned(),
            controllers: vec!["memory", "cpu", "pids"],
            refused: Vec::new(),
        }
    }

    #[test]
    fn a_host_where_every_check_holds_is_ready() {
        let findings = vec![finding("files", "a", None), finding("landlock", "b", None)];
        let report = judged(Some(7), &cgroup(), findings, Vec::new());
        let State::Ready { summary } = &report.state else {
            panic!("{report:?}");
        };
        assert_eq!(
            summary,
            "user namespaces, landlock 7, seccomp, cgroup v1 (memory, cpu, pids)"
        );
        assert_eq!(report.parts[1].detail, "ABI 7, 1 of 1 checks");
    }

    #[test]
    fn one_check_that_fails_makes_a_host_not_ready_and_is_named() {
        let findings = vec![
            finding("files", "a", None),
            finding("files", "b", Some("it was possible")),
        ];
        let report = judged(Some(7), &cgroup(), findings, Vec::new());
        let State::NotReady(obstacle) = &report.state else {
            panic!("{report:?}");
        };
        assert!(obstacle.cause.contains("files: b: it was possible"), "{obstacle:?}");
        assert!(!report.is_ready());
    }

    #[test]
    fn missing_layers_and_cgroups_are_said_and_keep_nobody_from_starting() {
        let findings = vec![finding("files", "a", None), finding("layers", "l", Some("no"))];
        let report = judged(Some(7), &Usable::default(), findings, Vec::new());
        assert!(report.is_ready());
        assert_eq!(report.warnings.len(), 1);
        let State::Ready { summary } = &report.state else {
            panic!("{report:?}");
        };
        assert!(summary.ends_with("no cgroup for limits"), "{summary}");
    }
}
