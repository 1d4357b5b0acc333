//! Why a layer is refused on this host, and the one setting that would change it. Looked up only after a failure.

mod facts;
#[cfg(test)]
mod tests;

use pinfold_model::wire::Layer;
use pinfold_sys::Errno;
use pinfold_sys::namespace::InitStep;

use crate::backend::process::StartError;
pub use facts::Facts;

/// The next step for a start that failed on this host.
#[must_use]
pub fn hint(error: &StartError) -> Option<String> {
    decide(error, &Facts::look())
}

/// The next step for a start that failed on a host with these facts.
#[must_use]
pub fn decide(error: &StartError, facts: &Facts) -> Option<String> {
    match error {
        StartError::SetUserId => Some("take the bit off: chmod u-s,g-s, or setcap -r, on the pinfold file".to_owned()),
        StartError::Namespaces { errno } => Some(namespaces(*errno, facts)),
        StartError::Init { step, errno } => init(*step, *errno, facts),
        StartError::Layer { failure } => {
            // A number that is none of the kernel's is a finding of the guest's own.
            let errno = Errno::from_io_error(&std::io::Error::from_raw_os_error(failure.errno));
            layer(failure.layer, errno, facts)
        }
        StartError::Host { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            Some("make room on the disk".to_owned())
        }
        StartError::Host { .. } | StartError::Guest { .. } => None,
    }
}

fn namespaces(errno: Errno, facts: &Facts) -> String {
    if facts.unprivileged_userns_clone.as_deref() == Some("0") && !facts.is_root {
        return "kernel.unprivileged_userns_clone is 0: sysctl kernel.unprivileged_userns_clone=1 (user_namespaces(7))"
            .to_owned();
    }
    if errno == Errno::NOSPC || errno == Errno::USERS {
        return match facts.max_user_namespaces.as_deref() {
            Some("0") => {
                "user.max_user_namespaces is 0: sysctl user.max_user_namespaces=15000 (namespaces(7)). Inside a sandbox \
                 or a container it may be 0 on purpose: run pinfold outside of it"
                    .to_owned()
            }
            _ => "a limit on namespaces is reached, or they are nested too deeply (32 levels): see the sysctls \
                  user.max_*_namespaces (namespaces(7))"
                .to_owned(),
        };
    }
    if facts.in_chroot {
        return "the kernel forbids user namespaces inside a chroot: run pinfold outside of it (user_namespaces(7))"
            .to_owned();
    }
    if let Some(hint) = apparmor(facts) {
        return hint;
    }
    if errno == Errno::NOSYS && facts.is_filtered {
        return "a seccomp profile that was put on before pinfold started hides clone3, as a container's does: allow \
                clone3 in that profile, such as docker run --security-opt seccomp=FILE (seccomp(2))"
            .to_owned();
    }
    if errno == Errno::NOSYS {
        return format!(
            "kernel {} has no clone3: pinfold needs Linux 5.13 or later",
            facts.kernel
        );
    }
    if errno == Errno::INVAL {
        return format!(
            "kernel {} is built without one of the namespaces (CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, \
             CONFIG_IPC_NS, CONFIG_UTS_NS)",
            facts.kernel
        );
    }
    if errno == Errno::PERM && (facts.is_filtered || facts.in_container) {
        let what = if facts.is_filtered {
            "a seccomp profile that was put on before pinfold started refuses this, as a container's does"
        } else {
            "inside a container its profile refuses this"
        };
        return format!(
            "{what}: allow clone, clone3 and unshare of user namespaces with a profile of its own, such as docker run \
             --security-opt seccomp=FILE (seccomp(2))"
        );
    }
    if errno == Errno::PERM {
        return "the host's security module, or a limit that its administrator set, refuses user namespaces: see \
                the kernel's messages (dmesg) for the program's name"
            .to_owned();
    }
    "pinfold needs Linux 5.13 or later with user namespaces".to_owned()
}

fn apparmor(facts: &Facts) -> Option<String> {
    (facts.apparmor_restricts && !facts.is_root).then(|| {
        format!(
            "kernel.apparmor_restrict_unprivileged_userns is 1: give {} an AppArmor profile with the rule 'userns,' \
             (a copy elsewhere is not covered by it; apparmor.d(5))",
            facts.program
        )
    })
}

