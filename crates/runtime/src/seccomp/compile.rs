//! Compiles rules to classic BPF: one binary search over the call numbers, then the argument tests of the call.
//!
//! The program is built from its end, because jumps only lead forward: every target exists, with a known place, before
//! the jump to it is written.

use pinfold_model::plan::Instruction;

use super::rules::NEWEST;
use super::{Architecture, Condition, Rule};

// linux/bpf_common.h: class, size or operation, mode or source.
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_BITS: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;
pub(super) const JUMP: u16 = 0x05;

// linux/seccomp.h: the actions.
pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const ERRNO: u32 = 0x0005_0000;
pub(super) const KILL_PROCESS: u32 = 0x8000_0000;

// Byte offsets in `struct seccomp_data`; both machines are little-endian.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Instructions that a conditional jump can be sure to reach, with room for the two that [`Assembler::reach`] may add.
const REACH: usize = 250;

pub(super) fn compile(architecture: Architecture, rules: impl Iterator<Item = &'static Rule>) -> Vec<Instruction> {
    let mut rows: Vec<(u32, &Rule)> = Vec::with_capacity(160);
    for rule in rules {
        rows.extend(
            rule.calls
                .iter()
                .filter_map(|call| Some((call.number(architecture)?, rule))),
        );
    }
    // Stable: rows of one call keep the order of the table.
    rows.sort_by_key(|(number, _)| *number);

    let mut assembler = Assembler {
        backwards: Vec::with_capacity(320),
        returns: Vec::with_capacity(16),
    };
    let ranges = ranges(&mut assembler, &rows);
    let search = assembler.search(&ranges);
    let start = assembler.load(NUMBER, search);
    let start = assembler.jump(JUMP_EQUAL, architecture.audit(), start, Target::Return(KILL_PROCESS));
    assembler.load(ARCHITECTURE, start);
    assembler.backwards.reverse();
    assembler.backwards
}

/// Where control goes next: an answer, or the instruction at this place counted from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Return(u32),
    Place(usize),
}

/// The call numbers from `first` up to the next range all go to `target`.
struct Range {
    first: u32,
    target: Target,
}

fn ranges(assembler: &mut Assembler, rows: &[(u32, &Rule)]) -> Vec<Range> {
    let mut ranges: Vec<Range> = vec![Range {
        first: 0,
        target: Target::Return(ALLOW),
    }];
    for group in rows.chunk_by(|left, right| left.0 == right.0) {
        let number = group[0].0;
        let mut target = Target::Return(ALLOW);
        for (_, rule) in group.iter().rev() {
            target = assembler.test(&rule.when, Target::Return(ERRNO | u32::from(rule.errno)), target);
        }
        extend(&mut ranges, number, target);
        extend(&mut ranges, number + 1, Target::Return(ALLOW));
    }
    extend(&mut ranges, NEWEST + 1, Target::Return(ERRNO | libc::ENOSYS as u32));
    ranges
}

fn extend(ranges: &mut Vec<Range>, first: u32, target: Target) {
    if ranges.last().is_some_and(|last| last.first == first) {
        ranges.pop();
    }
    if ranges.last().is_none_or(|last| last.target != target) {
        ranges.push(Range { first, target });
    }
}

struct Assembler {
    /// The program, last instruction first.
    backwards: Vec<Instruction>,
    /// Answers already written, with their places, oldest first.
    returns: Vec<(u32, usize)>,
}

impl Assembler {
    /// Finds the range of the call number in the accumulator.
    fn search(&mut self, ranges: &[Range]) -> Target {
        match ranges {
            [] => Target::Return(KILL_PROCESS),
            [only] => only.target,
            _ => {
                let (lower, upper) = ranges.split_at(ranges.len() / 2);
                let above = self.search(upper);
                let below = self.search(lower);
                self.jump(JUMP_AT_LEAST, upper[0].first, above, below)
            }
        }
    }

