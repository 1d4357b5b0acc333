//! Places: what is missing, what does not answer, and where a rule means something of its own.

use super::*;
use crate::resolve::follow::{End, Follower, Unreachable};

#[derive(Debug, PartialEq)]
enum Came {
    Nothing,
    Warning,
    Error,
}

#[test]
fn a_missing_permission_is_refused_told_or_dropped_by_who_wrote_it() {
    use Came::{Error, Nothing, Warning};
    let host = Host::new();
    let settings = Origin::Settings {
        path: "/s.json".into(),
        key: "filesystem.allowWrite[0]".into(),
    };
    let table = [
        (Write, Origin::flag("--write"), Error),
        (Write, file_origin(), Error),
        (Write, settings.clone(), Error),
        (Write, profile_origin(), Nothing),
        (Write, Origin::builtin("x"), Nothing),
        (Read, Origin::flag("--read"), Error),
        (Read, file_origin(), Warning),
        (Read, settings, Warning),
        (Read, profile_origin(), Nothing),
        (Read, Origin::builtin("x"), Nothing),
    ];
    for (access, origin, expected) in table {
        let name = format!("{access:?} {origin:?}");
        let came = match host.resolve(&[from(origin, rule(access, host.home.join("no/such thing")))]) {
            Ok(resolved) if resolved == Resolved::default() => Nothing,
            Ok(resolved) => {
                assert!(
                    said(&resolved).is_empty() && resolved.warnings[0].contains("matches nothing"),
                    "{name}"
                );
                Warning
            }
            Err(error) => {
                assert!(error.to_string().contains("does not exist"), "{error}");
                if access == Write {
                    let hint = format!("create it first: mkdir -p '{}/no/such thing'", host.home.display());
                    assert_eq!(error.hint(), hint);
                }
                Error
            }
        };
        assert_eq!(came, expected, "{name}");
    }
}

#[test]
fn a_missing_denial_keeps_the_name_from_coming_into_being() {
    let host = Host::new();
    let file = host.file("home/work/file");
    let (none, below) = (host.workspace.join("no/such"), file.join("below"));
    let rules = [
        rule(Hide, &none),
        rule(ReadOnly, &none),
        from(profile_origin(), rule(Hide, &below)),
    ];
    let resolved = host.resolve(&rules).unwrap();
    assert_eq!(
        absent(&resolved),
        [(Hide, below), (ReadOnly, none.clone()), (Hide, none)]
    );
    assert_eq!(said(&resolved), []);
}

#[test]
fn a_mount_that_does_not_answer_is_hidden_for_a_denial() {
    let mut host = Host::new();
    let dead = host.folder("home/dead");
    host.mounts = format!("1 0 0:1 / {} rw - nfs4 server:/ rw\n", dead.display()).into_bytes();
    let mut mounts = Mounts::parse(&host.mounts);
    mounts.give_up(&dead);
    let link = host.link("home/work/l", "../dead/x");
    let landing = Follower::new(mounts).follow(&link).unwrap();
    assert_eq!(
        landing.end,
        End::Unreachable {
            nearest: dead.clone(),
            why: Unreachable::Silent
        }
    );
    assert_eq!(landing.links, [link]);

    let context = Context {
        home: &host.home,
        workspace: &host.workspace,
        private: &[],
        search_path: &[],
        budget: Duration::ZERO,
    };
    let judged = |rule: PathRule| {
        let mut mounts = Mounts::parse(&host.mounts);
        mounts.give_up(&dead);
        resolve_with(&[rule], &context, mounts, host.bounds)
    };
    let resolved = judged(rule(ReadOnly, dead.join("a/b"))).unwrap();
    assert_eq!(said(&resolved), [(Hide, dead.clone())]);
    assert!(resolved.warnings[0].contains("does not answer"));
    assert_eq!(
        said(&judged(pattern(Hide, dead.join("a"), "*.key")).unwrap()),
        [(Hide, dead.clone())]
    );
    assert!(matches!(
        judged(rule(Read, dead.join("a"))),
        Err(ResolveError::Unreachable { .. })
    ));
    assert_eq!(
        said(&judged(from(profile_origin(), rule(Read, dead.join("a")))).unwrap()),
        []
    );
    assert_eq!(said(&judged(pattern(Read, dead.join("a"), "*.key")).unwrap()), []);
}

#[test]
fn a_mount_that_answers_is_looked_at_when_a_rule_names_it() {
    let mut host = Host::new();
    let file = host.file("home/share/a");
    host.mounts = format!("1 0 0:1 / {} rw - fuse.sshfs x rw\n", host.home.join("share").display()).into_bytes();
    assert_eq!(said(&host.resolve(&[rule(Read, &file)]).unwrap()), [(Read, file)]);
}

