//! The bodies of the fuzz targets: each takes bytes that an adversary chose and fails by panicking.
//!
//! libFuzzer calls them from `fuzz/fuzz_targets`; every `cargo test` calls them over `corpus/` and a bounded number of
//! mutations (`tests/smoke.rs`), so that a stable toolchain is enough to keep them alive.
#![forbid(unsafe_code)]

mod http;
mod names;
mod paths;
mod policy;
mod streams;
mod wire;

/// What a target does with its bytes: nothing, or a panic.
pub type Body = fn(&[u8]);

/// A target by the name of its corpus folder and of its libFuzzer program.
pub const TARGETS: [(&str, Body); 13] = [
    ("authority", names::authority),
    ("chunked", http::chunked),
    ("client_hello", streams::client_hello),
    ("glob", paths::glob),
    ("guest_message", wire::guest_message),
    ("http_request", http::request),
    ("http_response", http::response),
    ("network_rule", names::network_rule),
    ("path_rule", paths::path_rule),
    ("plan", wire::plan),
    ("policy_file", policy::policy_file),
    ("settings_file", policy::settings_file),
    ("socks", streams::socks),
];

/// Runs the target of that name.
///
/// # Panics
///
/// When there is no such target, or when the bytes break what the target promises.
pub fn run(name: &str, bytes: &[u8]) {
    match TARGETS.iter().find(|(each, _)| *each == name) {
        Some((_, body)) => body(bytes),
        None => panic!("there is no fuzz target {name}"),
    }
}
