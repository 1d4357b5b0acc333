//! From patterns to the paths that they match.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pinfold_model::policy::glob::Glob;
use pinfold_model::policy::{PathAccess, PathRule};

use super::dropped;
use super::error::{ResolveError, RuleName};
use super::follow::{Astray, End, Follower, Landing};
use super::judge::{self, Case};
use super::mounts::Mounts;
use super::search::{self, Bounds, Found, Meter, Pattern, Settled};
use super::warnings::Warnings;

/// Rules with patterns, by the folder they start in: each folder is walked once.
pub(super) type Patterns<'r> = BTreeMap<PathBuf, Vec<(&'r PathRule, Landing)>>;

/// Adds a case for each match, and for each folder that was not searched.
pub(super) fn expand<'r>(
    patterns: Patterns<'r>,
    follower: &mut Follower,
    bounds: Bounds,
    cases: &mut Vec<Case<'r>>,
    warnings: &mut Warnings,
) -> Result<(), ResolveError> {
    if patterns.is_empty() {
        return Ok(());
    }
    let settled = settled(&patterns, cases);
    let named = named(&patterns, cases, &follower.mounts);
    let mut meter = Meter::start(bounds);
    for (base, rules) in patterns {
        let mut globs = Vec::with_capacity(rules.len());
        for (id, (rule, _)) in rules.iter().enumerate() {
            let glob =
                Glob::parse(rule.path.glob.as_deref().unwrap_or_default()).map_err(|fault| ResolveError::Pattern {
                    rule: RuleName::of(rule),
                    fault,
                })?;
            let settled_by = if rule.access == PathAccess::Hide {
                settled.clone()
            } else {
                Settled::Never
            };
            globs.push(Pattern { id, glob, settled_by });
        }
        let found = search::search(&base, &globs, &named, &mut follower.mounts, &mut meter).map_err(|bound| {
            ResolveError::TooBig {
                rule: RuleName::of(rules[0].0),
                bound,
                visited: meter.visited,
                matches: meter.matches,
            }
        })?;
        let mut hits = vec![0_usize; rules.len()];
        for found in found {
            let (id, landing) = match found {
                Found::Match {
                    id,
                    path,
                    kind: rustix::fs::FileType::Symlink,
                } => match follower.follow(&path) {
                    Ok(landing) => (id, landing),
                    Err(Astray::System { errno }) => {
                        return Err(ResolveError::System {
                            rule: RuleName::of(rules[id].0),
                            errno,
                        });
                    }
                    Err(astray) => {
                        // It opens nothing of the host's, and one bad link must not stop the others.
                        hits[id] += 1;
                        warnings.say_of_match(rules[id].0, dropped(&judge::astray(rules[id].0, astray)));
                        continue;
                    }
                },
                Found::Match { id, path, kind } => (
                    id,
                    Landing {
                        path,
                        end: End::of(kind),
                        links: Vec::new(),
                        is_link: false,
                        broken: false,
                    },
                ),
                Found::Barred { id, folder, why } => {
                    let end = End::Unreachable {
                        nearest: folder.clone(),
                        why,
                    };
                    (
                        id,
                        Landing {
                            path: folder,
                            end,
                            links: Vec::new(),
                            is_link: false,
                            broken: false,
                        },
                    )
                }
            };
            hits[id] += 1;
            let (rule, start) = &rules[id];
            let links = start.links.iter().cloned().chain(landing.links).collect();
            cases.push(Case {
                rule,
                landing: Landing { links, ..landing },
                matched: true,
            });
        }
        for ((rule, _), hits) in rules.iter().zip(hits) {
            if hits == 0 && judge::is_the_persons(rule) {
                warnings.say(judge::nothing(rule));
            }
        }
    }
    Ok(())
}

/// When a hidden folder needs no further search: nothing that is permitted lies below it.
fn settled(patterns: &Patterns<'_>, cases: &[Case<'_>]) -> Settled {
    let permits = |rule: &PathRule| matches!(rule.access, PathAccess::Read | PathAccess::Write);
    if patterns.values().flatten().any(|(rule, _)| permits(rule)) {
        return Settled::Never;
    }
    let mut kept: Vec<PathBuf> = cases
        .iter()
        .filter(|case| permits(case.rule))
        .map(|case| case.landing.path.clone())
        .collect();
    kept.sort_unstable();
    Settled::UnlessAbove(Rc::from(kept))
}

/// The mounts that may not answer but that a rule names, and that may be searched therefore.
fn named(patterns: &Patterns<'_>, cases: &[Case<'_>], mounts: &Mounts) -> BTreeSet<PathBuf> {
    let paths = cases.iter().map(|case| &case.landing.path).chain(patterns.keys());
    paths
        .filter_map(|path| mounts.holding(path))
        .map(Path::to_path_buf)
        .collect()
}
