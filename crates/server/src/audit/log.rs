//! Appending: under one lock per folder, so that all processes of a user write one chain.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::AuditError;
use super::chain::{self, Link};
use super::entry::{Entry, Event};
use super::time::format_utc;

pub(super) const FILE: &str = "audit.jsonl";
pub(super) const LOCK: &str = "audit.lock";

/// Older files that are kept, `audit.jsonl.1` being the youngest.
pub(super) const KEEP: u32 = 8;

/// Bytes of one file.
const ROTATE_AT: u64 = 16 * 1024 * 1024;

/// A holder does a handful of system calls under the lock; one that takes this long is stopped or hung.
const PATIENCE: Duration = Duration::from_secs(5);

/// The log of one folder. Making one costs nothing; the files are opened with the first record.
#[derive(Debug)]
pub struct AuditLog {
    dir: PathBuf,
    rotate_at: u64,
    writer: Mutex<Option<Writer>>,
}

impl AuditLog {
    /// The log kept in `dir`, which is made (mode 0700) with the first record.
    #[must_use]
    pub fn open(dir: PathBuf) -> Self {
        Self {
            dir,
            rotate_at: ROTATE_AT,
            writer: Mutex::new(None),
        }
    }

    /// A log whose files are smaller, for tests of rotation.
    #[cfg(test)]
    pub(super) fn rotating_at(dir: PathBuf, rotate_at: u64) -> Self {
        Self {
            dir,
            rotate_at,
            writer: Mutex::new(None),
        }
    }

    /// Records an entry with the present time. May wait for other processes that are writing; does not wait for the disk.
    ///
    /// # Errors
    /// When the record did not get into the file: nothing of it is left there, unless the error says otherwise.
    pub fn append(&self, entry: &Entry) -> Result<(), AuditError> {
        let mut slot = self.slot();
        // A writer that met an error is not trusted with the next record.
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => Writer::open(&self.dir)?,
        };
        writer.append(entry, self.rotate_at)?;
        *slot = Some(writer);
        Ok(())
    }

    fn slot(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            let mut slot = poisoned.into_inner();
            *slot = None;
            slot
        })
    }
}

#[derive(Debug)]
struct Writer {
    lock: File,
    chain: Chain,
}

#[derive(Debug)]
struct Chain {
    dir: PathBuf,
    path: PathBuf,
    file: File,
    /// Length of the file and link of the chain after our own last record.
    known: Option<(u64, Link)>,
}

/// Held while the chain is extended; dropping it lets the next process in.
struct Held<'a>(&'a File);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Failing to unlock means the descriptor is gone, and the lock with it.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

impl Writer {
    fn open(dir: &Path) -> Result<Self, AuditError> {
        make_private_dir(dir)?;
        let path = dir.join(FILE);
        let lock = open_private(&dir.join(LOCK))?;
        let file = open_private(&path)?;
        Ok(Self {
            lock,
            chain: Chain {
                dir: dir.to_owned(),
                path,
                file,
                known: None,
            },
        })
    }

    fn append(&mut self, entry: &Entry, rotate_at: u64) -> Result<(), AuditError> {
        let _held = hold(&self.lock, &self.chain.dir)?;
        self.chain.append(entry, rotate_at)
    }
}

/// All of this happens under the lock.
impl Chain {
    fn append(&mut self, entry: &Entry, rotate_at: u64) -> Result<(), AuditError> {
        let (mut len, link) = self.end()?;
        let time = format_utc(SystemTime::now());
        let (line, next) = encode(&link, &time, entry)?;
        if len > 0 && len + line.len() as u64 > rotate_at {
            self.rotate()?;
            len = 0;
        }
        self.write(len, line.as_bytes())?;
        self.known = Some((len + line.len() as u64, next));
        Ok(())
    }

