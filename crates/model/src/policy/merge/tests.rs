use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::merge;
use crate::net::{Host, NetworkPolicy};
use crate::origin::Scope;
use crate::policy::access::{Effective, ResolvedRule, View};
use crate::policy::{Base, Flags, Layer, Policy, PolicyError, SourceName};

fn base() -> Base {
    Base {
        folder: PathBuf::from("/w/app"),
        home: Some(PathBuf::from("/home/me")),
    }
}

fn file(path: &str, scope: Scope, text: &str) -> Layer {
    let name = SourceName::File {
        path: PathBuf::from(path),
        scope,
    };
    Layer::parse(text.as_bytes(), &name, &base()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn user(text: &str) -> Layer {
    file("/home/me/.config/pinfold/config.toml", Scope::Trusted, text)
}

fn project(text: &str) -> Layer {
    file("/w/app/pinfold.toml", Scope::Workspace, text)
}

fn flags(flags: Flags) -> Layer {
    Layer::from_flags(&flags, &base()).expect("valid flags")
}

fn view(policy: &Policy) -> View {
    let rules = policy.filesystem.iter().filter(|rule| rule.path.glob.is_none());
    View::new(
        rules.map(|rule| ResolvedRule {
            path: rule.path.path.clone(),
            access: rule.access,
            origin: rule.origin.clone(),
        }),
        [],
    )
}

#[test]
fn an_untrusted_file_that_loosens_anything_is_refused_with_the_rule() {
    let table = [
        (
            "filesystem.read = [\"~/.ssh\"]",
            "read /home/me/.ssh   (filesystem.read[0] (pinfold.toml:1))",
        ),
        (
            "filesystem.write = [\"/\"]",
            "write /   (filesystem.write[0] (pinfold.toml:1))",
        ),
        (
            "filesystem.lift = [\"git-hooks\"]",
            "lift git-hooks   (filesystem.lift[0] (pinfold.toml:1))",
        ),
        (
            "filesystem.scan_depth = 2",
            "search protected names 2 deep, not 3   (filesystem.scan_depth (pinfold.toml:1))",
        ),
        (
            "network.allow = [\"evil.example.com\"]",
            "allow evil.example.com   (network.allow[0] (pinfold.toml:1))",
        ),
        (
            "network.allow_all = true",
            "allow every host   (network.allow_all (pinfold.toml:1))",
        ),
        (
            "environment.pass = [\"TOKEN\"]",
            "pass TOKEN   (environment.pass[0] (pinfold.toml:1))",
        ),
        (
            "environment.set = { BASH_ENV = \"x\" }",
            "set BASH_ENV   (environment.set.BASH_ENV (pinfold.toml:1))",
        ),
        (
            "limits.memory = \"2GiB\"",
            "raise memory from 1GiB to 2GiB   (limits.memory (pinfold.toml:1))",
        ),
        (
            "limits.cpus = 3",
            "raise cpus from 2 to 3   (limits.cpus (pinfold.toml:1))",
        ),
        (
            "limits.pids = 101",
            "raise pids from 100 to 101   (limits.pids (pinfold.toml:1))",
        ),
        (
            "limits.timeout = \"2h\"",
            "raise timeout from 1h to 2h   (limits.timeout (pinfold.toml:1))",
        ),
        (
            "git.safe_directories = [\"/w\"]",
            "git trusts /w   (git.safe_directories[0] (pinfold.toml:1))",
        ),
        (
            "report.quiet_denials = { \"*\" = [\"x\"] }",
            "leave denials out of the summary   (report.quiet_denials (pinfold.toml:1))",
        ),
    ];
    let limits = "limits = { memory = \"1GiB\", cpus = 2, pids = 100, timeout = \"1h\" }";
    for (text, listed) in table {
        let error = merge(vec![user(limits), project(text)]).expect_err(text);
        assert_eq!(
            error.to_string(),
            format!("a workspace file that is not trusted would loosen the policy\n  {listed}")
        );
        assert!(error.hint().contains("pinfold trust"), "{}", error.hint());
        let trusted = file("/w/app/pinfold.toml", Scope::Trusted, text);
        assert!(merge(vec![user(limits), trusted]).is_ok(), "{text}");
    }
}

#[test]
fn an_untrusted_file_may_tighten_everything() {
    let text = "
        filesystem = { hide = ['a'], readonly = ['b'], scan_depth = 4 }
        network = { deny = ['*'], allow_all = false, refuse_addresses = ['10.0.0.0/8'], deny_unix_sockets = true }
        environment = { deny = ['EDITOR'] }
        limits = { memory = '1GiB', cpus = 1, pids = 10, timeout = '1m' }";
    let before = user("environment.pass = ['EDITOR', 'PAGER']\nlimits = { memory = '2GiB', pids = 10 }");
    let policy = merge(vec![before, project(text)]).expect("tightens only");
    assert_eq!(policy.limits.memory.map(|limit| limit.value), Some(1 << 30));
    assert_eq!(
        policy
            .environment
            .pass
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["PAGER"]
    );
    assert_eq!(policy.network.deny.len(), 1);
    assert_eq!(policy.scan_depth.map(|limit| limit.value), Some(4));
    assert!(policy.deny_unix_sockets.is_some());
}

#[test]
fn the_stricter_limit_holds_between_files_and_the_command_line_replaces_it() {
    let layers = || {
        vec![
            user("limits = { memory = '2GiB', cpus = 1 }"),
            file("/p.toml", Scope::Trusted, "limits = { memory = '4GiB', cpus = 0.5 }"),
        ]
    };
    let policy = merge(layers()).expect("merges");
    assert_eq!(policy.limits.memory.map(|limit| limit.value), Some(2 << 30));
    assert_eq!(policy.limits.cpu_millis.map(|limit| limit.value), Some(500));
    let mut layers = layers();
    layers.push(flags(Flags {
        memory: Some("8GiB".to_owned()),
        ..Flags::default()
    }));
    let memory = merge(layers).expect("merges").limits.memory.expect("set");
    assert_eq!(
        (memory.value, memory.origin.to_string().as_str()),
        (8 << 30, "command line, --memory")
    );
}

#[test]
fn for_the_same_path_the_stricter_rule_wins_whichever_source_it_is_from() {
    let table = [
        ("write", "hide", Effective::Hidden),
        ("write", "readonly", Effective::ReadOnly),
        ("write", "read", Effective::ReadOnly),
        ("read", "hide", Effective::Hidden),
        ("read", "readonly", Effective::ReadOnly),
    ];
    for (one, other, expected) in table {
        for (first, second) in [(one, other), (other, one)] {
            let layers = vec![
                user(&format!("filesystem.{first} = ['/x']")),
                file("/p.toml", Scope::Trusted, &format!("filesystem.{second} = ['/x']")),
            ];
            let policy = merge(layers).expect("merges");
            assert_eq!(policy.filesystem.len(), 1, "{first} {second}");
            assert_eq!(view(&policy).access(Path::new("/x")).0, expected, "{first} {second}");
            let stricter = if first == other { "config.toml" } else { "p.toml" };
            assert!(
                policy.filesystem[0].origin.to_string().contains(stricter),
                "{first} {second} {}",
                policy.filesystem[0].origin
            );
        }
    }
}

#[test]
fn a_denial_takes_the_same_hosts_out_of_what_is_allowed() {
    let layers = vec![
        user("network.allow = ['a.example.com', 'b.example.com:8443', 'c.example.com']"),
        project("network.deny = ['a.example.com', 'b.example.com:8443', 'c.example.com:80']"),
    ];
    let policy = merge(layers).expect("merges");
    assert_eq!(
        policy
            .network
            .allow
            .iter()
            .map(|rule| rule.text.as_str())
            .collect::<Vec<_>>(),
        ["c.example.com"]
    );
}

#[test]
fn the_last_word_about_a_variable_counts() {
    let env = |text: &str| {
        flags(Flags {
            env: vec![text.to_owned()],
            ..Flags::default()
        })
    };
    let policy = merge(vec![user("environment.set = { CI = '1' }"), env("CI=0")]).expect("merges");
    assert_eq!(policy.environment.set["CI"].0, "0");
    let policy = merge(vec![user("environment.set = { CI = '1' }"), env("CI")]).expect("merges");
    assert!(policy.environment.set.is_empty() && policy.environment.pass[0].0 == "CI");
    let policy = merge(vec![user("environment.pass = ['CI']"), env("CI=")]).expect("merges");
    assert!(policy.environment.pass.is_empty() && policy.environment.set["CI"].0.is_empty());
}

/// The policy as printed and loaded again.
fn reloaded(policy: &Policy) -> Policy {
    let text = policy.to_toml();
    let name = SourceName::File {
        path: PathBuf::from("/printed.toml"),
        scope: Scope::Trusted,
    };
    let elsewhere = Base {
        folder: PathBuf::from("/elsewhere"),
        home: None,
    };
    let layer = Layer::parse(text.as_bytes(), &name, &elsewhere).unwrap_or_else(|error| panic!("{error}\n{text}"));
    merge(vec![layer]).expect("a trusted file")
}

/// Everything but origins and the spelling of network rules.
fn essence(policy: &Policy) -> String {
    let hosts = |rules: &[crate::net::NetRule]| {
        rules
            .iter()
            .map(|rule| (rule.to_string(), rule.reason.clone()))
            .collect::<Vec<_>>()
    };
    let names =
        |names: &[(String, crate::origin::Origin)]| names.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let NetworkPolicy {
        allow_all,
        allow,
        deny,
        refused_addresses,
    } = &policy.network;
    let values: BTreeMap<_, _> = policy
        .environment
        .set
        .iter()
        .map(|(name, (value, _))| (name, value))
        .collect();
    format!(
        "{:?}",
        (
            policy
                .filesystem
                .iter()
                .map(|rule| (rule.access, &rule.path, &rule.reason))
                .collect::<Vec<_>>(),
            policy.lift.iter().map(|lift| lift.group).collect::<Vec<_>>(),
            (
                policy.scan_depth.as_ref().map(|limit| limit.value),
                policy.deny_unix_sockets.is_some(),
                allow_all.is_some()
            ),
            (
                hosts(allow),
                hosts(deny),
                refused_addresses
                    .iter()
                    .map(|(network, _)| *network)
                    .collect::<Vec<_>>()
            ),
            (names(&policy.environment.pass), names(&policy.environment.deny), values),
            (
                policy.limits.memory.as_ref().map(|limit| limit.value),
                policy.limits.cpu_millis.as_ref().map(|limit| limit.value),
                policy.limits.pids.as_ref().map(|limit| limit.value),
                policy.limits.timeout.as_ref().map(|limit| limit.value),
            ),
            policy
                .git_safe_directories
                .iter()
                .map(|(path, _)| path)
                .collect::<Vec<_>>(),
            &policy.quiet_denials,
        )
    )
}

#[test]
fn what_is_printed_loads_again_as_the_same_policy() {
    let everything = user(
        r#"
        filesystem.read = ['~/\xff\*', { path = "/opt", reason = "it's \"quoted\" \\ \u0007" }]
        filesystem.write = ['sub/**/[!a-c]?.*']
        filesystem.hide = ["it's\u0009odd", "a#b"]
        filesystem.readonly = ["m"]
        filesystem.lift = ["ide", "agents"]
        filesystem.scan_depth = 9
        network.allow = ["Docs.Example.com", "[fd12::1]:8443", "10.1.0.0/16:80,5000-5010"]
        network.deny = ["*", { host = "x.example.com:22", reason = "no ssh" }]
        network.allow_all = true
        network.refuse_addresses = ["10.0.0.0/8", "fd00::/8"]
        network.deny_unix_sockets = true
        environment.pass = ["EDITOR"]
        environment.deny = ["TOKEN"]
        environment.set = { A = "it's", B = '"\', C = "\n#", D = "" }
        limits = { memory = 5000000, cpus = 0.25, pids = 7, timeout = "1h1ms" }
        git.safe_directories = ['/srv/\xfe']
        report.quiet_denials = { "np\"m" = ["a'b"], "*" = [] }
    "#,
    );
    let policy = merge(vec![everything]).expect("merges");
    assert_eq!(essence(&reloaded(&policy)), essence(&policy), "{}", policy.to_toml());
    assert!(policy.to_toml().contains("# /home/me/.config/pinfold/config.toml:"));
}

fn entries(
    keys: &'static [&'static str],
    items: &'static [&'static str],
) -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop::collection::vec((prop::sample::select(keys), prop::sample::select(items)), 0..8)
}

