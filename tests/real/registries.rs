//! Package managers with nothing but their own registry allowed.
//!
//! Which registry that is, the tools are asked. Where it does not answer without a sandbox, nothing is tested.

use std::collections::BTreeSet;
use std::net::ToSocketAddrs as _;

use crate::desk::{Desk, has, said};

/// The host of a URL.
fn host(url: &str) -> Option<String> {
    let (_, rest) = url.trim().split_once("://")?;
    let authority = rest.split('/').next()?.rsplit('@').next()?;
    Some(authority.split(':').next()?.to_owned()).filter(|host| !host.is_empty())
}

/// Rules for hosts, and for the addresses of those that are not public.
fn allowing(hosts: &BTreeSet<String>) -> Vec<String> {
    let mut flags = Vec::new();
    for host in hosts {
        flags.extend(["--allow".to_owned(), host.clone()]);
        // A registry of one's own network needs its address named as well; for a public one that changes nothing.
        for address in (host.as_str(), 443).to_socket_addrs().into_iter().flatten() {
            let ip = match address.ip() {
                std::net::IpAddr::V6(ip) => format!("[{ip}]"),
                std::net::IpAddr::V4(ip) => ip.to_string(),
            };
            flags.extend(["--allow".to_owned(), ip]);
        }
    }
    flags
}

/// What the audit log says: lines of verdict, host and port.
fn decisions(desk: &Desk) -> BTreeSet<(String, String)> {
    let mut log = desk.outside(env!("CARGO_BIN_EXE_pinfold"));
    let log = said(log.args(["policy", "log"]));
    let words = log.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| words.len() > 4)
        .map(|words| (words[2].to_owned(), words[4].to_owned()))
        .collect()
}

#[test]
fn npm_gets_a_package_from_its_registry_and_from_nowhere_else() {
    if !has("npm") {
        return;
    }
    let desk = Desk::new();
    let registry = said(desk.outside("npm").args(["config", "get", "registry"]));
    let Some(registry) = host(&registry.out) else {
        panic!("npm names no registry: {registry:?}");
    };
    let reachable = said(
        desk.outside("npm")
            .args(["view", "is-number", "version", "--fetch-retries=0"]),
    );
    if reachable.code != Some(0) {
        eprintln!("not tested: the registry of npm cannot be reached from here");
        return;
    }
    let mut flags = allowing(&BTreeSet::from([registry.clone()]));
    flags.extend(["--deny".to_owned(), "denied.invalid".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let said = desk.sh(
        &flags,
        "npm pack --silent is-number && ! npm view x --registry http://denied.invalid --fetch-retries=0",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.trim().ends_with(".tgz") && said.err.contains("denied.invalid"),
        "{said:?}"
    );
    let decisions = decisions(&desk);
    for (verdict, place) in [
        ("allowed", format!("{registry}:443")),
        ("denied", "denied.invalid:80".to_owned()),
    ] {
        assert!(
            decisions.contains(&(verdict.to_owned(), place.clone())),
            "{place}: {decisions:?}"
        );
    }
    let others = decisions
        .iter()
        .filter(|(verdict, place)| verdict == "allowed" && !place.starts_with(&registry));
    assert_eq!(others.count(), 0, "{decisions:?}");
}

#[test]
fn pip_gets_a_package_from_its_index_and_from_nowhere_else() {
    if !has("python3") {
        return;
    }
    let desk = Desk::new();
    let constants = "from pip._internal.models.index import PyPI; print(PyPI.simple_url); print('https://' + PyPI.file_storage_domain)";
    let constants = said(desk.outside("python3").args(["-c", constants]));
    if constants.code != Some(0) {
        eprintln!("not tested: python3 has no pip");
        return;
    }
    let configured = said(
        desk.outside("python3")
            .args(["-m", "pip", "config", "get", "global.index-url"]),
    );
    let mut hosts: BTreeSet<String> = constants.out.lines().filter_map(host).collect();
    hosts.extend(host(&configured.out));
    let download = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--retries",
        "0",
        "six",
    ];
    if said(desk.outside("python3").args(download).args(["-d", "../outside"])).code != Some(0) {
        eprintln!("not tested: the index of pip cannot be reached from here");
        return;
    }
    let flags = allowing(&hosts);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let command = format!("python3 {} -d inside", download.join(" "));
    desk.works(&flags, &command);
    assert_eq!(std::fs::read_dir(desk.workspace().join("inside")).unwrap().count(), 1);
    assert_ne!(desk.sh(&[], &command).code, Some(0), "without a rule");
    let decisions = decisions(&desk);
    assert!(
        decisions.iter().any(|(verdict, _)| verdict == "denied"),
        "{decisions:?}"
    );
    let allowed = |place: &str| hosts.iter().any(|host| place.starts_with(&format!("{host}:")));
    let others = decisions
        .iter()
        .filter(|(verdict, place)| verdict == "allowed" && !allowed(place));
    assert_eq!(others.count(), 0, "{decisions:?}");
}
