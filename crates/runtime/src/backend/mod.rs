//! What a sandbox's wall is made of. So far there is one: a process tree.

pub mod process;
