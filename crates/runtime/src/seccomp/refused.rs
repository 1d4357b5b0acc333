//! Which rule of the table refused a call, for people.

use super::rules::NEWEST;
use super::{Architecture, FilterOptions, rules};

/// A call that the filter refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub name: &'static str,
    pub reason: &'static str,
}

/// The first rule that refuses call `number` with these arguments and this error; none where the filter lets it through, so
/// that somebody else has refused it.
#[must_use]
pub fn refused(number: u32, arguments: &[u64; 6], errno: i32, options: &FilterOptions) -> Option<Refused> {
    let native = Architecture::NATIVE?;
    if number > NEWEST {
        return (errno == libc::ENOSYS).then_some(Refused {
            name: "a call of a newer kernel",
            reason: "it was not reviewed yet; callers take their older path",
        });
    }
    rules(options)
        .filter(|rule| i32::from(rule.errno) == errno && rule.when.holds(arguments))
        .find_map(|rule| {
            let call = rule.calls.iter().find(|call| call.number(native) == Some(number))?;
            Some(Refused {
                name: call.name,
                reason: rule.reason,
            })
        })
}

/// The names of calls that no rule refuses and that fail inside all the same.
#[must_use]
pub fn name(number: u32) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(known, _)| u32::try_from(*known) == Ok(number))
        .map(|(_, name)| *name)
}

const NAMES: &[(libc::c_long, &str)] = &[
    (libc::SYS_bind, "bind"),
    (libc::SYS_capset, "capset"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_ioprio_set, "ioprio_set"),
    (libc::SYS_kill, "kill"),
    (libc::SYS_mlock, "mlock"),
    (libc::SYS_mlockall, "mlockall"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_pidfd_send_signal, "pidfd_send_signal"),
    (libc::SYS_prctl, "prctl"),
    (libc::SYS_prlimit64, "prlimit64"),
    (libc::SYS_sched_setaffinity, "sched_setaffinity"),
    (libc::SYS_sched_setattr, "sched_setattr"),
    (libc::SYS_sched_setscheduler, "sched_setscheduler"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_setgid, "setgid"),
    (libc::SYS_setgroups, "setgroups"),
    (libc::SYS_setpriority, "setpriority"),
    (libc::SYS_setregid, "setregid"),
    (libc::SYS_setresgid, "setresgid"),
    (libc::SYS_setresuid, "setresuid"),
    (libc::SYS_setreuid, "setreuid"),
    (libc::SYS_setrlimit, "setrlimit"),
    (libc::SYS_setsockopt, "setsockopt"),
    (libc::SYS_setuid, "setuid"),
    (libc::SYS_socket, "socket"),
    (libc::SYS_tgkill, "tgkill"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_is_traced_to_the_rule_that_refuses_its_arguments() {
        let options = FilterOptions::default();
        let socket = libc::SYS_socket as u32;
        for (number, arguments, errno, reason) in [
            (libc::SYS_ptrace as u32, [0; 3], libc::EPERM, Some("reads or steers")),
            (
                libc::SYS_clone3 as u32,
                [0; 3],
                libc::ENOSYS,
                Some("its flags lie in memory"),
            ),
            (socket, [17, 3, 0], libc::EPERM, Some("a socket family")),
            (socket, [2, 3, 1], libc::EPERM, Some("raw and packet")),
            (socket, [2, 1, 0], libc::EPERM, None),
            (
                libc::SYS_ioctl as u32,
                [3, 0x5412 | 1 << 32, 0],
                libc::EPERM,
                Some("types into"),
            ),
            (libc::SYS_ioctl as u32, [3, 0x5413, 0], libc::EPERM, None),
            (libc::SYS_setuid as u32, [0; 3], libc::EPERM, None),
            (100_000, [0; 3], libc::ENOSYS, Some("it was not reviewed")),
        ] {
            let [a, b, c] = arguments;
            let found = refused(number, &[a, b, c, 0, 0, 0], errno, &options).map(|found| found.reason);
            match reason {
                None => assert_eq!(found, None, "{number}"),
                Some(reason) => assert!(
                    found.is_some_and(|found| found.starts_with(reason)),
                    "{number} {found:?}"
                ),
            }
        }
    }
}
