use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::super::{PathAccess, PathPattern};
use super::*;
use crate::net::{HostPattern, PortRange};
use crate::protected::Group;

mod examples;
mod keys;
mod paths;
mod reference;

fn context<'a>() -> ImportContext<'a> {
    ImportContext {
        file: Path::new("/home/u/.srt-settings.json"),
        home: Path::new("/home/u"),
        cwd: Path::new("/home/u/proj"),
        unknown_keys: UnknownKeys::Refuse,
        allow_disabled_filesystem: false,
    }
}

/// The least file there is, with `set` merged into it by section.
fn settings(set: &Json) -> String {
    let mut base = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowWrite": ["."], "denyWrite": [] },
    });
    for (key, value) in set.as_object().unwrap() {
        match (base.get_mut(key), value) {
            (Some(Json::Object(section)), Json::Object(fields)) => section.extend(fields.clone()),
            _ => base[key] = value.clone(),
        }
    }
    base.to_string()
}

fn imported(set: &Json) -> Imported {
    import(settings(set).as_bytes(), &context()).unwrap_or_else(|error| panic!("{error}"))
}

fn faults(set: &Json) -> Vec<Fault> {
    match import(settings(set).as_bytes(), &context()) {
        Ok(_) => panic!("accepted: {set}"),
        Err(error) => error.faults,
    }
}

fn fault_keys(text: &[u8]) -> Vec<String> {
    let faults = import(text, &context()).map_or_else(|error| error.faults, |_| Vec::new());
    faults.into_iter().map(|fault| fault.key_path).collect()
}

#[test]
fn the_least_file_opens_nothing_but_what_it_says() {
    let Imported { layer, notes } = imported(&json!({}));
    assert_eq!(layer.network.allow, []);
    assert_eq!(layer.network.allow_all, None);
    assert!(layer.deny_unix_sockets.is_some());
    assert_eq!(layer.lift, []);
    assert_eq!(notes.iter().filter(|note| note.contains("whole host")).count(), 1);
    let settings = layer
        .filesystem
        .iter()
        .find(|rule| rule.path.path == Path::new("/home/u/.srt-settings.json"))
        .unwrap();
    assert_eq!(settings.access, PathAccess::ReadOnly);
}

#[test]
fn a_file_that_is_no_settings_object_is_refused() {
    let big = format!("{{\"a\":\"{}\"}}", "x".repeat(LARGEST_FILE));
    for text in [
        "",
        " \n",
        "null",
        "[]",
        "\"x\"",
        "{",
        "{\"a\":1,}",
        "// c\n{}",
        "\u{feff}{}",
        big.as_str(),
    ] {
        assert_eq!(fault_keys(text.as_bytes()), [""], "{}", &text[..text.len().min(20)]);
    }
    assert_eq!(fault_keys(b"{\"network\": \"\xff\"}"), [""]);
}

#[test]
fn every_missing_key_is_named_at_once() {
    assert_eq!(fault_keys(b"{}"), ["network", "filesystem"]);
    assert_eq!(
        fault_keys(br#"{"network":{},"filesystem":{}}"#),
        [
            "network.allowedDomains",
            "network.deniedDomains",
            "filesystem.denyRead",
            "filesystem.allowWrite",
            "filesystem.denyWrite"
        ]
    );
}

#[test]
fn duplicate_keys_are_refused_at_every_level() {
    let text = br#"{
        "network": {"allowedDomains": [], "allowedDomains": ["evil.example.com"], "deniedDomains": [],
                    "deniedDomainReasons": {"a.example.com": "x", "a.example.com": "y"}},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
        "filesystem": {"denyRead": [], "allowWrite": ["/"], "denyWrite": []},
        "credentials": {"files": [{"path": "/x", "mode": "deny", "mode": "mask"}]}
    }"#;
    assert_eq!(
        fault_keys(text),
        [
            "filesystem",
            "network.allowedDomains",
            "network.deniedDomainReasons[\"a.example.com\"]",
            "credentials.files[0].mode",
        ]
    );
}

#[test]
fn unknown_keys_are_refused_or_noted_and_in_credentials_always_refused() {
    let set = json!({
        "allowPTY": true,
        "network": { "allowedDomain": [] },
        "\u{1b}[2J": 1,
        "filesystem": { "denyRaed": [] },
    });
    let found = faults(&set);
    let keys: Vec<&str> = found.iter().map(|fault| fault.key_path.as_str()).collect();
    assert_eq!(
        keys,
        [
            "network.allowedDomain",
            "filesystem.denyRaed",
            "[\"\u{fffd}[2J\"]",
            "allowPTY"
        ]
    );
    assert_eq!(found[0].hint, "did you mean `allowedDomains`?");
    assert_eq!(found[1].hint, "did you mean `denyRead`?");

    let lenient = ImportContext {
        unknown_keys: UnknownKeys::Note,
        ..context()
    };
    let notes = import(settings(&set).as_bytes(), &lenient).unwrap().notes;
    assert_eq!(
        notes
            .iter()
            .filter(|note| note.contains("no key of the format"))
            .count(),
        4
    );
    for (strict, key) in [
        (json!({ "credentials": { "x": 1 } }), "credentials.x"),
        (json!({ "credentials": { "sigv4": { "x": 1 } } }), "credentials.sigv4.x"),
        (
            json!({ "credentials": { "envVars": [{ "name": "A", "mode": "deny", "x": 1 }] } }),
            "credentials.envVars[0].x",
        ),
    ] {
        let error = import(settings(&strict).as_bytes(), &lenient).unwrap_err();
        assert_eq!(error.faults[0].key_path, key);
    }
}

#[test]
fn an_error_lists_every_fault_with_its_key_and_hint_and_no_control_characters() {
    let set = json!({ "network": { "allowedDomains": ["a b\u{1b}[31m\u{202e}", "*"], "deniedDomains": [7] } });
    let error = import(settings(&set).as_bytes(), &context()).unwrap_err();
    let text = error.to_string();
    for part in [
        "network.allowedDomains[0]: ",
        "network.allowedDomains[1]: ",
        "network.deniedDomains[0]: ",
        "hint: ",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn a_file_that_is_wrong_throughout_is_answered_with_a_list_that_ends() {
    let wrong = format!("[{}1]", "1,".repeat(200_000));
    let text = format!("{{\"network\":{{\"allowedDomains\":{wrong}}}}}");
    assert_eq!(fault_keys(text.as_bytes()).len(), 1001);
    let keys: String = (0..50_000).map(|n| format!("\"k{n}\":1,")).collect();
    let text = settings(&json!({})).replacen('{', &format!("{{{keys}"), 1);
    let lenient = ImportContext {
        unknown_keys: UnknownKeys::Note,
        ..context()
    };
    assert_eq!(import(text.as_bytes(), &lenient).unwrap().notes.len(), 201);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_import_panic(text in "\\PC{0,200}") {
        let _ = import(text.as_bytes(), &context());
        let set = json!({
            "network": { "allowedDomains": [text.clone()], "deniedDomains": [text.clone()], "deniedResolvedAddresses": [text.clone()] },
            "filesystem": { "denyRead": [text.clone()], "allowRead": [text.clone()], "allowWrite": [text.clone()], "denyWrite": [text] },
        });
        let _ = import(settings(&set).as_bytes(), &context());
    }
}
