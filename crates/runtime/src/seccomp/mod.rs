//! The system-call filter of every command: a policy table and its compiler to a classic BPF program.
//!
//! Owns which calls are refused, on which arguments, with which error and why ([`rules`]), and the program the kernel
//! runs for that. Everything here is pure: the guest installs the program, this module never touches the kernel.
//!
//! The filter is the second layer behind the namespaces and the mount view. It refuses what would widen them, what
//! reaches other processes or the host as a whole, and rarely used kernel surface. It decides on register values only:
//! an argument that lies in memory cannot be trusted, so a call whose meaning lies there (`clone3`, `openat2`) is
//! reported as missing and its callers fall back to the older call.
//!
//! A call that is allowed whatever its arguments are reaches its `RET` after comparing nothing but architecture and
//! number, so that the kernel (5.11 and later) answers it from a bitmap without running the program.

mod compile;
mod refused;
mod rule;
mod rules;
#[cfg(test)]
mod tests;

use pinfold_model::plan::Instruction;

pub use refused::{Refused, name, refused};
pub use rule::{Call, Condition, Rule};
pub use rules::rules;

/// What a policy can change about the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterOptions {
    pub unix_sockets: UnixSockets,
}

/// Whether the command may make `AF_UNIX` sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnixSockets {
    #[default]
    Allowed,
    /// None that can reach a name. Connected stream pairs stay: runtimes start child processes with them, and the
    /// kernel does not let such a pair connect anywhere else.
    Denied,
}

/// A machine the filter can be compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// The one this program was built for; none where Pinfold has no table.
    pub const NATIVE: Option<Self> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
        Some(Self::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Self::Aarch64)
    } else {
        None
    };

    /// `AUDIT_ARCH_*` of linux/audit.h, as `seccomp_data.arch` holds it.
    pub(crate) const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

/// The program for the machine this runs on.
#[must_use]
pub fn program(options: &FilterOptions) -> Vec<Instruction> {
    const NATIVE: Architecture = match Architecture::NATIVE {
        Some(architecture) => architecture,
        None => panic!("the seccomp table knows x86_64 and aarch64 only"),
    };
    program_for(NATIVE, options)
}

/// The program for a machine of `architecture`.
#[must_use]
pub fn program_for(architecture: Architecture, options: &FilterOptions) -> Vec<Instruction> {
    compile::compile(architecture, rules(options))
}
