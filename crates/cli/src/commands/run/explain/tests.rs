use std::collections::{BTreeMap, BTreeSet};

use pinfold_model::origin::Origin;
use pinfold_model::plan::Access;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::{ResolvedRule, View};
use pinfold_model::protected::Group;
use rustix::io::Errno;

use super::*;

fn walls() -> Walls {
    let rule = |path: &str, access, origin: Origin| ResolvedRule {
        path: path.into(),
        access,
        origin,
    };
    let system = || Origin::builtin("system folders are readable");
    let places = [
        ("/usr", Kind::Host(Access::ReadOnly)),
        ("/etc", Kind::Host(Access::ReadOnly)),
        ("/etc/passwd", Kind::Generated),
        ("/etc/shadow", Kind::Hidden),
        ("/proc", Kind::Procfs),
        ("/tmp", Kind::Own),
        ("/run", Kind::Own),
        ("/dev", Kind::Own),
        ("/home/me", Kind::Home),
        ("/home/me/.gitconfig", Kind::Shown),
        ("/home/me/.cargo", Kind::Layer),
        ("/home/me/.cargo/credentials.toml", Kind::Hidden),
        ("/home/me/app", Kind::Host(Access::ReadWrite)),
        ("/home/me/app/.git", Kind::Host(Access::ReadWrite)),
        ("/home/me/app/.git/hooks", Kind::Host(Access::ReadOnly)),
        ("/home/me/app/secret", Kind::Hidden),
        ("/home/me/app/docs", Kind::Host(Access::ReadOnly)),
        ("/srv/data", Kind::Host(Access::ReadOnly)),
    ];
    Walls {
        places: places.iter().map(|(path, kind)| (PathBuf::from(path), *kind)).collect(),
        view: View::new(
            [
                rule("/usr", PathAccess::Read, system()),
                rule("/etc", PathAccess::Read, system()),
                rule(
                    "/home/me/app",
                    PathAccess::Write,
                    Origin::builtin("the workspace is writable"),
                ),
                rule("/home/me/app/secret", PathAccess::Hide, Origin::flag("--hide")),
                rule("/home/me/app/docs", PathAccess::ReadOnly, Origin::flag("--readonly")),
                rule("/srv/data", PathAccess::Read, Origin::flag("--read")),
            ],
            [],
        ),
        protected: BTreeMap::from([
            ("/home/me/app/.git/hooks".into(), Group::GitHooks),
            ("/home/me/app/pinfold.toml".into(), Group::Pinfold),
        ]),
        closed: BTreeSet::new(),
        pinned: BTreeSet::from(["/home/me/app/.git".into()]),
        home: "/home/me".into(),
        data: "/home/me/.local/share/pinfold".into(),
        filter: FilterOptions::default(),
    }
}

fn refusal(path: &str, errno: Errno, write: bool) -> Refusal {
    Refusal {
        // A call that no rule of the filter names.
        call: 0,
        errno: errno.raw_os_error(),
        path: Some(path.as_bytes().to_vec().into()),
        write,
        arguments: [0; 6],
        command: "sh".to_owned(),
    }
}

const THERE: OnHost = OnHost {
    exists: true,
    parent_exists: true,
    permitted: true,
};
const IN_A_FOLDER: OnHost = OnHost {
    exists: false,
    parent_exists: true,
    permitted: false,
};
const NOWHERE: OnHost = OnHost {
    exists: false,
    parent_exists: false,
    permitted: false,
};

#[track_caller]
fn check(path: &str, errno: Errno, write: bool, host: OnHost, expected: Option<(&str, Option<&str>)>) {
    let found = judge::path(&walls(), &refusal(path, errno, write), Path::new(path), host);
    let found = found
        .as_ref()
        .map(|reason| (reason.why.as_str(), reason.fix.as_deref()));
    match (found, expected) {
        (Some((why, fix)), Some((expected, expected_fix))) => {
            assert!(why.contains(expected), "{path}: {why}");
            assert_eq!(fix, expected_fix, "{path}");
        }
        (found, expected) => assert_eq!(found, expected, "{path}"),
    }
}

