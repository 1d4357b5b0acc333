//! Rules that meet: which one wins, and that a hidden path stays hidden whatever else is asked for.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::case::{Case, SECRET};

#[test]
fn a_hidden_file_in_the_workspace_fails_with_eacces_and_does_not_look_absent() {
    let case = Case::new();
    case.put("secret.env", SECRET);
    let ran = case.attack_with(
        &["--hide", "secret.env"],
        "say('exists', os.path.lexists('secret.env'))
say('listed', 'secret.env' in os.listdir('.'))
attempt('read', lambda: print(read('secret.env')))
attempt('write', lambda: write('secret.env'))
attempt('create', lambda: os.close(os.open('secret.env', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)))
attempt('create new', lambda: create('secret.env'))
attempt('through the working directory', lambda: print(read('/proc/self/cwd/secret.env')))
attempt('through the root', lambda: print(read('/proc/self/root' + os.getcwd() + '/secret.env')))
attempt('through the guest', lambda: print(read('/proc/1/root' + os.getcwd() + '/secret.env')))
attempt('chmod', lambda: os.chmod('secret.env', 0o644))
attempt('chmod then read', lambda: print(read('secret.env')))
attempt('unlink', lambda: os.unlink('secret.env'))
attempt('rename', lambda: os.rename('secret.env', 'open.env'))
attempt('link', lambda: os.link('secret.env', 'open.env'))
attempt('replace', lambda: (create('new'), os.rename('new', 'secret.env')))
os.unlink('new')",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("exists", "True"),
        ("listed", "True"),
        ("read", "EACCES"),
        ("write", "EACCES|EROFS"),
        ("create", "EACCES|EROFS"),
        ("create new", "EEXIST"),
        ("through the working directory", "EACCES"),
        ("through the root", "EACCES"),
        ("through the guest", "EACCES"),
        ("chmod", "EROFS"),
        ("chmod then read", "EACCES"),
        ("unlink", "EBUSY"),
        ("rename", "EBUSY"),
        ("link", "EXDEV|EPERM"),
        ("replace", "EBUSY"),
    ]);
    let found = fs::read_to_string(case.workspace.join("secret.env")).unwrap();
    assert_eq!(found, SECRET);
}

#[test]
fn a_hidden_folder_is_empty_and_nothing_can_be_put_into_it() {
    let case = Case::new();
    case.put("keys/private.pem", SECRET);
    let ran = case.attack_with(
        &["--hide", "keys"],
        "say('names', ','.join(os.listdir('keys')))
attempt('read', lambda: print(read('keys/private.pem')))
attempt('create', lambda: create('keys/new'))
attempt('mkdir', lambda: os.mkdir('keys/new'))
attempt('rename into', lambda: os.rename('README', 'keys/README'))
attempt('remove', lambda: os.rmdir('keys'))
attempt('move', lambda: os.rename('keys', 'other'))",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("names", ""),
        ("read", "ENOENT|EACCES"),
        ("create", "EROFS|EACCES|ENOENT"),
        ("mkdir", "EROFS|EACCES|ENOENT"),
        ("rename into", "EXDEV|EROFS|EACCES"),
        ("remove", "EBUSY"),
        ("move", "EBUSY"),
    ]);
    assert_eq!(fs::read_dir(case.workspace.join("keys")).unwrap().count(), 1);
}

