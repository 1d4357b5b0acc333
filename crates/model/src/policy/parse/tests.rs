use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use crate::net::HostPattern;
use crate::origin::{Origin, Scope};
use crate::policy::{Authority, Base, Layer, PathAccess, PolicyError, SourceName, merge};
use crate::protected::Group;

fn base() -> Base {
    Base {
        folder: PathBuf::from("/w/app"),
        home: Some(PathBuf::from("/home/me")),
    }
}

fn name(scope: Scope) -> SourceName {
    SourceName::File {
        path: PathBuf::from("/w/app/pinfold.toml"),
        scope,
    }
}

fn parse(text: &str) -> Result<Layer, PolicyError> {
    Layer::parse(text.as_bytes(), &name(Scope::Trusted), &base())
}

const EVERYTHING: &str = r#"
version = 1
backend = "process"
profiles = ["claude", "mine"]

[workspace]
mode = "direct"

[filesystem]
read = ["~/.gitconfig", { path = "/opt/tools", reason = "the compiler" }]
write = ["~/.cache/pip"]
hide = ["./secrets", 'sub/**/*.p\x65m']
readonly = ["./migrations"]
lift = ["git-config"]
scan_depth = 5

[network]
allow = ["docs.example.com", "*.internal.example.com:8443", { host = "api.example.com", reason = "issues" }]
deny = ["telemetry.example.com"]
allow_all = true
refuse_addresses = ["10.0.0.0/8", "192.0.2.7"]
deny_unix_sockets = true

[environment]
pass = ["EDITOR", { name = "PAGER", reason = "manual pages" }]
deny = ["TOKEN"]
set = { CI = "1" }

[limits]
memory = "4GiB"
cpus = 1.5
pids = 512
timeout = "2h"

[git]
safe_directories = ["/srv/repo"]

[report]
quiet_denials = { "*" = ["telemetry"] }
"#;

#[test]
fn every_key_is_read_and_knows_its_place() {
    let layer = parse(EVERYTHING).expect("valid");
    let origin = |line, column, key: &str| Origin::File {
        scope: Scope::Trusted,
        path: PathBuf::from("/w/app/pinfold.toml"),
        line,
        column,
        key: key.to_owned(),
    };
    assert_eq!(layer.authority, Authority::Full);
    assert_eq!(layer.profiles[1], ("mine".to_owned(), origin(4, 23, "profiles[1]")));
    let paths: Vec<_> = layer
        .filesystem
        .iter()
        .map(|rule| (rule.access, rule.path.to_text()))
        .collect();
    let expected = [
        (PathAccess::Read, "/home/me/.gitconfig"),
        (PathAccess::Read, "/opt/tools"),
        (PathAccess::Write, "/home/me/.cache/pip"),
        (PathAccess::Hide, "/w/app/secrets"),
        (PathAccess::Hide, "/w/app/sub/**/*.pem"),
        (PathAccess::ReadOnly, "/w/app/migrations"),
    ];
    assert_eq!(paths, expected.map(|(access, path)| (access, path.to_owned())));
    assert_eq!(layer.filesystem[1].reason.as_deref(), Some("the compiler"));
    assert_eq!(layer.filesystem[1].origin, origin(10, 25, "filesystem.read[1]"));
    assert_eq!(layer.lift[0].group, Group::GitConfig);
    assert_eq!(layer.scan_depth.as_ref().map(|limit| limit.value), Some(5));
    assert_eq!(
        layer.network.allow[0].host,
        HostPattern::Exact("docs.example.com".to_owned())
    );
    assert_eq!(layer.network.allow[2].origin, origin(18, 61, "network.allow[2]"));
    assert_eq!(layer.network.allow[2].reason.as_deref(), Some("issues"));
    assert_eq!(layer.network.allow_all, Some(origin(20, 13, "network.allow_all")));
    assert_eq!(layer.network.refused_addresses.len(), 2);
    assert_eq!(
        layer.deny_unix_sockets,
        Some(origin(22, 21, "network.deny_unix_sockets"))
    );
    assert_eq!(
        layer.environment.pass[1],
        ("PAGER".to_owned(), origin(25, 19, "environment.pass[1]"))
    );
    assert_eq!(
        layer.environment.set["CI"],
        ("1".to_owned(), origin(27, 9, "environment.set.CI"))
    );
    assert_eq!(layer.environment.deny[0].0, "TOKEN");
    assert_eq!(layer.limits.memory.as_ref().map(|limit| limit.value), Some(4 << 30));
    assert_eq!(layer.limits.cpu_millis.as_ref().map(|limit| limit.value), Some(1500));
    assert_eq!(layer.limits.pids.as_ref().map(|limit| limit.value), Some(512));
    assert_eq!(
        layer.limits.timeout.as_ref().map(|limit| limit.value),
        Some(Duration::from_secs(7200))
    );
    assert_eq!(layer.git_safe_directories[0].0, PathBuf::from("/srv/repo"));
    assert_eq!(layer.quiet_denials["*"], ["telemetry"]);
    assert_eq!(layer.quiet_origin, Some(origin(39, 26, "report.quiet_denials")));
}

