use pinfold_model::origin::Origin;

use super::*;

fn policy(allow: &[&str], deny: &[&str]) -> NetworkPolicy {
    let origin = || Origin::flag("--allow");
    NetworkPolicy {
        allow_all: None,
        allow: allow
            .iter()
            .map(|text| NetRule::parse_allow(text, None, origin()).unwrap())
            .collect(),
        deny: deny
            .iter()
            .map(|text| NetRule::parse_deny(text, None, origin()).unwrap())
            .collect(),
        refused_addresses: Vec::new(),
    }
}

fn open(deny: &[&str]) -> NetworkPolicy {
    NetworkPolicy {
        allow_all: Some(Origin::flag("--allow-all")),
        ..policy(&[], deny)
    }
}

fn host(text: &str) -> Host {
    Host::parse(text.as_bytes()).unwrap()
}

/// `allow RULE` or `deny REASON`.
fn judged(policy: &NetworkPolicy, name: &str, port: u16) -> String {
    match judge_host(policy, &host(name), port) {
        Verdict::Allow(matched) => format!("allow {}", matched.rule),
        Verdict::Deny(denial) => format!("deny {}", denial.reason),
    }
}

fn resolved(policy: &NetworkPolicy, name: &str, port: u16, addresses: &[&str]) -> Result<Vec<String>, String> {
    let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    match judge_addresses(policy, &host(name), port, &addresses) {
        Ok(checked) => Ok(checked.iter().map(ToString::to_string).collect()),
        Err(denial) => Err(denial.reason),
    }
}

fn hint(policy: &NetworkPolicy, name: &str, port: u16) -> String {
    match judge_host(policy, &host(name), port) {
        Verdict::Allow(_) => panic!("{name} is allowed"),
        Verdict::Deny(denial) => denial.hint,
    }
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    for name in ["example.com", "localhost", "127.0.0.1", "8.8.8.8", "[2606:4700::1111]"] {
        for port in [443, 80, 1] {
            assert!(
                judged(&NetworkPolicy::default(), name, port).starts_with("deny"),
                "{name}:{port}"
            );
        }
    }
}

#[test]
fn exact_and_subdomain_rules_match_whole_labels_and_never_the_apex() {
    let policy = policy(&["api.example.com", "*.example.org"], &[]);
    for (name, wanted) in [
        ("api.example.com", "allow api.example.com"),
        ("API.Example.Com.", "allow api.example.com"),
        ("v1.api.example.com", "deny no rule"),
        ("example.com", "deny no rule"),
        ("api.example.com.evil.net", "deny no rule"),
        ("evilapi.example.com", "deny no rule"),
        ("a.example.org", "allow *.example.org"),
        ("a.b.example.org", "allow *.example.org"),
        ("example.org", "deny no rule"),
        ("evilexample.org", "deny no rule"),
    ] {
        assert_eq!(judged(&policy, name, 443), wanted, "{name}");
    }
    assert_eq!(
        hint(&policy, "example.org", 443),
        "\"*.example.org\" is for the names below example.org, not for example.org itself: pinfold run --allow \
         example.org …"
    );
}

#[test]
fn a_unicode_rule_and_its_wire_spellings_meet_in_the_a_label() {
    let policy = policy(&["bücher.example"], &[]);
    for name in ["xn--bcher-kva.example", "BÜCHER.example", "bücher。example"] {
        assert_eq!(judged(&policy, name, 443), "allow bücher.example", "{name}");
    }
}

#[test]
fn a_rule_without_ports_is_for_443_and_80_only() {
    let policy = policy(&["example.com", "db.example.com:5432,8000-8999"], &[]);
    for (name, port, wanted) in [
        ("example.com", 443, "allow example.com"),
        ("example.com", 80, "allow example.com"),
        ("example.com", 22, "deny no rule for this port"),
        ("example.com", 8443, "deny no rule for this port"),
        ("db.example.com", 5432, "allow db.example.com:5432,8000-8999"),
        ("db.example.com", 8500, "allow db.example.com:5432,8000-8999"),
        ("db.example.com", 443, "deny no rule for this port"),
    ] {
        assert_eq!(judged(&policy, name, port), wanted, "{name}:{port}");
    }
    assert_eq!(
        hint(&policy, "example.com", 22),
        "\"example.com\" is for other ports: pinfold run --allow example.com:22 …"
    );
    assert_eq!(
        hint(&policy, "other.example", 443),
        "pinfold run --allow other.example …"
    );
    assert_eq!(
        hint(&policy, "other.example", 8080),
        "pinfold run --allow other.example:8080 …"
    );
}

