use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::index::{MOST_GITLINKS, Take, Unreadable, parse};
use super::*;

/// A repository with ordinary files and a submodule deeper than a scan goes.
fn with_deep_submodule() -> Place {
    let place = Place::new();
    place.repository(&place.base.join("library"));
    place.repository(&place.work);
    for name in ["libs/x/a", "libs/x/b", "zz/last"] {
        place.file(name);
    }
    let submodule = "libs/x/y/z/w";
    place.git(&place.work, &["submodule", "--quiet", "add", "../library", submodule]);
    place.git(&place.work, &["add", "."]);
    place
}

fn bytes(place: &Place) -> Vec<u8> {
    std::fs::read(place.work.join(".git/index")).unwrap()
}

fn paths(bytes: &[u8]) -> Vec<String> {
    let index = parse(bytes, Take::Gitlinks).unwrap();
    assert!(!index.nameless);
    let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
    index.paths.into_iter().map(text).collect()
}

/// A repository that obeys nothing but its own configuration, added to an outer index as a gitlink.
fn add_gitlink(place: &Place, outer: &Path, path: &str) {
    let inner = outer.join(path);
    place.repository(&inner);
    place.git(&inner, &["config", "core.fsmonitor", "touch /tmp/never"]);
    place.git(outer, &["add", path]);
}

fn made(place: &Place, change: impl FnOnce()) -> (Vec<String>, Option<String>) {
    let roots = [place.work.clone()];
    let request = place.request(&roots);
    let found = scan(request).unwrap();
    let watch = Watch::start(&request, &found, &place.base.join("quarantine"), "1").unwrap();
    change();
    let report = watch.finish();
    let made = report.made.iter().map(|made| relative(&made.path, &place.work));
    (
        made.filter(|path| !path.ends_with("branches")).collect(),
        report.incomplete,
    )
}

/// An entry as versions 2 and 3 have it.
fn entry(mode: u32, name: &[u8]) -> Vec<u8> {
    let mut entry = vec![1; 24];
    entry.extend(mode.to_be_bytes());
    entry.extend([2; 32]);
    entry.extend(u16::try_from(name.len().min(0xfff)).unwrap().to_be_bytes());
    entry.extend(name);
    let padded = (entry.len() + 8) / 8 * 8;
    entry.resize(padded, 0);
    entry
}

fn index_of(version: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut index = b"DIRC".to_vec();
    index.extend(version.to_be_bytes());
    index.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    index.extend(entries.concat());
    index
}

fn ended(mut index: Vec<u8>) -> Vec<u8> {
    index.extend([0; 20]);
    index
}

#[test]
fn the_submodules_of_an_index_of_each_version_are_read() {
    let place = with_deep_submodule();
    for version in ["2", "4"] {
        place.git(&place.work, &["update-index", "--index-version", version]);
        assert_eq!(bytes(&place)[7], version.as_bytes()[0] - b'0');
        assert_eq!(paths(&bytes(&place)), ["libs/x/y/z/w"]);
    }
    place.git(&place.work, &["update-index", "--index-version", "2"]);
    place.file("later");
    place.git(&place.work, &["add", "--intent-to-add", "later"]);
    assert_eq!(bytes(&place)[7], 3);
    assert_eq!(paths(&bytes(&place)), ["libs/x/y/z/w"]);
}

#[test]
fn an_index_with_an_offset_table_or_long_object_names_is_read() {
    let place = with_deep_submodule();
    for number in 0..200 {
        place.file(&format!("many/{number}"));
    }
    let threads = ["-c", "index.threads=2", "-c", "index.recordOffsetTable=true"];
    place.git(&place.work, &[&threads[..], &["add", "."]].concat());
    for version in ["2", "4"] {
        place.git(
            &place.work,
            &[&threads[..], &["update-index", "--index-version", version]].concat(),
        );
        let bytes = bytes(&place);
        assert!(bytes.windows(4).any(|window| window == b"IEOT"));
        // Once in a row, and once in the blocks.
        assert_eq!(paths(&bytes), ["libs/x/y/z/w"; 2]);
    }

    let place = Place::new();
    place.git(&place.work, &["init", "-q", "--object-format=sha256"]);
    let inner = place.folder("a/b/c/d/sm");
    place.git(&inner, &["init", "-q", "--object-format=sha256"]);
    place.git(&inner, &["commit", "-q", "--allow-empty", "-m", "first"]);
    place.git(&place.work, &["add", "a/b/c/d/sm"]);
    assert_eq!(paths(&bytes(&place)), ["a/b/c/d/sm"]);
}

