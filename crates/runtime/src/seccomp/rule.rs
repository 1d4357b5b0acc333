//! What a row of the table is made of.

use super::Architecture;

/// A system call by name, with its number on each machine; none where it does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Call {
    /// The call's number on `architecture`.
    #[must_use]
    pub fn number(&self, architecture: Architecture) -> Option<u32> {
        match architecture {
            Architecture::X86_64 => self.x86_64,
            Architecture::Aarch64 => self.aarch64,
        }
    }
}

/// When a rule refuses. Arguments count from 0; "word" is the low 32 bits, which is all the kernel looks at for
/// arguments of type `int`, `unsigned int` and `umode_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// One of `bits` is set in the argument's word.
    Bits {
        argument: u8,
        bits: u32,
    },
    /// The argument's word, under `mask`, is one of `values`.
    Among {
        argument: u8,
        mask: u32,
        values: &'static [u32],
    },
    /// The argument's word, under `mask`, is none of `values`.
    Outside {
        argument: u8,
        mask: u32,
        values: &'static [u32],
    },
    /// The upper 32 bits of the argument are not zero.
    Upper {
        argument: u8,
    },
    /// All of them hold.
    Every(&'static [Condition]),
}

impl Condition {
    /// Whether it holds for a call with these arguments. The compiled program decides the same.
    #[must_use]
    pub fn holds(&self, arguments: &[u64; 6]) -> bool {
        let argument = |number: u8| arguments.get(usize::from(number)).copied().unwrap_or(0);
        // The low 32 bits, which is what the mask keeps.
        let word = |number: u8| u32::try_from(argument(number) & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        match *self {
            Self::Always => true,
            Self::Bits { argument, bits } => word(argument) & bits != 0,
            Self::Among { argument, mask, values } => values.contains(&(word(argument) & mask)),
            Self::Outside { argument, mask, values } => !values.contains(&(word(argument) & mask)),
            Self::Upper { argument: number } => argument(number) >> 32 != 0,
            Self::Every(conditions) => conditions.iter().all(|condition| condition.holds(arguments)),
        }
    }
}

/// One row: `calls` fail with `errno` when `when` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub calls: &'static [Call],
    pub when: Condition,
    pub errno: u16,
    pub reason: &'static str,
}

/// A call that both machines have.
pub(super) const fn both(name: &'static str, x86_64: u32, aarch64: u32) -> Call {
    Call {
        name,
        x86_64: Some(x86_64),
        aarch64: Some(aarch64),
    }
}

/// A call that has had one number everywhere since Linux 5.1.
pub(super) const fn recent(name: &'static str, number: u32) -> Call {
    both(name, number, number)
}

/// A call of the older machine only.
pub(super) const fn x86(name: &'static str, number: u32) -> Call {
    Call {
        name,
        x86_64: Some(number),
        aarch64: None,
    }
}
