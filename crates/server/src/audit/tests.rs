use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use pinfold_model::origin::{Origin, Scope};
use pinfold_model::verdict::{Decision, Denial, Matched, Outcome as Became, RequestKind};
use tempfile::TempDir;

use super::chain::{self, Link, MAX_LINE};
use super::log::{FILE, LOCK, older};
use super::*;

fn matched() -> Matched {
    Matched {
        rule: "api.example.com".to_owned(),
        reason: Some("issues".to_owned()),
        origin: Origin::flag("--allow"),
    }
}

fn decision(host: &str, outcome: Became) -> Decision {
    Decision {
        kind: RequestKind::Http,
        host: host.to_owned(),
        port: 443,
        method: Some("GET".to_owned()),
        path: Some("/a".to_owned()),
        duration_ms: 3,
        outcome,
    }
}

fn allowed(host: &str) -> Event {
    let address = Some("192.0.2.7:443".parse().unwrap());
    Event::Network(decision(
        host,
        Became::Allowed {
            matched: matched(),
            address,
            sent: 1,
            received: u64::MAX,
        },
    ))
}

fn denied(host: &str) -> Event {
    let denial = Denial {
        reason: "no rule".to_owned(),
        matched: None,
        hint: "pinfold policy allow".to_owned(),
    };
    Event::Network(decision(host, Became::Denied { denial }))
}

fn failed(host: &str) -> Event {
    Event::Network(decision(
        host,
        Became::Failed {
            matched: matched(),
            error: "refused".to_owned(),
        },
    ))
}

fn entry(sandbox: &str, event: Event) -> Entry {
    Entry {
        sandbox: sandbox.to_owned(),
        event,
    }
}

fn everything(dir: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    Reader::open(dir)
        .unwrap()
        .each(&Filter::default(), |item| {
            if let Item::Record(record) = item {
                records.push(*record);
            }
            true
        })
        .unwrap();
    records
}

fn check(dir: &Path) -> Verified {
    verify(Reader::open(dir).unwrap()).unwrap()
}

fn log() -> (TempDir, PathBuf, AuditLog) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("data/audit");
    let log = AuditLog::open(dir.clone());
    (tmp, dir, log)
}

#[test]
fn making_a_log_touches_nothing_and_the_first_record_makes_private_files() {
    let (_tmp, dir, log) = log();
    assert!(!dir.exists());
    assert_eq!(everything(&dir), []);
    log.append(&entry(
        "s1",
        Event::Started {
            backend: "process".to_owned(),
        },
    ))
    .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        (mode(&dir), mode(&dir.join(FILE)), mode(&dir.join(LOCK))),
        (0o700, 0o600, 0o600)
    );
}