#[test]
fn names_at_the_limits_of_their_length_field_are_read() {
    let long = [b'n'; 4090];
    let longer = [b'n'; 5000];
    let index = index_of(
        2,
        &[
            entry(0o100_644, &longer),
            entry(0o160_000, &longer),
            entry(0o100_644, &long),
            entry(0o160_000, b"cut\0here"),
            entry(0o160_000, &long[..4095 - 5]),
            entry(0o160_755, b"odd mode"),
        ],
    );
    let found = parse(&ended(index), Take::Gitlinks).unwrap();
    assert_eq!(found.paths, [b"cut".as_slice(), &long, b"odd mode"]);
}

#[test]
fn a_submodule_that_only_the_offset_table_leads_to_is_found() {
    let hidden = entry(0o160_000, b"a/sm");
    let mut index = index_of(2, &[entry(0o100_644, b"a/sm")]);
    let body = u32::try_from(index.len() + 8).unwrap();
    index.extend(b"HIDE");
    index.extend(u32::try_from(hidden.len()).unwrap().to_be_bytes());
    index.extend(hidden);
    index.extend(b"IEOT\0\0\0\x0c\0\0\0\x01");
    index.extend(body.to_be_bytes());
    index.extend(1u32.to_be_bytes());
    assert_eq!(paths(&ended(index)), ["a/sm"]);
}

#[test]
fn what_is_no_index_or_an_unknown_one_is_refused() {
    let many = vec![entry(0o160_000, b"sm"); MOST_GITLINKS + 1];
    let table = [
        (Vec::new(), Unreadable::NoIndex),
        (b"DIRX\0\0\0\x02\0\0\0\0".to_vec(), Unreadable::NoIndex),
        (b"DIRC\0\0".to_vec(), Unreadable::Damaged),
        (ended(index_of(5, &[])), Unreadable::Version(5)),
        (ended(b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec()), Unreadable::Damaged),
        (ended(index_of(2, &many)), Unreadable::TooMany),
    ];
    for (bytes, why) in table {
        assert_eq!(parse(&bytes, Take::Gitlinks), Err(why));
    }
}