const PATHS: &[&str] = &["/", "/a", "/a/b", "/a/b/c", "/w", "/w/app", "~", "~/x"];
const HOSTS: &[&str] = &[
    "a.example.com",
    "*.example.com",
    "b.example.com:8443",
    "10.1.0.0/16",
    "10.1.2.3:80",
    "x.a.example.com",
];

/// A policy text out of entries; the second entry for a path is left out, so that nothing contradicts.
fn text(paths: &[(&str, &str)], hosts: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (table, entries) in [("filesystem", paths), ("network", hosts)] {
        let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut seen = Vec::new();
        for (key, item) in entries {
            if !seen.contains(item) {
                seen.push(item);
                lists.entry(key).or_default().push(format!("'{item}'"));
            }
        }
        for (key, items) in lists {
            out.push_str(&format!("{table}.{key} = [{}]\n", items.join(", ")));
        }
    }
    out
}

fn permits(network: &NetworkPolicy, host: &Host, port: u16) -> bool {
    let denied = network
        .deny
        .iter()
        .any(|rule| rule.host.matches(host) && rule.denies_port(port));
    let allowed = network.allow_all.is_some()
        || network
            .allow
            .iter()
            .any(|rule| rule.host.matches(host) && rule.allows_port(port));
    allowed && !denied
}

