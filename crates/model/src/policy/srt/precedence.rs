//! From the format's order of precedence to Pinfold's.
//!
//! | question | the format | Pinfold |
//! |---|---|---|
//! | reading | open; `denyRead` closes, `allowRead` opens again, the deeper entry wins, on a tie `allowRead` | the deeper rule wins, on a tie the stricter |
//! | writing | closed; `allowWrite` opens, `denyWrite` beats it at every depth | the same order as for reading, and a `read` rule takes writing away |
//!
//! So a `hide` that is taken back at the same place is dropped, a `write` at or below a `readonly` is dropped, and a `read` is
//! kept only where something above it is hidden. Where the two orders cannot be brought together, the file is refused.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::filesystem::Listed;
use super::section::Report;
use crate::policy::glob::Glob;
use crate::policy::{PathAccess, PathPattern};

/// The entries of the file.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) hide: Vec<Listed>,
    pub(super) read: Vec<Listed>,
    pub(super) write: Vec<Listed>,
    pub(super) readonly: Vec<Listed>,
}

/// One rule in Pinfold's order.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) access: PathAccess,
    pub(super) pattern: PathPattern,
    pub(super) key: String,
    pub(super) reason: Option<&'static str>,
}

pub(super) fn rewrite(mut lists: Lists, cwd: &Path, report: &mut Report) -> Vec<Rule> {
    let reopened: HashSet<(&PathPattern, bool)> = lists.read.iter().map(|e| (&e.pattern, e.whole)).collect();
    lists
        .hide
        .retain(|entry| !reopened.contains(&(&entry.pattern, entry.whole)));

    let closed = Set::new(&lists.readonly);
    let hidden = Set::new(&lists.hide);
    lists.write.retain(|entry| keep_write(entry, &closed, &hidden, report));
    refuse_below_whole(&lists, report);
    let writable = Set::new(&lists.write);
    lists.read.retain(|entry| keep_read(entry, &hidden, &writable, report));
    lists.read.iter_mut().for_each(open_first_level);

    if !lists.hide.is_empty() {
        report.note(
            "Folders that the file denies reading appear empty and cannot be written, not even with scratch files.",
        );
    }
    let open = open_by_default(&lists, report);
    let guard = guard_working_directory(&lists, &hidden, &closed, &writable, cwd, report);
    let rule = |access| {
        move |entry: Listed| Rule {
            access,
            pattern: entry.pattern,
            key: entry.key,
            reason: None,
        }
    };
    let rules = lists.hide.into_iter().map(rule(PathAccess::Hide));
    let rules = rules.chain(lists.read.into_iter().map(rule(PathAccess::Read)));
    let rules = rules.chain(lists.write.into_iter().map(rule(PathAccess::Write)));
    let rules = rules.chain(lists.readonly.into_iter().map(rule(PathAccess::ReadOnly)));
    open.into_iter().chain(rules).chain(guard).collect()
}

/// `allowRead` with `/**` opens what exists below the folder, which its first level stands for, and not the folder itself.
fn open_first_level(entry: &mut Listed) {
    if entry.whole && entry.pattern.path.parent().is_some() {
        let glob = entry.pattern.glob.take();
        entry.pattern.glob = Some(glob.map_or_else(|| "*".to_owned(), |glob| format!("{glob}/*")));
    }
}

fn keep_write(entry: &Listed, closed: &Set, hidden: &Set, report: &mut Report) -> bool {
    let path = &entry.pattern.path;
    if closed.depth_above(path).is_some() {
        report.note(format!(
            "`{}` is not writable, because `filesystem.denyWrite` covers it.",
            entry.key
        ));
        return false;
    }
    if hidden.literal.contains(path.as_path()) {
        report.note(format!(
            "`{}` is not writable, because the same path is denied reading.",
            entry.key
        ));
        return false;
    }
    true
}

/// With `/**`, each entry below the folder is denied by itself, so an allowed folder among them would be open and empty. As a
/// rule of its own that cannot be said, and opening the folder with its content would give more.
fn refuse_below_whole(lists: &Lists, report: &mut Report) {
    let whole = Set::of(
        lists
            .hide
            .iter()
            .filter(|entry| entry.whole)
            .map(|entry| &entry.pattern),
    );
    if whole.is_empty() {
        return;
    }
    for entry in lists.read.iter().chain(&lists.write) {
        let path = &entry.pattern.path;
        if whole.depth_above(path).is_some() || (entry.pattern.glob.is_some() && whole.is_near(path)) {
            report.fault(
                &entry.key,
                "the path lies in a folder whose every entry is denied reading by a pattern that ends in `/**`, deeper ones included",
                "leave the `/**` out of the entry that denies: the folder is hidden all the same, and this path can be opened in it",
            );
        }
    }
}

