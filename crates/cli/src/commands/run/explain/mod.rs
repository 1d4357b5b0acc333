//! `run --explain`: what the kernel refused, with the rule behind each refusal.
//!
//! What the guest says here is hostile: a path is looked at on the host only to see whether there is something, and is never
//! opened; texts are printed with their control characters escaped.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::policy::Policy;
use pinfold_model::wire::{MAX_REFUSALS, Refusal};
use pinfold_runtime::prepare::Prepared;
use pinfold_runtime::seccomp::{FilterOptions, UnixSockets};
use pinfold_server::audit::{printable, printable_path};
use rustix::fs::{AtFlags, CWD, accessat, statat};

use super::place::Place;
use crate::error::say;
use judge::{Kind, OnHost, Reason, Walls};

/// Rows that are printed of each kind.
const NAMED: usize = 30;

/// What is needed to explain the refusals of a run.
pub(super) struct Explain {
    walls: Walls,
    cwd: PathBuf,
}

impl Explain {
    /// Keeps what the sandbox is built of, and says what the person has to expect.
    pub(super) fn new(prepared: &Prepared, policy: &Policy, place: &Place) -> Self {
        say!("pinfold: --explain traces every system call; the command runs slower");
        let walls = Walls {
            places: prepared.plan.view.iter().filter_map(Kind::of).collect(),
            view: prepared.view.clone(),
            protected: prepared
                .scan
                .existing
                .iter()
                .map(|found| (found.path.clone(), found.group))
                .collect(),
            closed: prepared.scan.closed.iter().map(|closed| closed.path.clone()).collect(),
            pinned: prepared.scan.pinned.iter().cloned().collect(),
            home: place.caller.home.clone(),
            data: place.data.clone(),
            filter: FilterOptions {
                unix_sockets: match policy.deny_unix_sockets {
                    Some(_) => UnixSockets::Denied,
                    None => UnixSockets::Allowed,
                },
            },
        };
        Self {
            walls,
            cwd: place.cwd_inside().to_owned(),
        }
    }

    /// Prints what was refused.
    pub(super) fn print(&self, refusals: &[Refusal]) {
        let page = self.page(refusals, on_host);
        for (rows, one, many) in [
            (&page.writes, "write", "writes"),
            (&page.reads, "read", "reads"),
            (&page.calls, "system call", "system calls"),
        ] {
            print_rows(rows, if rows.len() == 1 { one } else { many });
        }
        if page.writes.is_empty() && page.reads.is_empty() && page.calls.is_empty() {
            say!("pinfold: the kernel refused nothing");
        }
        if refusals.len() >= MAX_REFUSALS {
            say!("pinfold: more was refused than is kept, so this list may be incomplete");
        }
    }

    fn page(&self, refusals: &[Refusal], look: impl Fn(&Refusal, &Path) -> OnHost) -> Page {
        let mut page = Page::default();
        let mut seen = BTreeSet::new();
        for refusal in refusals {
            if let Some((name, reason)) = judge::call(&self.walls, refusal) {
                let what = match &refusal.path {
                    Some(path) => format!("{name} {}", self.shown(Path::new(OsStr::from_bytes(path)))),
                    None => format!("{name} by {}", refusal.command),
                };
                if seen.insert((Section::Calls, what.clone().into(), reason.why.clone())) {
                    page.calls.push((what, reason));
                }
                continue;
            }
            let Some(path) = &refusal.path else { continue };
            let path = Path::new(OsStr::from_bytes(path));
            let section = if refusal.write { Section::Writes } else { Section::Reads };
            // One row for a path: programs try the same in several ways.
            if seen.contains(&(section, path.to_owned(), String::new())) {
                continue;
            }
            let Some(reason) = judge::path(&self.walls, refusal, path, look(refusal, path)) else {
                continue;
            };
            seen.insert((section, path.to_owned(), String::new()));
            let rows = if refusal.write {
                &mut page.writes
            } else {
                &mut page.reads
            };
            rows.push((self.shown(path), reason));
        }
        page
    }

    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(below) if !below.as_os_str().is_empty() => printable_path(below),
            _ => printable_path(path),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Writes,
    Reads,
    Calls,
}

/// What is printed: what was refused, and why.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    writes: Vec<(String, Reason)>,
    reads: Vec<(String, Reason)>,
    calls: Vec<(String, Reason)>,
}

fn print_rows(rows: &[(String, Reason)], what: &str) {
    if rows.is_empty() {
        return;
    }
    say!("pinfold: {} {what} blocked", rows.len());
    let rows: Vec<[String; 3]> = rows
        .iter()
        .map(|(place, reason)| {
            let fix = reason.fix.as_deref().map(fix_in_words).unwrap_or_default();
            [place.as_str(), &reason.why, &fix].map(|cell| printable(cell).into_owned())
        })
        .collect();
    let named = &rows[..rows.len().min(NAMED)];
    let width = |column: usize| named.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    for [place, why, fix] in named {
        let line = format!("  {place:first$}   {why:second$}   {fix}");
        say!("{}", line.trim_end());
    }
    if rows.len() > NAMED {
        say!("  … and {} more", rows.len() - NAMED);
    }
}

fn fix_in_words(fix: &str) -> String {
    if fix.starts_with("--lift") {
        format!("lift: {fix}")
    } else if fix.starts_with("--") {
        format!("allow: {fix}")
    } else {
        fix.to_owned()
    }
}

/// Looks whether the host has something at a path. Follows no link at its end and mounts nothing.
fn on_host(refusal: &Refusal, path: &Path) -> OnHost {
    let exists = |path: &Path| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT).is_ok();
    let wanted = if refusal.write {
        rustix::fs::Access::WRITE_OK
    } else {
        rustix::fs::Access::READ_OK
    };
    OnHost {
        exists: exists(path),
        parent_exists: path.parent().is_some_and(exists),
        permitted: accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok(),
    }
}
