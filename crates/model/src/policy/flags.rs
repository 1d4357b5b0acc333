//! From the flags of a command line to a layer.

use super::entry::Fault;
use super::error::{PolicyError, harmless_text};
use super::path::Base;
use super::{Authority, Layer, PathAccess, quantity};
use crate::origin::Origin;

/// The policy flags as given, not yet judged. Paths are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub profile: Vec<String>,
    pub read: Vec<Vec<u8>>,
    pub write: Vec<Vec<u8>>,
    pub hide: Vec<Vec<u8>>,
    pub readonly: Vec<Vec<u8>>,
    pub lift: Vec<String>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub allow_all: bool,
    /// `NAME` passes the caller's value, `NAME=VALUE` sets one.
    pub env: Vec<String>,
    pub memory: Option<String>,
    pub cpus: Option<String>,
    pub pids: Option<String>,
    pub timeout: Option<String>,
}

impl Layer {
    /// Judges the flags. Relative paths are relative to `base.folder`, the working directory.
    ///
    /// # Errors
    /// The first flag that is not exactly understood, by name.
    pub fn from_flags(flags: &Flags, base: &Base) -> Result<Self, PolicyError> {
        let mut layer = Self::new(Authority::Override);
        each("--profile", &flags.profile, |name, origin| {
            layer.add_profile(name, origin)
        })?;
        for (flag, access, paths) in [
            ("--read", PathAccess::Read, &flags.read),
            ("--write", PathAccess::Write, &flags.write),
            ("--hide", PathAccess::Hide, &flags.hide),
            ("--readonly", PathAccess::ReadOnly, &flags.readonly),
        ] {
            each(flag, paths, |path, origin| {
                layer.add_path(access, path, None, base, origin)
            })?;
        }
        each("--lift", &flags.lift, |name, origin| layer.add_lift(name, origin))?;
        each("--allow", &flags.allow, |text, origin| {
            layer.add_allow(text, None, origin)
        })?;
        each("--deny", &flags.deny, |text, origin| layer.add_deny(text, None, origin))?;
        if flags.allow_all {
            layer.network.allow_all = Some(Origin::flag("--allow-all"));
        }
        each("--env", &flags.env, |text, origin| match text.split_once('=') {
            Some((name, value)) => layer.add_set(name, value, origin),
            None => layer.add_pass(text, origin),
        })?;
        each("--memory", &flags.memory, |text, origin| {
            layer.set_memory(quantity::size(text), origin)
        })?;
        each("--cpus", &flags.cpus, |text, origin| {
            layer.set_cpus(quantity::cpus(text), origin)
        })?;
        each("--pids", &flags.pids, |text, origin| {
            layer.set_pids(quantity::pids(text), origin)
        })?;
        each("--timeout", &flags.timeout, |text, origin| {
            layer.set_timeout(quantity::duration(text), origin)
        })?;
        if let Some((origin, fault)) = layer.contradiction() {
            let Origin::Flag { flag } = origin else {
                unreachable!("every entry above has a flag as its origin")
            };
            return Err(flag_error(flag, fault));
        }
        Ok(layer)
    }
}

fn each<'a, T: 'a>(
    flag: &str,
    values: impl IntoIterator<Item = &'a T>,
    mut add: impl FnMut(&'a T, Origin) -> Result<(), Fault>,
) -> Result<(), PolicyError> {
    values
        .into_iter()
        .try_for_each(|value| add(value, Origin::flag(flag)).map_err(|fault| flag_error(flag, fault)))
}

fn flag_error(flag: &str, fault: Fault) -> PolicyError {
    PolicyError::Flag {
        flag: flag.to_owned(),
        message: harmless_text(&fault.message),
        hint: harmless_text(&fault.hint),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn base() -> Base {
        Base {
            folder: PathBuf::from("/w/app"),
            home: Some(PathBuf::from("/home/me")),
        }
    }

    #[test]
    fn a_flag_that_is_wrong_is_named_with_the_next_step() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let paths = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        let table = [
            (
                Flags {
                    allow: texts(&["a.example.com", "*.com"]),
                    ..Flags::default()
                },
                "the rule '*.com' would allow every .com host   (command line, --allow)",
                "name the hosts, or say allow_all = true in your own configuration",
            ),
            (
                Flags {
                    allow: texts(&["*"]),
                    ..Flags::default()
                },
                "the rule '*' would allow every host   (command line, --allow)",
                "name the hosts, or say allow_all = true in your own configuration",
            ),
            (
                Flags {
                    lift: texts(&["git-hook"]),
                    ..Flags::default()
                },
                "'git-hook' is not a group of protected paths   (command line, --lift)",
                "did you mean 'git-hooks'?",
            ),
            (
                Flags {
                    lift: texts(&["pinfold"]),
                    ..Flags::default()
                },
                "the protection of 'pinfold' cannot be lifted: Pinfold's own policy and state decide what a sandbox may do   (command line, --lift)",
                "change these files outside the sandbox",
            ),
            (
                Flags {
                    memory: Some("lots".to_owned()),
                    ..Flags::default()
                },
                "'lots' is not a size   (command line, --memory)",
                "write a number with a unit, such as \"4GiB\" or \"512MB\", or a number of bytes",
            ),
            (
                Flags {
                    timeout: Some("90".to_owned()),
                    ..Flags::default()
                },
                "'90' is not a duration   (command line, --timeout)",
                "write a number with a unit, such as \"90s\", \"15m\", \"2h\" or \"1h30m\"",
            ),
            (
                Flags {
                    env: texts(&["1X=2"]),
                    ..Flags::default()
                },
                "'1X' is not a variable's name   (command line, --env)",
                "a name has letters, digits and '_', and does not start with a digit; name each variable",
            ),
            (
                Flags {
                    write: paths(&["./x"]),
                    hide: paths(&["x/"]),
                    ..Flags::default()
                },
                "'/w/app/x' is both writable (write) and hidden (hide)   (command line, --hide)",
                "keep one of the two; the other is command line, --write",
            ),
            (
                Flags {
                    allow: texts(&["a.example.com"]),
                    deny: texts(&["A.example.com"]),
                    ..Flags::default()
                },
                "'a.example.com' is both allowed and denied   (command line, --allow)",
                "keep one of the two; the other is command line, --deny",
            ),
            (
                Flags {
                    profile: texts(&["../x"]),
                    ..Flags::default()
                },
                "'../x' is not a profile's name   (command line, --profile)",
                "a name has letters, digits, '-', '_' and '.', and starts with a letter or digit; a file is given with --config",
            ),
        ];
        for (flags, message, hint) in table {
            let error = Layer::from_flags(&flags, &base()).expect_err(message);
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint(), hint, "{message}");
        }
    }

    #[test]
    fn a_path_of_any_bytes_can_be_given() {
        let flags = Flags {
            hide: vec![b"a\xff".to_vec()],
            ..Flags::default()
        };
        let layer = Layer::from_flags(&flags, &base()).expect("valid");
        assert_eq!(layer.filesystem[0].path.to_text(), r"/w/app/a\xff");
    }
}
