//! What a sandbox's walls are made of, as data: computed on the host, carried out by the guest.
//!
//! Paths are bytes. Sources are absolute on the host, targets absolute inside; neither contains `.`, `..` or a symlink.

use serde::{Deserialize, Serialize};

/// A path as bytes; never holds NUL.
pub type RawPath = serde_bytes::ByteBuf;

/// Raised with every change of [`Plan`]; a guest refuses a plan of another version.
pub const VERSION: u16 = 1;

/// Everything the guest needs to build the walls and to prove them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u16,
    pub hostname: String,
    /// Where the new root is put together: a folder that exists on the host and that the sandbox will not see.
    pub scaffold: RawPath,
    /// The view, in the order it has to be built.
    pub view: Vec<Step>,
    /// Paths inside to which landlock grants access; everything else is denied.
    pub grants: Vec<Grant>,
    /// The seccomp program of every command.
    pub filter: Vec<Instruction>,
    /// Loopback ports of the proxy's listeners; none means no network at all.
    pub network: Option<Listeners>,
    pub rlimits: Rlimits,
    pub proof: Proof,
}

/// Ports below 1024 on 127.0.0.1: nothing inside may bind such a port, so a listener cannot be imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listeners {
    pub http: u16,
    pub socks: u16,
}

/// One step of building the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Makes a folder and its missing parents.
    Dir {
        path: RawPath,
        mode: u32,
    },
    /// Makes a file; where the host has one of that name, covers it.
    File {
        path: RawPath,
        mode: u32,
        content: serde_bytes::ByteBuf,
    },
    /// Makes an empty file where there is none: a mount point.
    EmptyFile {
        path: RawPath,
    },
    Symlink {
        path: RawPath,
        target: RawPath,
    },
    /// A new tmpfs, `nosuid,nodev`.
    Tmpfs {
        path: RawPath,
        mode: u32,
        size: u64,
        inodes: u64,
    },
    /// A recursive clone of a host path, with `nosuid,nodev` on the whole tree. The target exists.
    Bind {
        source: RawPath,
        target: RawPath,
        access: Access,
        node: Node,
    },
    /// Clones a path of the view as built so far onto itself (or elsewhere in the view).
    Rebind {
        source: RawPath,
        target: RawPath,
        access: Access,
        node: Node,
    },
    /// Covers a folder with an empty one that cannot be written, a file with one that cannot be opened.
    Mask {
        target: RawPath,
        node: Node,
    },
    /// Reads come from `lower`, writes land in `upper`.
    Overlay {
        lower: RawPath,
        upper: RawPath,
        work: RawPath,
        target: RawPath,
    },
    /// A new procfs with its host-wide parts read-only or masked.
    Proc {
        path: RawPath,
    },
    /// A new devpts instance.
    Devpts {
        path: RawPath,
    },
    /// A device node of the host.
    Device {
        source: RawPath,
        target: RawPath,
    },
    /// Makes a mount of the view read-only; its submounts stay as they are.
    Seal {
        path: RawPath,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    Dir,
    File,
    /// The link itself is covered, not where it leads.
    Symlink,
}

/// A landlock rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub path: RawPath,
    pub access: GrantAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantAccess {
    /// Read files and folders, execute.
    Read,
    /// Everything.
    Write,
    /// Read and write existing files and devices, no new names.
    Use,
}

/// One instruction of a classic BPF program (`struct sock_filter`, linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Limits that the kernel holds per process or per user namespace; none leaves the caller's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    pub processes: Option<u64>,
}

/// What the self-test of a start looks at, inside the finished walls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Can be opened for reading: the positive control.
    pub readable: RawPath,
    /// A name that cannot be created because of the mount view.
    pub read_only: RawPath,
    /// A name on a writable mount that only landlock keeps from being created.
    pub landlocked: RawPath,
    /// A path that cannot be opened, if the policy hides one.
    pub hidden: Option<RawPath>,
    /// A path that can be neither written nor moved, if one is protected.
    pub protected: Option<RawPath>,
    pub extent: Extent,
}

/// How much the self-test looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// What a start has time for.
    #[default]
    Start,
    /// Everything. Each check writes a [`Finding`](crate::wire::Finding) to standard output, and no command is executed.
    Full(Trial),
}

/// What a full self-test has to play with: a workspace of its own, made for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// A writable folder.
    pub workspace: RawPath,
    /// A protected file, a protected folder, and a protected name that does not exist, all in the workspace.
    pub protected_file: RawPath,
    pub protected_folder: RawPath,
    pub absent: RawPath,
    /// A file in the workspace that the policy hides.
    pub hidden: RawPath,
    /// A folder with a private layer over it and one file in it, where layers are tested.
    pub layered: Option<RawPath>,
}
