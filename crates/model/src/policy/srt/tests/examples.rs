//! Whole files as people write them.

use super::*;
use crate::origin::Scope;
use crate::policy::{SourceName, merge};

fn example(name: &str) -> &'static [u8] {
    match name {
        "web" => include_bytes!("examples/web-project.json"),
        "locked" => include_bytes!("examples/locked-down.json"),
        "other" => include_bytes!("examples/other-systems.json"),
        "agent" => include_bytes!("examples/masked-credentials.json"),
        "proxy" => include_bytes!("examples/company-proxy.json"),
        _ => panic!("no example {name}"),
    }
}

#[test]
fn a_web_project_keeps_its_hosts_folders_and_denials() {
    let Imported { layer, notes } = import(example("web"), &context()).unwrap();
    let hosts: Vec<String> = layer.network.allow.iter().map(ToString::to_string).collect();
    assert_eq!(
        hosts,
        [
            "github.com:1-65535",
            "*.github.com:1-65535",
            "registry.npmjs.org:443",
            "10.1.2.3:5432",
            "localhost:3000"
        ]
    );
    assert_eq!(layer.network.deny[0].reason.as_deref(), Some("use the mirror"));
    assert_eq!(layer.network.deny[1].to_string(), "*:22");
    assert_eq!(layer.network.refused_addresses.len(), 2);
    assert_eq!(
        layer.lift.iter().map(|lift| lift.group).collect::<Vec<_>>(),
        [Group::GitConfig]
    );
    assert_eq!(layer.environment.deny[0].0, "NPM_TOKEN");
    let hidden: Vec<&Path> = layer
        .filesystem
        .iter()
        .filter(|r| r.access == PathAccess::Hide)
        .map(|r| r.path.path.as_path())
        .collect();
    assert_eq!(
        hidden,
        [
            Path::new("/home/u/.ssh"),
            Path::new("/home/u/.aws"),
            Path::new("/home/u/proj"),
            Path::new("/home/u/.npmrc")
        ]
    );
    assert_eq!(layer.quiet_denials["npm"], ["/etc/npmrc"]);
    assert_eq!(layer.git_safe_directories[0].0, Path::new("/srv/shared"));
    assert!(
        notes.iter().any(|note| note.contains("every port of 2 of its entries")),
        "{notes:?}"
    );
}

#[test]
fn a_locked_down_file_shows_only_what_it_names() {
    let Imported { layer, notes } = import(example("locked"), &context()).unwrap();
    assert_eq!(layer.network.allow, []);
    assert!(
        !layer
            .filesystem
            .iter()
            .any(|r| r.access == PathAccess::Read && r.path.path == Path::new("/"))
    );
    assert!(
        !notes.iter().any(|note| note.contains("whole host")),
        "nothing is open by default then"
    );
}

#[test]
fn a_file_with_every_key_of_other_systems_runs_with_notes_only() {
    let Imported { notes, .. } = import(example("other"), &context()).unwrap();
    for key in [
        "network.allowUnixSockets",
        "network.allowLocalBinding",
        "network.allowMachLookup",
        "network.httpProxyDualStack",
        "allowPty",
        "enableWeakerNetworkIsolation",
        "allowAppleEvents",
        "windows",
        "bwrapPath",
        "socatPath",
        "javaAgentJarPath",
        "seccomp",
        "ripgrep",
        "enableWeakerNestedSandbox",
    ] {
        assert_eq!(
            notes
                .iter()
                .filter(|note| note.starts_with(&format!("`{key}`")))
                .count(),
            1,
            "{key}"
        );
    }
}

#[test]
fn masked_credentials_are_refused_and_every_one_is_named() {
    assert_eq!(
        fault_keys(example("agent")),
        [
            "network.tlsTerminate",
            "credentials.files[0]",
            "credentials.envVars[0]",
            "credentials.awsPairs[0]",
            "credentials.sigv4.presigned"
        ]
    );
}

#[test]
fn every_kind_of_other_proxy_is_refused_by_name() {
    assert_eq!(
        fault_keys(example("proxy")),
        [
            "network.httpProxyPort",
            "network.socksProxyPort",
            "network.mitmProxy",
            "network.parentProxy",
            "network.filterRequest"
        ]
    );
}

#[test]
fn the_printed_policy_loads_again_as_the_same_policy() {
    let base = Base {
        folder: "/elsewhere".into(),
        home: None,
    };
    let name = SourceName::File {
        path: "/home/u/.config/pinfold/policy.toml".into(),
        scope: Scope::Trusted,
    };
    for example_name in ["web", "locked", "other"] {
        let policy = merge(vec![import(example(example_name), &context()).unwrap().layer]).unwrap();
        let text = policy.to_toml();
        let again = merge(vec![Layer::parse(text.as_bytes(), &name, &base).unwrap()]).unwrap();
        assert_eq!(without_origins(&again.to_toml()), without_origins(&text));
    }
}

/// Origins are comments at the end of a line.
fn without_origins(toml: &str) -> Vec<&str> {
    toml.lines()
        .map(|line| line.split("  # ").next().unwrap_or_default())
        .collect()
}