#[test]
fn a_deny_rule_beats_every_allow_rule_whatever_the_order() {
    let policy = policy(
        &["*.example.com", "telemetry.example.com"],
        &["telemetry.example.com", "*.bad.example.com:443"],
    );
    assert_eq!(judged(&policy, "telemetry.example.com", 443), "deny denied by rule");
    assert_eq!(judged(&policy, "telemetry.example.com", 9999), "deny denied by rule");
    assert_eq!(judged(&policy, "x.bad.example.com", 443), "deny denied by rule");
    assert_eq!(judged(&policy, "x.bad.example.com", 80), "allow *.example.com");
    assert_eq!(judged(&policy, "bad.example.com", 443), "allow *.example.com");
    assert!(hint(&policy, "telemetry.example.com", 443).starts_with("remove the rule: command line"));
}

#[test]
fn address_literals_need_an_address_rule_and_host_rules_never_match_them() {
    let policy = policy(
        &["*.example.com", "10.1.0.0/16:5432", "8.8.8.8", "[fd12::]/32"],
        &["10.1.9.0/24"],
    );
    for (name, port, wanted) in [
        ("8.8.8.8", 443, "allow 8.8.8.8"),
        ("8.8.8.8", 53, "deny address literal"),
        ("1.1.1.1", 443, "deny address literal"),
        ("10.1.2.3", 5432, "allow 10.1.0.0/16:5432"),
        ("[::ffff:10.1.2.3]", 5432, "allow 10.1.0.0/16:5432"),
        ("10.1.2.3", 443, "deny private address"),
        ("10.1.9.3", 5432, "deny denied by rule"),
        ("[::ffff:10.1.9.3]", 5432, "deny denied by rule"),
        ("[64:ff9b::10.1.9.3]", 5432, "deny denied by rule"),
        ("[64:ff9b::10.1.2.3]", 5432, "deny private address"),
        ("[fd12::9]", 443, "allow [fd12::]/32"),
        ("127.0.0.1", 80, "deny private address"),
        ("[::1]", 80, "deny private address"),
    ] {
        assert_eq!(judged(&policy, name, port), wanted, "{name}:{port}");
    }
}

#[test]
fn metadata_unspecified_multicast_and_broadcast_are_denied_whatever_is_allowed() {
    let mut all = open(&[]);
    let wide = [
        "169.254.0.0/16",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "fd00::/8",
        "*.google.internal",
    ];
    all.allow = policy(&wide, &[]).allow;
    for name in [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "169.254.170.2",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "0.0.0.0",
        "[::]",
        "224.0.0.251",
        "[ff02::fb]",
        "255.255.255.255",
    ] {
        assert!(judged(&all, name, 80).starts_with("deny "), "{name}");
        assert_eq!(hint(&all, name, 80), "never allowed", "{name}");
        if let Host::Address(address) = host(name) {
            let error = judge_addresses(&all, &host("a.example.com"), 80, &[address]).unwrap_err();
            assert_eq!(error.hint, "never allowed", "{name}");
        }
    }
    assert_eq!(judged(&all, "169.254.1.1", 80), "allow 169.254.0.0/16");
}

#[test]
fn allow_all_opens_names_and_public_addresses_but_not_what_is_denied_or_private() {
    let policy = open(&["telemetry.example.com", "9.9.9.0/24"]);
    for (name, port, wanted) in [
        ("example.com", 443, "allow allow_all"),
        ("example.com", 22, "allow allow_all"),
        ("8.8.8.8", 53, "allow allow_all"),
        ("telemetry.example.com", 443, "deny denied by rule"),
        ("9.9.9.9", 443, "deny denied by rule"),
        ("127.0.0.1", 80, "deny private address"),
        ("10.0.0.1", 80, "deny private address"),
        ("a_b.example.com", 443, "deny underscore in name"),
    ] {
        assert_eq!(judged(&policy, name, port), wanted, "{name}:{port}");
    }
    assert_eq!(
        resolved(&policy, "example.com", 443, &["9.9.9.9"]),
        Err("denied by rule".to_owned())
    );
    assert_eq!(
        resolved(&policy, "example.com", 443, &["192.168.0.1"]),
        Err("private address".to_owned())
    );
}

