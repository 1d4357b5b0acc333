use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Base, PathFault};
use crate::policy::PathPattern;
use crate::policy::glob::Glob;

fn base() -> Base {
    Base {
        folder: PathBuf::from("/w/app"),
        home: Some(PathBuf::from("/home/me")),
    }
}

fn parse(text: &str) -> Result<PathPattern, PathFault> {
    PathPattern::parse(text.as_bytes(), &base())
}

#[test]
fn every_form_means_one_path_or_one_pattern() {
    let table: &[(&str, &str, Option<&str>)] = &[
        ("/", "/", None),
        ("/a/b", "/a/b", None),
        ("//a///b/./c/", "/a/b/c", None),
        ("~", "/home/me", None),
        ("~/", "/home/me", None),
        ("~/.cache", "/home/me/.cache", None),
        (".", "/w/app", None),
        ("./", "/w/app", None),
        ("secrets", "/w/app/secrets", None),
        ("./secrets/", "/w/app/secrets", None),
        ("..", "/w", None),
        ("../fixtures", "/w/fixtures", None),
        ("./../../x", "/x", None),
        ("../../../../x", "/x", None),
        ("a/**", "/w/app/a", None),
        ("**", "/w/app", None),
        ("/**", "/", None),
        ("a/**/**", "/w/app/a", None),
        ("*.pem", "/w/app", Some("*.pem")),
        ("/srv/*/key", "/srv", Some("*/key")),
        ("**/.env", "/w/app", Some("**/.env")),
        ("**/**/.env", "/w/app", Some("**/.env")),
        ("a/*/**", "/w/app/a", Some("*")),
        ("~/.config/[!a-c]?/./x", "/home/me/.config", Some("[!a-c]?/x")),
        ("a/[^x]", "/w/app/a", Some("[!x]")),
        ("a/[x-]", "/w/app/a", Some("[x\\-]")),
        (r"a\*b", "/w/app/a*b", None),
        (r"a\x2ab", "/w/app/a*b", None),
        (r"\~", "/w/app/~", None),
        (r"\!x/*", "/w/app/!x", Some("*")),
        (r"a\*b*", "/w/app", Some(r"a\*b*")),
        ("a{b", "/w/app/a{b", None),
        ("a{b}", "/w/app/a{b}", None),
        ("a~b", "/w/app/a~b", None),
        ("...", "/w/app/...", None),
        ("x/~", "/w/app/x/~", None),
        ("é", "/w/app/é", None),
    ];
    for (text, path, glob) in table {
        let expected = PathPattern {
            path: PathBuf::from(path),
            glob: glob.map(str::to_owned),
        };
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_form_that_cannot_be_enforced_is_refused() {
    let table: &[(&str, &str)] = &[
        ("", "the path is empty"),
        ("a\0b", "the path holds a NUL byte, which no path can"),
        (r"a\x00", "the path holds a NUL byte, which no path can"),
        (
            "~root/x",
            "'~root' names another user's home folder, which is not looked up",
        ),
        (
            "$HOME/.ssh",
            "'$HOME' looks like a variable, and variables in paths are not expanded",
        ),
        (
            "!secrets",
            "a leading '!' takes nothing back: every rule stands on its own",
        ),
        (
            "a/../b",
            "'..' stands after a name, where a link could lead it elsewhere",
        ),
        (
            "/../a",
            "'..' stands after a name, where a link could lead it elsewhere",
        ),
        (
            "~/../a",
            "'..' stands after a name, where a link could lead it elsewhere",
        ),
        (
            "*/../a",
            "'..' stands after a name, where a link could lead it elsewhere",
        ),
        (
            r"\x2e\x2e/a",
            "'..' stands after a name, where a link could lead it elsewhere",
        ),
        (r"a\n", r"'\n' is no escape of the path grammar"),
        (r"a\", r"'\' is no escape of the path grammar"),
        (r"a\xg0", r"'\xg0' is no escape of the path grammar"),
        (r"a\x2fb", r"'\x2f' is a slash, which no name can hold"),
        ("a**/b", "'a**' uses '**' beside other characters"),
        ("***", "'***' uses '**' beside other characters"),
        ("a[b", "'a[b' has a '[' without a ']'"),
        ("a]b", "'a]b' has a ']' without a '['"),
        ("a[]", "'a[]' has an empty set"),
        ("a[!]", "'a[!]' has an empty set"),
        ("a[z-a]", "'a[z-a]' has a range that runs backwards"),
        (
            "a[[:alpha:]]",
            "'a[[:alpha:]]' has a '[' inside a set, which no form here means",
        ),
        (
            "*.{pem,key}",
            "'*.{pem,key}' lists alternatives in braces, which are not expanded",
        ),
        ("{a,b}", "'{a,b}' lists alternatives in braces, which are not expanded"),
        ("/*", "the pattern would have to search the whole file system"),
        ("/**/.env", "the pattern would have to search the whole file system"),
        ("../../*", "the pattern would have to search the whole file system"),
        (
            "a/*/",
            "a pattern that ends in '/' would match folders only, which cannot be told when a name appears later",
        ),
    ];
    for (text, message) in table {
        let fault = parse(text).expect_err(text);
        assert_eq!(fault.to_string(), *message, "{text}");
        assert!(!fault.hint().is_empty(), "{text}");
    }
    assert_eq!(parse(&"a".repeat(4096)), Err(PathFault::TooLong));
    let homeless = Base { home: None, ..base() };
    assert_eq!(PathPattern::parse(b"~/x", &homeless), Err(PathFault::NoHome));
}

#[test]
fn bytes_that_are_no_utf_8_survive_both_ways() {
    let expected = PathPattern::literal(PathBuf::from(OsStr::from_bytes(b"/w/app/\xff\xfe")));
    assert_eq!(parse(r"\xff\xFE"), Ok(expected.clone()));
    assert_eq!(PathPattern::parse(b"\xff\xfe", &base()), Ok(expected.clone()));
    assert_eq!(expected.to_text(), r"/w/app/\xff\xfe");
}

#[test]
fn globs_match_whole_relative_paths() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("*.pem", &["a.pem", ".pem"], &["a.pem.bak", "d/a.pem", "pem"]),
        ("?x", &["ax", "éx"], &["x", "aax", "a/x"]),
        ("*", &["a", ".a"], &["a/b"]),
        (
            "**/.env",
            &[".env", "a/.env", "a/b/.env"],
            &["a.env", ".env/a", "x.env"],
        ),
        (
            "a/**/b",
            &["a/b", "a/x/b", "a/b/b", "a/x/y/b"],
            &["a", "b", "a/b/x", "x/a/b"],
        ),
        ("**/a/**/b/*", &["a/b/c", "x/a/y/b/c", "a/b/b/c"], &["a/b", "b/a/c"]),
        ("[a-c]*[!0-9]", &["ax", "bzzz", "c1x"], &["a", "a1", "dx"]),
        (r"a\*b*", &["a*b", "a*bc"], &["axb"]),
        ("*a*a*", &["aa", "xaxax"], &["a", "xa"]),
        (r"[\-\]]", &["-", "]"], &["a", "[\\"]),
    ];
    for (glob, yes, no) in table {
        let glob = Glob::parse(glob).expect(glob);
        for path in *yes {
            assert!(glob.matches(Path::new(path)), "{glob:?} {path}");
        }
        for path in *no {
            assert!(!glob.matches(Path::new(path)), "{glob:?} {path}");
        }
    }
}

#[test]
fn a_pattern_made_to_blow_up_is_answered_at_once() {
    let glob = Glob::parse(&format!("{}b", "*a".repeat(200))).expect("valid");
    assert!(!glob.matches(Path::new(&"a".repeat(255))));
    let glob = Glob::parse(&format!("{}b", "**/a/".repeat(200))).expect("valid");
    assert!(!glob.matches(Path::new(&"a/".repeat(1000))));
}

proptest! {
    #[test]
    fn any_bytes_are_answered_and_what_parses_prints_back_the_same(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(pattern) = PathPattern::parse(&bytes, &base()) {
            let other = Base { folder: PathBuf::from("/elsewhere"), home: None };
            prop_assert_eq!(PathPattern::parse(pattern.to_text().as_bytes(), &other), Ok(pattern));
        }
    }

    #[test]
    fn text_of_glob_characters_prints_back_the_same(text in r"[a/*?\[\]!^\-\\x0f{},~. \xe9]{0,16}") {
        if let Ok(pattern) = parse(&text) {
            prop_assert_eq!(parse(&pattern.to_text()), Ok(pattern.clone()));
            if let Some(glob) = &pattern.glob {
                prop_assert!(Glob::parse(glob).is_ok());
            }
        }
    }

    #[test]
    fn a_literal_path_of_any_bytes_prints_back_the_same(name in prop::collection::vec(1_u8..=255, 1..12)) {
        let name: Vec<u8> = name.into_iter().filter(|byte| *byte != b'/').collect();
        prop_assume!(!name.is_empty() && name != b"." && name != b"..");
        let pattern = PathPattern::literal(Path::new("/p").join(OsStr::from_bytes(&name)));
        prop_assert_eq!(PathPattern::parse(pattern.to_text().as_bytes(), &base()), Ok(pattern));
    }
}
