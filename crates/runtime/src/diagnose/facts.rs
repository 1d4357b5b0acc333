//! What this host says about itself, looked up only after a failure.

use std::path::Path;

use rustix::thread::CapabilitySet;

/// What the likely cause of a refusal is told from. Settings are as the kernel prints them; none where the kernel has no such
/// setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub unprivileged_userns_clone: Option<String>,
    pub max_user_namespaces: Option<String>,
    pub apparmor_restricts: bool,
    pub in_chroot: bool,
    pub is_root: bool,
    /// Whether `CAP_SETFCAP` is effective.
    pub may_map_root: bool,
    /// Whether somebody has put a system call filter on this process already.
    pub is_filtered: bool,
    /// Whether this looks like the inside of a container.
    pub in_container: bool,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Option<String>,
    pub kernel: String,
    /// The file that was executed.
    pub program: String,
}

impl Facts {
    /// Looks at this host.
    #[must_use]
    pub fn look() -> Self {
        let setting = |path: &str| {
            std::fs::read_to_string(Path::new("/proc/sys").join(path))
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let filter = rustix::thread::secure_computing_mode();
        Self {
            unprivileged_userns_clone: setting("kernel/unprivileged_userns_clone"),
            max_user_namespaces: setting("user/max_user_namespaces"),
            apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1"),
            in_chroot: in_chroot(),
            is_root: rustix::process::geteuid().is_root(),
            may_map_root: rustix::thread::capabilities(None)
                .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SETFCAP)),
            is_filtered: matches!(filter, Ok(rustix::thread::SecureComputingMode::Filter)),
            in_container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists()),
            ptrace_scope: setting("kernel/yama/ptrace_scope"),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            program: std::env::current_exe().map_or_else(|_| "pinfold".to_owned(), |path| path.display().to_string()),
        }
    }
}

/// A process inside a chroot has another root than init, as far as it may look; and no mount that it sees is its root, unless
/// the folder happens to be one.
fn in_chroot() -> bool {
    let root = rustix::fs::stat("/").map(|stat| (stat.st_dev, stat.st_ino));
    let init = rustix::fs::stat("/proc/1/root/.").map(|stat| (stat.st_dev, stat.st_ino));
    if let (Ok(root), Ok(init)) = (root, init) {
        return root != init;
    }
    std::fs::read("/proc/self/mountinfo").is_ok_and(|text| {
        !text
            .split(|byte| *byte == b'\n')
            .any(|line| line.split(|byte| *byte == b' ').nth(4) == Some(b"/"))
    })
}
