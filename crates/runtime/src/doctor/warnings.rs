//! What a person should know about this host although it keeps nothing from working.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::host::Caller;

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    is_root: bool,
    /// The state folder or a folder above it that everybody may write.
    open_folder: Option<PathBuf>,
    /// The kind of a remote file system that home lies on, and where.
    remote_home: Option<(&'static str, PathBuf)>,
    core_pattern: String,
    is_wsl: bool,
}

pub(super) fn look(caller: &Caller, data: &Path) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    sentences(&Facts {
        is_root: caller.uid == 0,
        open_folder: data.ancestors().find(|folder| is_open(folder)).map(Path::to_owned),
        remote_home: remote(&caller.home).map(|kind| (kind, caller.home.clone())),
        core_pattern: read("/proc/sys/kernel/core_pattern").trim().to_owned(),
        is_wsl: Path::new("/proc/sys/fs/binfmt_misc/WSLInterop").exists()
            || read("/proc/sys/kernel/osrelease")
                .to_ascii_lowercase()
                .contains("microsoft"),
    })
}

/// Whether everybody may rename what is in a folder: writable for all, without the sticky bit.
fn is_open(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir() && data.mode() & 0o1002 == 0o002)
}

/// The kind of a file system that answers over a network or through a program (statfs(2)).
fn remote(path: &Path) -> Option<&'static str> {
    const KINDS: [(u32, &str); 8] = [
        (0x6969, "NFS"),
        (0x6573_5546, "FUSE"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x0187, "autofs"),
        (0x5346_414f, "AFS"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
    ];
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    KINDS
        .iter()
        .find(|(magic, _)| i64::from(*magic) == kind & i64::from(u32::MAX))
        .map(|(_, name)| *name)
}

fn sentences(facts: &Facts) -> Vec<String> {
    let mut sentences = Vec::new();
    if facts.is_root {
        sentences.push(
            "you are root: a sandbox keeps no privilege of yours, but its files are made as root   hint: an ordinary user \
             has fewer to lose"
                .to_owned(),
        );
    }
    if let Some(folder) = &facts.open_folder {
        sentences.push(format!(
            "{} can be written by everybody, so others can replace pinfold's state   hint: chmod o-w {0}",
            folder.display()
        ));
    }
    if let Some((kind, home)) = &facts.remote_home {
        sentences.push(format!(
            "your home folder {} is on {kind}: starts wait for it, and private layers over toolchains may be refused   \
             hint: set XDG_DATA_HOME to a folder on a local disk",
            home.display()
        ));
    }
    if facts.core_pattern.starts_with('|') {
        sentences.push(format!(
            "core dumps go to a program on the host (kernel.core_pattern is {}); a sandbox's limit of one byte keeps its \
             own from it",
            facts.core_pattern
        ));
    }
    if facts.is_wsl {
        sentences.push(
            "this is WSL: Windows programs and drives are not visible inside unless a rule shows them, and a rule that \
             shows /mnt/c lets Windows programs be changed"
                .to_owned(),
        );
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_is_one_sentence_and_an_ordinary_host_has_none() {
        assert_eq!(sentences(&Facts::default()), Vec::<String>::new());
        let all = Facts {
            is_root: true,
            open_folder: Some("/srv/state".into()),
            remote_home: Some(("NFS", "/home/me".into())),
            core_pattern: "|/usr/lib/systemd/systemd-coredump".to_owned(),
            is_wsl: true,
        };
        let sentences = sentences(&all);
        for (sentence, part) in sentences
            .iter()
            .zip(["root", "chmod o-w /srv/state", "NFS", "core_pattern", "WSL"])
        {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert_eq!(sentences.len(), 5);
    }

    #[test]
    fn a_folder_with_the_sticky_bit_is_not_open() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (mode, open) in [(0o700, false), (0o777, true), (0o1777, false)] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open(folder.path()), open, "{mode:o}");
        }
    }
}