#[test]
fn every_event_reads_back_as_it_was_written() {
    let (_tmp, dir, log) = log();
    let file = Origin::File {
        scope: Scope::Workspace,
        path: "/w/pinfold.toml".into(),
        line: 3,
        column: 1,
        key: "network.allow[0]".into(),
    };
    let refused = Denial {
        reason: "denied by rule".to_owned(),
        matched: Some(Matched {
            rule: "*".to_owned(),
            reason: None,
            origin: file.clone(),
        }),
        hint: "remove it".to_owned(),
    };
    let events = [
        allowed("a.example.com"),
        denied("b.example.com"),
        failed("c.example.com"),
        Event::Network(decision("d.example.com", Became::Denied { denial: refused })),
        Event::Started {
            backend: "process".to_owned(),
        },
        Event::StartRefused {
            layer: "landlock".to_owned(),
            step: "restrict".to_owned(),
            reason: "ENOSYS".to_owned(),
        },
        Event::SelfTestFailed {
            check: "write outside".to_owned(),
            reason: "it succeeded".to_owned(),
        },
        Event::quarantined(Path::new("/w/.mcp.json"), Path::new("/q/1")),
        Event::AllowAll { origin: file },
    ];
    for event in &events {
        log.append(&entry("s1", event.clone())).unwrap();
    }
    let records = everything(&dir);
    assert_eq!(records.iter().map(|r| r.event.clone()).collect::<Vec<_>>(), events);
    assert_eq!(
        records.iter().map(|r| r.seq).collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
    let found = check(&dir);
    assert_eq!((found.records, found.files, found.broken), (9, 1, None));
}

#[test]
fn hostile_text_is_escaped_in_the_file_and_paths_that_are_not_text_are_kept_readable() {
    let (_tmp, dir, log) = log();
    log.append(&entry("s\x1b]0;x\x07", denied("evil\u{202e}\u{9b}31m\nhost")))
        .unwrap();
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/w/\xff.toml"));
    log.append(&entry(
        "s",
        Event::AllowAll {
            origin: Origin::Settings {
                path,
                key: "k".to_owned(),
            },
        },
    ))
    .unwrap();
    log.append(&entry(
        "s",
        Event::quarantined(Path::new(std::ffi::OsStr::from_bytes(b"/w/\xfe")), Path::new("/q")),
    ))
    .unwrap();
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{text}");
    assert_eq!(text.lines().count(), 3);
    let records = everything(&dir);
    assert!(matches!(&records[0].event, Event::Network(d) if d.host == "evil\u{202e}\u{9b}31m\nhost"));
    assert!(
        matches!(&records[1].event, Event::AllowAll { origin: Origin::Settings { path, .. } } if path == Path::new("/w/\\xff.toml"))
    );
    assert!(matches!(&records[2].event, Event::Quarantined { path, .. } if path == "/w/\\xfe"));
}

#[test]
fn a_record_with_enormous_text_is_cut_not_lost() {
    let (_tmp, dir, log) = log();
    let mut event = decision(
        &"\u{202e}".repeat(90_000),
        Became::Failed {
            matched: matched(),
            error: "\x1b".repeat(90_000),
        },
    );
    event.path = Some("\x07".repeat(90_000));
    log.append(&entry(&"é".repeat(90_000), Event::Network(event))).unwrap();
    let records = everything(&dir);
    assert!(matches!(&records[0].event, Event::Network(d) if d.host.ends_with("[cut]")));
    assert!(records[0].line.len() < MAX_LINE);
}

#[test]
fn filters_combine_and_the_last_records_come_across_files() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().to_owned();
    let log = AuditLog::rotating_at(dir.clone(), 2000);
    for n in 0..12 {
        log.append(&entry("s1", allowed(&format!("a{n}.example.com")))).unwrap();
        log.append(&entry("s2", denied("evil.test"))).unwrap();
        log.append(&entry("s1", failed("10.0.0.1"))).unwrap();
    }
    let count = |filter: Filter| Reader::open(&dir).unwrap().last(&filter, 1000).unwrap().0.len();
    let base = Filter::default();
    assert_eq!(count(base.clone()), 36);
    assert_eq!(
        count(Filter {
            sandbox: Some("s2".to_owned()),
            ..base.clone()
        }),
        12
    );
    assert_eq!(
        count(Filter {
            outcomes: vec![Outcome::Denied],
            ..base.clone()
        }),
        12
    );
    assert_eq!(
        count(Filter {
            outcomes: vec![Outcome::Allowed, Outcome::Failed],
            ..base.clone()
        }),
        24
    );
    assert_eq!(
        count(Filter {
            host: Some("example.com".parse().unwrap()),
            ..base.clone()
        }),
        12
    );
    assert_eq!(
        count(Filter {
            host: Some("evil.*".parse().unwrap()),
            sandbox: Some("s1".to_owned()),
            ..base.clone()
        }),
        0
    );
    assert_eq!(
        count(Filter {
            since: Some(SystemTime::now() + Duration::from_secs(60)),
            ..base.clone()
        }),
        0
    );
    assert_eq!(
        count(Filter {
            since: Some(SystemTime::now() - Duration::from_secs(60)),
            ..base.clone()
        }),
        36
    );

    let only = Filter {
        outcomes: vec![Outcome::Allowed],
        ..base
    };
    let (last, damaged) = Reader::open(&dir).unwrap().last(&only, 3).unwrap();
    let hosts: Vec<_> = last
        .iter()
        .map(|r| {
            if let Event::Network(d) = &r.event {
                d.host.as_str()
            } else {
                ""
            }
        })
        .collect();
    assert_eq!(hosts, ["a9.example.com", "a10.example.com", "a11.example.com"]);
    assert_eq!(damaged, []);
    assert_eq!(Reader::open(&dir).unwrap().last(&only, 0).unwrap().0, []);
    let mut seen = 0;
    Reader::open(&dir)
        .unwrap()
        .each(&only, |_| {
            seen += 1;
            seen < 2
        })
        .unwrap();
    assert_eq!(seen, 2);
}