fn init(step: InitStep, errno: Errno, facts: &Facts) -> Option<String> {
    match step {
        InitStep::MapUser | InitStep::MapGroup | InitStep::DenySetgroups
            if errno == Errno::PERM || errno == Errno::ACCESS =>
        {
            Some(apparmor(facts).unwrap_or_else(|| {
                if facts.is_root && !facts.may_map_root {
                    "root needs CAP_SETFCAP to map itself (Linux 5.12; user_namespaces(7)): keep that capability, or run \
                     as an ordinary user"
                        .to_owned()
                } else {
                    "the host's security module refuses id maps to this program: see the kernel's messages (dmesg) for \
                     the program's name"
                        .to_owned()
                }
            }))
        }
        InitStep::Execute if errno == Errno::ACCESS => Some(
            "programs in memory files may not be executed here (sysctl vm.memfd_noexec, or a security module): \
             sysctl vm.memfd_noexec=0"
                .to_owned(),
        ),
        _ => None,
    }
}

const LANDLOCK_PROFILE: &str = "a seccomp profile that was put on before pinfold started refuses landlock, as an older \
    container's does: allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in it";

fn layer(layer: Layer, errno: Option<Errno>, facts: &Facts) -> Option<String> {
    let refused = matches!(errno, Some(Errno::PERM | Errno::ACCESS));
    Some(match (layer, errno) {
        (Layer::Landlock, Some(Errno::NOSYS | Errno::PERM)) if facts.is_filtered => LANDLOCK_PROFILE.to_owned(),
        (Layer::Landlock, Some(Errno::NOSYS)) => format!(
            "kernel {} is built without landlock: Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK (landlock(7))",
            facts.kernel
        ),
        (Layer::Landlock, Some(Errno::OPNOTSUPP)) => {
            "landlock is built in but not enabled: add it to the lsm= list of the kernel's command line (landlock(7))"
                .to_owned()
        }
        (Layer::Seccomp, Some(Errno::NOSYS | Errno::INVAL)) => format!(
            "kernel {} is built without seccomp filters (CONFIG_SECCOMP_FILTER; seccomp(2))",
            facts.kernel
        ),
        (Layer::Proc, _) if refused => {
            "inside a container whose /proc is masked the kernel refuses a new one: docker run --security-opt \
             systempaths=unconfined, in Kubernetes procMount: Unmasked"
                .to_owned()
        }
        (Layer::Proc, Some(Errno::NOENT)) => {
            "the kernel has no limit for user namespaces (user.max_user_namespaces): Linux 4.9 or later with CONFIG_SYSCTL"
                .to_owned()
        }
        (Layer::Mounts, Some(Errno::NOSYS)) => {
            format!("kernel {} lacks the mount interface that pinfold needs: Linux 5.12 or later", facts.kernel)
        }
        (Layer::Mounts, Some(Errno::LOOP)) => {
            "a link took the place of a folder while the sandbox was being built: start again".to_owned()
        }
        (Layer::Mounts, Some(Errno::NOSPC)) => "too many mounts: fewer rules, or raise the sysctl fs.mount-max".to_owned(),
        (Layer::Trace, _) if refused => match facts.ptrace_scope.as_deref() {
            Some("3") => {
                "kernel.yama.ptrace_scope is 3, which forbids tracing until the next boot: run without --explain".to_owned()
            }
            _ => "the host forbids tracing, as some containers do: run without --explain, or allow ptrace in the \
                  container's seccomp profile"
                .to_owned(),
        },
        (Layer::Mounts | Layer::Network | Layer::Namespaces, _) if refused => {
            return apparmor(facts).or_else(|| {
                (facts.in_container || facts.is_filtered).then(|| {
                    "the profile of a container (AppArmor, SELinux or seccomp) refuses what is done inside user \
                     namespaces: give the container a profile that allows it, mounts included"
                        .to_owned()
                })
            });
        }
        (Layer::Proof, _) => {
            "a wall that was put up does not hold on this kernel, so nothing was run: pinfold doctor tells more".to_owned()
        }
        _ => return None,
    })
}