#[test]
fn hide_stays_in_force_inside_a_readonly_and_inside_a_write_rule() {
    let case = Case::new();
    case.put("docs/private/key", SECRET);
    case.write(&case.outside.join("deep/private/key"), SECRET);
    let deep = case.outside.join("deep").display().to_string();
    let private = case.outside.join("deep/private").display().to_string();
    let script = format!(
        "attempt('in a readonly folder', lambda: print(read('docs/private/key')))
attempt('in a writable folder', lambda: print(read('{private}/key')))
attempt('move the folder above', lambda: os.rename('{deep}', '{deep}-moved'))
attempt('a sibling', lambda: create('{deep}/sibling'))"
    );
    for flags in [
        [
            "--readonly",
            "docs",
            "--hide",
            "docs/private",
            "--write",
            &deep,
            "--hide",
            &private,
        ],
        [
            "--hide",
            &private,
            "--hide",
            "docs/private",
            "--write",
            &deep,
            "--readonly",
            "docs",
        ],
    ] {
        let ran = case.attack_with(&flags, &script);
        ran.assert_never_says(SECRET);
        ran.expect(&[
            ("in a readonly folder", "ENOENT|EACCES"),
            ("in a writable folder", "ENOENT|EACCES"),
            ("move the folder above", "EBUSY|EROFS|EXDEV"),
            ("a sibling", "ok"),
        ]);
        fs::remove_file(case.outside.join("deep/sibling")).unwrap();
    }
}

#[test]
fn write_inside_a_hidden_folder_works_there_and_only_there() {
    let case = Case::new();
    case.put("vault/open/file", "open");
    case.put("vault/closed/file", SECRET);
    let ran = case.attack_with(
        &["--hide", "vault", "--write", "vault/open"],
        "say('names', ','.join(os.listdir('vault')))
attempt('write', lambda: write('vault/open/file'))
attempt('beside', lambda: create('vault/beside'))
attempt('closed', lambda: print(read('vault/closed/file')))",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("names", "open"),
        ("write", "ok"),
        ("beside", "EROFS|EACCES"),
        ("closed", "ENOENT|EACCES"),
    ]);
    assert!(!case.workspace.join("vault/beside").exists());
}

#[test]
fn readonly_in_the_workspace_holds_under_every_name() {
    let case = Case::new();
    case.put("migrations/0001.sql", "create table");
    case.put("lock.toml", "pinned");
    case.link("migrations", "alias");
    let before = case.snapshot();
    let ran = case.attack_with(
        &["--readonly", "migrations", "--readonly", "lock.toml"],
        "names = ['lock.toml', 'migrations/0001.sql', 'alias/0001.sql', '/proc/self/cwd/lock.toml', './/migrations/./0001.sql',
    '/proc/self/root' + os.getcwd() + '/lock.toml']
for name in names:
    attempt('write ' + name, lambda: write(name))
    attempt('truncate ' + name, lambda: os.truncate(name, 0))
    attempt('chmod ' + name, lambda: os.chmod(name, 0o777))
    attempt('utime ' + name, lambda: os.utime(name))
    attempt('setxattr ' + name, lambda: os.setxattr(name, 'user.x', b'1'))
    attempt('unlink ' + name, lambda: os.unlink(name))
    attempt('link ' + name, lambda: os.link(name, 'other'))
    attempt('rename ' + name, lambda: os.rename(name, 'other'))
    attempt('replace ' + name, lambda: os.rename('README', name))
attempt('exchange', lambda: rename2('README', 'lock.toml', RENAME_EXCHANGE))
attempt('exchange a folder', lambda: rename2('alias', 'migrations', RENAME_EXCHANGE))
attempt('move the folder', lambda: os.rename('migrations', 'other'))
descriptor = os.open('lock.toml', os.O_RDONLY)
attempt('reopen a descriptor', lambda: write(f'/proc/self/fd/{descriptor}'))
attempt('fchmod', lambda: os.fchmod(descriptor, 0o777))",
    );
    ran.expect_all("EROFS|EBUSY|EXDEV|EACCES");
    case.assert_unchanged(&before);
}

#[test]
fn rules_are_compared_by_component_and_not_by_prefix() {
    let case = Case::new();
    case.put("secret", SECRET);
    case.put("secret-not", "plain");
    case.put("secrets/file", "plain");
    let ran = case.attack_with(
        &["--hide", ".//./secret"],
        "attempt('itself', lambda: print(read('secret')))
attempt('longer', lambda: read('secret-not'))
attempt('folder', lambda: read('secrets/file'))",
    );
    ran.expect(&[("itself", "EACCES"), ("longer", "ok"), ("folder", "ok")]);
}