    /// The length of the current file and the link to tie the next record to; mends a damaged end first.
    fn end(&mut self) -> Result<(u64, Link), AuditError> {
        let mut here = self
            .file
            .metadata()
            .map_err(|e| AuditError::io("look at", &self.path, e))?;
        let moved = match std::fs::symlink_metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) != (here.dev(), here.ino()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => true,
            Err(e) => return Err(AuditError::io("look at", &self.path, e)),
        };
        if moved {
            self.file = open_private(&self.path)?;
            self.known = None;
            here = self
                .file
                .metadata()
                .map_err(|e| AuditError::io("look at", &self.path, e))?;
        }
        let len = here.len();
        if let Some((known, link)) = &self.known
            && *known == len
        {
            return Ok((len, link.clone()));
        }
        let tail = chain::tail(&self.file, len).map_err(|e| AuditError::io("read the end of", &self.path, e))?;
        let link = match tail.link {
            Some(link) => link,
            // A file that was just rotated in, or that was lost: go on from the one before.
            None if len == 0 => self.link_of_older(),
            None => Link::start(),
        };
        let Some(damage) = tail.damage else {
            return Ok((len, link));
        };
        let mut mended = if damage.open { "\n".to_owned() } else { String::new() };
        let event = Event::ChainRestarted { damaged: damage.digest };
        let marker = Entry {
            sandbox: String::new(),
            event,
        };
        let (line, next) = encode(&link, &format_utc(SystemTime::now()), &marker)?;
        mended.push_str(&line);
        self.write(len, mended.as_bytes())?;
        Ok((len + mended.len() as u64, next))
    }

    fn link_of_older(&self) -> Link {
        let older = self.dir.join(older(1));
        let tail = File::open(&older).and_then(|file| chain::tail(&file, file.metadata()?.len()));
        tail.ok().and_then(|t| t.link).unwrap_or_else(Link::start)
    }

    fn rotate(&mut self) -> Result<(), AuditError> {
        let mut target = self.dir.join(older(KEEP));
        for number in (0..KEEP).rev() {
            let source = if number == 0 {
                self.path.clone()
            } else {
                self.dir.join(older(number))
            };
            match std::fs::rename(&source, &target) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(AuditError::io("rotate", &source, e)),
                _ => target = source,
            }
        }
        self.file = open_private(&self.path)?;
        Ok(())
    }

    fn write(&self, len: u64, bytes: &[u8]) -> Result<(), AuditError> {
        (&self.file).write_all(bytes).map_err(|source| {
            // Still under the lock, so what was written of this record can be taken back; a torn line that stays is
            // found and marked by the next append.
            let _ = self.file.set_len(len);
            AuditError::io("write to", &self.path, source)
        })
    }
}

fn encode(link: &Link, time: &str, entry: &Entry) -> Result<(String, Link), AuditError> {
    chain::encode(link, time, &entry.sandbox, &entry.event).map_err(|source| AuditError::Encode { source })
}

/// The name of the `number`th older file.
pub(super) fn older(number: u32) -> String {
    format!("{FILE}.{number}")
}

fn hold<'a>(lock: &'a File, dir: &Path) -> Result<Held<'a>, AuditError> {
    let path = || dir.join(LOCK);
    let mut deadline = None;
    let mut pause = Duration::from_micros(50);
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Held(lock)),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(AuditError::io("lock", &path(), errno)),
        }
        let now = Instant::now();
        if now > *deadline.get_or_insert(now + PATIENCE) {
            return Err(AuditError::Busy {
                path: path(),
                seconds: PATIENCE.as_secs(),
            });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

fn make_private_dir(dir: &Path) -> Result<(), AuditError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| AuditError::io("make its folder", dir, e))?;
    let mode = std::fs::metadata(dir)
        .map_err(|e| AuditError::io("look at", dir, e))?
        .mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(|e| AuditError::io("make private", dir, e))?;
    }
    Ok(())
}

fn open_private(path: &Path) -> Result<File, AuditError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|e| AuditError::io("open", path, e))?;
    let meta = file.metadata().map_err(|e| AuditError::io("look at", path, e))?;
    if !meta.is_file() {
        return Err(AuditError::io(
            "use",
            path,
            io::Error::other("it is not a regular file"),
        ));
    }
    if meta.mode() & 0o177 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|e| AuditError::io("make private", path, e))?;
    }
    Ok(file)
}
