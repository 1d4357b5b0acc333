//! Adding one entry to a layer: the judgement that files and flags share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::path::{Base, PathFault};
use super::quantity::QuantityFault;
use super::spelling::closest;
use super::{Layer, Lift, Limit, PathAccess, PathPattern, PathRule};
use crate::net::{HostPattern, NetRule, PortRange, RuleError};
use crate::origin::Origin;
use crate::protected::Group;

/// What is wrong with one entry, without its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) hint: String,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl From<PathFault> for Fault {
    fn from(fault: PathFault) -> Self {
        Self::new(fault.to_string(), fault.hint())
    }
}

impl From<QuantityFault> for Fault {
    fn from(fault: QuantityFault) -> Self {
        Self::new(fault.to_string(), fault.hint())
    }
}

impl From<RuleError> for Fault {
    fn from(error: RuleError) -> Self {
        match &error {
            RuleError::PublicSuffix { text, suffix } => Self::new(
                format!("the rule '{text}' would allow every .{suffix} host"),
                "name the hosts, or say allow_all = true in your own configuration",
            ),
            RuleError::EveryHost { text } => Self::new(
                format!("the rule '{text}' would allow every host"),
                "name the hosts, or say allow_all = true in your own configuration",
            ),
            _ => Self::new(error.to_string().trim_end_matches('.'), error.hint()),
        }
    }
}

impl Layer {
    pub(super) fn add_path(
        &mut self,
        access: PathAccess,
        text: &[u8],
        reason: Option<String>,
        base: &Base,
        origin: Origin,
    ) -> Result<(), Fault> {
        let path = PathPattern::parse(text, base)?;
        self.filesystem.push(PathRule {
            access,
            path,
            reason,
            origin,
        });
        Ok(())
    }

    pub(super) fn add_allow(&mut self, text: &str, reason: Option<String>, origin: Origin) -> Result<(), Fault> {
        self.network.allow.push(NetRule::parse_allow(text, reason, origin)?);
        Ok(())
    }

    pub(super) fn add_deny(&mut self, text: &str, reason: Option<String>, origin: Origin) -> Result<(), Fault> {
        self.network.deny.push(NetRule::parse_deny(text, reason, origin)?);
        Ok(())
    }

    pub(super) fn add_refused_address(&mut self, text: &str, origin: Origin) -> Result<(), Fault> {
        let network = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let network = network.map_err(|_| {
            Fault::new(
                format!("'{text}' is not an address or a range"),
                "write an address such as 10.1.2.3, or a range such as 10.0.0.0/8 or fd00::/8",
            )
        })?;
        if network.addr() != network.network() {
            return Err(Fault::new(
                format!("'{text}' has bits set below its prefix"),
                format!("write \"{}\"", network.trunc()),
            ));
        }
        self.network.refused_addresses.push((network, origin));
        Ok(())
    }

