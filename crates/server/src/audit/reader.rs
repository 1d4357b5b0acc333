//! Reading: all files of a log, oldest first, one line in memory at a time.
//!
//! The files are opened together under the log's lock, so a rotation during the reading changes nothing, and each is read
//! up to the length it had then, so a line that is just being written is never seen half.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Take};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::AuditError;
use super::chain::{self, MAX_LINE};
use super::entry::Record;
use super::filter::Filter;
use super::log::{FILE, KEEP, LOCK, older};

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Record(Box<Record>),
    Damaged(Damaged),
}

/// A line that is no intact record: torn by a crash, or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub file: PathBuf,
    /// Counts from 1.
    pub line: u64,
}

/// The files of a log as they stood when it was opened.
#[derive(Debug)]
pub struct Reader {
    files: Vec<Source>,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    file: File,
    len: u64,
}

impl Reader {
    /// Opens what there is; a folder that does not exist is an empty log. Writes nothing.
    ///
    /// # Errors
    /// When a file is there and cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, AuditError> {
        let _held = shared_lock(dir)?;
        let mut files = Vec::new();
        for number in (0..=KEEP).rev() {
            let path = dir.join(if number == 0 { FILE.to_owned() } else { older(number) });
            let Some(file) = open_if_there(&path)? else { continue };
            let meta = file.metadata().map_err(|e| AuditError::io("look at", &path, e))?;
            if !meta.is_file() {
                return Err(AuditError::io(
                    "read",
                    &path,
                    io::Error::other("it is not a regular file"),
                ));
            }
            files.push(Source {
                path,
                file,
                len: meta.len(),
            });
        }
        Ok(Self { files })
    }

    /// Calls `each` for every wanted record and every damaged line, oldest first, until it answers `false`.
    ///
    /// # Errors
    /// When reading fails.
    pub fn each(self, filter: &Filter, mut each: impl FnMut(Item) -> bool) -> Result<(), AuditError> {
        for source in self.files {
            if !source.items(filter, &mut each)? {
                break;
            }
        }
        Ok(())
    }

    /// The last `count` wanted records, oldest first, and the damaged lines that were met on the way. Holds at most `count`
    /// records (twice, while a file is read).
    ///
    /// # Errors
    /// When reading fails.
    pub fn last(self, filter: &Filter, count: usize) -> Result<(Vec<Record>, Vec<Damaged>), AuditError> {
        let mut found: VecDeque<Record> = VecDeque::new();
        let mut damaged = VecDeque::new();
        for source in self.files.into_iter().rev() {
            let room = count - found.len();
            if room == 0 {
                break;
            }
            let mut here: VecDeque<Record> = VecDeque::new();
            let mut damaged_here = Vec::new();
            source.items(filter, &mut |item| {
                match item {
                    Item::Record(record) => {
                        if here.len() == room {
                            here.pop_front();
                        }
                        here.push_back(*record);
                    }
                    Item::Damaged(line) if damaged_here.len() < MAX_DAMAGED => damaged_here.push(line),
                    Item::Damaged(_) => {}
                }
                true
            })?;
            here.into_iter().rev().for_each(|record| found.push_front(record));
            damaged_here.into_iter().rev().for_each(|line| damaged.push_front(line));
        }
        Ok((found.into(), damaged.into()))
    }

    pub(super) fn into_sources(self) -> Vec<Source> {
        self.files
    }
}

/// Damaged lines that are remembered per file; one would do to show that the file is not whole.
const MAX_DAMAGED: usize = 16;

impl Source {
    fn items(self, filter: &Filter, each: &mut impl FnMut(Item) -> bool) -> Result<bool, AuditError> {
        let mut lines = self.lines();
        while let Some(line) = lines.next()? {
            let record = line.whole.then(|| chain::decode(line.bytes)).flatten();
            let item = match record {
                Some(record) if !filter.wants(&record) => continue,
                Some(record) => Item::Record(Box::new(record)),
                None => Item::Damaged(Damaged {
                    line: line.number,
                    file: lines.path.clone(),
                }),
            };
            if !each(item) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn lines(self) -> Lines {
        Lines {
            path: self.path,
            input: BufReader::with_capacity(MAX_LINE, self.file).take(self.len),
            buffer: Vec::new(),
            number: 0,
        }
    }
}

pub(super) struct Lines {
    pub(super) path: PathBuf,
    input: Take<BufReader<File>>,
    buffer: Vec<u8>,
    number: u64,
}

/// A piece of a file up to a newline, or [`MAX_LINE`] bytes where none comes.
pub(super) struct Line<'a> {
    /// Counts from 1.
    pub(super) number: u64,
    /// Without the newline.
    pub(super) bytes: &'a [u8],
    /// Whether the newline was there.
    pub(super) whole: bool,
}

impl Lines {
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, AuditError> {
        self.buffer.clear();
        let read = (&mut self.input)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|e| AuditError::io("read", &self.path, e))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let whole = self.buffer.last() == Some(&b'\n');
        let bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        Ok(Some(Line {
            number: self.number,
            bytes,
            whole,
        }))
    }
}

fn open_if_there(path: &Path) -> Result<Option<File>, AuditError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
    {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(AuditError::io("open", path, e)),
    }
}

/// Keeps writers out while the files are opened; released with the file. No lock file means that nobody has written yet.
fn shared_lock(dir: &Path) -> Result<Option<File>, AuditError> {
    let path = dir.join(LOCK);
    let Some(lock) = open_if_there(&path)? else {
        return Ok(None);
    };
    loop {
        match flock(&lock, FlockOperation::LockShared) {
            Ok(()) => return Ok(Some(lock)),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(AuditError::io("lock", &path, errno)),
        }
    }
}