    /// Goes to `yes` when the condition holds, else to `no`.
    fn test(&mut self, condition: &Condition, yes: Target, no: Target) -> Target {
        match *condition {
            Condition::Always => yes,
            Condition::Bits { argument, bits } => {
                let test = self.jump(JUMP_BITS, bits, yes, no);
                self.load(low_word(argument), test)
            }
            Condition::Among { argument, mask, values } => self.compare(argument, mask, values, yes, no),
            Condition::Outside { argument, mask, values } => self.compare(argument, mask, values, no, yes),
            Condition::Upper { argument } => {
                let test = self.jump(JUMP_EQUAL, 0, no, yes);
                self.load(low_word(argument) + 4, test)
            }
            Condition::Every(all) => all.iter().rev().fold(yes, |yes, one| self.test(one, yes, no)),
        }
    }

    fn compare(&mut self, argument: u8, mask: u32, values: &[u32], equal: Target, other: Target) -> Target {
        let mut next = other;
        for value in values.iter().rev() {
            next = self.jump(JUMP_EQUAL, *value, equal, next);
        }
        if mask != u32::MAX {
            next = self.before(
                Instruction {
                    code: AND,
                    jt: 0,
                    jf: 0,
                    k: mask,
                },
                next,
            );
        }
        self.load(low_word(argument), next)
    }

    fn load(&mut self, offset: u32, next: Target) -> Target {
        self.before(
            Instruction {
                code: LOAD_WORD,
                jt: 0,
                jf: 0,
                k: offset,
            },
            next,
        )
    }

    /// Writes an instruction that continues with `next`.
    fn before(&mut self, instruction: Instruction, next: Target) -> Target {
        let distance = self.place(next, usize::MAX);
        if distance > 0 {
            self.push(Instruction {
                code: JUMP,
                jt: 0,
                jf: 0,
                k: offset(distance),
            });
        }
        self.push(instruction)
    }

    fn jump(&mut self, code: u16, k: u32, yes: Target, no: Target) -> Target {
        let yes = self.reach(yes);
        let no = self.reach(no);
        let (jt, jf) = (self.place(yes, REACH + 2), self.place(no, REACH + 2));
        self.push(Instruction {
            code,
            jt: short(jt),
            jf: short(jf),
            k,
        })
    }

    /// A place with the same effect as `target` that a conditional jump written next can reach.
    fn reach(&mut self, target: Target) -> Target {
        match target {
            Target::Place(place) if self.backwards.len() - place > REACH => {
                let distance = self.backwards.len() - place - 1;
                self.push(Instruction {
                    code: JUMP,
                    jt: 0,
                    jf: 0,
                    k: offset(distance),
                })
            }
            Target::Place(_) => target,
            Target::Return(_) => {
                let distance = self.place(target, REACH);
                Target::Place(self.backwards.len() - 1 - distance)
            }
        }
    }

    /// How many instructions lie between the one written next and `target`; an answer that is not within `limit` is
    /// written anew.
    fn place(&mut self, target: Target, limit: usize) -> usize {
        let place = match target {
            Target::Place(place) => place,
            Target::Return(value) => {
                let length = self.backwards.len();
                let near = self
                    .returns
                    .iter()
                    .rev()
                    .find(|(known, place)| *known == value && length - place <= limit);
                match near {
                    Some((_, place)) => *place,
                    None => {
                        self.returns.push((value, length));
                        self.push(Instruction {
                            code: RETURN,
                            jt: 0,
                            jf: 0,
                            k: value,
                        });
                        length
                    }
                }
            }
        };
        self.backwards.len() - 1 - place
    }

    fn push(&mut self, instruction: Instruction) -> Target {
        self.backwards.push(instruction);
        Target::Place(self.backwards.len() - 1)
    }
}

fn low_word(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

fn short(distance: usize) -> u8 {
    u8::try_from(distance).expect("a jump target was brought within REACH, which is below 256, just before")
}

fn offset(distance: usize) -> u32 {
    u32::try_from(distance).expect("the program has fewer than 4096 instructions, the kernel's limit")
}