#[test]
fn names_that_are_no_text_are_hidden_by_their_bytes() {
    let case = Case::new();
    let names: [&[u8]; 4] = [b"key-\xff", b"key-\xfe", b"key\nnewline", b"key with \\040 space"];
    for name in names {
        case.write(&case.workspace.join(OsStr::from_bytes(name)), SECRET);
    }
    case.write(&case.workspace.join(OsStr::from_bytes(b"key-\xfd")), "open");
    let flags: Vec<OsString> = names
        .iter()
        .flat_map(|name| [OsString::from("--hide"), literal(name)])
        .collect();
    let ran = case.attack_with(
        &flags,
        "for name in os.listdir(b'.'):
    if name.startswith(b'key'):
        attempt(name.hex(), lambda: print(read(name)))
say('count', sum(name.startswith(b'key') for name in os.listdir(b'.')))",
    );
    ran.assert_never_says(SECRET);
    let hex = |name: &[u8]| name.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for name in names {
        ran.expect(&[(&hex(name), "EACCES")]);
    }
    ran.expect(&[(&hex(b"key-\xfd"), "ok"), ("count", "5")]);
}

/// The name as a rule: a backslash is an escape there.
fn literal(name: &[u8]) -> OsString {
    let doubled: Vec<u8> = name
        .iter()
        .flat_map(|byte| {
            if *byte == b'\\' {
                vec![b'\\', b'\\']
            } else {
                vec![*byte]
            }
        })
        .collect();
    OsStr::from_bytes(&doubled).to_owned()
}

#[test]
fn a_pattern_hides_every_file_that_it_matches_at_the_start() {
    let case = Case::new();
    for name in [
        "a.pem",
        "sub/b.pem",
        "sub/deeper/c.pem",
        "sub/.hidden.pem",
        "sub/x1",
        "sub/x2",
    ] {
        case.put(name, SECRET);
    }
    case.put("sub/b.txt", "open");
    case.link(".", "sub/cycle");
    let ran = case.attack_with(
        &["--hide", "**/*.pem", "--hide", "sub/x[12]"],
        "for name in ['a.pem', 'sub/b.pem', 'sub/deeper/c.pem', 'sub/.hidden.pem', 'sub/x1', 'sub/x2', 'sub/b.txt']:
    attempt(name, lambda: print(read(name)))",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("a.pem", "EACCES"),
        ("sub/b.pem", "EACCES"),
        ("sub/deeper/c.pem", "EACCES"),
        ("sub/.hidden.pem", "EACCES"),
        ("sub/x1", "EACCES"),
        ("sub/x2", "EACCES"),
        ("sub/b.txt", "ok"),
    ]);
}

#[test]
fn a_pattern_that_cannot_be_enforced_is_refused() {
    let case = Case::new();
    let ran = case.run(&["--hide", "sub/[a"], &["echo", "started"]);
    ran.expect_code(64);
    assert!(!ran.stdout.contains("started"));
}

#[test]
fn a_folder_that_cannot_be_listed_is_denied_whole_to_a_pattern() {
    if crate::case::is_root() {
        eprintln!("root can list every folder, so this case does not exist for root; it runs as an ordinary user");
        return;
    }
    let case = Case::new();
    let key = case.put("shut/key.pem", SECRET);
    let shut = case.workspace.join("shut");
    fs::set_permissions(&shut, std::os::unix::fs::PermissionsExt::from_mode(0o300)).unwrap();
    let ran = case.attack_with(
        &["--hide", "**/*.pem"],
        "attempt('read', lambda: print(read('shut/key.pem')))",
    );
    fs::set_permissions(&shut, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    ran.assert_never_says(SECRET);
    ran.expect(&[("read", "EACCES|ENOENT")]);
    assert_eq!(fs::metadata(key).unwrap().nlink(), 1);
}
