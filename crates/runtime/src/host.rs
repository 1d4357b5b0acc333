//! Facts about the host that a plan depends on: who calls, and what the root folder and `/etc` hold.
//!
//! Gathered afresh at every start with a handful of cheap calls. Environment variables and the home folder's place are the
//! caller's to know and are passed in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::plan::Node;
use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, readlinkat, statat};

/// Who runs the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    /// Absolute and canonical.
    pub home: PathBuf,
    pub shell: String,
}

/// What of the host a plan needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The folder that the system folders come from, in place of the host's own root. Canonical.
    pub root: Option<PathBuf>,
    /// System folders that exist as folders, as they are called inside.
    pub system: Vec<PathBuf>,
    /// Links in the root folder (merged `/usr`): path and target as written.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Secrets of the system that the caller could read.
    pub secrets: Vec<(PathBuf, Node)>,
    /// Where name resolution is configured: `/etc/resolv.conf`, or what it leads to, existing or not.
    pub resolv_conf: Option<PathBuf>,
    /// Those of the user database and `hosts` files that exist, and are covered by generated ones.
    pub databases: Vec<&'static str>,
    /// The system's bundle of root certificates.
    pub root_bundle: Option<PathBuf>,
    /// Bytes of memory.
    pub memory: u64,
    /// Kernel views of the hardware that common tools need: `/sys/devices/system`.
    pub hardware: Option<PathBuf>,
}

/// System folders that are visible read-only by default. Only those that exist become part of a view.
const SYSTEM: [&str; 17] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman",
    "/var/lib/ca-certificates",
    "/lib/apk",
];

/// Files and folders below the system folders that hold keys or password hashes. An ordinary user cannot read them anyway;
/// for root, whom the kernel does not stop, they are covered.
const SECRETS: [&str; 21] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/letsencrypt",
    "/etc/NetworkManager/system-connections",
    "/etc/docker",
    "/etc/security/opasswd",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ppp",
];

/// Folders of a root file system that are not taken from it: the sandbox has its own, or they hold nothing of the system.
const OWN: [&str; 10] = [
    "/proc", "/sys", "/dev", "/run", "/tmp", "/var", "/home", "/root", "/mnt", "/media",
];

const DATABASES: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/hosts"];

const ROOT_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

impl Host {
    /// Looks at this host.
    #[must_use]
    pub fn look() -> Self {
        let (system, links) = sort(Path::new("/"), SYSTEM.iter().map(PathBuf::from));
        Self {
            root: None,
            system,
            links,
            secrets: SECRETS.iter().filter_map(|path| secret(Path::new(path))).collect(),
            resolv_conf: std::fs::canonicalize("/etc/resolv.conf")
                .ok()
                .or_else(dangling_resolv_conf),
            databases: DATABASES
                .into_iter()
                .filter(|path| kind(Path::new(path)) == Some(FileType::RegularFile))
                .collect(),
            root_bundle: ROOT_BUNDLES.iter().map(PathBuf::from).find(|path| path.exists()),
            memory: memory(),
            hardware: Some(PathBuf::from("/sys/devices/system")).filter(|path| path.is_dir()),
        }
    }

    /// Looks at a folder that holds a root file system, and takes the system from there. Folders that hold one of `kept`
    /// (the workspace, home) stay the host's.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn look_at(root: &Path, kept: &[&Path]) -> std::io::Result<Self> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(root)? {
            let path = Path::new("/").join(entry?.file_name());
            if !OWN.iter().any(|own| path == Path::new(own)) && !kept.iter().any(|kept| kept.starts_with(&path)) {
                found.push(path);
            }
        }
        found.extend(SYSTEM.iter().map(PathBuf::from).filter(|path| path.starts_with("/var")));
        let (system, links) = sort(root, found.into_iter());
        let inside = |path: &Path| {
            system
                .iter()
                .any(|folder| path.starts_with(folder))
                .then(|| below(root, path))
        };
        let plain = |path: &Path| inside(path).and_then(|path| kind(&path)) == Some(FileType::RegularFile);
        let databases = DATABASES.into_iter().filter(|path| plain(Path::new(path))).collect();
        let secrets = SECRETS.iter().map(Path::new).filter_map(|path| {
            let (_, node) = secret(&inside(path)?)?;
            Some((path.to_owned(), node))
        });
        let resolv_conf = Some(PathBuf::from("/etc/resolv.conf")).filter(|path| plain(path));
        let bundle = ROOT_BUNDLES.iter().map(PathBuf::from).find(|path| plain(path));
        Ok(Self {
            root: Some(root.to_owned()),
            secrets: secrets.collect(),
            databases,
            resolv_conf,
            root_bundle: bundle,
            system,
            links,
            ..Self::look()
        })
    }

    /// Where a system folder comes from.
    #[must_use]
    pub fn source(&self, folder: &Path) -> PathBuf {
        self.root
            .as_ref()
            .map_or_else(|| folder.to_owned(), |root| below(root, folder))
    }
}

/// Which of the paths below a root are folders, and which are links and where to.
fn sort(root: &Path, paths: impl Iterator<Item = PathBuf>) -> (Vec<PathBuf>, Vec<(PathBuf, PathBuf)>) {
    let mut system = Vec::new();
    let mut links = Vec::new();
    for path in paths {
        let real = below(root, &path);
        match kind(&real) {
            Some(FileType::Directory) => system.push(path),
            Some(FileType::Symlink) => links.extend(link(&real).map(|(_, target)| (path, target))),
            _ => {}
        }
    }
    // Below a link the same folder would come twice.
    system.retain(|path| !links.iter().any(|(link, _)| path != link && path.starts_with(link)));
    (system, links)
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn kind(path: &Path) -> Option<FileType> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .ok()
        .map(|stat| FileType::from_raw_mode(stat.st_mode))
}

fn link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let target = readlinkat(CWD, path, Vec::new()).ok()?;
    Some((path.to_owned(), PathBuf::from(OsStr::from_bytes(target.as_bytes()))))
}

fn secret(path: &Path) -> Option<(PathBuf, Node)> {
    let node = match kind(path)? {
        FileType::Directory => Node::Dir,
        FileType::Symlink => return secret(&std::fs::canonicalize(path).ok()?),
        _ => Node::File,
    };
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).ok()?;
    Some((path.to_owned(), node))
}

/// The name that a link without a target would lead to, if it lies where the sandbox has its own folder; writing the
/// generated file there makes the link work inside.
fn dangling_resolv_conf() -> Option<PathBuf> {
    let (_, target) = link(Path::new("/etc/resolv.conf"))?;
    let target = normalise(&Path::new("/etc").join(target));
    target.starts_with("/run").then_some(target)
}

fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            std::path::Component::Normal(name) => clean.push(name),
            std::path::Component::ParentDir => {
                clean.pop();
            }
            _ => {}
        }
    }
    clean
}

fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)))
}