proptest! {
    #[test]
    fn an_untrusted_layer_never_widens(
        paths in entries(&["read", "write", "hide", "readonly"], PATHS),
        hosts in entries(&["allow", "deny"], HOSTS),
        more_paths in entries(&["read", "write", "hide", "readonly"], PATHS),
        more_hosts in entries(&["allow", "deny"], HOSTS),
        path in prop::sample::select(PATHS),
        host in prop::sample::select(&["a.example.com", "x.a.example.com", "b.example.com", "10.1.2.3"][..]),
        port in prop::sample::select(&[80_u16, 443, 8443][..]),
    ) {
        let before = merge(vec![user(&text(&paths, &hosts))]).expect("a trusted file");
        match merge(vec![user(&text(&paths, &hosts)), project(&text(&more_paths, &more_hosts))]) {
            Err(error) => {
                let refused = matches!(error, PolicyError::Untrusted { .. });
                prop_assert!(refused);
            }
            Ok(after) => {
                let path = PathBuf::from(path.replace('~', "/home/me")).join("deeper");
                prop_assert!(view(&after).access(&path).0 <= view(&before).access(&path).0);
                let host = Host::parse(host.as_bytes()).expect("a host");
                prop_assert!(permits(&before.network, &host, port) || !permits(&after.network, &host, port));
            }
        }
    }

    #[test]
    fn the_order_of_entries_in_a_file_does_not_matter(
        paths in entries(&["read", "write", "hide", "readonly"], PATHS),
        hosts in entries(&["allow", "deny"], HOSTS),
        path in prop::sample::select(PATHS),
    ) {
        let distinct = |entries: &[(&'static str, &'static str)]| {
            let mut kept: Vec<(&str, &str)> = Vec::new();
            entries.iter().for_each(|entry| if kept.iter().all(|(_, item)| *item != entry.1) { kept.push(*entry) });
            kept
        };
        let (paths, hosts) = (distinct(&paths), distinct(&hosts));
        let back = |entries: &[(&'static str, &'static str)]| entries.iter().rev().copied().collect::<Vec<_>>();
        let forth = merge(vec![user(&text(&paths, &hosts))]).expect("trusted");
        let back = merge(vec![user(&text(&back(&paths), &back(&hosts)))]).expect("trusted");
        let path = PathBuf::from(path.replace('~', "/home/me")).join("deeper");
        prop_assert_eq!(view(&forth).access(&path).0, view(&back).access(&path).0);
        for host in ["a.example.com", "x.a.example.com", "b.example.com", "10.1.2.3"] {
            let host = Host::parse(host.as_bytes()).expect("a host");
            prop_assert_eq!(permits(&forth.network, &host, 443), permits(&back.network, &host, 443));
        }
    }

    #[test]
    fn merging_keeps_the_decision_of_the_unmerged_rules(
        one in entries(&["read", "write", "hide", "readonly"], PATHS),
        other in entries(&["read", "write", "hide", "readonly"], PATHS),
        path in prop::sample::select(PATHS),
    ) {
        let layers = || vec![user(&text(&one, &[])), file("/p.toml", Scope::Trusted, &text(&other, &[]))];
        let rules = layers().into_iter().flat_map(|layer| layer.filesystem);
        let unmerged = View::new(rules.map(|rule| ResolvedRule { path: rule.path.path, access: rule.access, origin: rule.origin }), []);
        let policy = merge(layers()).expect("trusted");
        let path = PathBuf::from(path.replace('~', "/home/me")).join("deeper");
        prop_assert_eq!(view(&policy).access(&path).0, unmerged.access(&path).0);
        prop_assert_eq!(essence(&reloaded(&policy)), essence(&policy));
    }
}
