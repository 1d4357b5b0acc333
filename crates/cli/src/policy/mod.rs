//! Where policies come from: the user's file, profiles, the workspace's file and what is trusted of it, flags.
//!
//! Owns reading them safely and in the right order. What they mean, and how they combine, is the model's.

mod error;
mod flags;
mod folders;
mod judge_path;
mod load;
mod profiles;
mod project;
mod read;
mod settings;
mod trust;

pub(crate) use error::LoadError;
pub(crate) use flags::{Loaded, PolicyArgs};
pub(crate) use folders::Folders;
pub(crate) use judge_path::{Ground, Obstacle, PathAnswer, judge_path};
pub(crate) use load::before_project;
use load::{Sources, load};
pub(crate) use project::{FILE_NAME, Project};
pub(crate) use trust::TrustStore;