#[test]
fn folders_of_the_sandboxs_own_show_the_hosts_only_below_a_name_that_a_rule_gives() {
    let host = Host::new();
    let tmp = host.folder("tmp");
    let shared = host.folder("tmp/shared");
    let (secret, other) = (host.file("tmp/shared/secret"), host.file("tmp/other"));
    let private = [tmp.as_path()];
    let rules = [
        rule(Write, &tmp),
        rule(Write, &shared),
        rule(Hide, &secret),
        rule(Hide, &other),
        rule(Hide, tmp.join("none")),
    ];
    let resolved = host.resolve_beside(&rules, &private).unwrap();
    assert_eq!(said(&resolved), [(Write, shared), (Hide, secret)]);
    assert_eq!(absent(&resolved), []);
    assert!(resolved.warnings[0].contains("of its own"), "{:?}", resolved.warnings);

    let gone = rule(Write, tmp.join("agent"));
    assert!(matches!(
        host.resolve_beside(std::slice::from_ref(&gone), &private),
        Err(ResolveError::Missing { .. })
    ));
    let settings = Origin::Settings {
        path: "/s.json".into(),
        key: "filesystem.allowWrite[0]".into(),
    };
    assert_eq!(
        host.resolve_beside(&[from(settings, gone)], &private)
            .unwrap()
            .warnings
            .len(),
        1
    );
}

#[test]
fn the_process_and_system_file_systems_are_not_shown() {
    let host = Host::new();
    for (access, path) in [
        (Read, "/proc/meminfo"),
        (Write, "/proc/sys"),
        (Write, "/sys/devices"),
        (Read, "/sys/kernel"),
        (Read, "/sys"),
    ] {
        assert!(
            matches!(host.resolve(&[rule(access, path)]), Err(ResolveError::OwnView { .. })),
            "{access:?} {path}"
        );
    }
    let resolved = host
        .resolve(&[rule(Read, "/sys/devices"), rule(Hide, "/proc/meminfo")])
        .unwrap();
    assert_eq!(
        said(&resolved),
        [(Hide, "/proc/meminfo".into()), (Read, "/sys/devices".into())]
    );
}

#[test]
fn devices_are_shown_by_name_and_those_of_every_sandbox_need_no_rule() {
    let host = Host::new();
    let given = [
        rule(Write, "/dev/null"),
        rule(Write, "/dev/stdout"),
        rule(Read, "/dev/fd"),
        rule(Write, "/dev/tty"),
    ];
    assert_eq!(host.resolve(&given).unwrap(), Resolved::default());
    assert!(matches!(
        host.resolve(&[rule(Read, "/dev")]),
        Err(ResolveError::NoDevice { .. })
    ));
    let resolved = host
        .resolve(&[pattern(Write, "/dev", "nul[l]"), pattern(Read, "/dev", "nul?")])
        .unwrap();
    assert_eq!(said(&resolved), []);
    let devices: Vec<_> = resolved
        .devices
        .iter()
        .map(|device| (device.access, device.path.as_path()))
        .collect();
    assert_eq!(devices, [(Read, Path::new("/dev/null"))]);
    let resolved = host
        .resolve(&[pattern(Write, "/dev", "nul[l]"), rule(Hide, "/dev/null")])
        .unwrap();
    assert_eq!(resolved.devices, []);
}

#[test]
fn a_broad_write_root_is_warned_of() {
    let host = Host::new();
    let bin = host.folder("home/bin");
    let plain = host.folder("out/plain");
    let table: [(&Path, &[&str]); 6] = [
        (&plain, &[]),
        (&bin, &["on your PATH"]),
        (&host.home, &["home folder", "on your PATH"]),
        (Path::new("/etc"), &["'/etc'"]),
        (
            Path::new("/usr"),
            &["'/usr/bin', which is on your PATH", "system folder"],
        ),
        (Path::new("/var"), &["system folder"]),
    ];
    for (root, expected) in table {
        let warnings = host.resolve(&[rule(Write, root)]).unwrap().warnings;
        assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
        for word in expected {
            assert!(
                warnings
                    .iter()
                    .any(|warning| warning.contains(word) && warning.contains("--rule")),
                "{warnings:?}"
            );
        }
        let builtin = from(Origin::builtin("x"), rule(Write, root));
        assert_eq!(host.resolve(&[builtin]).unwrap().warnings, Vec::<String>::new());
    }
    assert!(matches!(
        host.resolve(&[rule(Write, "/")]),
        Err(ResolveError::WritesEverything { .. })
    ));
}

#[test]
fn a_workspace_that_covers_home_is_warned_of_even_without_rules() {
    let mut host = Host::new();
    host.workspace = host.home.clone();
    let warnings = host.resolve(&[]).unwrap().warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("home folder") && warning.contains("the workspace")),
        "{warnings:?}"
    );
}
