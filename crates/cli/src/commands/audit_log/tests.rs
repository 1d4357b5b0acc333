use std::fs;

use clap::Parser;
use pinfold_model::origin::Origin;
use pinfold_model::verdict::{Denial, Matched};
use pinfold_server::audit::{AuditLog, Entry};
use tempfile::TempDir;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: LogArgs,
}

fn parse(args: &[&str]) -> LogArgs {
    Line::try_parse_from(["log"].iter().chain(args))
        .map(|line| line.args)
        .unwrap()
}

fn decision(host: &str, outcome: Became) -> Event {
    let method = Some("GET".to_owned());
    Event::Network(Decision {
        kind: RequestKind::Http,
        host: host.to_owned(),
        port: 443,
        method,
        path: None,
        duration_ms: 1,
        outcome,
    })
}

fn sample() -> TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let log = AuditLog::open(tmp.path().to_owned());
    let matched = || Matched {
        rule: "api.example.com".to_owned(),
        reason: None,
        origin: Origin::flag("--allow"),
    };
    let denial = Denial {
        reason: "no rule".to_owned(),
        matched: None,
        hint: String::new(),
    };
    for event in [
        Event::Started {
            backend: "process".to_owned(),
        },
        decision(
            "api.example.com",
            Became::Allowed {
                matched: matched(),
                address: None,
                sent: 1,
                received: 2,
            },
        ),
        decision("evil\x1b[2J\u{202e}.test", Became::Denied { denial }),
        decision(
            "2001:db8::1",
            Became::Failed {
                matched: matched(),
                error: "connection refused".to_owned(),
            },
        ),
        Event::quarantined(Path::new("/w/.mcp.json"), Path::new("/q/1")),
    ] {
        log.append(&Entry {
            sandbox: "s1".to_owned(),
            event,
        })
        .unwrap();
    }
    tmp
}

fn shown(args: &[&str], directory: &Path) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = print(&parse(args), directory, SystemTime::now(), &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn the_table_lines_up_and_holds_nothing_that_steers_a_terminal() {
    let tmp = sample();
    let (code, out, err) = shown(&[], tmp.path());
    assert_eq!((code, err.as_str()), (0, ""));
    let rows: Vec<&str> = out
        .lines()
        .map(|line| line.split_at(line.find(' ').unwrap()).1.trim_start())
        .collect();
    assert_eq!(
        rows,
        [
            "SANDBOX  VERDICT  KIND        HOST                            METHOD  RULE OR REASON",
            "s1       allowed  start                                               process backend",
            "s1       allowed  http        api.example.com:443             GET     api.example.com, command line, --allow",
            "s1       denied   http        evil\\u{1b}[2J\\u{202e}.test:443  GET     no rule",
            "s1       failed   http        [2001:db8::1]:443               GET     connection refused (api.example.com)",
            "s1       denied   quarantine                                          /w/.mcp.json, now /q/1",
        ]
    );
}

#[test]
fn flags_narrow_what_is_shown() {
    let tmp = sample();
    let count = |args: &[&str]| shown(args, tmp.path()).1.lines().count();
    for (args, records) in [
        (&["--json"][..], 5),
        (&["--json", "--denied"], 2),
        (&["--json", "--allowed"], 3),
        (&["--json", "--denied", "--allowed"], 5),
        (&["--json", "--host", "example.com"], 1),
        (&["--json", "--host", "*.test"], 1),
        (&["--json", "--sandbox", "s2"], 0),
        (&["--json", "--since", "1h"], 5),
        (&["--json", "--since", "2999-01-01"], 0),
        (&["--json", "--last", "2"], 2),
    ] {
        assert_eq!(count(args), records, "{args:?}");
    }
    assert!(shown(&["--sandbox", "s2"], tmp.path()).2.contains("no record matches"));
}

#[test]
fn json_lines_are_the_records_with_their_hashes() {
    let tmp = sample();
    let (_, out, _) = shown(&["--json", "--last", "1"], tmp.path());
    let record: Record = serde_json::from_str(out.trim_end()).unwrap();
    assert_eq!((record.seq, record.hash.len()), (5, 64));
}

#[test]
fn verify_passes_a_whole_log_and_names_the_broken_line_of_another() {
    let tmp = sample();
    let (code, out, _) = shown(&["--verify"], tmp.path());
    assert_eq!(code, 0);
    assert!(
        out.starts_with("5 intact records in 1 files, from ") && out.ends_with("the chain is whole\n"),
        "{out}"
    );
    let file = tmp.path().join("audit.jsonl");
    let text = fs::read_to_string(&file).unwrap().replace("no rule", "no role");
    fs::write(&file, text).unwrap();
    let (code, out, _) = shown(&["--verify"], tmp.path());
    assert_eq!(code, 74);
    assert!(out.contains("audit.jsonl:3: the chain is broken here"), "{out}");
    assert!(shown(&[], tmp.path()).2.contains("audit.jsonl:3"));
}

#[test]
fn an_empty_log_is_no_error() {
    let tmp = tempfile::tempdir().unwrap();
    let (code, out, err) = shown(&[], &tmp.path().join("none"));
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.contains("no record matches"));
    assert_eq!(shown(&["--verify"], tmp.path()).0, 0);
}

#[test]
fn ages_and_times_are_read_and_nonsense_is_refused() {
    assert_eq!(parse_since("90m"), Ok(Since::Age(Duration::from_secs(5400))));
    assert_eq!(parse_since("2w"), Ok(Since::Age(Duration::from_secs(14 * 86_400))));
    assert!(matches!(parse_since("2026-01-31"), Ok(Since::Time(_))));
    for text in ["", "h", "1", "-1h", "1y", "1 h", "é", "99999999999999999999h"] {
        assert!(parse_since(text).is_err(), "{text}");
    }
    assert!(Line::try_parse_from(["log", "--verify", "--denied"]).is_err());
    assert!(Line::try_parse_from(["log", "--host", "a b"]).is_err());
}