#[test]
fn a_refused_write_names_the_rule_and_what_would_change_it() {
    let write = |path: &str, errno, host, expected| check(path, errno, true, host, expected);
    write(
        "/home/me/app/.git/hooks/pre-commit",
        Errno::ROFS,
        IN_A_FOLDER,
        Some(("protected: git hooks run on the host", Some("--lift git-hooks"))),
    );
    write(
        "/home/me/app/pinfold.toml",
        Errno::ROFS,
        THERE,
        Some(("protected", None)),
    );
    write(
        "/home/me/app/.git",
        Errno::BUSY,
        THERE,
        Some(("holds protected", Some("--lift git-hooks"))),
    );
    write(
        "/usr/bin/x",
        Errno::ROFS,
        IN_A_FOLDER,
        Some(("system folders", Some("--write /usr/bin"))),
    );
    write(
        "/home/me/app/docs/a",
        Errno::ROFS,
        THERE,
        Some(("--readonly", Some("change that rule"))),
    );
    write(
        "/srv/data/a",
        Errno::ROFS,
        THERE,
        Some(("--read", Some("--write /srv/data"))),
    );
    write(
        "/srv/other/a",
        Errno::NOENT,
        IN_A_FOLDER,
        Some(("not visible", Some("--write /srv/other"))),
    );
    write("/etc/passwd", Errno::ROFS, THERE, Some(("made for the sandbox", None)));
    write("/home/me/.gitconfig", Errno::ROFS, THERE, Some(("readable only", None)));
    write(
        "/proc/sys/kernel/hostname",
        Errno::ROFS,
        THERE,
        Some(("whole host", None)),
    );
    write("/run/x", Errno::ACCESS, NOWHERE, Some(("XDG_RUNTIME_DIR", None)));
    write("/newdir", Errno::ROFS, IN_A_FOLDER, Some(("not visible", None)));
    write(
        "/home/me/app/theirs",
        Errno::ACCESS,
        OnHost {
            permitted: false,
            ..THERE
        },
        Some(("its own permissions", None)),
    );
}

#[test]
fn a_refused_read_names_the_rule_and_what_would_change_it() {
    let read = |path: &str, errno, host, expected| check(path, errno, false, host, expected);
    read(
        "/home/me/app/secret",
        Errno::ACCESS,
        THERE,
        Some(("hidden by command line, --hide", Some("change that rule"))),
    );
    read("/etc/shadow", Errno::ACCESS, THERE, Some(("keys or passwords", None)));
    read(
        "/home/me/.cargo/credentials.toml",
        Errno::ACCESS,
        THERE,
        Some(("credentials of a tool", None)),
    );
    read(
        "/home/me/.ssh/id_ed25519",
        Errno::NOENT,
        THERE,
        Some(("your keys", None)),
    );
    read(
        "/home/me/notes",
        Errno::NOENT,
        THERE,
        Some(("your home", Some("--read /home/me/notes"))),
    );
    read(
        "/home/me/my notes",
        Errno::NOENT,
        THERE,
        Some(("your home", Some("--read '/home/me/my notes'"))),
    );
    read(
        "/tmp/x",
        Errno::NOENT,
        THERE,
        Some(("temporary folders", Some("--read /tmp/x"))),
    );
    read(
        "/dev/kvm",
        Errno::NOENT,
        THERE,
        Some(("harmless devices", Some("--read /dev/kvm"))),
    );
    read("/run/docker.sock", Errno::NOENT, THERE, Some(("no service", None)));
    read(
        "/opt/x",
        Errno::NOENT,
        THERE,
        Some(("not visible", Some("--read /opt/x"))),
    );
    read("/proc/1/environ", Errno::ACCESS, THERE, Some(("about the host", None)));
}

#[test]
fn what_no_wall_refused_is_left_out() {
    for (path, errno, write, host) in [
        ("/home/me/.nothing", Errno::NOENT, false, NOWHERE),
        ("/home/me/.nothing", Errno::NOENT, false, IN_A_FOLDER),
        ("/usr/lib/x.so", Errno::NOENT, false, THERE),
        ("/proc/4711/stat", Errno::NOENT, false, THERE),
        ("/home/me/app/a", Errno::XDEV, true, THERE),
    ] {
        check(path, errno, write, host, None);
    }
}

#[test]
fn several_attempts_at_one_path_are_one_row_and_paths_are_relative_to_the_working_directory() {
    let explain = Explain {
        walls: walls(),
        cwd: "/home/me/app".into(),
    };
    let hook = "/home/me/app/.git/hooks/pre-commit";
    let mut ptrace = refusal("", Errno::PERM, false);
    ptrace.path = None;
    ptrace.call = if cfg!(target_arch = "x86_64") { 101 } else { 117 };
    let page = explain.page(
        &[
            refusal(hook, Errno::ROFS, true),
            refusal(hook, Errno::NOENT, true),
            ptrace.clone(),
            ptrace,
        ],
        |_, _| IN_A_FOLDER,
    );
    assert_eq!(page.writes.len(), 1);
    assert_eq!(page.writes[0].0, ".git/hooks/pre-commit");
    assert_eq!(page.reads, []);
    assert_eq!(page.calls.len(), 1);
    assert_eq!(page.calls[0].0, "ptrace by sh");
}
