//! Real programs inside a real `pinfold run`: the tools that people and agents work with have to work as they do outside.
//!
//! Each test has a home and a workspace of its own in a temporary folder. A program that is not installed is not tested and
//! said so; the suite itself needs sh and git. Registries are asked for by the tools' own configuration, and only where they
//! answer without a sandbox as well.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod desk;
mod documents;
mod git;
mod languages;
mod places;
mod registries;
mod settings;
mod toolchains;
