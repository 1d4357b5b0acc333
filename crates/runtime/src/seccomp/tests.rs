use std::fmt::Write as _;

use pinfold_model::plan::Instruction;

use super::compile::{ALLOW, AND, ERRNO, JUMP, JUMP_AT_LEAST, JUMP_BITS, JUMP_EQUAL, KILL_PROCESS, LOAD_WORD, RETURN};
use super::rules::NEWEST;
use super::*;

const PERMITTED: FilterOptions = FilterOptions {
    unix_sockets: UnixSockets::Allowed,
};
const NO_UNIX: FilterOptions = FilterOptions {
    unix_sockets: UnixSockets::Denied,
};
const EPERM: u32 = ERRNO | libc::EPERM as u32;
const ENOSYS: u32 = ERRNO | libc::ENOSYS as u32;
const MACHINES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
/// What the kernel ignores in an argument of type `int`.
const GARBAGE: u64 = 0xdead_beef_0000_0000;

/// What the kernel would answer, and whether it had to look at an argument on the way.
fn run(program: &[Instruction], audit: u32, number: u32, arguments: [u64; 6]) -> (u32, bool) {
    let mut data = [0; 64];
    data[..4].copy_from_slice(&number.to_le_bytes());
    data[4..8].copy_from_slice(&audit.to_le_bytes());
    for (index, argument) in arguments.iter().enumerate() {
        data[16 + index * 8..24 + index * 8].copy_from_slice(&argument.to_le_bytes());
    }
    let (mut accumulator, mut place, mut reads_arguments) = (0_u32, 0, false);
    loop {
        let Instruction { code, jt, jf, k } = program[place];
        place += 1;
        let branch = |taken: bool| usize::from(if taken { jt } else { jf });
        match code {
            LOAD_WORD => {
                assert_eq!(k % 4, 0, "the kernel refuses unaligned loads");
                let at = k as usize;
                accumulator = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
                reads_arguments |= at >= 8;
            }
            AND => accumulator &= k,
            JUMP => place += k as usize,
            JUMP_EQUAL => place += branch(accumulator == k),
            JUMP_AT_LEAST => place += branch(accumulator >= k),
            JUMP_BITS => place += branch(accumulator & k != 0),
            RETURN => return (k, reads_arguments),
            other => panic!("instruction {other:#x} is not one that the filter uses"),
        }
    }
}

fn number_of(machine: Architecture, name: &str) -> Option<u32> {
    let call = rules(&NO_UNIX)
        .flat_map(|rule| rule.calls)
        .find(|call| call.name == name);
    call.unwrap_or_else(|| panic!("no rule names {name}")).number(machine)
}

/// Runs `name` with `arguments` (the rest zero) on every machine that has the call.
#[track_caller]
fn expect(options: &FilterOptions, name: &str, arguments: &[u64], answer: u32) {
    for machine in MACHINES {
        let Some(number) = number_of(machine, name) else {
            continue;
        };
        let program = program_for(machine, options);
        for upper in [0, GARBAGE] {
            let mut registers = [0; 6];
            for (register, argument) in registers.iter_mut().zip(arguments) {
                *register = *argument | upper;
            }
            let (given, _) = run(&program, machine.audit(), number, registers);
            assert_eq!(given, answer, "{name}{registers:x?} on {machine:?}");
            // What people are told comes from the rules themselves, and must be what the program does.
            if Some(machine) == Architecture::NATIVE && answer != KILL_PROCESS {
                let errno = i32::try_from(answer & 0xffff).unwrap();
                let explained = super::refused(number, &registers, errno, options).is_some();
                assert_eq!(explained, answer != ALLOW, "{name}{registers:x?}");
            }
        }
    }
}

fn permitted(name: &str, arguments: &[u64]) {
    expect(&PERMITTED, name, arguments, ALLOW);
}

fn refused(name: &str, arguments: &[u64]) {
    expect(&PERMITTED, name, arguments, EPERM);
}