#[test]
fn rotation_keeps_eight_older_files_and_one_chain() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().to_owned();
    let log = AuditLog::rotating_at(dir.clone(), 1000);
    for _ in 0..60 {
        log.append(&entry("s", denied("x.test"))).unwrap();
    }
    assert!(dir.join(older(8)).exists() && !dir.join(older(9)).exists());
    let found = check(&dir);
    assert_eq!((found.files, found.broken, found.torn), (9, None, vec![]));
    assert_eq!(everything(&dir).last().unwrap().seq, 60);

    // Two logs at once, one of which does not know that the other has rotated.
    let other = AuditLog::rotating_at(dir.clone(), 1000);
    for _ in 0..10 {
        other.append(&entry("o", denied("x.test"))).unwrap();
        log.append(&entry("s", denied("x.test"))).unwrap();
    }
    assert_eq!(check(&dir).broken, None);
    assert_eq!(everything(&dir).last().unwrap().seq, 80);

    // The current file is gone: the chain goes on from the one before it, and the gap shows.
    fs::remove_file(dir.join(FILE)).unwrap();
    log.append(&entry("s", denied("x.test"))).unwrap();
    assert_eq!(check(&dir).broken, None);
    fs::remove_file(dir.join(older(3))).unwrap();
    let broken = check(&dir).broken.unwrap();
    assert_eq!((broken.file, broken.line), (dir.join(older(2)), 1));
}

#[test]
fn eight_threads_with_logs_of_their_own_keep_one_chain() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().to_owned();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = dir.clone();
            scope.spawn(move || {
                let log = AuditLog::rotating_at(dir, 16_000);
                for _ in 0..50 {
                    log.append(&entry(&format!("t{thread}"), denied("x.test"))).unwrap();
                }
            });
        }
    });
    let found = check(&dir);
    assert_eq!(
        (found.records, found.broken, found.torn.len()),
        (everything(&dir).len() as u64, None, 0)
    );
    assert_eq!(everything(&dir).last().unwrap().seq, 400);
}

const CHILD: &str = "PINFOLD_TEST_AUDIT_CHILD";

#[test]
#[ignore = "the child of eight_processes_keep_one_chain, which runs it with a folder"]
fn child_process_appends() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let log = AuditLog::open(PathBuf::from(dir));
    for _ in 0..50 {
        log.append(&entry(&std::process::id().to_string(), allowed("x.test")))
            .unwrap();
    }
}

#[test]
fn eight_processes_keep_one_chain() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("audit");
    let children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "audit::tests::child_process_appends",
                    "--include-ignored",
                    "--quiet",
                ])
                .env(CHILD, &dir)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let found = check(&dir);
    assert_eq!((found.records, found.broken, found.torn.len()), (400, None, 0));
}

