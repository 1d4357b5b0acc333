//! Names that look like they hold a credential: by default nothing passes them; passing one on purpose is worth a
//! warning.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use pinfold_model::origin::{Origin, Scope};
use pinfold_model::policy::EnvironmentPolicy;

/// Whole words of a name, between underscores.
const WORDS: &[&[u8]] = &[
    b"APIKEY",
    b"AUTH",
    b"COOKIE",
    b"CREDENTIAL",
    b"CREDENTIALS",
    b"CREDS",
    b"DSN",
    b"JWT",
    b"KEY",
    b"KEYS",
    b"PASS",
    b"PASSPHRASE",
    b"PASSWD",
    b"PASSWORD",
    b"PAT",
    b"SECRET",
    b"SECRETS",
    b"TOKEN",
    b"TOKENS",
];

/// Ends of a word that was written together, such as `PGPASSWORD` or `GITHUBTOKEN`.
const ENDINGS: &[&[u8]] = &[b"APIKEY", b"PASSWORD", b"PASSWD", b"SECRET", b"TOKEN"];

/// Whole names: sockets of agents that sign, files that hold credentials, addresses with a password inside.
const NAMES: &[&[u8]] = &[
    b"DATABASE_URL",
    b"DOCKER_HOST",
    b"KUBECONFIG",
    b"REDIS_URL",
    b"SSH_AUTH_SOCK",
];

/// Whether a variable of this name probably holds a credential. Case does not matter.
#[must_use]
pub fn looks_secret(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_uppercase();
    NAMES.contains(&name.as_slice())
        || name
            .split(|byte| *byte == b'_' || *byte == b'-')
            .any(|word| WORDS.contains(&word))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The credentials that an explicit `pass` carries into the sandbox, with the rule that does it.
pub fn passed_secrets<'p>(
    caller: &[(OsString, OsString)],
    policy: &'p EnvironmentPolicy,
) -> impl Iterator<Item = (&'p str, &'p Origin)> {
    policy
        .pass
        .iter()
        .filter(|(name, origin)| origin.scope() == Scope::Trusted && looks_secret(OsStr::new(name)))
        .filter(|(name, _)| {
            caller
                .iter()
                .any(|(set, value)| set == name.as_str() && !value.is_empty())
        })
        .filter(|(name, _)| !policy.deny.iter().any(|(denied, _)| denied == name))
        .map(|(name, origin)| (name.as_str(), origin))
}
