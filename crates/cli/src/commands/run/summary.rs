//! What pinfold says before and after the command, on standard error.

use std::io::IsTerminal;

use pinfold_model::policy::Policy;
use pinfold_runtime::prepare::Prepared;
use pinfold_runtime::protect::{Fate, Report};
use pinfold_server::audit::{Event, printable, printable_path};

use super::Ended;
use super::network::{Kept, MAX_RECORDS, Record};
use super::place::Place;
use crate::error::{Error, code, say};
use crate::policy::Loaded;

/// Files that are named one by one.
const NAMED: usize = 20;

/// One line about the walls when a person watches, and every warning.
pub(super) fn before(loaded: &Loaded, prepared: &Prepared, place: &Place) {
    for note in loaded.notes.iter().chain(&prepared.warnings) {
        say!("pinfold: {}", printable(note));
    }
    if std::io::stderr().is_terminal() {
        let workspace = printable_path(&place.workspace);
        say!(
            "pinfold: process sandbox · workspace {workspace} (rw) · network {}",
            network(&loaded.policy)
        );
        if place.caller.uid == 0 {
            say!("pinfold: you are root; the sandbox keeps no privilege of yours, an ordinary user has fewer to lose");
        }
    }
}

fn network(policy: &Policy) -> String {
    match (&policy.network.allow_all, policy.network.allow.len()) {
        (Some(_), _) => "every host".to_owned(),
        (None, 0) => "closed".to_owned(),
        (None, 1) => "1 rule".to_owned(),
        (None, rules) => format!("{rules} rules"),
    }
}

/// What was refused and what was taken away. A failure to keep the audit log is an error even in quiet runs.
pub(super) fn after(ended: &Ended, record: &Record, policy: &Policy, quiet: bool) -> Result<(), Error> {
    for taken in &ended.report.quarantined {
        if let Fate::Moved { to } | Fate::Copied { to } = &taken.fate {
            record.write(Event::quarantined(&taken.path, to));
        }
    }
    let kept = record.take();
    let unrecorded = kept.written.saturating_sub(MAX_RECORDS);
    if !quiet {
        blocked(&kept, policy);
        protected(&ended.report);
        for path in &ended.events.restored {
            say!(
                "pinfold: {} was replaced on the host while the command ran; it was made read-only again",
                path.escape_ascii()
            );
        }
        if unrecorded > 0 {
            say!("pinfold: {unrecorded} more decisions were made than the audit log keeps of one sandbox");
        }
        if ended.out_of_memory {
            say!("pinfold: the memory limit was reached and the kernel killed processes   more: --memory SIZE");
        }
    }
    match kept.audit_error {
        None => Ok(()),
        Some(error) => Err(Error::new(code::IO, format!("The audit log is incomplete: {error}."))),
    }
}

fn blocked(kept: &Kept, policy: &Policy) {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for ((host, port), denied) in &kept.denied {
        let place = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        if is_quiet(policy, &place) {
            continue;
        }
        let times = if denied.times > 1 {
            format!(" ×{}", denied.times)
        } else {
            String::new()
        };
        rows.push([place + &times, denied.denial.reason.clone(), denied.denial.hint.clone()]);
    }
    let count = rows.len() as u64 + kept.more;
    if count == 0 {
        return;
    }
    say!(
        "pinfold: {count} {} blocked",
        if count == 1 { "destination" } else { "destinations" }
    );
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    for [place, reason, hint] in rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))) {
        say!("  {place:first$}   {reason:second$}   {hint}");
    }
    if kept.more > 0 {
        say!("  … and {} more: pinfold policy log --denied", kept.more);
    }
}

/// Whether an imported settings file wants a denial left out of the summary.
fn is_quiet(policy: &Policy, place: &str) -> bool {
    policy
        .quiet_denials
        .values()
        .flatten()
        .any(|text| place.contains(text.as_str()))
}

fn protected(report: &Report) {
    for taken in report.quarantined.iter().take(NAMED) {
        say!("pinfold: {}", printable(&taken.to_string()));
    }
    if report.quarantined.len() > NAMED {
        say!(
            "pinfold: … and {} more protected names",
            report.quarantined.len() - NAMED
        );
    }
    if !report.made.is_empty() {
        say!("pinfold: the command made files that programs on the host obey; look at them before you use them");
        // The nearest to the root first: decoys deep in the tree must not hide what matters.
        let mut made: Vec<_> = report.made.iter().collect();
        made.sort_by_key(|made| (made.path.components().count(), &made.path));
        for made in made.into_iter().take(NAMED) {
            say!("  {}   {}", printable_path(&made.path), made.group.reason());
        }
        if report.made.len() > NAMED {
            say!("  … and {} more", report.made.len() - NAMED);
        }
    }
    if let Some(why) = &report.incomplete {
        say!(
            "pinfold: new files with protected names may be missing from this list: {}",
            printable(why)
        );
    }
}
