//! `pinfold` as a person meets it: the pages of this folder, executed, and terminals.
#![forbid(unsafe_code)]

mod home;
mod job_control;
mod pages;
mod pty;
mod streams;
mod terminal;