#[test]
fn every_row_without_a_condition_refuses_whatever_the_arguments_are() {
    for machine in MACHINES {
        let program = program_for(machine, &PERMITTED);
        for rule in rules(&PERMITTED).filter(|rule| rule.when == Condition::Always) {
            for number in rule.calls.iter().filter_map(|call| call.number(machine)) {
                for arguments in [[0; 6], [u64::MAX; 6]] {
                    let (answer, reads) = run(&program, machine.audit(), number, arguments);
                    assert_eq!(
                        (answer, reads),
                        (ERRNO | u32::from(rule.errno), false),
                        "{rule:?} on {machine:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_family_of_calls_that_has_to_be_denied_has_a_row() {
    let denied = "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise setns mount umount2 \
        open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr chroot pivot_root \
        io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd fanotify_init \
        open_by_handle_at name_to_handle_at add_key keyctl request_key init_module finit_module delete_module \
        kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd syslog settimeofday clock_settime \
        adjtimex clock_adjtime sethostname setdomainname iopl ioperm modify_ldt";
    for name in denied.split_whitespace() {
        expect(&PERMITTED, name, &[0; 6], EPERM);
    }
    for name in ["clone3", "openat2", "statmount", "listmount"] {
        for machine in MACHINES {
            let program = program_for(machine, &PERMITTED);
            let number = number_of(machine, name).unwrap();
            assert_eq!(
                run(&program, machine.audit(), number, [0; 6]),
                (ENOSYS, false),
                "{name}"
            );
        }
    }
}

#[test]
fn another_architecture_kills_the_process() {
    const I386: u32 = 0x4000_0003;
    const ARM: u32 = 0x4000_0028;
    for machine in MACHINES {
        let program = program_for(machine, &PERMITTED);
        for audit in [I386, ARM, 0, u32::MAX, machine.audit() ^ 0x8000_0000] {
            for number in [0, 1, 20, 102, NEWEST + 1] {
                assert_eq!(run(&program, audit, number, [0; 6]).0, KILL_PROCESS);
            }
        }
    }
}

#[test]
fn numbers_above_the_reviewed_ones_and_x32_numbers_are_missing() {
    for machine in MACHINES {
        let program = program_for(machine, &PERMITTED);
        let x32 = (0..600).map(|number| 0x4000_0000 | number);
        for number in (NEWEST + 1..1200)
            .chain(x32)
            .chain([0x7fff_ffff, 0x8000_0000, u32::MAX])
        {
            assert_eq!(
                run(&program, machine.audit(), number, [0; 6]),
                (ENOSYS, false),
                "{number:#x} on {machine:?}"
            );
        }
    }
}

#[test]
fn a_call_that_no_rule_names_is_allowed_without_reading_an_argument() {
    for machine in MACHINES {
        let named: Vec<u32> = rules(&PERMITTED)
            .flat_map(|rule| rule.calls)
            .filter_map(|call| call.number(machine))
            .collect();
        let program = program_for(machine, &PERMITTED);
        for number in (0..=NEWEST).filter(|number| !named.contains(number)) {
            assert_eq!(
                run(&program, machine.audit(), number, [u64::MAX; 6]),
                (ALLOW, false),
                "{number} on {machine:?}"
            );
        }
    }
}

#[test]
fn a_new_namespace_is_refused_in_every_spelling() {
    const SIGCHLD: u64 = 17;
    const THREAD: u64 = 0x003d_0f00;
    permitted("clone", &[SIGCHLD]);
    permitted("clone", &[THREAD]);
    permitted("clone", &[0x80 | SIGCHLD]);
    for bit in [17_u64, 25, 26, 27, 28, 29, 30] {
        refused("clone", &[1 << bit]);
        refused("clone", &[(1 << bit) | THREAD | SIGCHLD]);
        refused("unshare", &[1 << bit]);
    }
    refused("unshare", &[0x80]);
    refused("unshare", &[1 << 31]);
    refused("setns", &[3, 0]);
}

#[test]
fn unshare_of_descriptors_and_working_directory_is_allowed_but_unknown_upper_flags_are_not() {
    for machine in MACHINES {
        let program = program_for(machine, &PERMITTED);
        let number = number_of(machine, "unshare").unwrap();
        for (flags, answer) in [
            (0, ALLOW),
            (0x200, ALLOW),
            (0x400, ALLOW),
            (0x4_0600, ALLOW),
            (1 << 32, EPERM),
            (1 << 63, EPERM),
        ] {
            assert_eq!(
                run(&program, machine.audit(), number, [flags, 0, 0, 0, 0, 0]).0,
                answer,
                "{flags:#x}"
            );
        }
    }
}

#[test]
fn personality_is_default_or_query_only() {
    permitted("personality", &[0]);
    permitted("personality", &[0xffff_ffff]);
    for other in [0x0004_0000, 0x0008, 0x0002_0000, 0x0040_0000, 0xffff_fffe] {
        refused("personality", &[other]);
    }
}

#[test]
fn device_nodes_are_refused_and_fifos_sockets_and_files_are_not() {
    for (mode, allowed) in [
        (0o010_644, true),
        (0o140_755, true),
        (0o100_644, true),
        (0o644, true),
        (0o020_644, false),
        (0o060_644, false),
        // The kernel takes the mode as 16 bits.
        (0x1_0000 | 0o020_644, false),
        (0x1_0000 | 0o010_644, true),
    ] {
        let answer = if allowed { ALLOW } else { EPERM };
        expect(&PERMITTED, "mknod", &[0, mode, 0x103], answer);
        expect(&PERMITTED, "mknodat", &[3, 0, mode, 0x103], answer);
    }
}

#[test]
fn set_id_bits_are_refused_in_every_mode_argument() {
    const CREAT: u64 = 0o100;
    const TMPFILE: u64 = 0o2000_0000;
    for bits in [0o4000, 0o2000, 0o6000, 0o4755, 0o2775, 0o7777] {
        for name in ["chmod", "fchmod", "creat", "mkdir", "mknod"] {
            refused(name, &[3, bits]);
        }
        for name in ["fchmodat", "fchmodat2", "mkdirat", "mknodat"] {
            refused(name, &[3, 0, bits]);
        }
        for flag in [CREAT, TMPFILE, CREAT | 0o3001, TMPFILE | 0o20_0002] {
            refused("open", &[0, flag, bits]);
            refused("openat", &[3, 0, flag, bits]);
        }
        // Without a flag that creates, the register of the mode holds anything.
        permitted("open", &[0, 0o1, bits]);
        permitted("openat", &[3, 0, 0o1002, bits]);
    }
    for bits in [0, 0o644, 0o755, 0o1777] {
        permitted("chmod", &[3, bits]);
        permitted("fchmod", &[3, bits]);
        permitted("creat", &[3, bits]);
        permitted("mkdir", &[3, bits]);
        permitted("fchmodat", &[3, 0, bits]);
        permitted("fchmodat2", &[3, 0, bits]);
        permitted("mkdirat", &[3, 0, bits]);
        permitted("open", &[0, CREAT, bits]);
        permitted("openat", &[3, 0, TMPFILE, bits]);
    }
}

#[test]
fn socket_families_are_those_of_the_table() {
    const CLOEXEC_NONBLOCK: u64 = 0o2_004_000;
    for kind in [1, 2, 5, 1 | CLOEXEC_NONBLOCK, 2 | CLOEXEC_NONBLOCK] {
        permitted("socket", &[1, kind, 0]);
    }
    for family in [2, 10] {
        for (kind, protocol) in [(1, 0), (1, 6), (1, 262), (2, 0), (2, 17), (2, 1), (2, 58)] {
            permitted("socket", &[family, kind, protocol]);
            permitted("socket", &[family, kind | CLOEXEC_NONBLOCK, protocol]);
        }
        // Raw, reliable datagrams, SCTP by type, DCCP, and the old spelling of a packet socket.
        for kind in [0, 3, 4, 5, 6, 10, 15] {
            refused("socket", &[family, kind, 0]);
            refused("socket", &[family, kind, 255]);
            refused("socket", &[family, kind | CLOEXEC_NONBLOCK, 1]);
        }
        // SCTP, SMC, L2TP, UDP-Lite.
        for (kind, protocol) in [(1, 132), (1, 256), (2, 115), (2, 136), (1, 17), (2, 6), (2, 255)] {
            refused("socket", &[family, kind, protocol]);
        }
    }
    permitted("socket", &[16, 3, 0]);
    permitted("socket", &[16, 3 | CLOEXEC_NONBLOCK, 0]);
    permitted("socket", &[16, 2, 0]);
    for protocol in 1..40 {
        refused("socket", &[16, 3, protocol]);
    }
    for family in (0..64)
        .filter(|family| ![1, 2, 10, 16].contains(family))
        .chain([0xffff_ffff, 0x1_0001])
    {
        for kind in [1, 2, 3, 5] {
            refused("socket", &[family, kind, 0]);
            refused("socketpair", &[family, kind, 0]);
        }
    }
    for kind in [1, 2, 5] {
        permitted("socketpair", &[1, kind, 0]);
        refused("socketpair", &[2, kind, 0]);
        refused("socketpair", &[16, kind, 0]);
    }
}

#[test]
fn without_unix_sockets_only_connected_pairs_remain() {
    for kind in [1, 2, 3, 5, 1 | 0o2_000_000] {
        expect(&NO_UNIX, "socket", &[1, kind, 0], EPERM);
    }
    expect(&NO_UNIX, "socketpair", &[1, 1, 0], ALLOW);
    expect(&NO_UNIX, "socketpair", &[1, 5 | 0o2_000_000, 0], ALLOW);
    for kind in [2, 3, 2 | 0o4_000] {
        expect(&NO_UNIX, "socketpair", &[1, kind, 0], EPERM);
    }
    expect(&NO_UNIX, "socket", &[2, 1, 0], ALLOW);
    expect(&NO_UNIX, "socket", &[16, 3, 0], ALLOW);
}

#[test]
fn typing_into_a_terminal_is_refused_with_any_upper_half() {
    for request in [0x5412, 0x541c] {
        refused("ioctl", &[0, request]);
        for machine in MACHINES {
            let program = program_for(machine, &PERMITTED);
            let number = number_of(machine, "ioctl").unwrap();
            for upper in [1_u64 << 32, 1 << 63, 0xffff_ffff_0000_0000] {
                assert_eq!(
                    run(&program, machine.audit(), number, [0, request | upper, 0, 0, 0, 0]).0,
                    EPERM
                );
            }
        }
    }
    for request in [0x5401, 0x5413, 0x5414, 0x541b, 0x5421, 0x8000_5412, 0x541d] {
        permitted("ioctl", &[0, request]);
    }
}

#[test]
fn the_program_is_one_that_the_kernel_accepts() {
    for machine in MACHINES {
        for options in [PERMITTED, NO_UNIX] {
            let program = program_for(machine, &options);
            assert!(program.len() < 512, "{} instructions", program.len());
            assert_eq!(
                program.last().map(|last| last.code),
                Some(RETURN),
                "the kernel wants a RET at the end"
            );
            let mut reached = vec![false; program.len()];
            reached[0] = true;
            for (place, instruction) in program.iter().enumerate() {
                let next: Vec<usize> = match instruction.code {
                    RETURN => vec![],
                    JUMP => vec![place + 1 + instruction.k as usize],
                    JUMP_EQUAL | JUMP_AT_LEAST | JUMP_BITS => {
                        vec![
                            place + 1 + usize::from(instruction.jt),
                            place + 1 + usize::from(instruction.jf),
                        ]
                    }
                    LOAD_WORD => {
                        assert!(instruction.k < 64 && instruction.k % 4 == 0);
                        vec![place + 1]
                    }
                    _ => vec![place + 1],
                };
                for target in next {
                    assert!(target < program.len(), "the jump at {place} leaves the program");
                    reached[target] = true;
                }
            }
            assert_eq!(
                reached.iter().position(|reached| !reached),
                None,
                "no instruction is unreachable"
            );
        }
    }
}

#[test]
fn an_allowed_call_takes_few_instructions() {
    for machine in MACHINES {
        let program = program_for(machine, &PERMITTED);
        for number in 0..=NEWEST {
            let mut steps = 0;
            let mut place = 0;
            while program[place].code != RETURN && !(program[place].code == LOAD_WORD && program[place].k >= 16) {
                let Instruction { code, jt, jf, k } = program[place];
                let taken = match code {
                    JUMP => k as usize,
                    JUMP_AT_LEAST => usize::from(if number >= k { jt } else { jf }),
                    JUMP_EQUAL => usize::from(if machine.audit() == k { jt } else { jf }),
                    _ => 0,
                };
                place += 1 + taken;
                steps += 1;
            }
            assert!(steps <= 14, "call {number} takes {steps} steps on {machine:?}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_c_library() {
    let Some(native) = Architecture::NATIVE else { return };
    macro_rules! same {
        ($($name:ident)*) => { $(
            let name = stringify!($name).trim_start_matches("SYS_");
            assert_eq!(number_of(native, name).map(i64::from), Some(libc::$name as i64), "{name}");
        )* };
    }
    same!(SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_kcmp SYS_process_madvise SYS_unshare
        SYS_setns SYS_clone SYS_clone3 SYS_mount SYS_umount2 SYS_chroot SYS_pivot_root SYS_open_tree SYS_move_mount
        SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_io_uring_setup SYS_io_uring_enter
        SYS_io_uring_register SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_fanotify_init SYS_open_by_handle_at
        SYS_name_to_handle_at SYS_add_key SYS_keyctl SYS_request_key SYS_init_module SYS_finit_module
        SYS_delete_module SYS_kexec_load SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_quotactl_fd
        SYS_syslog SYS_settimeofday SYS_clock_settime SYS_adjtimex SYS_clock_adjtime SYS_sethostname SYS_setdomainname
        SYS_vhangup SYS_nfsservctl SYS_lookup_dcookie SYS_personality SYS_mknodat SYS_fchmod SYS_fchmodat SYS_mkdirat
        SYS_openat SYS_openat2 SYS_socket SYS_socketpair SYS_ioctl);
    #[cfg(target_arch = "x86_64")]
    same!(SYS_iopl SYS_ioperm SYS_modify_ldt SYS_uselib SYS_sysfs SYS__sysctl SYS_mknod SYS_chmod SYS_creat SYS_mkdir
        SYS_open SYS_kexec_file_load);
}

#[test]
fn the_table_is_the_reviewed_one() {
    let mut table = String::new();
    for rule in rules(&NO_UNIX) {
        let names: Vec<String> = rule
            .calls
            .iter()
            .map(|call| {
                let numbers =
                    MACHINES.map(|machine| call.number(machine).map_or("-".to_owned(), |number| number.to_string()));
                format!("{}({})", call.name, numbers.join("/"))
            })
            .collect();
        writeln!(
            table,
            "{}\n  {:x?} -> {}: {}",
            names.join(" "),
            rule.when,
            rule.errno,
            rule.reason
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}
