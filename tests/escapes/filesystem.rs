//! Reading and writing outside of what the policy shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::case::{Case, SECRET};

#[test]
fn nothing_can_be_made_outside_the_workspace() {
    let case = Case::new();
    let name = format!("escape-{}", std::process::id());
    let ran = case.attack(&format!(
        "for folder in ['', '/etc', '/usr', '/usr/bin', '/usr/local/bin', '/usr/lib', '/opt', '/srv', '/var', '/var/lib', '/root', '/home', '/boot', '/dev', '/sys', '/proc', '/bin', '/lib', '/mnt']:
    attempt('file in ' + folder, lambda: create(folder + '/{name}'))
    attempt('folder in ' + folder, lambda: os.mkdir(folder + '/{name}-d'))
    attempt('link in ' + folder, lambda: os.symlink('/', folder + '/{name}-l'))"
    ));
    ran.expect_all("EROFS|EACCES|ENOENT|EPERM");
    for folder in [
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/local/bin",
        "/opt",
        "/var",
        "/root",
        "/home",
    ] {
        let made = Path::new(folder).join(&name);
        assert!(!made.exists(), "{} is on the host", made.display());
    }
}

#[test]
fn system_files_cannot_be_changed_in_any_way() {
    let case = Case::new();
    let before = fs::metadata("/etc/hostname")
        .map(|found| found.permissions().mode())
        .ok();
    let ran = case.attack(
        "for path in ['/etc/passwd', '/etc/hosts', '/etc/resolv.conf', '/etc/profile', '/bin/sh', '/usr/bin/env']:
    attempt('write ' + path, lambda: write(path))
    attempt('truncate ' + path, lambda: os.truncate(path, 0))
    attempt('unlink ' + path, lambda: os.unlink(path))
    attempt('chmod ' + path, lambda: os.chmod(path, 0o777))
    attempt('chown ' + path, lambda: os.chown(path, 1, 1))
    attempt('utime ' + path, lambda: os.utime(path))
    attempt('rename ' + path, lambda: os.rename(path, path + '-moved'))
    attempt('link ' + path, lambda: os.link(path, 'link'))",
    );
    ran.expect_all("EROFS|EACCES|EPERM|EXDEV|EBUSY|ETXTBSY");
    assert!(Path::new("/etc/passwd").exists() && !Path::new("/etc/passwd-moved").exists());
    assert_eq!(
        before,
        fs::metadata("/etc/hostname")
            .map(|found| found.permissions().mode())
            .ok()
    );
    assert!(!case.workspace.join("link").exists());
}

#[test]
fn the_callers_keys_are_not_in_the_home_inside() {
    let case = Case::new();
    case.write(&case.home.join(".aws/credentials"), SECRET);
    case.write(&case.home.join(".netrc"), SECRET);
    case.write(&case.home.join("Documents/letter"), SECRET);
    let before = case.snapshot();
    let ran = case.attack(
        "for name in ['.ssh/id_ed25519', '.aws/credentials', '.netrc', 'Documents/letter']:
    attempt('read ' + name, lambda: print(read(os.environ['HOME'] + '/' + name)))
    attempt('through the root of a process', lambda: print(read('/proc/self/root' + os.environ['HOME'] + '/' + name)))
    attempt('from the workspace', lambda: print(read('../' + name)))
say('home', ','.join(sorted(n for n in os.listdir(os.environ['HOME']) if n in ['.ssh', '.aws', '.netrc', 'Documents'])))
create(os.environ['HOME'] + '/made-inside')",
    );
    ran.assert_never_says(SECRET);
    ran.expect(&[
        ("home", ""),
        ("read .ssh/id_ed25519", "ENOENT"),
        ("from the workspace", "ENOENT"),
    ]);
    case.assert_unchanged(&before);
}

#[test]
fn the_homes_of_others_are_not_visible() {
    let case = Case::new();
    let ran = case.attack(
        "import pwd
for path in ['/root', '/home']:
    try:
        names = os.listdir(path)
    except OSError as error:
        names = []
    say(path, ','.join(names))
attempt('walk', lambda: os.listdir('/root/.ssh'))",
    );
    ran.expect(&[("/root", ""), ("/home", ""), ("walk", "ENOENT|EACCES")]);
}

