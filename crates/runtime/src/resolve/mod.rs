//! From the rules of a policy to paths of this host: links followed, patterns expanded, what is missing sorted out.
//!
//! Owns every look at the file system between the merged policy and the mount plan. It opens nothing for reading but folders
//! that a pattern searches, changes nothing, and decides no access: [`access::View`](pinfold_model::policy::access::View) does
//! that with what comes out. Refuses rules that nobody can carry out, and permissions that would open more than they say.
//!
//! - A rule covers the real target of its path, under every name. A pattern covers what exists at the start: names that appear
//!   on the host later are not covered, and links to folders are not searched.
//! - What denies (`hide`, `readonly`) always ends in something that denies: the target, the target's name where there is
//!   nothing yet, or the nearest folder above that can be looked at.
//! - What permits (`read`, `write`) is dropped or refused as soon as it is unclear what it permits. Rules that the person did
//!   not write (profiles, built-in ones) are dropped, with a warning where that is no everyday case.

mod error;
mod expand;
mod follow;
mod judge;
mod mounts;
mod outcome;
mod search;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinfold_model::origin::Origin;
use pinfold_model::plan::Node;
use pinfold_model::policy::access::ResolvedRule;
use pinfold_model::policy::path::shown_path;
use pinfold_model::policy::{PathAccess, PathRule};

pub use error::{Bound, ResolveError, RuleName, Widening};
use follow::{End, Follower};
use judge::Case;
use mounts::Mounts;
use search::Bounds;
use warnings::Warnings;

/// What the rules are read against. Every path is absolute and without links.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub home: &'a Path,
    /// Counts as a write root, whether a rule names it or not.
    pub workspace: &'a Path,
    /// Folders of which the sandbox has its own: `/tmp`, `/var/tmp`, `/run`, `/dev`, `/proc`, `/sys`.
    pub private: &'a [&'a Path],
    /// Folders that the person's programs are started from (`PATH`).
    pub search_path: &'a [&'a Path],
    /// How long the search for what patterns match may take.
    pub budget: Duration,
}

/// The rules as paths of this host. Sorted, without repetitions; the order of the rules leaves no trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    pub rules: Vec<ResolvedRule>,
    /// What is at each path of `rules`, `devices` and `links`.
    pub nodes: BTreeMap<PathBuf, Node>,
    /// Character devices below `/dev` that rules permit; they are not in `rules`.
    pub devices: Vec<ResolvedRule>,
    /// Links inside write roots through which a denied path was spelled: they must not be replaced or removed.
    pub links: Vec<(PathBuf, Origin)>,
    pub absent: Vec<AbsentRule>,
    /// Sentences for the person.
    pub warnings: Vec<String>,
}

/// A denied path at which there is nothing, and at which nothing may come into being. Parents may be missing too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentRule {
    pub path: PathBuf,
    pub access: PathAccess,
    pub origin: Origin,
}

/// Resolves the rules of a merged policy.
///
/// # Errors
/// Every rule that cannot be carried out as written; see [`ResolveError`].
pub fn resolve(rules: &[PathRule], context: &Context<'_>) -> Result<Resolved, ResolveError> {
    let asked = rules.iter().any(|rule| !matches!(rule.origin, Origin::Builtin { .. }));
    let mounts = if asked {
        Mounts::read().map_err(|source| ResolveError::Mounts { source })?
    } else {
        Mounts::default()
    };
    resolve_with(rules, context, mounts, Bounds::within(context.budget))
}

fn resolve_with(
    rules: &[PathRule],
    context: &Context<'_>,
    mounts: Mounts,
    bounds: Bounds,
) -> Result<Resolved, ResolveError> {
    let mut follower = Follower::new(mounts);
    let mut warnings = Warnings::default();
    let mut cases = Vec::new();
    let mut patterns = expand::Patterns::new();
    for rule in in_order(rules) {
        if rule.path.glob.is_none() && judge::is_given(rule) {
            continue;
        }
        let landing = match follower.follow(&rule.path.path) {
            Ok(landing) => landing,
            Err(astray) => {
                let error = judge::astray(rule, astray);
                if judge::may_drop(rule, &error) {
                    warnings.say(dropped(&error));
                    continue;
                }
                return Err(error);
            }
        };
        match (&rule.path.glob, &landing.end) {
            (None, _) => cases.push(Case {
                rule,
                landing,
                matched: false,
            }),
            (Some(_), End::Unreachable { .. }) => cases.push(Case {
                rule,
                landing,
                matched: true,
            }),
            (Some(_), _) if landing.path.starts_with("/proc") => {
                return Err(ResolveError::OwnView {
                    rule: RuleName::of(rule),
                    place: PathBuf::from("/proc"),
                });
            }
            (Some(_), End::Dir) => patterns.entry(landing.path.clone()).or_default().push((rule, landing)),
            (Some(_), _) if judge::is_the_persons(rule) => warnings.say(judge::nothing(rule)),
            (Some(_), _) => {}
        }
    }
    expand::expand(patterns, &mut follower, bounds, &mut cases, &mut warnings)?;
    judge::judge(cases, context, warnings)
}

/// Sorted, so that neither the result nor which of several errors is reported depends on the order in the policy.
fn in_order(rules: &[PathRule]) -> Vec<&PathRule> {
    let mut rules: Vec<&PathRule> = rules.iter().collect();
    rules.sort_by(|a, b| {
        let first = a.path.path.as_os_str().cmp(b.path.path.as_os_str());
        let then = first
            .then_with(|| a.path.glob.cmp(&b.path.glob))
            .then(a.access.cmp(&b.access));
        then.then_with(|| format!("{:?}", a.origin).cmp(&format!("{:?}", b.origin)))
    });
    rules.dedup_by(|a, b| a.path == b.path && a.access == b.access && a.origin == b.origin);
    rules
}

fn dropped(error: &ResolveError) -> String {
    format!("a rule was left out: {error}; {}", error.hint())
}

/// A path as a message shows it.
fn shown(path: &Path) -> String {
    shown_path(path)
}
