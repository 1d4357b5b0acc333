//! Judges the hostile bytes that leave a sandbox.
//!
//! It owns parsing, deciding, dialling and relaying; policy, listeners, resolver and log are handed in. It knows neither how
//! a sandbox is built nor where the log is kept, and it reads no environment variable, home folder or terminal.
#![forbid(unsafe_code)]
// A denial is a value that callers show as it is, and the way it takes is the cold one.
#![allow(clippy::result_large_err)]

pub mod egress;
