//! What a Pinfold host keeps about its sandboxes.
//!
//! [`audit`] is the append-only record of every decision. Paths are passed in: nothing here reads the environment or
//! writes to the terminal.
#![forbid(unsafe_code)]

pub mod audit;
