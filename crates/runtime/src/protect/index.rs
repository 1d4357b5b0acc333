//! The submodules that a git index names (gitformat-index(5), versions 2 to 4).
//!
//! Git runs itself in the checkout of each, wherever it lies, and obeys the configuration there. The bytes are hostile, so
//! every place in which git would look for an entry is read, not only the one in which an honest index keeps it: the
//! entries in a row, the blocks of an offset table, and the shared part of a split index. Whether object names have 20 or
//! 32 bytes is not said by the index, so it is read both ways. Checksums are not compared, since git does not either.

use std::ops::ControlFlow;

/// No honest index is longer; it has room for some 600,000 files.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;
/// The most submodules, with whole folders, of one index.
pub(super) const MOST_GITLINKS: usize = 20_000;
/// The kernel takes no longer path.
const LONGEST_PATH: usize = 4096;
const MOST_SHARED: usize = 4;

const HEADER: usize = 12;
const STAT: usize = 40;
const MODE_AT: usize = 24;
const TYPE_BITS: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const FOLDER: u32 = 0o040_000;
const LENGTH_BITS: u16 = 0x0fff;
const EXTENDED: u16 = 0x4000;

/// Which entries to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Gitlinks,
    /// All, for the shared part of an index that says by position only which entries became submodules.
    Everything,
}

/// What an index says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// Relative to the checkout, in the index's order. An index made by hand may name any path, `..` included.
    pub(super) paths: Vec<Vec<u8>>,
    /// Folders that a sparse index holds as a whole; the submodules in them are in object files only.
    pub(super) folders: Vec<Vec<u8>>,
    /// File names of shared indexes that this one is a change of.
    pub(super) shared: Vec<String>,
    /// A submodule takes the place of an entry in a shared index, and has no name of its own.
    pub(super) nameless: bool,
}

/// Why an index cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is not a git index")]
    NoIndex,
    #[error("version {0} of the format is not known")]
    Version(u32),
    #[error("it is damaged")]
    Damaged,
    #[error("it names more than {MOST_GITLINKS} submodules and whole folders")]
    TooMany,
}

/// Reads an index.
pub(super) fn parse(bytes: &[u8], take: Take) -> Result<Index, Unreadable> {
    if bytes.get(..4) != Some(b"DIRC") {
        return Err(Unreadable::NoIndex);
    }
    let (Some(version), Some(count)) = (number(bytes, 4), number(bytes, 8)) else {
        return Err(Unreadable::Damaged);
    };
    if !(2..=4).contains(&version) {
        return Err(Unreadable::Version(version));
    }
    let mut readers = [20, 32].map(|hash| Reader {
        bytes,
        compressed: version == 4,
        hash,
        take,
        left: u64::from(count),
        found: Index::default(),
    });
    let said = readers.each_mut().map(|reader| reader.all(count));
    // More than can be taken is more in whichever way git reads it, and what is damaged in both ways git refuses as well.
    if said.contains(&Err(Unreadable::TooMany)) {
        return Err(Unreadable::TooMany);
    }
    let mut index = None;
    for (reader, said) in readers.into_iter().zip(said) {
        if said.is_ok() {
            let index: &mut Index = index.get_or_insert_default();
            index.paths.extend(reader.found.paths);
            index.folders.extend(reader.found.folders);
            index.shared.extend(reader.found.shared);
            index.nameless |= reader.found.nameless;
        }
    }
    index.ok_or(Unreadable::Damaged)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// Each name leaves out what it shares with the one before.
    compressed: bool,
    /// Bytes of an object name.
    hash: usize,
    take: Take,
    /// Entries that the blocks of an offset table may still have.
    left: u64,
    found: Index,
}

