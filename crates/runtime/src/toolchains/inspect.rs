//! Looks at the disk: which chosen trees exist, where they really are, and which credentials lie in them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::choose::{Candidate, around, candidates, is_below, normal};
use super::known::{CREDENTIALS, PRIVATE, SHARED};
use super::{Reason, Toolchain, Toolchains, Warning};

/// Links that one program may take to its real place.
const HOPS: usize = 8;

/// Entries of one folder that are looked at. In a larger one credentials are looked up by name, and links may be missed.
const ENTRIES: usize = 4096;

/// Finds the toolchains below `home` that `path` and `variables` (the caller's) name, leaving out what lies in `shown`
/// (write roots and whatever else the policy makes visible).
///
/// What cannot be looked at is left out: a tool that is missing inside is better than a start that fails.
#[must_use]
pub fn find(home: &Path, path: &OsStr, variables: &[(OsString, OsString)], shown: &[PathBuf]) -> Toolchains {
    let choice = candidates(home, path, variables, shown);
    let mut found = Toolchains {
        warnings: choice.warnings,
        ..Toolchains::default()
    };
    if choice.candidates.is_empty() {
        return found;
    }
    let Some(home) = normal(home) else { return found };
    let Ok(real_home) = fs::canonicalize(&home) else {
        return found;
    };
    let homes = Homes {
        spelled: &home,
        real: &real_home,
        shown,
    };

    let mut queue = choice.candidates;
    // Trees named by the caller come before the ones that links lead to, so that a link adds only what is not there
    // yet.
    let mut next = 0;
    while let Some(candidate) = queue.get(next).cloned() {
        next += 1;
        let Some((toolchain, links)) = homes.inspect(&candidate, &mut found.warnings) else {
            continue;
        };
        for link in links {
            homes.follow(&link, &mut queue);
        }
        found.trees.push(toolchain);
    }
    found.trees.sort_by(|left, right| left.tree.cmp(&right.tree));
    // A later, broader tree takes in an earlier one.
    found
        .trees
        .dedup_by(|later, earlier| later.tree.starts_with(&earlier.tree));
    let shown = |place: &PathBuf| found.trees.iter().any(|known| place.starts_with(&known.tree));
    found.variables = choice
        .variables
        .iter()
        .filter(|(_, places)| places.iter().any(shown))
        .map(|(name, _)| *name)
        .collect();
    found
}

struct Homes<'a> {
    spelled: &'a Path,
    real: &'a Path,
    shown: &'a [PathBuf],
}

impl Homes<'_> {
    /// The toolchain, and the links in it when it is a folder of programs; none when it does not exist or must not be
    /// shown.
    fn inspect(&self, candidate: &Candidate, warnings: &mut Vec<Warning>) -> Option<(Toolchain, Vec<PathBuf>)> {
        let tree = &candidate.tree;
        let source = fs::canonicalize(tree).ok()?;
        let kind = fs::symlink_metadata(&source).ok()?.file_type();
        if !kind.is_dir() && !kind.is_file() {
            return None;
        }
        let below = tree.strip_prefix(self.spelled).ok()?;
        if !candidate.believed && source != self.real.join(below) {
            return None;
        }
        if kind.is_dir() && self.is_too_broad(&source) {
            warnings.push(Warning::TooBroad {
                tree: tree.clone(),
                source_path: source,
            });
            return None;
        }
        let (mut hidden, mut links) = (Vec::new(), Vec::new());
        if kind.is_dir() {
            let mut entries = 0;
            for entry in fs::read_dir(&source).ok()?.take(ENTRIES).flatten() {
                entries += 1;
                if is_credential(&entry) {
                    hidden.push(entry.file_name().into());
                } else if candidate.programs && entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                    links.push(tree.join(entry.file_name()));
                }
            }
            if entries == ENTRIES {
                hidden.extend(
                    CREDENTIALS
                        .iter()
                        .filter(|name| source.join(name).symlink_metadata().is_ok())
                        .map(PathBuf::from),
                );
            }
            hidden.sort();
            hidden.dedup();
            links.sort();
        }
        let toolchain = Toolchain {
            tree: tree.clone(),
            source,
            is_directory: kind.is_dir(),
            reason: candidate.reason.clone(),
            hidden,
        };
        Some((toolchain, links))
    }

    /// Adds what lies on the way of a program's link, up to the first place that is visible anyway. A link to anything
    /// but an executable file adds nothing: it may have been planted to show that.
    fn follow(&self, link: &Path, queue: &mut Vec<Candidate>) {
        if !fs::metadata(link).is_ok_and(|target| target.is_file() && target.permissions().mode() & 0o111 != 0) {
            return;
        }
        let mut place = link.to_owned();
        for _ in 0..HOPS {
            let Some(target) = read_link(&place) else { return };
            // Outside the home the view of the system decides.
            let visible = |target: &Path| {
                is_below(self.shown, target) || queue.iter().any(|known| target.starts_with(&known.tree))
            };
            if !target.starts_with(self.spelled) || visible(&target) {
                return;
            }
            let Some(tree) = around(self.spelled, &target) else {
                return;
            };
            queue.push(Candidate {
                tree,
                reason: Reason::Link(link.to_owned()),
                programs: false,
                believed: true,
            });
            place = target;
        }
    }

    /// Whether showing `source` would show the home, what contains it, a folder that others share, or a part of the
    /// system that is not the person's.
    fn is_too_broad(&self, source: &Path) -> bool {
        let shared = |home: &Path| {
            source.strip_prefix(home).is_ok_and(|below| {
                SHARED.iter().any(|one| below == Path::new(one)) || PRIVATE.iter().any(|one| below.starts_with(one))
            })
        };
        self.real.starts_with(source) || source.components().count() < 3 || shared(self.real) || shared(self.spelled)
    }
}

fn read_link(link: &Path) -> Option<PathBuf> {
    let target = fs::read_link(link).ok()?;
    normal(&link.parent()?.join(target))
}

fn is_credential(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return false };
    CREDENTIALS
        .iter()
        .any(|credential| name.eq_ignore_ascii_case(credential))
}