fn add(dir: &Path, bytes: &[u8]) {
    OpenOptions::new()
        .append(true)
        .open(dir.join(FILE))
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

#[test]
fn a_torn_last_line_is_reported_and_the_chain_goes_on_behind_a_marker() {
    let whole = {
        let (line, _) = chain::encode(&Link::start(), "t", "s", &denied("x.test")).unwrap();
        line
    };
    for torn in [
        &whole.as_bytes()[..100],
        b"{",
        b"\0\0\0\0",
        b"garbage\nmore garbage\n",
        &[b'x'; 70_000][..],
    ] {
        let (_tmp, dir, log) = log();
        log.append(&entry("s", denied("x.test"))).unwrap();
        log.append(&entry("s", denied("x.test"))).unwrap();
        add(&dir, torn);
        let before = check(&dir);
        assert_eq!(before.records, 2);
        assert!(
            before.torn.len() == usize::from(!torn.ends_with(b"\n")),
            "torn at the very end is told apart from edits"
        );
        for append in [&log, &AuditLog::open(dir.clone())] {
            append.append(&entry("s", allowed("y.test"))).unwrap();
        }
        let found = check(&dir);
        assert_eq!((found.broken, found.torn.len(), found.records), (None, 1, 5));
        assert_eq!(found.torn[0].line, 3);
        let (records, damaged) = Reader::open(&dir).unwrap().last(&Filter::default(), 100).unwrap();
        assert!(matches!(records[2].event, Event::ChainRestarted { damaged: Some(_) }));
        assert!(!damaged.is_empty());
    }
}

#[test]
fn a_torn_only_line_and_damage_beyond_reach_do_not_stop_the_log() {
    for (torn, reachable) in [(vec![b'{'; 10], true), (vec![b'z'; 600_000], false)] {
        let (_tmp, dir, log) = log();
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(FILE), &torn).unwrap();
        log.append(&entry("s", denied("x.test"))).unwrap();
        log.append(&entry("s", denied("x.test"))).unwrap();
        assert_eq!(everything(&dir).len(), 3);
        assert_eq!(check(&dir).broken.is_none(), reachable);
        assert_eq!(
            fs::metadata(dir.join(FILE)).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[test]
fn every_kind_of_tampering_names_the_first_line_that_does_not_hold() {
    let make = || {
        let (tmp, dir, log) = log();
        for n in 0..5 {
            log.append(&entry("s", denied(&format!("h{n}.test")))).unwrap();
        }
        let text = fs::read_to_string(dir.join(FILE)).unwrap();
        let lines: Vec<String> = text.lines().map(|l| format!("{l}\n")).collect();
        (tmp, dir, log, lines)
    };
    type Edit = fn(&mut Vec<String>);
    let edits: [(Edit, u64); 6] = [
        (|l| l[1] = l[1].replace("h1.test", "h9.test"), 2),
        (|l| drop(l.remove(2)), 3),
        (|l| l.swap(1, 2), 2),
        (|l| l.insert(2, l[1].clone()), 3),
        (|l| drop(l.remove(0)), 1),
        (|l| l[4] = l[4].replace("h4", "h5"), 5),
    ];
    for (edit, line) in edits {
        let (_tmp, dir, _log, mut lines) = make();
        edit(&mut lines);
        fs::write(dir.join(FILE), lines.concat()).unwrap();
        assert_eq!(check(&dir).broken.map(|b| b.line), Some(line));
    }
}

#[test]
fn damage_that_is_changed_after_its_marker_is_found() {
    let (_tmp, dir, log) = log();
    log.append(&entry("s", denied("x.test"))).unwrap();
    add(&dir, b"torn");
    log.append(&entry("s", denied("x.test"))).unwrap();
    let text = fs::read_to_string(dir.join(FILE))
        .unwrap()
        .replacen("torn\n", "TORN\n", 1);
    fs::write(dir.join(FILE), text).unwrap();
    assert_eq!(check(&dir).broken.map(|b| b.line), Some(3));
}

#[test]
fn an_edited_last_record_is_not_hidden_by_the_marker_that_follows_it() {
    let (_tmp, dir, log) = log();
    log.append(&entry("s", denied("x.test"))).unwrap();
    log.append(&entry("s", denied("y.test"))).unwrap();
    let text = fs::read_to_string(dir.join(FILE)).unwrap().replace("y.test", "z.test");
    fs::write(dir.join(FILE), text).unwrap();
    AuditLog::open(dir.clone())
        .append(&entry("s", denied("x.test")))
        .unwrap();
    let found = check(&dir);
    assert_eq!(
        (found.torn.len(), found.torn[0].line),
        (1, 2),
        "it is reported as damaged, with its line"
    );
}

#[test]
fn a_symlink_or_a_fifo_in_place_of_the_file_is_refused() {
    let (_tmp, dir, log) = log();
    fs::create_dir_all(&dir).unwrap();
    let target = dir.join("elsewhere");
    fs::write(&target, "").unwrap();
    symlink(&target, dir.join(FILE)).unwrap();
    let error = log.append(&entry("s", denied("x.test"))).unwrap_err();
    assert!(error.to_string().contains("symlink"), "{error}");
    assert_eq!(fs::read(&target).unwrap(), b"");
    fs::remove_file(dir.join(FILE)).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join(FILE),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert!(log.append(&entry("s", denied("x.test"))).is_err());
    assert!(Reader::open(&dir).is_err());
}

#[test]
fn an_event_of_a_newer_version_is_read_as_unknown() {
    let line = "{\"hash\":\"\",\"prev\":\"\",\"seq\":1,\"time\":\"\",\"sandbox\":\"\",\"event\":{\"type\":\"later\",\"x\":[1]}}";
    let record: Record = serde_json::from_str(line).unwrap();
    assert_eq!(record.event, Event::Unknown);
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let source = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
    let error = AuditError::io("write to", Path::new("/x/audit.jsonl"), source);
    assert!(error.is_disk_full());
    assert!(error.to_string().contains("free some space"), "{error}");
}