/// A `read` rule also takes writing away, so it stays only where it opens something.
fn keep_read(entry: &Listed, hidden: &Set, writable: &Set, report: &mut Report) -> bool {
    let path = &entry.pattern.path;
    let write = writable.depth_above(path);
    let hide = hidden.depth_above(path);
    let single = entry.pattern.glob.is_none() && !entry.whole;
    let keep = if single {
        hide.is_some() && write <= hide
    } else {
        // What a pattern meets is known only at the start, so anything hidden near it may matter.
        hidden.is_near(path) && (write.is_none() || write <= hide || hidden.is_below(path))
    };
    if keep && single && hidden.meets(path) {
        report.note(format!(
            "`{}` stays hidden, because a pattern that denies reading matches the same path.",
            entry.key
        ));
    } else if keep && (write.is_some() || (entry.pattern.glob.is_some() && writable.is_near(path))) {
        report.note(format!(
            "`{}` is readable and not writable, although it lies in a write root or meets one.",
            entry.key
        ));
    }
    keep
}

fn open_by_default(lists: &Lists, report: &mut Report) -> Option<Rule> {
    let root = |entry: &Listed| entry.pattern.glob.is_none() && entry.pattern.path.parent().is_none();
    if lists.hide.iter().any(root) {
        return None;
    }
    report.note(
        "The settings file grants reading of the whole host, credentials in your home included, except what it denies; \
         list such folders under `filesystem.denyRead`.",
    );
    // A `read` rule for the same place would take the writing away.
    (!lists.write.iter().any(root)).then(|| Rule {
        access: PathAccess::Read,
        pattern: PathPattern::literal("/".into()),
        key: "filesystem.denyRead".to_owned(),
        reason: Some("reading is open by default in a settings file"),
    })
}

/// Pinfold's default is a writable workspace, the format's is not: a rule for the working directory itself keeps the default
/// from opening what the file does not.
fn guard_working_directory(
    lists: &Lists,
    hidden: &Set,
    closed: &Set,
    writable: &Set,
    cwd: &Path,
    report: &mut Report,
) -> Option<Rule> {
    let shown = Set::new(&lists.read);
    let hide = hidden.depth_above(cwd);
    let write = writable.depth_above(cwd);
    let read = shown.depth_above(cwd);
    let rule = |access, key: &str, reason| {
        Some(Rule {
            access,
            pattern: PathPattern::literal(cwd.to_owned()),
            key: key.to_owned(),
            reason: Some(reason),
        })
    };
    if hide.is_some() && hide >= write && hide >= read {
        report.note("The working directory is hidden from the command, because `filesystem.denyRead` covers it.");
        return rule(
            PathAccess::Hide,
            "filesystem.denyRead",
            "the file denies reading the working directory",
        );
    }
    if write > closed.depth_above(cwd) && write > read {
        return None;
    }
    if !writable.is_below(cwd) {
        report.note("The working directory is not writable, because `filesystem.allowWrite` does not open it.");
    }
    rule(
        PathAccess::ReadOnly,
        "filesystem.allowWrite",
        "the file does not open the working directory for writing",
    )
}

/// Patterns, to be asked about single paths.
struct Set {
    literal: HashSet<PathBuf>,
    globs: Vec<(PathBuf, Glob)>,
}

impl Set {
    fn new(entries: &[Listed]) -> Self {
        Self::of(entries.iter().map(|entry| &entry.pattern))
    }

    fn of<'a>(patterns: impl Iterator<Item = &'a PathPattern>) -> Self {
        let mut set = Self {
            literal: HashSet::new(),
            globs: Vec::new(),
        };
        for pattern in patterns {
            match pattern.glob.as_deref().map(Glob::parse) {
                Some(Ok(glob)) => set.globs.push((pattern.path.clone(), glob)),
                // A pattern that was read once is read again; were it not, the folder it starts in stands for it.
                Some(Err(_)) | None => {
                    set.literal.insert(pattern.path.clone());
                }
            }
        }
        set
    }

    fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.globs.is_empty()
    }

    /// Whether a pattern is about exactly this path.
    fn meets(&self, path: &Path) -> bool {
        self.literal.contains(path)
            || self
                .globs
                .iter()
                .any(|(base, glob)| path.strip_prefix(base).is_ok_and(|below| glob.matches(below)))
    }

    /// Components of the deepest path at or above this one that a pattern is about.
    fn depth_above(&self, path: &Path) -> Option<usize> {
        path.ancestors()
            .find(|above| self.meets(above))
            .map(|above| above.components().count())
    }

    /// Whether a pattern is about, or may be about, something below the path.
    fn is_below(&self, path: &Path) -> bool {
        self.bases().any(|base| base != path && base.starts_with(path))
            || self.globs.iter().any(|(base, _)| path.starts_with(base))
    }

    /// Whether a pattern is about, or may be about, something at, above or below the path.
    fn is_near(&self, path: &Path) -> bool {
        self.bases()
            .any(|base| base.starts_with(path) || path.starts_with(base))
    }

    fn bases(&self) -> impl Iterator<Item = &Path> {
        self.literal
            .iter()
            .map(PathBuf::as_path)
            .chain(self.globs.iter().map(|(base, _)| base.as_path()))
    }
}
