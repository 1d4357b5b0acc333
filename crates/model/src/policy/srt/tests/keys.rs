//! Every key: a valid value, a value of a wrong type, and what is refused.

use super::*;

/// `{"a": {"b": value}}` for `a.b`.
fn nested(key: &str, value: Json) -> Json {
    key.rsplit('.').fold(value, |value, name| json!({ name: value }))
}

#[test]
fn every_key_takes_its_own_type_only() {
    let (strings, flag, text, object) = (json!(["/x.example.com"]), json!(true), json!("/x"), json!({}));
    let keys: [(&str, &Json); 47] = [
        ("network", &object),
        ("network.allowedDomains", &strings),
        ("network.deniedDomains", &strings),
        ("network.deniedDomainReasons", &object),
        ("network.strictAllowlist", &flag),
        ("network.deniedResolvedAddresses", &strings),
        ("network.allowUnixSockets", &strings),
        ("network.allowAllUnixSockets", &flag),
        ("network.allowLocalBinding", &flag),
        ("network.allowMachLookup", &strings),
        ("network.httpProxyPort", &json!(1)),
        ("network.socksProxyPort", &json!(1)),
        ("network.mitmProxy", &object),
        ("network.parentProxy", &object),
        ("network.parentProxy.noProxy", &text),
        ("network.parentProxy.http", &text),
        ("network.parentProxy.https", &text),
        ("network.tlsTerminate", &object),
        ("network.tlsTerminate.caCertPath", &text),
        ("network.tlsTerminate.caKeyPath", &text),
        ("network.tlsTerminate.excludeDomains", &strings),
        ("network.tlsTerminate.extraCaCertPaths", &strings),
        ("network.httpProxyDualStack", &flag),
        ("filesystem", &object),
        ("filesystem.denyRead", &strings),
        ("filesystem.allowRead", &strings),
        ("filesystem.allowWrite", &strings),
        ("filesystem.denyWrite", &strings),
        ("filesystem.allowGitConfig", &flag),
        ("filesystem.disabled", &flag),
        ("credentials", &object),
        ("credentials.files", &strings),
        ("credentials.envVars", &strings),
        ("credentials.allowPlaintextInject", &flag),
        ("credentials.awsPairs", &strings),
        ("credentials.sigv4", &object),
        ("ignoreViolations", &object),
        ("mandatoryDenySearchDepth", &json!(1)),
        ("enableWeakerNestedSandbox", &flag),
        ("git.safeDirectories", &strings),
        ("bwrapPath", &text),
        ("socatPath", &text),
        ("seccomp", &object),
        ("ripgrep", &object),
        ("allowPty", &flag),
        ("allowAppleEvents", &flag),
        ("windows", &object),
    ];
    for (key, right) in keys {
        let others = [
            json!(null),
            json!(7.5),
            json!(["x"]),
            json!({ "x": 1 }),
            json!("x"),
            json!(false),
        ];
        for wrong in others
            .iter()
            .filter(|w| std::mem::discriminant(*w) != std::mem::discriminant(right))
        {
            let found = import(settings(&nested(key, wrong.clone())).as_bytes(), &context())
                .unwrap_err()
                .faults;
            assert!(
                found.iter().any(|f| f.key_path == key && f.message.contains("must be")),
                "{key}: {wrong}: {found:?}"
            );
        }
        if right.is_array() {
            let found = import(settings(&nested(key, json!([{ "x": 1 }, [1]]))).as_bytes(), &context())
                .unwrap_err()
                .faults;
            assert!(
                found
                    .iter()
                    .any(|f| f.key_path == format!("{key}[1]") && f.message.contains("must be")),
                "{key}: {found:?}"
            );
        }
    }
}

#[test]
fn optional_keys_at_their_defaults_add_no_fault() {
    let Imported { layer, .. } = imported(&json!({
        "network": {
            "deniedDomainReasons": {}, "strictAllowlist": false, "deniedResolvedAddresses": [], "allowUnixSockets": [],
            "allowAllUnixSockets": false, "allowLocalBinding": false, "allowMachLookup": [], "parentProxy": {},
        },
        "filesystem": { "allowRead": [], "allowGitConfig": false, "disabled": false },
        "credentials": { "files": [], "envVars": [], "allowPlaintextInject": false, "awsPairs": [], "sigv4": { "streaming": "deny" } },
        "ignoreViolations": {}, "mandatoryDenySearchDepth": 3, "enableWeakerNestedSandbox": false, "git": {}, "windows": {},
        "seccomp": {}, "ripgrep": {},
    }));
    assert!(layer.deny_unix_sockets.is_some());
    assert_eq!(layer.scan_depth.unwrap().value, 3);
    assert_eq!(layer.lift, []);
}

