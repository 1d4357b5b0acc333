//! Mounts that may be remote or may start a mount when touched: a path that hostile text names must not go there.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mount points of remote and automounted file systems, read when first asked for.
#[derive(Debug, Default)]
pub(super) struct RemoteMounts {
    /// Paths that the policy names: the mounts that they lie on may be touched.
    named: Vec<PathBuf>,
    points: OnceCell<Option<BTreeSet<PathBuf>>>,
}

impl RemoteMounts {
    pub(super) fn except_for(named: &[PathBuf]) -> Self {
        Self {
            named: named.to_vec(),
            points: OnceCell::new(),
        }
    }

    /// Whether a path is the mount point of such a file system. True also when the mount table cannot be read.
    pub(super) fn has(&self, path: &Path) -> bool {
        let points = self
            .points
            .get_or_init(|| std::fs::read("/proc/self/mountinfo").ok().map(|table| parse(&table)));
        points.as_ref().is_none_or(|points| points.contains(path))
            && !self.named.iter().any(|named| named.starts_with(path))
    }
}

/// The remote mount points of a mount table (proc_pid_mountinfo(5)).
pub(super) fn parse(table: &[u8]) -> BTreeSet<PathBuf> {
    let mut remote = BTreeSet::new();
    for line in table.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ');
        let Some(point) = fields.nth(4) else { continue };
        let Some(kind) = fields.skip_while(|field| *field != b"-").nth(1) else {
            continue;
        };
        let point = PathBuf::from(OsString::from_vec(unescape(point)));
        // The last mount on a point is the one that is seen.
        if is_remote(kind) {
            remote.insert(point);
        } else {
            remote.remove(&point);
        }
    }
    remote
}

fn is_remote(kind: &[u8]) -> bool {
    const REMOTE: [&[u8]; 13] = [
        b"autofs",
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
    REMOTE.contains(&kind) || kind == b"fuse" || kind == b"fuseblk" || kind.starts_with(b"fuse.")
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