#[test]
fn an_underscore_needs_a_rule_that_has_one() {
    let policy = policy(
        &["*.example.com", "my_bucket.example.net", "*.a_b.example.net"],
        &["*.bad.example.com"],
    );
    assert_eq!(judged(&policy, "x_y.example.com", 443), "deny underscore in name");
    assert_eq!(
        judged(&policy, "my_bucket.example.net", 443),
        "allow my_bucket.example.net"
    );
    assert_eq!(judged(&policy, "c.a_b.example.net", 443), "allow *.a_b.example.net");
    assert_eq!(judged(&policy, "x_y.bad.example.com", 443), "deny denied by rule");
}

#[test]
fn a_permitted_name_may_not_resolve_to_a_private_address_unless_an_address_rule_covers_it() {
    let policy = policy(
        &["*.example.com", "db.example.com:5432", "10.1.0.0/16:5432"],
        &["10.1.9.0/24", "8.8.4.4"],
    );
    let name = "db.example.com";
    for (port, addresses, wanted) in [
        (443, &["93.184.216.34"][..], Ok(vec!["93.184.216.34:443"])),
        (
            443,
            &["93.184.216.34", "2606:4700::1"],
            Ok(vec!["93.184.216.34:443", "[2606:4700::1]:443"]),
        ),
        (443, &["::ffff:93.184.216.34"], Ok(vec!["93.184.216.34:443"])),
        (443, &["127.0.0.1"], Err("private address")),
        (443, &["::1"], Err("private address")),
        (443, &["::ffff:10.0.0.1"], Err("private address")),
        (443, &["64:ff9b::10.0.0.1"], Err("private address")),
        (443, &["169.254.169.254"], Err("cloud metadata")),
        (443, &["0.0.0.0"], Err("unspecified address")),
        (443, &["::"], Err("unspecified address")),
        (443, &["93.184.216.34", "10.0.0.1"], Err("private address")),
        (443, &["10.0.0.1", "93.184.216.34"], Err("private address")),
        (443, &["93.184.216.34", "8.8.4.4"], Err("denied by rule")),
        (443, &["64:ff9b::8.8.4.4"], Err("denied by rule")),
        (443, &["10.1.2.3"], Err("private address")),
        (5432, &["10.1.2.3"], Ok(vec!["10.1.2.3:5432"])),
        (5432, &["10.1.9.3"], Err("denied by rule")),
        (5432, &["10.2.0.1"], Err("private address")),
        (5432, &[], Ok(vec![])),
    ] {
        let wanted = wanted
            .map(|list: Vec<&str>| list.into_iter().map(str::to_owned).collect())
            .map_err(str::to_owned);
        assert_eq!(resolved(&policy, name, port, addresses), wanted, "{port} {addresses:?}");
    }
    let denial = judge_addresses(&policy, &host(name), 443, &["10.0.0.1".parse().unwrap()]).unwrap_err();
    assert_eq!(
        denial.hint,
        "db.example.com resolves to 10.0.0.1 (private network): pinfold run --allow 10.0.0.1 …"
    );
}

#[test]
fn refused_addresses_hold_for_answers_and_literals_even_where_an_address_rule_allows() {
    let mut policy = policy(&["*.example.com", "10.0.0.0/8"], &[]);
    policy.refused_addresses = vec![("10.0.0.5/32".parse().unwrap(), Origin::builtin("this host"))];
    assert_eq!(
        resolved(&policy, "a.example.com", 443, &["10.0.0.4"]),
        Ok(vec!["10.0.0.4:443".to_owned()])
    );
    assert_eq!(
        resolved(&policy, "a.example.com", 443, &["10.0.0.5"]),
        Err("refused address".to_owned())
    );
    assert_eq!(judged(&policy, "10.0.0.5", 443), "deny refused address");
    assert_eq!(judged(&policy, "[::ffff:10.0.0.5]", 443), "deny refused address");
}

#[test]
fn a_deny_rule_for_everything_leaves_nothing() {
    let mut policy = open(&["*"]);
    policy.allow = super::tests::policy(&["example.com", "8.8.8.8"], &[]).allow;
    for name in ["example.com", "8.8.8.8", "other.example"] {
        assert_eq!(judged(&policy, name, 443), "deny denied by rule", "{name}");
    }
}
