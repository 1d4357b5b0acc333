//! Which rules hold, now that it is known where their paths lead. Pure: looks at nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::policy::{PathAccess, PathRule};

use super::error::{ResolveError, RuleName};
use super::follow::{Astray, End, Landing};
use super::outcome::Outcome;
use super::warnings::Warnings;
use super::{Context, Resolved, dropped, shown};

/// Names in `/dev` that every sandbox has (as its own, where it matters).
const GIVEN: [&str; 13] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];
/// Parts of `/sys` that reach into the kernel (debugfs, tracefs, bpf, cgroup, efivars).
const KERNEL: [&str; 3] = ["/sys/kernel", "/sys/fs", "/sys/firmware"];

/// A rule and where it leads: itself, or one match of its pattern.
#[derive(Debug)]
pub(super) struct Case<'r> {
    pub(super) rule: &'r PathRule,
    pub(super) landing: Landing,
    pub(super) matched: bool,
}

/// Whether a rule permits what every sandbox has anyway.
pub(super) fn is_given(rule: &PathRule) -> bool {
    permits(rule) && GIVEN.iter().any(|given| rule.path.path == Path::new(given))
}

/// Whether the person wrote the rule, or imported it.
pub(super) fn is_the_persons(rule: &PathRule) -> bool {
    matches!(
        rule.origin,
        Origin::File { .. } | Origin::Settings { .. } | Origin::Flag { .. }
    )
}

/// Whether a rule may be left out instead of stopping the start: it only permits, and the person did not ask for it.
pub(super) fn may_drop(rule: &PathRule, error: &ResolveError) -> bool {
    permits(rule) && !is_the_persons(rule) && !matches!(error, ResolveError::System { .. })
}

pub(super) fn astray(rule: &PathRule, astray: Astray) -> ResolveError {
    let rule = RuleName::of(rule);
    match astray {
        Astray::Cycle { link } => ResolveError::Cycle { rule, link },
        Astray::PerProcess { link } => ResolveError::PerProcess { rule, link },
        Astray::System { errno } => ResolveError::System { rule, errno },
    }
}

pub(super) fn nothing(rule: &PathRule) -> String {
    format!("{} matches nothing   ({})", RuleName::of(rule), rule.origin)
}

/// Whether the rule stands for every file rule being switched off, which an import permits by a flag of its own only.
fn is_switched_off(rule: &PathRule) -> bool {
    matches!(&rule.origin, Origin::Settings { key, .. } if key == "filesystem.disabled")
}

fn permits(rule: &PathRule) -> bool {
    matches!(rule.access, PathAccess::Read | PathAccess::Write)
}

/// Sorts every case into the result.
pub(super) fn judge(cases: Vec<Case<'_>>, context: &Context<'_>, warnings: Warnings) -> Result<Resolved, ResolveError> {
    let mut out = Outcome::new(warnings);
    let (permitting, denying): (Vec<Case<'_>>, Vec<Case<'_>>) = cases.into_iter().partition(|case| permits(case.rule));
    let mut candidates = Vec::new();
    for case in permitting {
        match admit(&case, context) {
            Ok(None) => candidates.push(case),
            Ok(Some(warning)) => {
                if let Some(sentence) = warning {
                    out.warn(&case, sentence);
                }
            }
            Err(error) if case.matched || may_drop(case.rule, &error) => out.warn(&case, dropped(&error)),
            Err(error) => return Err(error),
        }
    }
    // Whatever may be writable counts, so that the answer for one rule cannot depend on that for another.
    let mut roots: BTreeSet<PathBuf> = candidates
        .iter()
        .filter(|case| case.rule.access == PathAccess::Write)
        .map(path)
        .collect();
    roots.insert(context.workspace.to_path_buf());
    let shown_here: BTreeSet<PathBuf> = candidates
        .iter()
        .map(path)
        .chain([context.workspace.to_path_buf()])
        .collect();

    for case in denying {
        out.deny(case, context, &roots, &shown_here);
    }
    out.permit(candidates, context, &roots)?;
    out.warn_of_risks(context);
    Ok(out.finish())
}

fn path(case: &Case<'_>) -> PathBuf {
    case.landing.path.clone()
}

/// Whether a rule that permits does so for something that is there and may be shown. None: yes. Some: no, possibly with a
/// word to the person.
fn admit(case: &Case<'_>, context: &Context<'_>) -> Result<Option<Option<String>>, ResolveError> {
    let Case { rule, landing, matched } = case;
    let name = || RuleName::of(rule);
    let target = landing.path.as_path();
    if context.private.contains(&target) {
        let word = format!(
            "{} is of no use: the sandbox has a '{}' of its own, and the host's is not shown; a folder in it can be named   ({})",
            name(),
            shown(target),
            rule.origin
        );
        return Ok(Some(is_the_persons(rule).then_some(word)));
    }
    let missing = landing.broken || landing.end == End::Missing;
    match &landing.end {
        End::Unreachable { why, .. } => {
            return Err(ResolveError::Unreachable {
                rule: name(),
                why: why.to_string(),
            });
        }
        _ if missing && *matched => return Ok(Some((is_the_persons(rule)).then(|| nothing(rule)))),
        _ if missing => {
            return match (&rule.origin, rule.access) {
                (Origin::Builtin { .. } | Origin::Profile { .. }, _) => Ok(Some(None)),
                // Settings written for another sandbox name folders that this one can make in a place of its own.
                (Origin::Settings { .. }, _) if context.private.iter().any(|place| target.starts_with(place)) => {
                    Ok(Some(Some(nothing(rule))))
                }
                (Origin::Flag { .. }, _) | (_, PathAccess::Write) => Err(ResolveError::Missing {
                    rule: name(),
                    path: landing.path.clone(),
                }),
                _ => Ok(Some(Some(nothing(rule)))),
            };
        }
        _ => {}
    }
    let writes = rule.access == PathAccess::Write;
    if writes && target == Path::new("/") && !is_switched_off(rule) {
        return Err(ResolveError::WritesEverything { rule: name() });
    }
    let own_view = |place: &Path| {
        Err(ResolveError::OwnView {
            rule: name(),
            place: place.to_path_buf(),
        })
    };
    if target.starts_with("/proc") {
        return own_view(Path::new("/proc"));
    }
    if target.starts_with("/sys") {
        if writes || target == Path::new("/sys") {
            return own_view(Path::new("/sys"));
        }
        if let Some(place) = KERNEL.iter().find(|place| target.starts_with(place)) {
            return own_view(Path::new(place));
        }
    }
    if target.starts_with("/dev") && landing.end != End::CharDevice {
        return Err(ResolveError::NoDevice { rule: name() });
    }
    Ok(None)
}