#[test]
fn an_empty_file_says_nothing() {
    assert_eq!(parse("").expect("valid"), Layer::new(Authority::Full));
    let untrusted = Layer::parse(b"", &name(Scope::Workspace), &base()).expect("valid");
    assert_eq!(untrusted, Layer::new(Authority::TightenOnly));
}

#[test]
fn every_fault_is_named_with_line_column_and_the_next_step() {
    let table: &[(&str, (u32, u32), &str, &str)] = &[
        (
            "version = 2",
            (1, 11),
            "this build reads version 1 of the policy format, not 2",
            "write version = 1",
        ),
        (
            "version = \"1\"",
            (1, 11),
            "expected a whole number, found string \"1\"",
            "pinfold schema",
        ),
        (
            "verison = 1",
            (1, 1),
            "unknown key 'verison'",
            "did you mean 'version'?",
        ),
        (
            "backend = \"docker\"",
            (1, 11),
            "this build has the process backend only, not 'docker'",
            "write \"process\"",
        ),
        (
            "backend = \"proces\"",
            (1, 11),
            "'proces' is no backend",
            "did you mean 'process'?",
        ),
        (
            "[workspace]\nmode = \"clone\"",
            (2, 8),
            "this build has the direct workspace mode only, not 'clone'",
            "write \"direct\"",
        ),
        (
            "[workspace]\nmounts = []",
            (2, 1),
            "unknown key 'mounts'",
            "the keys here are mode",
        ),
        (
            "profiles = [\"a\", \"../b\"]",
            (1, 18),
            "'../b' is not a profile's name",
            "--config",
        ),
        (
            "[filesystem]\n\nreed = [\"x\"]",
            (3, 1),
            "unknown key 'reed'",
            "did you mean 'read'?",
        ),
        (
            "[filesystem]\nread = \"x\"",
            (2, 8),
            "expected a list, found string \"x\"",
            "pinfold schema",
        ),
        (
            "[filesystem]\nread = [\n  \"ok\",\n  3,\n]",
            (4, 3),
            "expected a string, or a table { path = \"…\", reason = \"…\" }, found integer `3`",
            "pinfold schema",
        ),
        (
            "[filesystem]\nread = [{ path = \"x\", why = \"y\" }]",
            (2, 23),
            "unknown key 'why'",
            "the keys here are path, reason",
        ),
        (
            "[filesystem]\nread = [{ reason = \"y\" }]",
            (2, 9),
            "missing field `path`",
            "pinfold schema",
        ),
        (
            "[filesystem]\nhide = [\"a\", \"~bob/x\"]",
            (2, 14),
            "'~bob' names another user's home folder, which is not looked up",
            "write the folder in full",
        ),
        (
            "[filesystem]\nhide = [\n\"a\",\n{ path = \"/*\" },\n]",
            (4, 1),
            "the pattern would have to search the whole file system",
            "start the pattern in a named folder",
        ),
        (
            "[filesystem]\nhide = [\"a\\xff\"]",
            (2, 11),
            "'\\x' in double quotes is a character of TOML, not a byte of the path",
            "single quotes",
        ),
        (
            "[filesystem]\nlift = [\"git-hook\"]",
            (2, 9),
            "'git-hook' is not a group of protected paths",
            "did you mean 'git-hooks'?",
        ),
        (
            "[filesystem]\nscan_depth = 11",
            (2, 14),
            "a scan depth of 11 is out of range",
            "from 1 to 10",
        ),
        (
            "[filesystem]\nwrite = [\"a\"]\nhide = [\"./a/\"]",
            (3, 9),
            "'/w/app/a' is both writable (write) and hidden (hide)",
            "the other is filesystem.write[0] (pinfold.toml:2)",
        ),
        (
            "[network]\nallow = [\"a.example.com\", \"*.com\"]",
            (2, 27),
            "the rule '*.com' would allow every .com host",
            "name the hosts",
        ),
        (
            "[network]\nallow = [\"*\"]",
            (2, 10),
            "the rule '*' would allow every host",
            "allow_all = true",
        ),
        (
            "[network]\nallow = [{ host = \"a.example.com\", methods = [\"GET\"] }]",
            (2, 36),
            "unknown key 'methods'",
            "the keys here are host, reason",
        ),
        (
            "[network]\nallow = [\"a.example.com\"]\ndeny = [\"A.example.com\"]",
            (2, 10),
            "'a.example.com' is both allowed and denied",
            "the other is network.deny[0] (pinfold.toml:3)",
        ),
        (
            "[network]\nallow_all = 1",
            (2, 13),
            "expected true or false, found integer `1`",
            "pinfold schema",
        ),
        (
            "[network]\nrefuse_addresses = [\"10.0.0.1/8\"]",
            (2, 21),
            "'10.0.0.1/8' has bits set below its prefix",
            "10.0.0.0/8",
        ),
        ("[network]\nask = []", (2, 1), "unknown key 'ask'", "the keys here are"),
        (
            "[environment]\npass = [\"LC_*\"]",
            (2, 9),
            "'LC_*' is not a variable's name",
            "name each variable",
        ),
        (
            "[environment]\nset = { \"A B\" = \"1\" }",
            (2, 9),
            "'A B' is not a variable's name",
            "a name has letters",
        ),
        (
            "[environment]\nset = { A = \"x\\u0000\" }",
            (2, 9),
            "the value of A holds a NUL, which no variable can",
            "take the NUL out",
        ),
        (
            "[environment]\npass = [\"A\"]\nset = { A = \"1\" }",
            (2, 9),
            "A is both passed and set",
            "environment.set.A",
        ),
        (
            "[limits]\nmemory = \"4 gigs\"",
            (2, 10),
            "'4 gigs' is not a size",
            "4GiB",
        ),
        (
            "[limits]\nmemory = 4",
            (2, 10),
            "4 bytes are too little for any command",
            "a number without a unit counts bytes",
        ),
        (
            "[limits]\ncpus = 0",
            (2, 8),
            "'0' is not a number of CPUs",
            "0.01 to 4096",
        ),
        (
            "[limits]\ncpus = inf",
            (2, 8),
            "'inf' is not a number of CPUs",
            "0.01 to 4096",
        ),
        (
            "[limits]\npids = 1.5",
            (2, 8),
            "'1.5' is not a number of processes",
            "whole number",
        ),
        ("[limits]\ntimeout = 90", (2, 11), "'90' is not a duration", "\"90s\""),
        (
            "[git]\nsafe_directories = [\"/srv/*\"]",
            (2, 21),
            "'/srv/*' is a pattern, and git is told exact folders",
            "name each folder",
        ),
        (
            "[filesystem]\nread = [\"a\"",
            (2, 12),
            "unclosed array, expected `]`",
            "pinfold schema",
        ),
        ("[filesystem]\nread = []\nread = []", (3, 1), "duplicate key", ""),
        ("é = 1", (1, 1), "invalid unquoted key", ""),
    ];
    for (text, place, message, hint) in table {
        let error = parse(text).expect_err(text);
        let PolicyError::File {
            place: found,
            message: said,
            ..
        } = &error
        else {
            panic!("{text}: {error:?}")
        };
        assert_eq!((found.line, found.column), *place, "{text}: {error}");
        assert!(said.starts_with(message), "{text}: {said}");
        assert!(error.hint().contains(hint), "{text}: {}", error.hint());
    }
}

