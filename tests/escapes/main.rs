//! Known ways out of sandboxes of this kind, each tried from inside a real `pinfold run`.
//!
//! A test states the attack in its name, makes a workspace and a home of its own in a temporary folder, runs the attack, and
//! checks two things: that it fails with the error that it should, and that the host is as it was. The attacks are small
//! programs for python3, sh and git; without python3 the suite fails. `docs/escapes.md` maps the requirements to the tests.
//!
//! The suite runs as root and as an ordinary user, and needs nothing but the built binary and a folder for temporary files.

mod absent_paths;
mod attack;
mod case;
mod descriptors;
mod environment;
mod filesystem;
mod guest;
mod host_replacement;
mod identity;
mod leftovers;
mod links;
mod many_rules;
mod network;
mod outcome;
mod policy_scopes;
mod proc_dev_sys;
mod protected_paths;
mod repositories;
mod rootfs;
mod rules;
mod seccomp_calls;
mod snapshot;
mod sockets;
mod startup;
mod terminal;
