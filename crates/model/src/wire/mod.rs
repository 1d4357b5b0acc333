//! Messages between the host and the guest.
//!
//! A frame is one `SOCK_SEQPACKET` message of at most [`MAX_FRAME`] bytes: a postcard-encoded [`HostMessage`] or
//! [`GuestMessage`]. Descriptors travel beside the frame and are named by their order. The first frame of each side
//! carries [`PROTOCOL`]; a peer of another version is refused.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Raised with every incompatible change.
pub const PROTOCOL: u16 = 1;

/// Bytes of the largest frame either side accepts.
pub const MAX_FRAME: usize = 64 * 1024;

/// Refusals that a guest names, of paths that are missing and of everything else each.
pub const MAX_REFUSALS: usize = 2000;

/// Descriptors that one frame may carry.
pub const MAX_DESCRIPTORS: usize = 16;

/// From the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostMessage {
    /// First frame. Descriptors: the plan (a sealed memory file), then `held` descriptors that the guest keeps open for
    /// as long as it lives (locks).
    Hello { protocol: u16, held: u8 },
    /// Start the command. Descriptors: a sealed memory file with the [`Spawn`] (arguments and variables may be larger than a
    /// frame), then those of [`Stdio::Passed`] in the order stdin, stdout, stderr.
    Spawn,
    /// Send a signal to the command's process group.
    Signal { number: i32 },
    /// Stop every process inside, since the host is about to stop itself; answered by [`GuestMessage::Frozen`].
    Freeze,
    /// Continue a command that was reported as stopped, and whatever [`HostMessage::Freeze`] stopped.
    Continue,
    /// Look whether every cover is in place, and make again what is not.
    RestoreCovers,
}

/// From the guest; hostile once a command has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestMessage {
    /// The walls stand. Descriptors: the proxy's listeners (HTTP, then SOCKS) when the plan has a network.
    Ready { protocol: u16 },
    /// A step of setting up failed; nothing was started.
    SetupFailed(Failure),
    /// The command runs. Descriptors: the pty's master when a terminal was asked for.
    Started,
    /// The command could not be executed.
    NotExecuted { errno: i32, what: ByteBuf },
    /// The host replaced a protected file; its cover was made again.
    CoverRestored { path: ByteBuf },
    /// The main command stopped (`SIGTSTP` and the like).
    Stopped { signal: i32 },
    /// Every process inside is stopped.
    Frozen,
    /// The main command ended.
    Exited(Exit),
    /// The kernel refused a call of the command; only with `explain`.
    Refused(Refusal),
}

/// How the command is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// At least one entry.
    pub argv: Vec<ByteBuf>,
    /// `NAME=value` entries, complete.
    pub env: Vec<ByteBuf>,
    pub cwd: ByteBuf,
    pub stdio: [Stdio; 3],
    /// Window size when a terminal is used: rows, columns.
    pub terminal: Option<(u16, u16)>,
    /// Trace the command and report refused calls; slow.
    pub explain: bool,
}

/// Where one of the three standard streams comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// `/dev/null`.
    Null,
    /// The next descriptor of the frame.
    Passed,
    /// The sandbox's own terminal.
    Terminal,
}

/// Why setting up failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub layer: Layer,
    /// What was done, in words, such as `mount /proc`.
    pub step: String,
    /// The kernel's error number, or 0.
    pub errno: i32,
}

/// The layer of the walls that a failure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layer {
    Protocol,
    Namespaces,
    Mounts,
    Proc,
    Network,
    Landlock,
    Seccomp,
    Capabilities,
    Limits,
    Terminal,
    /// The self-test found a wall that does not hold.
    Proof,
    /// Watching the command's system calls, as `explain` asks for.
    Trace,
}

/// One check of a full self-test, as a line of text: three fields, or four, with tabs between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is checked: a part of the walls.
    pub part: String,
    pub check: String,
    /// Why it failed; none when it held.
    pub failure: Option<String>,
}

impl Finding {
    /// The line, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let plain = |text: &str| text.replace(['\t', '\n'], " ");
        let (part, check) = (plain(&self.part), plain(&self.check));
        match &self.failure {
            None => format!("held\t{part}\t{check}"),
            Some(why) => format!("failed\t{part}\t{check}\t{}", plain(why)),
        }
    }

    /// Reads a line; none when it is not one of these.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let (part, check, failure) = match fields.as_slice() {
            ["held", part, check] => (part, check, None),
            ["failed", part, check, why] => (part, check, Some((*why).to_owned())),
            _ => return None,
        };
        Some(Self {
            part: (*part).to_owned(),
            check: (*check).to_owned(),
            failure,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(u8),
    Signal(u8),
}

/// A call that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The system call's number on this architecture.
    pub call: u32,
    pub errno: i32,
    /// The absolute path it was about, where it was about one.
    pub path: Option<ByteBuf>,
    /// Whether the call would have changed something.
    pub write: bool,
    /// As the registers held them: what the system call filter decides on.
    pub arguments: [u64; 6],
    /// The name of the process, as the kernel has it; chosen by the process.
    pub command: String,
}
