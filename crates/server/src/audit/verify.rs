//! Checking the whole chain.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::AuditError;
use super::chain::{self, Link, hex};
use super::entry::Event;
use super::log::{KEEP, older};
use super::reader::{Damaged, Line, Lines, Reader};

/// What a check of the chain found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Intact records before the break, or all.
    pub records: u64,
    pub files: usize,
    /// Time stamps of the first and last of them.
    pub first: Option<String>,
    pub last: Option<String>,
    /// Lines torn by a crash, each vouched for by the record that the log wrote after it.
    pub torn: Vec<Damaged>,
    /// The first line that does not belong to the chain; none when the chain is whole.
    pub broken: Option<Break>,
}

/// The first place where the chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    pub file: PathBuf,
    /// Counts from 1.
    pub line: u64,
    pub what: &'static str,
}

const CHANGED: &str = "the line was changed, or is no record of this log";
const MISSING: &str = "records before this line are missing, or the line was put in";
const TORN_CHANGED: &str = "the damaged bytes before this line are not the ones that the log found";

/// Damaged bytes for which no record has vouched yet.
struct Pending {
    at: Damaged,
    len: u64,
    digest: Sha256,
    /// Whether the last line among them lacks its newline, which only the end of the log may.
    open: bool,
}

/// Reads every file of the log and checks each record against the one before it.
///
/// # Errors
/// When a file cannot be read; a broken chain is a result, not an error.
pub fn verify(reader: Reader) -> Result<Verified, AuditError> {
    let sources = reader.into_sources();
    let mut found = Verified {
        files: sources.len(),
        ..Verified::default()
    };
    // Only a log that has dropped its oldest file may start in the middle of a chain.
    let dropped = sources.first().is_some_and(|oldest| oldest.path.ends_with(older(KEEP)));
    let mut link = (!dropped).then(Link::start);
    let mut pending: Option<Pending> = None;
    for source in sources {
        // Damage at the end of an older file: nothing is ever written after it there.
        if let Some(Pending { at, .. }) = pending {
            found.broken = Some(broken(at, CHANGED));
            return Ok(found);
        }
        pending = None;
        let mut lines = source.lines();
        while let Some(at) = step(&mut lines, &mut link, &mut pending, &mut found)? {
            if let Some(what) = at {
                found.broken = Some(what);
                return Ok(found);
            }
        }
    }
    match pending {
        // Torn by a crash, and nothing was written since.
        Some(Pending { at, open: true, .. }) => found.torn.push(at),
        Some(Pending { at, .. }) => found.broken = Some(broken(at, CHANGED)),
        None => {}
    }
    Ok(found)
}

/// Takes one line; none at the end of the file.
fn step(
    lines: &mut Lines,
    link: &mut Option<Link>,
    pending: &mut Option<Pending>,
    found: &mut Verified,
) -> Result<Option<Option<Break>>, AuditError> {
    let file = lines.path.clone();
    let Some(line) = lines.next()? else { return Ok(None) };
    let at = Damaged {
        file,
        line: line.number,
    };
    let Some(joint) = line.whole.then(|| chain::joint(line.bytes)).flatten() else {
        Pending::add(pending, at, &line);
        return Ok(Some(None));
    };
    let record = chain::decode(line.bytes);
    if let Some(pending) = pending.take() {
        let vouched = match record.as_ref().map(|r| &r.event) {
            Some(Event::ChainRestarted { damaged }) => damaged.clone(),
            _ => None,
        };
        match vouched {
            None => return Ok(Some(Some(broken(pending.at, CHANGED)))),
            Some(digest) if digest != (pending.len, hex(&pending.digest.finalize())) => {
                return Ok(Some(Some(broken(at, TORN_CHANGED))));
            }
            Some(_) => found.torn.push(pending.at),
        }
    }
    let follows = match link {
        Some(link) => joint.prev == link.hash && joint.link.seq == link.seq.saturating_add(1),
        None => true,
    };
    if !follows {
        return Ok(Some(Some(broken(at, MISSING))));
    }
    *link = Some(joint.link);
    found.records += 1;
    if let Some(record) = record {
        found.first.get_or_insert_with(|| record.time.clone());
        found.last = Some(record.time);
    }
    Ok(Some(None))
}

impl Pending {
    fn add(pending: &mut Option<Self>, at: Damaged, line: &Line<'_>) {
        let pending = pending.get_or_insert_with(|| Self {
            at,
            len: 0,
            digest: Sha256::new(),
            open: false,
        });
        pending.digest.update(line.bytes);
        pending.len += line.bytes.len() as u64;
        pending.open = !line.whole;
        if line.whole {
            pending.digest.update(b"\n");
            pending.len += 1;
        }
    }
}

fn broken(at: Damaged, what: &'static str) -> Break {
    Break {
        file: at.file,
        line: at.line,
        what,
    }
}
