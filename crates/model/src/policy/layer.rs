//! What one policy source says, before sources are merged.
//!
//! A layer is already parsed: paths are absolute, hosts canonical, every entry knows its origin. It owns no decision; what a
//! source of its authority may say is judged by [`merge`](super::merge()).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{EnvironmentPolicy, Lift, Limit, Limits, PathRule};
use crate::net::NetworkPolicy;
use crate::origin::Origin;

/// How far a source is obeyed when sources are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A file of the workspace that the person has not trusted: a rule that would loosen anything stops the merge.
    TightenOnly,
    /// The user's file, a profile, imported settings, a trusted workspace file: may permit; of two limits the stricter holds.
    Full,
    /// The command line: its limits replace those of every file, in both directions.
    Override,
}

/// What one source says. Public fields, so that importers of other formats can fill it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub authority: Authority,
    /// Names of the profiles that the source asks for; loading them is the caller's work.
    pub profiles: Vec<(String, Origin)>,
    pub filesystem: Vec<PathRule>,
    pub lift: Vec<Lift>,
    pub scan_depth: Option<Limit<u8>>,
    pub deny_unix_sockets: Option<Origin>,
    pub network: NetworkPolicy,
    pub environment: EnvironmentPolicy,
    pub limits: Limits,
    pub git_safe_directories: Vec<(PathBuf, Origin)>,
    pub quiet_denials: BTreeMap<String, Vec<String>>,
    /// Where `quiet_denials` stands, if it says anything.
    pub quiet_origin: Option<Origin>,
}

impl Layer {
    /// A layer that says nothing.
    #[must_use]
    pub fn new(authority: Authority) -> Self {
        Self {
            authority,
            profiles: Vec::new(),
            filesystem: Vec::new(),
            lift: Vec::new(),
            scan_depth: None,
            deny_unix_sockets: None,
            network: NetworkPolicy::default(),
            environment: EnvironmentPolicy::default(),
            limits: Limits::default(),
            git_safe_directories: Vec::new(),
            quiet_denials: BTreeMap::new(),
            quiet_origin: None,
        }
    }
}
