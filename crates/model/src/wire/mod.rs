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
pub const MAX_FRAME: usize = 192 * 1024;

/// Descriptors that one frame may carry.
pub const MAX_DESCRIPTORS: usize = 16;

/// From the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostMessage {
    /// First frame. Descriptors: the plan (a sealed memory file), then `held` descriptors that the guest keeps open for
    /// as long as it lives (locks).
    Hello { protocol: u16, held: u8 },
    /// Start the command. Descriptors: those of [`Stdio::Passed`], in the order stdin, stdout, stderr.
    Spawn(Spawn),
    /// Send a signal to the command's process group.
    Signal { number: i32 },
    /// Continue a command that was reported as stopped.
    Continue,
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
    /// The main command stopped (`SIGTSTP` and the like).
    Stopped { signal: i32 },
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
    pub command: String,
}