#[test]
fn every_refusal_has_its_own_key_and_message() {
    let mask = |list: &str, entry: Json| json!({ "credentials": { list: [entry] } });
    let cases = [
        (
            nested("network.httpProxyPort", json!(3128)),
            "network.httpProxyPort",
            "`httpProxyPort` would hand",
        ),
        (
            nested("network.socksProxyPort", json!(1080)),
            "network.socksProxyPort",
            "`socksProxyPort` would hand",
        ),
        (
            nested("network.httpProxyPort", json!(0)),
            "network.httpProxyPort",
            "0 is not a whole number",
        ),
        (
            nested("network.httpProxyPort", json!(1.5)),
            "network.httpProxyPort",
            "1.5 is not a whole number",
        ),
        (
            nested(
                "network.mitmProxy",
                json!({ "socketPath": "/s", "domains": ["a.example.com"] }),
            ),
            "network.mitmProxy",
            "another proxy behind a socket",
        ),
        (
            nested("network.mitmProxy", json!({ "socketPath": "/s", "domains": [] })),
            "network.mitmProxy.domains",
            "the list is empty",
        ),
        (
            nested(
                "network.mitmProxy",
                json!({ "socketPath": "/s", "domains": ["a.example.com:1"] }),
            ),
            "network.mitmProxy.domains[0]",
            "names a port",
        ),
        (
            nested("network.parentProxy.https", json!("http://p.example.com:1")),
            "network.parentProxy",
            "no upstream proxy",
        ),
        (
            nested("network.parentProxy.http", json!("p:1")),
            "network.parentProxy.http",
            "no URL of a proxy",
        ),
        (
            nested("network.filterRequest", json!("f")),
            "network.filterRequest",
            "a filter function cannot stand",
        ),
        (
            nested("network.tlsTerminate", json!({})),
            "network.tlsTerminate",
            "does not open TLS",
        ),
        (
            nested("network.tlsTerminate.caCertPath", json!("/c")),
            "network.tlsTerminate",
            "only work together",
        ),
        (
            nested("network.tlsTerminate.excludeDomains", json!(["x.example.com:1"])),
            "network.tlsTerminate.excludeDomains[0]",
            "names a port",
        ),
        (
            nested("network.deniedResolvedAddresses", json!(["[fd12::]/32"])),
            "network.deniedResolvedAddresses[0]",
            "no address",
        ),
        (
            nested("network.deniedResolvedAddresses", json!(["a.example.com"])),
            "network.deniedResolvedAddresses[0]",
            "no address",
        ),
        (
            nested("network.deniedResolvedAddresses", json!(["10.0.0.1:80"])),
            "network.deniedResolvedAddresses[0]",
            "no address",
        ),
        (
            nested("network.allowMachLookup", json!(["a.*.b"])),
            "network.allowMachLookup[0]",
            "no service name",
        ),
        (
            nested("network.allowedDomains", json!(["*"])),
            "network.allowedDomains[0]",
            "every host",
        ),
        (
            nested("network.allowedDomains", json!(["*.co.uk"])),
            "network.allowedDomains[0]",
            "public suffix",
        ),
        (
            nested("network.allowedDomains", json!(["169.254.169.254"])),
            "network.allowedDomains[0]",
            "can never hold",
        ),
        (
            nested("network.allowedDomains", json!(["http://a.example.com"])),
            "network.allowedDomains[0]",
            "URL",
        ),
        (
            nested("network.allowedDomains", json!(["0x7f.0.0.1"])),
            "network.allowedDomains[0]",
            "does not name a host",
        ),
        (
            nested("filesystem.disabled", json!(true)),
            "filesystem.disabled",
            "switches off every file rule",
        ),
        (
            mask("files", json!({ "path": "~/x", "mode": "mask" })),
            "credentials.files[0]",
            "a masked file needs secrets",
        ),
        (
            mask("files", json!({ "path": "~/x" })),
            "credentials.files[0].mode",
            "required and missing",
        ),
        (
            mask("files", json!({ "mode": "deny" })),
            "credentials.files[0].path",
            "required and missing",
        ),
        (
            mask("files", json!({ "path": "~/x", "mode": "hide" })),
            "credentials.files[0].mode",
            "\"hide\" is no mode",
        ),
        (
            mask("envVars", json!({ "name": "A", "mode": "mask" })),
            "credentials.envVars[0]",
            "a masked variable needs secrets",
        ),
        (
            mask("envVars", json!({ "name": "1A", "mode": "deny" })),
            "credentials.envVars[0].name",
            "no name of a variable",
        ),
        (
            mask("envVars", json!({ "name": "", "mode": "deny" })),
            "credentials.envVars[0].name",
            "no name of a variable",
        ),
        (
            mask("envVars", json!({ "name": "A", "mode": "deny", "injectHosts": [] })),
            "credentials.envVars[0].injectHosts",
            "the list is empty",
        ),
        (
            mask("envVars", json!({ "name": "A", "mode": "deny", "decode": "jws" })),
            "credentials.envVars[0].decode",
            "is not a value of this key",
        ),
        (
            mask("envVars", json!({ "name": "A", "mode": "deny", "maskClaims": ["a"] })),
            "credentials.envVars[0].maskClaims",
            "decoded token",
        ),
        (
            mask(
                "envVars",
                json!({ "name": "A", "mode": "deny", "decode": "jwt", "maskClaims": [] }),
            ),
            "credentials.envVars[0].maskClaims",
            "the list is empty",
        ),
        (
            mask(
                "files",
                json!({ "path": "~/x", "mode": "deny", "onExtractNoMatch": "no" }),
            ),
            "credentials.files[0].onExtractNoMatch",
            "is not a value of this key",
        ),
        (
            mask("awsPairs", json!({ "accessKeyIdVar": "A", "secretAccessKeyVar": "B" })),
            "credentials.awsPairs[0]",
            "cannot be signed in place",
        ),
        (
            nested("credentials.sigv4.streaming", json!("passthrough")),
            "credentials.sigv4.streaming",
            "cannot be signed again",
        ),
        (
            nested("credentials.sigv4.sigv4a", json!("x")),
            "credentials.sigv4.sigv4a",
            "is not a value of this key",
        ),
        (
            nested("mandatoryDenySearchDepth", json!(11)),
            "mandatoryDenySearchDepth",
            "11 is not a whole number",
        ),
        (
            nested("git.safeDirectories", json!(["*"])),
            "git.safeDirectories[0]",
            "nobody named",
        ),
        (
            nested("git.safeDirectories", json!(["/*"])),
            "git.safeDirectories[0]",
            "nobody named",
        ),
        (nested("bwrapPath", json!("bwrap")), "bwrapPath", "no absolute path"),
        (
            nested("windows.sandboxUser", json!("a-name-of-21-characters")),
            "windows.sandboxUser",
            "longer than 20",
        ),
        (
            nested("windows.sublayerGuid", json!("x")),
            "windows.sublayerGuid",
            "no GUID",
        ),
        (
            nested("windows.proxyPortRange", json!([1, 100])),
            "windows.proxyPortRange",
            "no range of ports",
        ),
        (
            nested("windows.proxyPortRange", json!([9, 1])),
            "windows.proxyPortRange",
            "no range of ports",
        ),
        (
            nested("windows.proxyPortRange", json!([1])),
            "windows.proxyPortRange",
            "no range of ports",
        ),
        (
            nested("windows.proxyPortRange", json!([0, 1])),
            "windows.proxyPortRange[0]",
            "0 is not a whole number",
        ),
        (
            nested("windows.srtWin.path", json!(1)),
            "windows.srtWin.path",
            "must be a string",
        ),
        (nested("ripgrep.args", json!("x")), "ripgrep.args", "must be a list"),
        (nested("seccomp.argv0", json!(1)), "seccomp.argv0", "must be a string"),
        (
            nested("javaAgentJarPath", json!("x.jar")),
            "javaAgentJarPath",
            "no absolute path",
        ),
        (
            nested("enableWeakerNetworkIsolation", json!("yes")),
            "enableWeakerNetworkIsolation",
            "must be a boolean",
        ),
        (
            nested("ignoreViolations", json!({ "npm": "x" })),
            "ignoreViolations[\"npm\"]",
            "must be a list",
        ),
        (
            nested("network.deniedDomainReasons", json!({ "a.example.com": 1 })),
            "network.deniedDomainReasons[\"a.example.com\"]",
            "must be a string",
        ),
    ];
    for (set, key, message) in cases {
        let found = faults(&set);
        assert!(
            found.iter().any(|f| f.key_path == key && f.message.contains(message)),
            "{set}: {found:?}"
        );
        assert!(found.iter().all(|f| !f.hint.is_empty()));
    }
}