#[test]
fn an_index_cut_anywhere_is_damaged_or_names_no_other_submodule() {
    let place = with_deep_submodule();
    for version in ["2", "4"] {
        place.git(&place.work, &["update-index", "--index-version", version]);
        let bytes = bytes(&place);
        for end in 0..bytes.len() {
            if let Ok(index) = parse(&bytes[..end], Take::Gitlinks) {
                assert_eq!(index.paths, [b"libs/x/y/z/w"], "{version} {end}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(version in 2u8..5, count in 0u8..6, rest in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut bytes = vec![b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, count];
        let _ = parse(&rest, Take::Everything);
        bytes.extend(rest);
        let _ = parse(&bytes, Take::Everything);
        let _ = parse(&bytes, Take::Gitlinks);
    }

    #[test]
    fn a_changed_index_is_read_without_a_panic(version in 2u32..5, at in 0usize..400, byte in any::<u8>()) {
        let mut index = index_of(version, &[entry(0o100_644, b"a"), entry(0o160_000, b"b/c"), entry(0o160_000, b"b/d")]);
        index.extend(b"IEOT\0\0\0\x14\0\0\0\x01\0\0\0\x0c\0\0\0\x01\0\0\0\x54\0\0\0\x02");
        index.extend([b"link\0\0\0\x14".as_slice(), &[7; 20]].concat());
        let mut index = ended(index);
        if let Some(old) = index.get_mut(at) {
            *old = byte;
        }
        let _ = parse(&index, Take::Gitlinks);
    }
}

#[test]
fn the_pointer_of_a_submodule_is_protected_at_any_depth() {
    let place = with_deep_submodule();
    let scan = place.scan();
    assert!(scan.warnings.is_empty(), "{:?}", scan.warnings);
    assert!(existing(&scan, &place.work).contains(&"f libs/x/y/z/w/.git".to_owned()));
    let above = ["libs", "libs/x", "libs/x/y", "libs/x/y/z", "libs/x/y/z/w"];
    assert!(
        above
            .iter()
            .all(|path| pinned(&scan, &place.work).contains(&(*path).to_owned()))
    );
}

#[test]
fn a_submodule_with_its_own_git_folder_is_protected_at_any_depth_and_those_in_it_are_as_well() {
    let place = Place::new();
    place.repository(&place.work);
    add_gitlink(&place, &place.work, "a/b/c/d/sm");
    add_gitlink(&place, &place.work.join("a/b/c/d/sm"), "e/f/g/h/sm");
    let expected = [
        "f .git/config",
        "d .git/hooks",
        "f a/b/c/d/sm/.git/config",
        "d a/b/c/d/sm/.git/hooks",
        "f a/b/c/d/sm/e/f/g/h/sm/.git/config",
        "d a/b/c/d/sm/e/f/g/h/sm/.git/hooks",
    ];
    assert_eq!(existing(&place.scan(), &place.work), expected);

    // An index in two parts, of which the first has the submodule.
    place.git(&place.work, &["update-index", "--split-index"]);
    assert!(paths(&bytes(&place)).is_empty());
    assert_eq!(existing(&place.scan(), &place.work), expected);

    // An index elsewhere.
    place.git(&place.work, &["update-index", "--no-split-index"]);
    std::fs::rename(place.work.join(".git/index"), place.base.join("index")).unwrap();
    place.link(".git/index", "../../index");
    assert_eq!(existing(&place.scan(), &place.work), expected);
}

#[test]
fn a_file_of_a_shared_index_that_became_a_submodule_is_found() {
    let place = Place::new();
    place.repository(&place.work);
    place.file("a/b/c/d/sm");
    place.git(&place.work, &["add", "."]);
    place.git(&place.work, &["update-index", "--split-index"]);
    std::fs::remove_file(place.work.join("a/b/c/d/sm")).unwrap();
    place.repository(&place.work.join("a/b/c/d/sm"));
    // The way a person would do it gives the entry a name; without one it stands for an entry by its position.
    let mut index = index_of(2, &[entry(0o160_000, b"")]);
    let old = bytes(&place);
    let link = old.windows(4).position(|window| window == b"link").unwrap();
    index.extend(&old[link..]);
    std::fs::write(place.work.join(".git/index"), index).unwrap();
    let found = existing(&place.scan(), &place.work);
    assert!(found.contains(&"f a/b/c/d/sm/.git/config".to_owned()), "{found:?}");
}

#[test]
fn a_repository_that_the_run_adds_to_the_index_deep_in_the_tree_is_listed() {
    let place = Place::new();
    place.repository(&place.work);
    let (made, incomplete) = made(&place, || add_gitlink(&place, &place.work, "a/b/c/d/e/sm"));
    assert_eq!(made, ["a/b/c/d/e/sm/.git/config", "a/b/c/d/e/sm/.git/hooks"]);
    assert_eq!(incomplete, None);
}

#[test]
fn paths_that_lead_out_or_through_a_link_are_left_alone() {
    let place = Place::new();
    place.repository(&place.work);
    place.repository(&place.base.join("out"));
    place.repository(&place.work.join("one/two/three/four/five"));
    place.link("link", "one/two/three/four");
    let names: [&[u8]; 4] = [b"../out", b"link/five", b"/etc", b"nothing/here"];
    let index = index_of(2, &names.map(|name| entry(0o160_000, name)));
    std::fs::write(place.work.join(".git/index"), ended(index)).unwrap();
    assert_eq!(existing(&place.scan(), &place.work), ["f .git/config", "d .git/hooks"]);

    let index = index_of(2, &[entry(0o160_000, b"x/../one//./two/three/four/five/")]);
    std::fs::write(place.work.join(".git/index"), ended(index)).unwrap();
    assert_eq!(existing(&place.scan(), &place.work).len(), 4);
}

#[test]
fn an_index_that_cannot_be_read_is_a_warning() {
    let place = Place::new();
    place.repository(&place.work);
    let index: PathBuf = place.work.join(".git/index");
    std::fs::write(&index, ended(index_of(9, &[]))).unwrap();
    assert!(matches!(&place.scan().warnings[..], [Warning::IndexNotRead { index: named, .. }] if *named == index));
    let file = std::fs::File::create(&index).unwrap();
    file.set_len(64 * 1024 * 1024 + 1).unwrap();
    assert!(matches!(&place.scan().warnings[..], [Warning::IndexNotRead { .. }]));
    std::fs::remove_file(&index).unwrap();
    assert!(place.scan().warnings.is_empty());
}

#[test]
fn a_folder_that_a_sparse_index_holds_as_a_whole_is_a_warning_only_where_it_exists() {
    let place = Place::new();
    place.repository(&place.work);
    let index = index_of(2, &[entry(0o040_000, b"vendor/")]);
    std::fs::write(place.work.join(".git/index"), ended(index)).unwrap();
    assert!(place.scan().warnings.is_empty());
    assert_eq!(place.scan().incomplete(), None);
    place.folder("vendor");
    assert!(matches!(&place.scan().warnings[..], [Warning::IndexNotRead { .. }]));
    assert!(place.scan().incomplete().unwrap().contains("vendor"));
}
