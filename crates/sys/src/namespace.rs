//! Starting the guest as the init of new namespaces (namespaces(7), clone(2)).

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

use crate::mount::{Extent, attribute, set_attributes};
use crate::{Errno, Result, capability, check, last_error};

/// The descriptor at which the guest finds its control socket.
pub const CONTROL: RawFd = 3;

/// What to start and as whom.
#[derive(Debug)]
pub struct Init<'a> {
    pub program: Program<'a>,
    pub control: BorrowedFd<'a>,
    /// `/dev/null`, which becomes the guest's own standard streams.
    pub null: BorrowedFd<'a>,
    pub name: &'a CStr,
    /// `gid gid 1`: the one line of the group map.
    pub gid_map: &'a [u8],
    /// `uid uid 1`: the one line of the user map.
    pub uid_map: &'a [u8],
}

/// Where the guest's program is. Either way nothing inside can change it (CVE-2019-5736).
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// A sealed memory file.
    Sealed(BorrowedFd<'a>),
    /// A file that is executed through a read-only mount of its own. It has to be the one with this device and inode number.
    Kept { path: &'a CStr, device: u64, inode: u64 },
}

/// A started guest.
#[derive(Debug)]
pub struct Started {
    pub pid: Pid,
    pub pidfd: OwnedFd,
    /// Says which step failed when the guest does not come up; closed without a word once it is executed.
    pub report: OwnedFd,
}

/// A step between clone and exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum InitStep {
    DenySetgroups = 1,
    MapUser,
    MapGroup,
    Unshare,
    NewSession,
    Descriptors,
    KeepCapabilities,
    MountProgram,
    Execute,
}

impl InitStep {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::DenySetgroups,
            Self::MapUser,
            Self::MapGroup,
            Self::Unshare,
            Self::NewSession,
            Self::Descriptors,
            Self::KeepCapabilities,
            Self::MountProgram,
            Self::Execute,
        ]
        .into_iter()
        .find(|step| *step as u8 == byte)
    }

    /// The step in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::DenySetgroups => "deny setgroups in the new user namespace",
            Self::MapUser => "map the user id into the new user namespace",
            Self::MapGroup => "map the group id into the new user namespace",
            Self::Unshare => "make mount, network, IPC and UTS namespaces",
            Self::NewSession => "start a new session",
            Self::Descriptors => "arrange the guest's descriptors",
            Self::KeepCapabilities => "keep the namespace's capabilities over exec",
            Self::MountProgram => "mount the guest's program read-only",
            Self::Execute => "execute the guest",
        }
    }
}

/// The namespaces that a process can only be born into, or that have to come first.
const AT_CLONE: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWPID;

/// The others, which take the kernel longer: the child makes them itself while the caller goes on.
const AT_UNSHARE: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Starts the guest as process 1 of new user, mount, PID, network, IPC and UTS namespaces. It keeps full capabilities in
/// them and none outside, has one id map, no other descriptors than its control socket, and a session of its own.
///
/// Safe to call in a program with threads: the child calls only async-signal-safe functions before exec.
///
/// # Errors
/// The error of clone3: `PERM` or `NOSPC` when user namespaces are refused. Later steps are reported through
/// [`read_report`].
pub fn start(init: &Init<'_>) -> Result<Started> {
    let (report_read, report_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // Out of the way of the descriptors that the child arranges.
    let report_write = rustix::io::fcntl_dupfd_cloexec(&report_write, CONTROL + 1)?;
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero clone_args is a valid value of that plain C struct.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from(AT_CLONE.cast_unsigned()) | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without CLONE_VM the child has its own copy of the memory, as after fork; `args` is valid for the size given.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const args,
            std::mem::size_of::<libc::clone_args>(),
        )
    })?;
    if pid == 0 {
        become_init(init, report_write.as_raw_fd());
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    // SAFETY: clone3 succeeded with CLONE_PIDFD, so the descriptor is new and ours.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Started {
        pid,
        pidfd,
        report: report_read,
    })
}

/// Which step of starting the guest failed, if one did. Blocks until the guest was executed or ended.
#[must_use]
pub fn read_report(report: &OwnedFd) -> Option<(InitStep, Errno)> {
    let mut bytes = [0_u8; 5];
    match rustix::io::read(report, &mut bytes) {
        Ok(5) => {
            let errno = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            Some((InitStep::from_byte(bytes[0])?, Errno::from_raw_os_error(errno)))
        }
        _ => None,
    }
}

/// Runs in the child. Only async-signal-safe calls, no allocation.
fn become_init(init: &Init<'_>, report: RawFd) -> ! {
    let (step, errno) = match try_become_init(init) {
        Ok(never) => match never {},
        Err(failed) => failed,
    };
    let mut bytes = [0_u8; 5];
    bytes[0] = step as u8;
    bytes[1..].copy_from_slice(&errno.raw_os_error().to_ne_bytes());
    // SAFETY: `bytes` is valid for reads of its length. A failed write leaves nothing to be done.
    unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(125) }
}

enum Never {}

