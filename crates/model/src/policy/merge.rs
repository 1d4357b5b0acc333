//! Many layers become one policy.
//!
//! Denials and stricter rules hold whichever source they come from; the order of layers decides only what has no stricter form
//! (the value of a variable) and which of two equal rules is named. A layer that may only tighten and would loosen stops the
//! merge: dropping its rule in silence would surprise the person who wrote it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use super::entry::Denials;
use super::error::PolicyError;
use super::{Authority, EnvironmentPolicy, Layer, Limit, Limits, PathAccess, PathPattern, PathRule, Policy};
use crate::net::NetworkPolicy;

/// Merges layers in order: user file, profiles, workspace file, imported settings, command line. The built-in defaults are the
/// empty policy.
///
/// # Errors
/// A layer of [`Authority::TightenOnly`] that would loosen what the layers before it say.
pub fn merge(layers: Vec<Layer>) -> Result<Policy, PolicyError> {
    let mut policy = Policy::default();
    for layer in layers {
        if layer.authority == Authority::TightenOnly {
            let found = layer.loosenings(&policy);
            if !found.is_empty() {
                return Err(PolicyError::Untrusted { found });
            }
        }
        add(&mut policy, layer);
    }
    policy.filesystem = combine_paths(std::mem::take(&mut policy.filesystem));
    settle_network(&mut policy.network);
    settle_environment(&mut policy.environment);
    let mut seen = HashSet::new();
    policy.lift.retain(|lift| seen.insert(lift.group));
    let mut seen = HashSet::new();
    policy
        .git_safe_directories
        .retain(|(path, _)| seen.insert(path.clone()));
    Ok(policy)
}

fn add(policy: &mut Policy, layer: Layer) {
    let overriding = layer.authority == Authority::Override;
    policy.filesystem.extend(layer.filesystem);
    policy.lift.extend(layer.lift);
    policy.network.allow.extend(layer.network.allow);
    policy.network.deny.extend(layer.network.deny);
    policy.network.refused_addresses.extend(layer.network.refused_addresses);
    policy.network.allow_all = policy.network.allow_all.take().or(layer.network.allow_all);
    policy.deny_unix_sockets = policy.deny_unix_sockets.take().or(layer.deny_unix_sockets);
    // The last word about a variable counts, so that the command line can change what a file passes or sets.
    for (name, origin) in layer.environment.pass {
        policy.environment.set.remove(&name);
        policy.environment.pass.push((name, origin));
    }
    for (name, value) in layer.environment.set {
        policy.environment.pass.retain(|(passed, _)| *passed != name);
        policy.environment.set.insert(name, value);
    }
    policy.environment.deny.extend(layer.environment.deny);
    let Limits {
        memory,
        cpu_millis,
        pids,
        timeout,
    } = layer.limits;
    limit(&mut policy.limits.memory, memory, overriding, |new, old| new < old);
    limit(&mut policy.limits.cpu_millis, cpu_millis, overriding, |new, old| {
        new < old
    });
    limit(&mut policy.limits.pids, pids, overriding, |new, old| new < old);
    limit(&mut policy.limits.timeout, timeout, overriding, |new, old| new < old);
    limit(&mut policy.scan_depth, layer.scan_depth, overriding, |new, old| {
        new > old
    });
    policy.git_safe_directories.extend(layer.git_safe_directories);
    for (command, texts) in layer.quiet_denials {
        policy.quiet_denials.entry(command).or_default().extend(texts);
    }
}

fn limit<T>(held: &mut Option<Limit<T>>, new: Option<Limit<T>>, overriding: bool, stricter: impl Fn(&T, &T) -> bool) {
    let Some(new) = new else { return };
    let replace = overriding || held.as_ref().is_none_or(|held| stricter(&new.value, &held.value));
    if replace {
        *held = Some(new);
    }
}

/// One rule for each pattern: the stricter, as [`View`](super::access::View) would decide.
fn combine_paths(rules: Vec<PathRule>) -> Vec<PathRule> {
    let mut by_path: BTreeMap<PathPattern, PathRule> = BTreeMap::new();
    for rule in rules {
        match by_path.entry(rule.path.clone()) {
            Entry::Vacant(free) => {
                free.insert(rule);
            }
            Entry::Occupied(mut taken) => {
                let stricter = if rule.access > taken.get().access {
                    rule.clone()
                } else {
                    taken.get().clone()
                };
                taken.insert(PathRule {
                    access: tie(taken.get().access, rule.access),
                    ..stricter
                });
            }
        }
    }
    by_path.into_values().collect()
}

/// What two rules for the same path mean together. `write` with `readonly` is visible and not writable.
fn tie(one: PathAccess, other: PathAccess) -> PathAccess {
    use PathAccess::{Hide, Read, ReadOnly, Write};
    match (one, other) {
        (Hide, _) | (_, Hide) => Hide,
        (Write, Write) => Write,
        (ReadOnly, ReadOnly) => ReadOnly,
        (Read, _) | (_, Read) | (Write, ReadOnly) | (ReadOnly, Write) => Read,
    }
}

fn settle_network(network: &mut NetworkPolicy) {
    let denials = Denials::new(&network.deny);
    let overruled: Vec<bool> = network
        .allow
        .iter()
        .map(|rule| denials.overruling(rule).is_some())
        .collect();
    let mut overruled = overruled.into_iter();
    network.allow.retain(|_| overruled.next() != Some(true));
    let mut seen = HashSet::new();
    network
        .allow
        .retain(|rule| seen.insert((rule.host.clone(), rule.ports.clone())));
    let mut seen = HashSet::new();
    network
        .deny
        .retain(|rule| seen.insert((rule.host.clone(), rule.ports.clone())));
    let mut seen = HashSet::new();
    network.refused_addresses.retain(|(address, _)| seen.insert(*address));
}

fn settle_environment(environment: &mut EnvironmentPolicy) {
    let denied: HashSet<String> = environment.deny.iter().map(|(name, _)| name.clone()).collect();
    environment.pass.retain(|(name, _)| !denied.contains(name));
    let mut seen = HashSet::new();
    environment.pass.retain(|(name, _)| seen.insert(name.clone()));
    let mut seen = HashSet::new();
    environment.deny.retain(|(name, _)| seen.insert(name.clone()));
}

#[cfg(test)]
mod tests;