#[test]
fn a_folder_that_no_rule_names_is_neither_read_nor_written() {
    let case = Case::new();
    let before = case.snapshot();
    let outside = case.outside.display();
    let ran = case.attack(&format!(
        "attempt('read', lambda: print(read('{outside}/file')))
attempt('list', lambda: print(os.listdir('{outside}')))
attempt('relative', lambda: print(read('../../outside/file')))
try:
    os.makedirs('{outside}')
    create('{outside}/made')
except OSError:
    pass"
    ));
    ran.expect_all("ENOENT|EACCES");
    ran.assert_never_says(SECRET);
    case.assert_unchanged(&before);
}

#[test]
fn what_is_written_to_the_private_tmp_never_reaches_the_hosts() {
    let case = Case::new();
    let name = format!("escape-tmp-{}", std::process::id());
    let ran = case.attack(&format!(
        "for folder in ['/tmp', '/var/tmp', '/dev/shm', os.environ['TMPDIR'], os.environ['XDG_RUNTIME_DIR']]:
    attempt(folder, lambda: open(folder + '/{name}', 'a').close())
    say('entries of ' + folder, len([n for n in os.listdir(folder) if n != '{name}' and not n.startswith('escape-')]))"
    ));
    ran.expect(&[
        ("/tmp", "ok"),
        ("/var/tmp", "ok"),
        ("/dev/shm", "ok"),
        ("entries of /tmp", "0"),
        ("entries of /var/tmp", "0"),
        ("entries of /dev/shm", "0"),
    ]);
    for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!Path::new(folder).join(&name).exists());
    }
}

#[test]
fn a_readable_folder_is_not_writable() {
    let case = Case::new();
    let before = case.snapshot();
    let outside = case.outside.display().to_string();
    let ran = case.attack_with(
        &["--read", &outside],
        &format!(
            "os.chdir('{outside}')
say('content', read('file').decode())
attempt('write', lambda: write('file'))
attempt('create', lambda: create('new'))
attempt('unlink', lambda: os.unlink('file'))
attempt('rename', lambda: os.rename('file', 'other'))
attempt('chmod', lambda: os.chmod('file', 0o600))
attempt('link out', lambda: os.link('file', os.environ['HOME'] + '/project/stolen'))
attempt('rename out', lambda: os.rename('file', os.environ['HOME'] + '/project/stolen'))"
        ),
    );
    ran.expect(&[
        ("content", SECRET),
        ("write", "EROFS"),
        ("create", "EROFS"),
        ("unlink", "EROFS"),
        ("rename", "EROFS"),
        ("chmod", "EROFS"),
        ("link out", "EXDEV"),
        ("rename out", "EXDEV"),
    ]);
    case.assert_unchanged(&before);
}

#[test]
fn a_submount_is_as_read_only_as_the_folder_above_it() {
    let case = Case::new();
    // Every mount of the view, those that came along with a folder too.
    let ran = case.attack(
        "writable = []
for line in open('/proc/self/mountinfo'):
    fields = line.split(' ')
    options = fields[5].split(',')
    point = fields[4]
    if 'nosuid' not in options:
        say('not nosuid', point)
    if 'nodev' not in options and not point.startswith('/dev/'):
        say('not nodev', point)
    if 'rw' in options:
        writable.append(point)
own = ('/tmp', '/var/tmp', '/run', '/dev/', '/proc', os.environ['HOME'])
say('writable', ','.join(p for p in writable if not p.startswith(own)))",
    );
    let wrong: Vec<_> = ran
        .outcomes()
        .into_iter()
        .filter(|(name, _)| *name != "writable")
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    ran.expect(&[("writable", "")]);
}

#[test]
fn the_password_hashes_of_the_host_are_hidden_from_root() {
    let case = Case::new();
    let ran = case.attack(
        "for path in ['/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/etc/ssh/ssh_host_ed25519_key']:
    attempt(path, lambda: read(path))",
    );
    ran.expect_all("EACCES|ENOENT");
}

#[test]
fn generated_account_files_name_nobody_of_the_host() {
    let case = Case::new();
    let ran = case.attack("import pwd, grp\nsay('users', ','.join(sorted(p.pw_name for p in pwd.getpwall())))\nsay('hosts', 'localhost' in open('/etc/hosts').read())");
    ran.expect(&[("hosts", "True")]);
    let users = ran.outcome("users");
    assert!(
        !users.contains("pinfold-test") && users.split(',').count() <= 4,
        "{users}"
    );
}