fn try_become_init(init: &Init<'_>) -> std::result::Result<Never, (InitStep, Errno)> {
    fn step<T>(step: InitStep, result: Result<T>) -> std::result::Result<T, (InitStep, Errno)> {
        result.map_err(|errno| (step, errno))
    }
    step(InitStep::DenySetgroups, write_file(c"/proc/self/setgroups", b"deny"))?;
    step(InitStep::MapUser, write_file(c"/proc/self/uid_map", init.uid_map))?;
    step(InitStep::MapGroup, write_file(c"/proc/self/gid_map", init.gid_map))?;
    // SAFETY: unshare takes an integer; this child has one thread and shares nothing with the caller.
    step(InitStep::Unshare, check(unsafe { libc::unshare(AT_UNSHARE) }.into()))?;
    step(InitStep::NewSession, rustix::process::setsid().map(drop))?;
    let sealed = step(InitStep::Descriptors, arrange_descriptors(init))?;
    let program = match (sealed, init.program) {
        (Some(sealed), _) => sealed,
        (None, Program::Sealed(program)) => program.as_raw_fd(),
        (None, Program::Kept { path, device, inode }) => {
            step(InitStep::MountProgram, mount_program(path, device, inode))?
        }
    };
    step(InitStep::KeepCapabilities, capability::keep_over_exec())?;
    let argv = [init.name.as_ptr(), std::ptr::null()];
    let env: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: path and arrays are NULL-terminated and outlive the call; the descriptor is open.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program,
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    Err((InitStep::Execute, last_error()))
}

fn write_file(path: &CStr, content: &[u8]) -> Result<()> {
    // SAFETY: `path` is a C string.
    let fd = check(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }.into())?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::INVAL)?;
    // SAFETY: `content` is valid for reads of its length.
    let written = check(unsafe { libc::write(fd, content.as_ptr().cast(), content.len()) } as libc::c_long);
    // SAFETY: `fd` was opened above and is closed once.
    unsafe { libc::close(fd) };
    written.map(drop)
}

/// Standard streams on `/dev/null`, the control socket at [`CONTROL`], everything else closed at exec. Returns the descriptor
/// of a sealed program.
fn arrange_descriptors(init: &Init<'_>) -> Result<Option<RawFd>> {
    crate::descriptor::close_on_exec_from(3)?;
    // All move out of the way of 0 to 3 first.
    let control = duplicate_above(init.control.as_raw_fd())?;
    let sealed = match init.program {
        Program::Sealed(program) => Some(duplicate_above(program.as_raw_fd())?),
        Program::Kept { .. } => None,
    };
    let null = duplicate_above(init.null.as_raw_fd())?;
    for stream in 0..3 {
        duplicate_onto(null, stream)?;
    }
    duplicate_onto(control, CONTROL)?;
    Ok(sealed)
}

/// A descriptor of the program through a read-only mount of this mount namespace.
fn mount_program(path: &CStr, device: u64, inode: u64) -> Result<RawFd> {
    use rustix::mount::{OpenTreeFlags, open_tree};
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let mount = open_tree(rustix::fs::CWD, path, flags)?;
    let stat = rustix::fs::fstat(&mount)?;
    if (stat.st_dev, stat.st_ino) != (device, inode) {
        return Err(Errno::STALE);
    }
    let attributes = attribute::READ_ONLY | attribute::NO_SUID | attribute::NO_DEV;
    set_attributes(mount.as_fd(), Extent::ThisMount, attributes)?;
    Ok(mount.into_raw_fd())
}

/// A close-on-exec copy of `fd` above [`CONTROL`].
fn duplicate_above(fd: RawFd) -> Result<RawFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes plain integers.
    let copy = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, CONTROL + 1) }.into())?;
    RawFd::try_from(copy).map_err(|_| Errno::INVAL)
}

/// Makes `onto` a copy of `fd` that stays open at exec.
fn duplicate_onto(fd: RawFd, onto: RawFd) -> Result<()> {
    // SAFETY: dup2 takes plain integers; what `onto` was belongs to this child's own table.
    check(unsafe { libc::dup2(fd, onto) }.into()).map(drop)
}

/// The guest's control socket, taken over once at its start.
///
/// # Errors
/// There is no such descriptor: the program was not started as a guest.
pub fn take_control() -> Result<OwnedFd> {
    // SAFETY: F_SETFD takes plain integers and fails when the descriptor is not open.
    check(unsafe { libc::fcntl(CONTROL, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    // SAFETY: the descriptor is open and, by the contract of `start`, belongs to nobody else in this process.
    Ok(unsafe { OwnedFd::from_raw_fd(CONTROL) })
}

/// Makes the cgroups that this process is in the root of what it and its children see of cgroups (cgroup_namespaces(7)).
///
/// # Errors
/// `PERM` without `CAP_SYS_ADMIN` in the user namespace.
pub fn enter_cgroup_namespace() -> Result<()> {
    // SAFETY: unshare with this flag changes only what is shown of cgroups.
    check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }.into()).map(drop)
}
