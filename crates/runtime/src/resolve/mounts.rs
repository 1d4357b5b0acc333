//! File systems that may not answer: remote, automounted, or served by a program.
//!
//! Looking at a path on such a mount can block for ever, and can make a mount come into being. A path is looked at there only
//! when a rule leads there, and the first look is taken by a thread that is given up after a time limit. A thread that was
//! given up stays blocked in the kernel until the mount answers or this process ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a mount has to answer the first look.
const PATIENCE: Duration = Duration::from_secs(2);

/// The mount points of such file systems, and which of them answered.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    points: BTreeMap<PathBuf, Kind>,
    answers: BTreeMap<PathBuf, bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One server: when it answered once, it answers for every path.
    Served,
    /// Every name in it is a mount of its own, made when it is touched.
    Automount,
}

impl Mounts {
    /// The table of this process.
    pub(super) fn read() -> std::io::Result<Self> {
        std::fs::read("/proc/self/mountinfo").map(|table| Self::parse(&table))
    }

    /// Reads a mount table (proc_pid_mountinfo(5)).
    pub(super) fn parse(table: &[u8]) -> Self {
        let mut points = BTreeMap::new();
        for line in table.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b' ');
            let Some(point) = fields.nth(4) else { continue };
            let Some(name) = fields.skip_while(|field| *field != b"-").nth(1) else {
                continue;
            };
            let point = PathBuf::from(OsString::from_vec(unescape(point)));
            match kind(name) {
                Some(kind) => points.insert(point, kind),
                // The last mount on a point is the one that is seen. An automount stays one below what it mounted on itself.
                None => points.remove(&point),
            };
        }
        Self {
            points,
            answers: BTreeMap::new(),
        }
    }

    /// The innermost such mount that a path is on.
    pub(super) fn holding<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        if self.points.is_empty() {
            return None;
        }
        path.ancestors().find(|above| self.points.contains_key(*above))
    }

    /// The mount that keeps `path` from being looked at, if one does. `look` is what blocks where it does not answer.
    pub(super) fn silent(&mut self, path: &Path, look: fn(&Path)) -> Option<PathBuf> {
        if self.points.is_empty() {
            return None;
        }
        let mut on: Vec<&Path> = path
            .ancestors()
            .filter(|above| self.points.contains_key(*above))
            .collect();
        on.reverse();
        for (index, point) in on.iter().enumerate() {
            let key = match self.points.get(*point) {
                Some(Kind::Automount) => first_below(point, path),
                _ => point.to_path_buf(),
            };
            let through = on.get(index + 1).copied().unwrap_or(path).to_path_buf();
            let answers = *self
                .answers
                .entry(key)
                .or_insert_with(|| within(PATIENCE, move || look(&through)));
            if !answers {
                return Some(point.to_path_buf());
            }
        }
        None
    }

    /// Takes a mount as one that does not answer.
    #[cfg(test)]
    pub(super) fn give_up(&mut self, point: &Path) {
        self.answers.insert(point.to_path_buf(), false);
    }
}

fn first_below(point: &Path, path: &Path) -> PathBuf {
    let below = path.strip_prefix(point).ok().and_then(|rest| rest.components().next());
    below.map_or_else(|| point.to_path_buf(), |name| point.join(name))
}

/// Whether `look` ends in time. Also false where no thread can be had, because then nobody knows.
fn within(limit: Duration, look: impl FnOnce() + Send + 'static) -> bool {
    let (done, answered) = mpsc::sync_channel(1);
    let probe = thread::Builder::new().name("mount probe".to_owned()).spawn(move || {
        look();
        let _ = done.send(());
    });
    let Ok(probe) = probe else { return false };
    // A thread that went down without an answer has not shown that the mount works.
    answered.recv_timeout(limit).is_ok() && probe.join().is_ok()
}

fn kind(name: &[u8]) -> Option<Kind> {
    const SERVED: [&[u8]; 12] = [
        b"nfs",
        b"nfs4",
        b"cifs",
        b"smb3",
        b"smbfs",
        b"9p",
        b"afs",
        b"ceph",
        b"coda",
        b"glusterfs",
        b"lustre",
        b"gpfs",
    ];
    match name {
        b"autofs" => Some(Kind::Automount),
        b"fuse" | b"fuseblk" => Some(Kind::Served),
        _ if SERVED.contains(&name) || name.starts_with(b"fuse.") => Some(Kind::Served),
        _ => None,
    }
}

/// Undoes the octal escapes of the mount table.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] = rest {
            plain.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    const TABLE: &[u8] = b"1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
        2 1 0:40 / /net rw - autofs auto.net rw\n\
        3 1 0:41 / /home/a\\040b\\012c rw master:2 - nfs4 server:/ rw\n\
        4 1 0:42 / /mnt/x rw - fuse.sshfs x rw\n\
        5 1 0:43 / /mnt/gone rw - cifs x rw\n\
        6 1 0:44 / /mnt/gone rw - tmpfs x rw\n\
        junk\n";

    #[test]
    fn mounts_that_may_not_answer_are_told_by_their_type_and_their_points_are_bytes() {
        let mounts = Mounts::parse(TABLE);
        let points: Vec<&[u8]> = mounts.points.keys().map(|point| point.as_os_str().as_bytes()).collect();
        assert_eq!(points, [&b"/home/a b\nc"[..], b"/mnt/x", b"/net"]);
        assert_eq!(mounts.holding(Path::new("/mnt/x/y/z")), Some(Path::new("/mnt/x")));
        assert_eq!(mounts.holding(Path::new("/mnt/xy")), None);
    }

    #[test]
    fn every_name_below_an_automount_is_asked_for_itself() {
        assert_eq!(
            first_below(Path::new("/net"), Path::new("/net/host/a")),
            Path::new("/net/host")
        );
        assert_eq!(first_below(Path::new("/net"), Path::new("/net")), Path::new("/net"));
    }

    #[test]
    fn a_look_that_does_not_end_is_given_up() {
        let (keep, wait) = mpsc::channel::<()>();
        assert!(!within(Duration::from_millis(1), move || assert!(wait.recv().is_err())));
        drop(keep);
        assert!(within(Duration::from_secs(60), || ()));
    }

    #[test]
    fn a_mount_is_asked_once() {
        let mut mounts = Mounts::parse(TABLE);
        assert_eq!(mounts.silent(Path::new("/mnt/x/a"), |_| ()), None);
        assert_eq!(mounts.silent(Path::new("/mnt/x/b"), |_| panic!("asked again")), None);
        mounts.give_up(Path::new("/net/dead"));
        assert_eq!(
            mounts.silent(Path::new("/net/dead/x"), |_| ()),
            Some(PathBuf::from("/net"))
        );
        assert_eq!(mounts.silent(Path::new("/net/alive/x"), |_| ()), None);
    }
}
