use std::path::PathBuf;

use super::super::config::{self, GitConfig};
use super::super::mounts;
use super::super::mounts::RemoteMounts;
use super::super::resolve::{Unresolved, resolve};
use super::*;

#[test]
fn a_git_configuration_gives_the_paths_that_git_obeys() {
    let table: [(&str, Option<&str>); 16] = [
        ("[core]\n\thooksPath = .githooks\n", Some(".githooks")),
        ("[CORE]\nHOOKSPATH=a", Some("a")),
        ("[core] hooksPath = one\n[core]\nhookspath = two", Some("two")),
        ("[core \"sub\"]\nhooksPath = a", None),
        ("[other]\nhooksPath = a", None),
        ("[core]\nhooksPath = \"with space\" # note", Some("with space")),
        ("[core]\nhooksPath = a b  ; note", Some("a b")),
        ("[core]\nhooksPath = \"a#b\"", Some("a#b")),
        ("[core]\nhooksPath = a\\\nb", Some("ab")),
        ("[core]\r\nhooksPath = a\r\n", Some("a")),
        ("[core]\nhooksPath\n", None),
        ("[core]\nhooksPath =\n", None),
        ("; hooksPath = a\n# [core]\n", None),
        ("\u{feff}[core]\nhooksPath = a", Some("a")),
        ("[core]\nhooksPath = a\0b", None),
        ("[core", None),
    ];
    for (text, expected) in table {
        assert_eq!(
            config::parse(text.as_bytes()).hooks_path,
            expected.map(PathBuf::from),
            "{text:?}"
        );
    }
    let text = b"[include]\npath = one\n[includeIf \"gitdir:~/x]/\"]\n path = two\n[core]\nworktree = ../../w\n";
    let expected = GitConfig {
        hooks_path: None,
        worktree: Some("../../w".into()),
        includes: vec!["one".into(), "two".into()],
    };
    assert_eq!(config::parse(text), expected);
}

#[test]
fn a_configuration_of_any_bytes_is_read_without_panic() {
    let mut seed = 7_u64;
    for _ in 0..20_000 {
        let text: Vec<u8> = (0..40)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"[]core=\"\\\n\r# \0hookspath\xff"[(seed >> 33) as usize % 24]
            })
            .collect();
        config::parse(&text);
        mounts::parse(&text);
    }
}

#[test]
fn paths_of_a_configuration_are_relative_to_their_base_or_home() {
    let path = |text: &str| config::absolute(Path::new(text), Path::new("/base"), Path::new("/home/a"));
    assert_eq!(path("x/y"), Some("/base/x/y".into()));
    assert_eq!(path("/x"), Some("/x".into()));
    assert_eq!(path("~/x"), Some("/home/a/x".into()));
    assert_eq!(path("~other/x"), None);
}

#[test]
fn remote_mounts_are_told_by_their_type_and_escapes_are_undone() {
    let table = b"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / /net\\040a rw shared:1 - nfs4 host:/ rw\n\
        3 1 0:3 / /auto rw - autofs x rw\n4 1 0:4 / /auto rw - ext4 x rw\n5 1 0:5 / /f rw - fuse.sshfs x rw\nbroken\n";
    let expected: BTreeSet<PathBuf> = [PathBuf::from("/net a"), PathBuf::from("/f")].into();
    assert_eq!(mounts::parse(table), expected);
}

#[test]
fn a_path_is_resolved_with_every_link_on_the_way() {
    let place = Place::new();
    let remote = RemoteMounts::default();
    place.file("a/b/file");
    let over = place.link("over", "a/b");
    let chain = place.link("chain", "over/../b/file");
    let led = resolve(&chain, &remote).unwrap();
    assert_eq!(led.path, place.work.join("a/b/file"));
    assert_eq!(led.links, [chain, over]);

    let dangling = place.link("dangling", "a/none/deep");
    let led = resolve(&dangling, &remote).unwrap();
    assert_eq!((led.path, led.kind), (place.work.join("a/none/deep"), None));

    let round = place.link("round", "round");
    assert_eq!(resolve(&round, &remote).unwrap_err(), Unresolved::Cycle);
}
