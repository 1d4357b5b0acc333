use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::origin::Origin;

fn name(text: &str) -> Result<String, HostError> {
    HostName::parse(text.as_bytes()).map(|name| name.as_str().to_owned())
}

fn host(text: &str) -> Result<Host, HostError> {
    Host::parse(text.as_bytes())
}

fn allow(text: &str) -> Result<NetRule, RuleError> {
    NetRule::parse_allow(text, None, Origin::flag("--allow"))
}

fn deny(text: &str) -> Result<NetRule, RuleError> {
    NetRule::parse_deny(text, None, Origin::flag("--deny"))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn case_trailing_dot_and_unicode_spellings_share_one_canonical_name() {
    for (written, canonical) in [
        ("Api.Example.COM", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("api。example。com", "api.example.com"),
        ("api.example.com。", "api.example.com"),
        ("ａｐｉ.example.com", "api.example.com"),
        ("r3---sn-abc.example.com", "r3---sn-abc.example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("localhost", "localhost"),
        ("1.2.3.4.example", "1.2.3.4.example"),
    ] {
        assert_eq!(name(written).as_deref(), Ok(canonical), "{written}");
    }
}

#[test]
fn control_bytes_and_every_other_foreign_byte_are_refused() {
    for byte in (0..=0x7f_u8).filter(|b| !b.is_ascii_alphanumeric() && !b"-._".contains(b)) {
        let mut bytes = b"a.example".to_vec();
        bytes.insert(1, byte);
        assert_eq!(HostName::parse(&bytes), Err(HostError::ForbiddenByte { byte }));
        bytes.truncate(2);
        assert_eq!(
            HostName::parse(&bytes),
            Err(HostError::ForbiddenByte { byte }),
            "at the end"
        );
    }
    assert_eq!(HostName::parse(b"a\xff.example"), Err(HostError::Unicode));
    assert_eq!(name("a\u{200b}\u{0000}.example"), Err(HostError::Unicode));
}

#[test]
fn names_that_are_too_long_or_have_odd_labels_are_refused() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(longest.len(), 253);
    assert_eq!(name(&longest).as_deref(), Ok(longest.as_str()));
    assert_eq!(name(&format!("{longest}.")).as_deref(), Ok(longest.as_str()));
    for (written, error) in [
        (format!("{longest}a"), HostError::TooLong),
        ("a".repeat(64), HostError::LongLabel),
        ("a".repeat(100_000), HostError::TooLong),
        (String::new(), HostError::Empty),
        (".".to_owned(), HostError::EmptyLabel),
        ("..".to_owned(), HostError::EmptyLabel),
        ("a..b".to_owned(), HostError::EmptyLabel),
        (".a.b".to_owned(), HostError::EmptyLabel),
        ("a.b..".to_owned(), HostError::EmptyLabel),
        ("a.b.。".to_owned(), HostError::EmptyLabel),
        ("-a.b".to_owned(), HostError::HyphenAtEdge),
        ("a-.b".to_owned(), HostError::HyphenAtEdge),
        ("xn--a.b".to_owned(), HostError::Unicode),
        ("xn--".to_owned(), HostError::HyphenAtEdge),
    ] {
        assert_eq!(name(&written), Err(error), "{written}");
    }
}

#[test]
fn every_spelling_that_a_resolver_reads_as_a_number_is_refused() {
    for written in [
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "0x",
        "0177.0.0.1",
        "127.0.0.01",
        "127.1",
        "127.0.1",
        "0x7f.0.0.1",
        "127.0.0.0x1",
        "127.0.0.1.",
        "256.0.0.1",
        "1.2.3.4.5",
        "127。0。0。1",
        "１２７.0.0.1",
        "example.1",
    ] {
        assert_eq!(host(written), Err(HostError::NumericSpelling), "{written}");
    }
}

#[test]
fn addresses_are_dotted_quad_or_ipv6_in_brackets_and_mapped_ones_are_unwrapped() {
    for (written, wanted) in [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("[::ffff:a00:1]", "10.0.0.1"),
        ("[0:0:0:0:0:ffff:0a00:0001]", "10.0.0.1"),
    ] {
        assert_eq!(host(written), Ok(Host::Address(address(wanted))), "{written}");
    }
    for (written, error) in [
        ("::1", HostError::BareIpv6),
        ("[fe80::1%eth0]", HostError::Zone),
        ("[fe80::1%25eth0]", HostError::Zone),
        ("[127.0.0.1]", HostError::BadBrackets),
        ("[::1", HostError::BadBrackets),
        ("[]", HostError::BadBrackets),
        ("[v1.a]", HostError::BadBrackets),
        ("user@host", HostError::Userinfo),
        ("::1]", HostError::ForbiddenByte { byte: b':' }),
    ] {
        assert_eq!(host(written), Err(error), "{written}");
    }
}

#[test]
fn an_authority_is_a_host_with_at_most_one_plain_port() {
    for (written, shown, port) in [
        ("example.com", "example.com", None),
        ("Example.com:443", "example.com:443", Some(443)),
        ("[::1]:8080", "[::1]:8080", Some(8080)),
        ("[::1]", "[::1]", None),
        ("10.0.0.1:1", "10.0.0.1:1", Some(1)),
    ] {
        let authority = Authority::parse(written.as_bytes()).unwrap();
        assert_eq!(
            (authority.to_string().as_str(), authority.port),
            (shown, port),
            "{written}"
        );
    }
    for written in [
        "example.com:0",
        "example.com:65536",
        "example.com:+80",
        "example.com:080",
        "example.com: 80",
        "example.com:",
        "example.com:80:80",
        "[::1]80",
        "[::1]:",
        "user@example.com:443",
        "user:pw@example.com",
        ":443",
        "",
        "::1:443",
        "example.com:443/path",
        "a b:443",
        "a\0.example.com:443",
        "a\r\n:443",
    ] {
        assert!(Authority::parse(written.as_bytes()).is_err(), "{written:?}");
    }
}

#[test]
fn subdomain_matching_is_by_whole_labels_and_never_the_apex() {
    let below = |written: &str| HostName::parse(written.as_bytes()).unwrap().is_below("example.com");
    assert!(below("a.example.com"));
    assert!(below("a.b.example.com"));
    assert!(!below("example.com"));
    assert!(!below("notexample.com"));
    assert!(!below("example.com.evil.org"));
    assert!(!below("com"));
}

#[test]
fn addresses_that_are_never_reachable_are_known_in_every_wrapping() {
    for (written, kind) in [
        ("169.254.169.254", "cloud metadata"),
        ("169.254.170.2", "cloud metadata"),
        ("100.100.100.200", "cloud metadata"),
        ("168.63.129.16", "cloud metadata"),
        ("192.0.0.192", "cloud metadata"),
        ("fd00:ec2::254", "cloud metadata"),
        ("::ffff:169.254.169.254", "cloud metadata"),
        ("::ffff:a9fe:a9fe", "cloud metadata"),
        ("::169.254.169.254", "cloud metadata"),
        ("::ffff:0:169.254.169.254", "cloud metadata"),
        ("64:ff9b::169.254.169.254", "cloud metadata"),
        ("2002:a9fe:a9fe::1", "cloud metadata"),
        ("0.0.0.0", "unspecified address"),
        ("0.1.2.3", "unspecified address"),
        ("::", "unspecified address"),
        ("::ffff:0.0.0.0", "unspecified address"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "broadcast"),
    ] {
        assert_eq!(classify(address(written)), AddressClass::Never(kind), "{written}");
    }
}

#[test]
fn addresses_that_need_an_address_rule_are_known_in_every_wrapping() {
    for (written, kind) in [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("10.0.0.1", "private network"),
        ("172.16.0.1", "private network"),
        ("172.31.255.255", "private network"),
        ("192.168.1.1", "private network"),
        ("::ffff:192.168.1.1", "private network"),
        ("64:ff9b::10.0.0.1", "private network"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("fc00::1", "unique local"),
        ("fd12::1", "unique local"),
        ("192.0.2.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("203.0.113.9", "reserved"),
        ("240.0.0.1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("2001::1", "reserved"),
        ("2002:808:808::1", "reserved"),
        ("fec0::1", "reserved"),
        ("::8.8.8.8", "reserved"),
        ("64:ff9b:1::1", "reserved"),
    ] {
        assert_eq!(classify(address(written)), AddressClass::Private(kind), "{written}");
    }
    for written in [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "64:ff9b::8.8.8.8",
        "::ffff:8.8.8.8",
    ] {
        assert_eq!(classify(address(written)), AddressClass::Public, "{written}");
    }
}

#[test]
fn rules_parse_and_print_in_canonical_form() {
    for (written, shown) in [
        ("API.example.com.", "api.example.com"),
        ("api.example.com:443", "api.example.com:443"),
        ("api.example.com:1000-2000", "api.example.com:1000-2000"),
        ("api.example.com:80,443,8000-8999", "api.example.com:80,443,8000-8999"),
        ("*.example.com", "*.example.com"),
        ("*.internal.example.com:8443", "*.internal.example.com:8443"),
        ("*.bücher.example", "*.xn--bcher-kva.example"),
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1:5432", "10.0.0.1:5432"),
        ("10.1.0.0/16", "10.1.0.0/16"),
        ("10.1.0.0/16:5432", "10.1.0.0/16:5432"),
        ("::1", "[::1]"),
        ("[::1]:8080", "[::1]:8080"),
        ("fd12::/32", "[fd12::/32]"),
        ("[fd12::]/32:443", "[fd12::/32]:443"),
        ("[fd12::/32]:443", "[fd12::/32]:443"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ("localhost:3000", "localhost:3000"),
        ("_srv.example.com", "_srv.example.com"),
        ("169.254.0.0/16", "169.254.0.0/16"),
    ] {
        let rule = allow(written).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(rule.to_string(), shown, "{written}");
        assert_eq!(rule.text, written);
        let again = allow(shown).unwrap();
        assert_eq!((again.host, again.ports), (rule.host, rule.ports), "{written}");
        assert!(deny(written).is_ok(), "{written}");
    }
}

#[test]
fn a_star_anywhere_but_as_the_whole_first_label_is_an_error_in_either_kind_of_rule() {
    for written in [
        "*foo.com",
        "a.*.com",
        "foo.*",
        "*.",
        "**",
        "**.foo.com",
        "*.*.com",
        "*。example.com",
        "*:443.x",
        "a*",
    ] {
        assert!(allow(written).is_err(), "{written}");
        assert!(deny(written).is_err(), "{written}");
    }
    assert_eq!(allow(""), Err(RuleError::Empty));
    assert!(matches!(allow("＊.example.com"), Err(RuleError::BadHost { .. })));
    assert!(allow("*.10.0.0.1").is_err());
}

#[test]
fn patterns_that_open_too_much_are_errors_to_allow_and_fine_to_deny() {
    for written in [
        "*",
        "*:443",
        "*.com",
        "*.co.uk",
        "*.github.io",
        "*.s3.amazonaws.com",
        "*.internal",
        "0.0.0.0/0",
        "::/0",
        "0.0.0.0/1",
        "::/1",
        "::ffff:0:0/96",
        "::/64",
    ] {
        let error = allow(written).expect_err(written);
        assert!(
            matches!(
                error,
                RuleError::EveryHost { .. } | RuleError::PublicSuffix { .. } | RuleError::BroadNetwork { .. }
            ),
            "{written}: {error}"
        );
        assert!(!error.hint().is_empty());
        assert!(deny(written).is_ok(), "{written}");
    }
    assert!(allow("fc00::/7").is_ok());
    assert!(allow("com").is_ok(), "an exact name is only itself");
}

#[test]
fn rules_that_could_never_hold_are_errors() {
    for written in [
        "169.254.169.254",
        "169.254.169.254:80",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "0.0.0.0",
        "::",
        "224.0.0.0/4",
        "ff02::1",
        "ff00::/8",
        "255.255.255.255",
        "[::ffff:169.254.169.254]",
        "metadata.google.internal",
        "Metadata.Google.Internal.",
        "0.0.0.0/8",
        "64:ff9b::a9fe:a9fe",
    ] {
        let error = allow(written).expect_err(written);
        assert!(matches!(error, RuleError::NeverReachable { .. }), "{written}: {error}");
        assert!(deny(written).is_ok(), "{written}");
    }
}

#[test]
fn urls_userinfo_odd_ports_and_number_spellings_are_errors() {
    for (written, hint) in [
        ("https://api.example.com/v1", "write \"api.example.com\""),
        ("http://u:p@api.example.com:8080/", "write \"api.example.com:8080\""),
        ("ftp://", "write the host alone, or host:port"),
        ("user@api.example.com", "write the host alone, or host:port"),
        ("api.example.com:0", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:65536", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:080", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:80,", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:80-", "write host:443, host:80,443 or host:8000-8999"),
        ("api.example.com:2000-1000", "write the smaller port first"),
        ("10.1.2.3/16", "write \"10.1.0.0/16\""),
        ("10.0.0.0/33", "write a range such as 10.1.0.0/16 or fd12::/32"),
        ("10.0.0.0/08", "write a range such as 10.1.0.0/16 or fd12::/32"),
        ("api.example.com/path", "write a range such as 10.1.0.0/16 or fd12::/32"),
        ("127.1", "write the address as four decimal numbers, such as 10.0.0.1"),
        (
            "0x7f000001",
            "write the address as four decimal numbers, such as 10.0.0.1",
        ),
        (
            "[fe80::1%eth0]",
            "write a host such as api.example.com, *.example.com, 10.0.0.1 or [fd12::1]",
        ),
        (
            " api.example.com",
            "write a host such as api.example.com, *.example.com, 10.0.0.1 or [fd12::1]",
        ),
    ] {
        let error = allow(written).expect_err(written);
        assert_eq!(error.hint(), hint, "{written}: {error}");
        assert!(deny(written).is_err(), "{written}");
    }
}

#[test]
fn a_rule_without_ports_allows_two_ports_and_denies_all() {
    let rule = allow("example.com").unwrap();
    assert!(rule.allows_port(443) && rule.allows_port(80));
    assert!(!rule.allows_port(22) && !rule.allows_port(8443));
    assert!(rule.denies_port(22));
    let rule = allow("example.com:1000-2000,22").unwrap();
    assert!(rule.allows_port(22) && rule.allows_port(1000) && rule.allows_port(2000));
    assert!(!rule.allows_port(443) && !rule.denies_port(443));
}

#[test]
fn rules_survive_serialization() {
    let rule = allow("10.1.0.0/16:5432").unwrap();
    let json = serde_json::to_string(&rule).unwrap();
    assert_eq!(serde_json::from_str::<NetRule>(&json).unwrap(), rule);
}

proptest! {
    #[test]
    fn parsing_bytes_never_panics_and_canonical_hosts_parse_to_themselves(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(host) = Host::parse(&bytes) {
            prop_assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host));
        }
        let _ = Authority::parse(&bytes);
    }

    #[test]
    fn canonicalising_twice_changes_nothing(text in "[a-zA-Z0-9._\\-äöüßłжａ。．xn-]{1,40}") {
        if let Ok(host) = Host::parse(text.as_bytes()) {
            let shown = host.to_string();
            prop_assert!(shown.is_ascii());
            prop_assert_eq!(Host::parse(shown.as_bytes()), Ok(host));
        }
    }

    #[test]
    fn any_unicode_text_is_a_rule_or_an_error_and_printed_rules_parse(text in "\\PC{0,40}") {
        for rule in [deny(&text), allow(&text)].into_iter().flatten() {
            let again = deny(&rule.to_string()).unwrap();
            prop_assert_eq!((again.host, again.ports), (rule.host, rule.ports));
        }
    }

    #[test]
    fn every_address_inside_a_mapped_one_has_the_class_of_the_plain_one(bits in any::<u32>()) {
        let plain = std::net::Ipv4Addr::from(bits);
        prop_assert_eq!(classify(IpAddr::V4(plain)), classify(IpAddr::V6(plain.to_ipv6_mapped())));
    }
}