impl Reader<'_> {
    fn all(&mut self, count: u32) -> Result<(), Unreadable> {
        let end = self.entries(HEADER, count)?;
        let trailer = self.bytes.len().checked_sub(self.hash).ok_or(Unreadable::Damaged)?;
        self.extensions(end, trailer)?;
        // With more than one thread, git finds the extensions from the end, and in them where the entries are.
        let Some(mark) = trailer.checked_sub(12 + self.hash) else {
            return Ok(());
        };
        match (self.bytes.get(mark..mark + 4), number(self.bytes, mark + 8)) {
            (Some(b"EOIE"), Some(start)) if place(start) != Some(end) => {
                let start = place(start).ok_or(Unreadable::Damaged)?;
                self.extensions(start, trailer)
            }
            _ => Ok(()),
        }
    }

    /// Reads entries in a row, and returns where they end.
    fn entries(&mut self, start: usize, count: u32) -> Result<usize, Unreadable> {
        let mut at = start;
        let mut whole = None;
        for _ in 0..count {
            at = self.entry(at, &mut whole)?;
        }
        Ok(at)
    }

    /// `whole` is the name of the entry before, which a compressed name begins with; the first one of a block has none.
    fn entry(&mut self, at: usize, whole: &mut Option<Vec<u8>>) -> Result<usize, Unreadable> {
        let bytes = self.bytes;
        let entry = bytes.get(at..).ok_or(Unreadable::Damaged)?;
        let mode = number(entry, MODE_AT).ok_or(Unreadable::Damaged)?;
        let flags_at = STAT + self.hash;
        let flags = entry.get(flags_at..flags_at + 2).ok_or(Unreadable::Damaged)?;
        let flags = u16::from_be_bytes([flags[0], flags[1]]);
        let mut name_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
        let mut kept = 0;
        if self.compressed {
            let (strip, width) = varint(entry.get(name_at..).unwrap_or_default()).ok_or(Unreadable::Damaged)?;
            name_at += width;
            if let Some(whole) = whole {
                kept = whole.len().checked_sub(strip).ok_or(Unreadable::Damaged)?;
            }
        }
        let rest = entry.get(name_at..).ok_or(Unreadable::Damaged)?;
        let said = flags & LENGTH_BITS;
        let length = if said == LENGTH_BITS {
            rest.iter().position(|byte| *byte == 0).ok_or(Unreadable::Damaged)?
        } else {
            usize::from(said).checked_sub(kept).ok_or(Unreadable::Damaged)?
        };
        // A zero always follows.
        if rest.len() <= length {
            return Err(Unreadable::Damaged);
        }
        let name = &rest[..length];
        let kind = mode & TYPE_BITS;
        let is_taken = self.take == Take::Everything || kind == GITLINK || kind == FOLDER;
        if self.compressed {
            let whole = whole.get_or_insert_default();
            whole.truncate(kept);
            whole.extend_from_slice(name);
            if is_taken {
                self.note(whole, kind)?;
            }
            return Ok(at + name_at + length + 1);
        }
        if is_taken {
            self.note(name, kind)?;
        }
        Ok(at + (name_at + length + 8) / 8 * 8)
    }

    fn note(&mut self, name: &[u8], kind: u32) -> Result<(), Unreadable> {
        // Git hands the name on as a C string.
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = &name[..end];
        let found = &mut self.found;
        if name.is_empty() {
            found.nameless = true;
        } else if name.len() < LONGEST_PATH {
            if self.take == Take::Gitlinks && found.paths.len() + found.folders.len() >= MOST_GITLINKS {
                return Err(Unreadable::TooMany);
            }
            let names = if kind == FOLDER {
                &mut found.folders
            } else {
                &mut found.paths
            };
            names.push(name.to_owned());
        }
        Ok(())
    }

    fn extensions(&mut self, start: usize, trailer: usize) -> Result<(), Unreadable> {
        let mut at = start;
        while at.checked_add(8).is_some_and(|body| body <= trailer) {
            let size = number(self.bytes, at + 4).and_then(place).ok_or(Unreadable::Damaged)?;
            let end = (at + 8).checked_add(size).filter(|end| *end <= trailer);
            let body = self
                .bytes
                .get(at + 8..end.ok_or(Unreadable::Damaged)?)
                .unwrap_or_default();
            match &self.bytes[at..at + 4] {
                b"link" => self.link(body)?,
                b"IEOT" => self.offset_table(body)?,
                _ => {}
            }
            at += 8 + size;
        }
        Ok(())
    }

    fn link(&mut self, body: &[u8]) -> Result<(), Unreadable> {
        let object = body.get(..self.hash).ok_or(Unreadable::Damaged)?;
        if object.iter().any(|byte| *byte != 0) {
            let name = object.iter().fold("sharedindex.".to_owned(), |mut name, byte| {
                name.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
                name
            });
            if self.found.shared.contains(&name) {
                return Ok(());
            }
            if self.found.shared.len() == MOST_SHARED {
                return Err(Unreadable::Damaged);
            }
            self.found.shared.push(name);
        }
        Ok(())
    }

    fn offset_table(&mut self, body: &[u8]) -> Result<(), Unreadable> {
        let blocks = body.get(4..).unwrap_or_default().chunks_exact(8);
        for block in blocks {
            let (Some(start), Some(count)) = (number(block, 0).and_then(place), number(block, 4)) else {
                return Err(Unreadable::Damaged);
            };
            // Blocks that overlap would be read without end.
            self.left = self.left.checked_sub(u64::from(count)).ok_or(Unreadable::Damaged)?;
            self.entries(start, count)?;
        }
        Ok(())
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

fn place(number: u32) -> Option<usize> {
    usize::try_from(number).ok()
}

/// A number of seven bits a byte, as in pack files, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value: usize = 0;
    let read = bytes.iter().take(9).enumerate().try_for_each(|(at, byte)| {
        value |= usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return ControlFlow::Break(Some((value, at + 1)));
        }
        match value.checked_add(1).and_then(|value| value.checked_mul(128)) {
            Some(more) => value = more,
            None => return ControlFlow::Break(None),
        }
        ControlFlow::Continue(())
    });
    match read {
        ControlFlow::Break(read) => read,
        ControlFlow::Continue(()) => None,
    }
}
