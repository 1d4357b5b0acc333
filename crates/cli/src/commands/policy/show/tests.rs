use pinfold_model::origin::Scope;
use pinfold_model::policy::{Base, Flags, Layer, SourceName, merge};

use super::*;

fn policy() -> Policy {
    let text = r#"
[filesystem]
read = [{ path = "/opt/tools", reason = "the compiler" }]
write = ["~/.cache/pip"]
hide = ['/srv/\xff', "sub/*.pem"]
lift = ["git-config"]
[network]
allow = ["docs.example.com", { host = "10.1.0.0/16:5432", reason = "the database" }]
deny = ["telemetry.example.com"]
[environment]
pass = ["EDITOR"]
set = { CI = "1" }
[limits]
memory = "4GiB"
"#;
    let base = Base {
        folder: "/home/me/.config/pinfold".into(),
        home: Some("/home/me".into()),
    };
    let name = SourceName::File {
        path: "/home/me/.config/pinfold/config.toml".into(),
        scope: Scope::Trusted,
    };
    let user = Layer::parse(text.as_bytes(), &name, &base).unwrap_or_else(|error| panic!("{error}"));
    let flags = Flags {
        allow_all: true,
        timeout: Some("90m".to_owned()),
        ..Flags::default()
    };
    merge(vec![user, Layer::from_flags(&flags, &base).expect("valid")]).expect("trusted")
}

#[test]
fn the_table_names_every_rule_with_its_origin_and_what_opens_most_first() {
    let expected = r"network
  allow  every host             command line, --allow-all
  allow  docs.example.com       network.allow[0] (config.toml:8)
  allow  10.1.0.0/16:5432       network.allow[1] (config.toml:8)   the database
  deny   telemetry.example.com  network.deny[0] (config.toml:9)

filesystem
  write  /home/me/.cache/pip                     filesystem.write[0] (config.toml:4)
  read   /opt/tools                              filesystem.read[0] (config.toml:3)   the compiler
  hide   /home/me/.config/pinfold/sub/*.pem      filesystem.hide[1] (config.toml:5)
  hide   /srv/\xff                               filesystem.hide[0] (config.toml:5)

environment
  pass  EDITOR  environment.pass[0] (config.toml:11)
  set   CI=1    environment.set.CI (config.toml:12)

limits
  memory   4GiB   limits.memory (config.toml:14)
  timeout  1h30m  command line, --timeout

built in
";
    let table = as_table(&policy());
    // Widths follow the longest cell, which is of no interest here.
    let squeezed = |text: &str| {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(squeezed(&table).starts_with(&squeezed(expected)), "{table}");
    let table = squeezed(&table);
    assert!(
        table.contains("lifted git-config filesystem.lift[0] (config.toml:6)\n"),
        "{table}"
    );
    assert!(
        table.contains("readonly git-hooks Git on the host runs the programs in its hooks folder.\n"),
        "{table}"
    );
}

#[test]
fn the_json_form_holds_every_rule_and_bytes_that_are_no_utf_8() {
    let json = as_json(&policy());
    assert_eq!(json["network"]["allow_all"]["flag"], "--allow-all");
    assert_eq!(json["filesystem"][1]["path"], "/home/me/.config/pinfold/sub/*.pem");
    let hidden = json["filesystem"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|rule| rule["path"] == r"/srv/\xff")
        .expect("the rule");
    assert_eq!(
        (hidden["access"].as_str(), hidden["origin"]["line"].as_u64()),
        (Some("hide"), Some(5))
    );
    assert_eq!(json["limits"]["timeout"]["milliseconds"], 5_400_000);
    assert_eq!(json["protected"][1]["lifted"]["key"], "filesystem.lift[0]");
}

#[test]
fn hostile_text_cannot_steer_the_terminal() {
    let base = Base {
        folder: "/w".into(),
        home: None,
    };
    let name = SourceName::File {
        path: "/w/pinfold.toml".into(),
        scope: Scope::Workspace,
    };
    let text = "network.deny = [{ host = 'a.example.com', reason = \"\\u001b[2J\\u202e\" }]\nfilesystem.hide = [\"x\\u001b\\u009b2J\"]";
    let layer = Layer::parse(text.as_bytes(), &name, &base).unwrap_or_else(|error| panic!("{error}"));
    let policy = merge(vec![layer]).expect("tightens");
    for printed in [as_table(&policy), policy.to_toml(), json_text(&as_json(&policy))] {
        assert!(!printed.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{printed:?}");
    }
}