    pub(super) fn add_lift(&mut self, name: &str, origin: Origin) -> Result<(), Fault> {
        let names = || {
            Group::all()
                .iter()
                .filter(|group| group.may_be_lifted())
                .map(|group| group.name())
        };
        let group = Group::parse(name).map_err(|_| {
            let hint = closest(name, names()).map_or_else(
                || format!("the groups are {}", names().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean '{near}'?"),
            );
            Fault::new(format!("'{name}' is not a group of protected paths"), hint)
        })?;
        if !group.may_be_lifted() {
            return Err(Fault::new(
                format!(
                    "the protection of '{}' cannot be lifted: {}",
                    group.name(),
                    group.reason().trim_end_matches('.')
                ),
                "change these files outside the sandbox",
            ));
        }
        self.lift.push(Lift { group, origin });
        Ok(())
    }

    pub(super) fn add_pass(&mut self, name: &str, origin: Origin) -> Result<(), Fault> {
        variable_name(name)?;
        self.environment.pass.push((name.to_owned(), origin));
        Ok(())
    }

    pub(super) fn add_env_deny(&mut self, name: &str, origin: Origin) -> Result<(), Fault> {
        variable_name(name)?;
        self.environment.deny.push((name.to_owned(), origin));
        Ok(())
    }

    pub(super) fn add_set(&mut self, name: &str, value: &str, origin: Origin) -> Result<(), Fault> {
        variable_name(name)?;
        if value.contains('\0') {
            return Err(Fault::new(
                format!("the value of {name} holds a NUL, which no variable can"),
                "take the NUL out",
            ));
        }
        self.environment.set.insert(name.to_owned(), (value.to_owned(), origin));
        Ok(())
    }

    pub(super) fn add_profile(&mut self, name: &str, origin: Origin) -> Result<(), Fault> {
        let fine = name.len() <= 64
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !fine {
            return Err(Fault::new(
                format!("'{name}' is not a profile's name"),
                "a name has letters, digits, '-', '_' and '.', and starts with a letter or digit; a file is given with --config",
            ));
        }
        self.profiles.push((name.to_owned(), origin));
        Ok(())
    }

    pub(super) fn add_safe_directory(&mut self, text: &str, base: &Base, origin: Origin) -> Result<(), Fault> {
        let PathPattern { path, glob } = PathPattern::parse(text.as_bytes(), base)?;
        if glob.is_some() {
            return Err(Fault::new(
                format!("'{text}' is a pattern, and git is told exact folders"),
                "name each folder",
            ));
        }
        self.git_safe_directories.push((path, origin));
        Ok(())
    }

    pub(super) fn set_memory(&mut self, value: Result<u64, QuantityFault>, origin: Origin) -> Result<(), Fault> {
        self.limits.memory = Some(Limit { value: value?, origin });
        Ok(())
    }

    pub(super) fn set_cpus(&mut self, value: Result<u32, QuantityFault>, origin: Origin) -> Result<(), Fault> {
        self.limits.cpu_millis = Some(Limit { value: value?, origin });
        Ok(())
    }

    pub(super) fn set_pids(&mut self, value: Result<u32, QuantityFault>, origin: Origin) -> Result<(), Fault> {
        self.limits.pids = Some(Limit { value: value?, origin });
        Ok(())
    }

    pub(super) fn set_timeout(&mut self, value: Result<Duration, QuantityFault>, origin: Origin) -> Result<(), Fault> {
        self.limits.timeout = Some(Limit { value: value?, origin });
        Ok(())
    }

    /// The first entry that another entry of the same source takes back.
    pub(super) fn contradiction(&self) -> Option<(&Origin, Fault)> {
        self.path_contradiction()
            .or_else(|| self.host_contradiction())
            .or_else(|| self.variable_contradiction())
    }

    fn path_contradiction(&self) -> Option<(&Origin, Fault)> {
        let mut seen: HashMap<&PathPattern, &PathRule> = HashMap::with_capacity(self.filesystem.len());
        for rule in &self.filesystem {
            let first = *seen.entry(&rule.path).or_insert(rule);
            if first.access != rule.access {
                let message = format!(
                    "'{}' is both {} and {}",
                    rule.path.to_text(),
                    adjective(first.access),
                    adjective(rule.access)
                );
                return Some((
                    &rule.origin,
                    Fault::new(message, format!("keep one of the two; the other is {}", first.origin)),
                ));
            }
        }
        None
    }

    fn host_contradiction(&self) -> Option<(&Origin, Fault)> {
        let denials = Denials::new(&self.network.deny);
        self.network.allow.iter().find_map(|rule| {
            let deny = denials.overruling(rule)?;
            let message = format!("'{rule}' is both allowed and denied");
            Some((
                &rule.origin,
                Fault::new(message, format!("keep one of the two; the other is {}", deny.origin)),
            ))
        })
    }

    fn variable_contradiction(&self) -> Option<(&Origin, Fault)> {
        let denied = |name: &str| {
            self.environment
                .deny
                .iter()
                .find(|(denied, _)| denied == name)
                .map(|(_, origin)| (origin, "denied"))
        };
        let set = |name: &str| self.environment.set.get(name).map(|(_, origin)| (origin, "set"));
        self.environment.pass.iter().find_map(|(name, origin)| {
            let (other, what) = denied(name).or_else(|| set(name))?;
            Some((
                origin,
                Fault::new(
                    format!("{name} is both passed and {what}"),
                    format!("keep one of the two; the other is {other}"),
                ),
            ))
        })
    }
}

/// Deny rules by what they are about.
pub(super) struct Denials<'a>(HashMap<(&'a HostPattern, &'a [PortRange]), &'a NetRule>);

impl<'a> Denials<'a> {
    pub(super) fn new(rules: &'a [NetRule]) -> Self {
        Self(
            rules
                .iter()
                .rev()
                .map(|rule| ((&rule.host, rule.ports.as_slice()), rule))
                .collect(),
        )
    }

    /// The denial that is about the same hosts as an allow rule and leaves nothing of it.
    pub(super) fn overruling(&self, allow: &'a NetRule) -> Option<&'a NetRule> {
        self.0
            .get(&(&allow.host, [].as_slice()))
            .or_else(|| self.0.get(&(&allow.host, allow.ports.as_slice())))
            .copied()
    }
}

fn adjective(access: PathAccess) -> &'static str {
    match access {
        PathAccess::Write => "writable (write)",
        PathAccess::Read => "readable (read)",
        PathAccess::ReadOnly => "not writable (readonly)",
        PathAccess::Hide => "hidden (hide)",
    }
}

fn variable_name(name: &str) -> Result<(), Fault> {
    let fine = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if fine {
        return Ok(());
    }
    Err(Fault::new(
        format!("'{name}' is not a variable's name"),
        "a name has letters, digits and '_', and does not start with a digit; name each variable",
    ))
}