#[test]
fn hosts_become_rules_with_the_formats_ports() {
    let layer = imported(&json!({ "network": {
        "allowedDomains": ["API.example.com", "*.example.org:8443", "10.0.0.1", "[2001:db8::1]:443", "localhost"],
        "deniedDomains": ["10.9.9.9", "evil.example.org:443", "*"],
    } }))
    .layer;
    let all = PortRange { first: 1, last: 65535 };
    assert_eq!(
        layer.network.allow[0].host,
        HostPattern::Exact("api.example.com".to_owned())
    );
    assert_eq!(layer.network.allow[0].ports, [all]);
    assert_eq!(
        layer.network.allow[1].ports,
        [PortRange {
            first: 8443,
            last: 8443
        }]
    );
    assert!(matches!(layer.network.allow[2].host, HostPattern::Addresses(_)));
    assert_eq!(layer.network.deny[0].ports, [], "every port");
    assert_eq!(layer.network.deny[2].host, HostPattern::Any);
    assert_eq!(
        layer.network.deny[2].origin.to_string(),
        "network.deniedDomains[2] (.srt-settings.json)"
    );
}

#[test]
fn denied_credentials_are_hidden_and_unset_whatever_they_say_about_masking() {
    let Imported { layer, notes } = imported(&json!({ "credentials": {
        "files": [{ "path": "~/.netrc", "mode": "deny", "extract": "(x)", "onExtractNoMatch": "warn", "maskDuplicates": true }],
        "envVars": [{ "name": "GH_TOKEN", "mode": "deny", "injectHosts": ["api.github.com"] }, { "name": "_X1", "mode": "deny" }],
        "allowPlaintextInject": true,
    } }));
    assert!(
        layer
            .filesystem
            .iter()
            .any(|r| r.access == PathAccess::Hide && r.path.path == Path::new("/home/u/.netrc"))
    );
    assert_eq!(
        layer
            .environment
            .deny
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["GH_TOKEN", "_X1"]
    );
    assert_eq!(notes.iter().filter(|note| note.contains("about masking")).count(), 2);
}

