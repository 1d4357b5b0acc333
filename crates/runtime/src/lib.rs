//! Plans, provisions, drives and tears down sandboxes: the library that embedders use.
//!
//! It never touches the terminal, the home folder or environment variables: its callers read those and pass values.
#![forbid(unsafe_code)]

pub mod backend;
pub mod cgroup;
pub mod diagnose;
pub mod doctor;
pub mod environment;
pub mod host;
pub mod plan;
pub mod prepare;
pub mod protect;
pub mod resolve;
pub mod seccomp;
pub mod state;
pub mod toolchains;

pub use pinfold_proxy as proxy;
pub use pinfold_sys::signal;