#[test]
fn an_error_shows_the_line_with_a_mark() {
    let error = parse("[filesystem]\n\treed = [\"x\u{200b}\"] # \u{202e}").expect_err("unknown key");
    let expected =
        "unknown key 'reed'   (/w/app/pinfold.toml:2:2)\n  2 |  reed = [\"x\u{fffd}\"] # \u{fffd}\n    |  ^^^^";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_very_long_line_is_cut_around_the_mark() {
    let text = format!("[filesystem]\nread = [{}\"~bob\"]", "\"a\", ".repeat(1000));
    let error = parse(&text).expect_err("another user's home").to_string();
    assert!(error.lines().all(|line| line.chars().count() < 140), "{error}");
    assert!(error.contains("\"~bob\""), "{error}");
}

#[test]
fn bytes_that_are_no_utf_8_are_named_with_their_place() {
    let error = Layer::parse(
        b"version = 1\nprofiles = [\"\xc3\xa9\xff\"]",
        &name(Scope::Trusted),
        &base(),
    )
    .expect_err("no UTF-8");
    let PolicyError::File { place, message, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((place.line, place.column), (2, 15));
    assert_eq!(message, "byte 0xff is no UTF-8, and a policy is UTF-8 text");
}

#[test]
fn a_file_beyond_the_limit_is_refused_unread() {
    let error = parse(&"#".repeat(1024 * 1024 + 1)).expect_err("too large");
    assert!(
        error
            .to_string()
            .starts_with("the file has 1048577 bytes, and a policy has at most 1048576"),
        "{error}"
    );
}

#[test]
fn a_profile_names_no_profiles_and_no_relative_paths() {
    let profile = SourceName::Profile {
        name: "mine".to_owned(),
    };
    let table = [
        (
            "profiles = [\"claude\"]",
            "a profile cannot build on another profile   (profile mine:1:13)",
        ),
        (
            "filesystem.read = [\"x\"]",
            "'x' is relative, and a profile is used in many folders   (profile mine:1:20)",
        ),
    ];
    for (text, message) in table {
        let error = Layer::parse(text.as_bytes(), &profile, &base())
            .expect_err(text)
            .to_string();
        assert_eq!(error.lines().next(), Some(message));
    }
    assert!(Layer::parse(b"filesystem.read = [\"~/x\", \"/y\"]", &profile, &base()).is_ok());
}

#[test]
fn nesting_without_end_is_refused() {
    assert!(parse(&format!("a = {}", "[".repeat(500_000))).is_err());
    assert!(parse(&format!("a = {}", "{a=".repeat(300_000))).is_err());
    assert!(parse(&format!("{}a = 1", "a.".repeat(400_000))).is_err());
}

#[test]
fn ten_thousand_rules_are_read_and_merged_each_with_its_place() {
    use std::fmt::Write as _;
    let mut text = String::from("[filesystem]\nhide = [\n");
    for index in 0..10_000 {
        let _ = writeln!(text, "  \"./data/{index}\",");
    }
    text.push_str("]\n");
    let policy = merge(vec![parse(&text).expect("valid")]).expect("merges");
    assert_eq!(policy.filesystem.len(), 10_000);
    assert!(
        matches!(policy.filesystem.last(), Some(rule) if matches!(&rule.origin, Origin::File { line: 10_002, .. }))
    );
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Layer::parse(&bytes, &name(Scope::Workspace), &base());
    }

    #[test]
    fn any_damage_to_a_good_file_is_answered(at in 0..EVERYTHING.len(), replacement in "[\\x00-\\x7fé\"'\\\\\\[\\]{}=,]{0,3}", drop in 0_usize..8) {
        prop_assume!(EVERYTHING.is_char_boundary(at));
        let rest = EVERYTHING[at..].chars().skip(drop).collect::<String>();
        let text = format!("{}{replacement}{rest}", &EVERYTHING[..at]);
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty());
        }
    }
}