#[test]
fn unix_sockets_are_denied_unless_the_file_allows_them() {
    let denied = imported(&json!({})).layer.deny_unix_sockets;
    assert_eq!(
        denied.map(|origin| origin.to_string()).as_deref(),
        Some("network.allowAllUnixSockets (.srt-settings.json)")
    );
    let Imported { layer, notes } = imported(&json!({ "network": { "allowAllUnixSockets": true } }));
    assert_eq!(layer.deny_unix_sockets, None);
    assert!(
        notes
            .iter()
            .any(|note| note.contains("sockets of the host stay out of view"))
    );
}

#[test]
fn file_rules_are_switched_off_only_with_pinfolds_own_flag() {
    let set = json!({
        "filesystem": { "disabled": true, "denyRead": ["~/.ssh"], "denyWrite": ["/etc"] },
        "credentials": { "files": [{ "path": "~/.netrc", "mode": "deny" }], "envVars": [{ "name": "A", "mode": "deny" }] },
    });
    assert_eq!(faults(&set)[0].key_path, "filesystem.disabled");
    let permitted = ImportContext {
        allow_disabled_filesystem: true,
        ..context()
    };
    let Imported { layer, notes } = import(settings(&set).as_bytes(), &permitted).unwrap();
    assert!(!layer.filesystem.iter().any(|r| r.access == PathAccess::Hide));
    assert_eq!(
        (layer.filesystem[0].access, layer.filesystem[0].path.path.as_path()),
        (PathAccess::Write, Path::new("/"))
    );
    assert!(
        layer.lift.iter().any(|l| l.group == Group::GitHooks) && !layer.lift.iter().any(|l| l.group == Group::Pinfold)
    );
    assert_eq!(layer.environment.deny.len(), 1);
    assert!(notes.iter().any(|note| note.contains("filesystem.disabled")));
}

#[test]
fn a_relative_settings_file_is_protected_where_the_command_starts() {
    let relative = ImportContext {
        file: Path::new("./conf//srt.json"),
        ..context()
    };
    let layer = import(settings(&json!({})).as_bytes(), &relative).unwrap().layer;
    let rule = layer.filesystem.last().unwrap();
    assert_eq!(
        (rule.access, rule.path.path.as_path()),
        (PathAccess::ReadOnly, Path::new("/home/u/proj/conf/srt.json"))
    );
}
