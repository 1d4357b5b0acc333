use std::path::PathBuf;

use pinfold_model::origin::Origin;

use super::*;

fn facts<'a>() -> Facts<'a> {
    Facts {
        home: Path::new("/home/ada"),
        temporary: Path::new("/tmp"),
        runtime: Some(Path::new("/run/user/1000")),
        user: OsStr::new("ada"),
        shell: Some(Path::new("/bin/bash")),
        path: None,
        network: None,
        roots: None,
        java_roots: None,
        toolchains: &[],
        git_safe_directories: &[],
        sandbox: "sb-1",
    }
}

fn with_network<'a>() -> Facts<'a> {
    Facts {
        network: Some(Listeners { http: 80, socks: 81 }),
        roots: Some(Path::new("/etc/ssl/roots.pem")),
        ..facts()
    }
}

fn environ(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn pass(names: &[&str]) -> EnvironmentPolicy {
    let origin = Origin::flag("--pass");
    EnvironmentPolicy {
        pass: names.iter().map(|name| ((*name).to_owned(), origin.clone())).collect(),
        ..Default::default()
    }
}

fn set(pairs: &[(&str, &str)]) -> EnvironmentPolicy {
    let origin = Origin::flag("--env");
    let set = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ((*value).to_owned(), origin.clone())))
        .collect();
    EnvironmentPolicy {
        set,
        ..Default::default()
    }
}

fn get(built: &[(OsString, OsString)], name: &str) -> Option<String> {
    built
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.to_str().unwrap().to_owned())
}

fn text(built: &[(OsString, OsString)]) -> String {
    built
        .iter()
        .map(|(name, value)| format!("{}={}\n", name.display(), value.display()))
        .collect()
}

#[test]
fn only_the_allow_list_passes_by_default() {
    let allowed = "CI COLORTERM LANG LC_ALL LC_CTYPE LOGNAME NO_COLOR PATH SHELL TERM TZ USER";
    let refused = "AWS_SECRET_ACCESS_KEY ANTHROPIC_API_KEY GITHUB_TOKEN SSH_AUTH_SOCK GPG_AGENT_INFO GPG_TTY \
        DBUS_SESSION_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY XAUTHORITY DOCKER_HOST KUBECONFIG TMUX STY \
        VSCODE_IPC_HOOK_CLI WSL_INTEROP NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV \
        NODE_OPTIONS PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GIT_DIR GIT_CONFIG_COUNT GIT_SSH_COMMAND \
        HTTP_PROXY http_proxy NO_PROXY SSL_CERT_FILE EDITOR PWD OLDPWD LC path CARGO_HOME";
    let names: Vec<(&str, &str)> = allowed
        .split_whitespace()
        .chain(refused.split_whitespace())
        .map(|name| (name, "x"))
        .collect();
    let built = build(&environ(&names), &EnvironmentPolicy::default(), &facts());
    for name in allowed.split_whitespace() {
        assert_eq!(get(&built, name).as_deref(), Some("x"), "{name}");
    }
    for name in refused.split_whitespace() {
        assert_eq!(get(&built, name), None, "{name}");
    }
}

#[test]
fn an_empty_caller_still_gets_a_usable_environment_and_no_proxies_without_a_network() {
    insta::assert_snapshot!(text(&build(&[], &EnvironmentPolicy::default(), &facts())), @r"
    HOME=/home/ada
    LOGNAME=ada
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PINFOLD=1
    PINFOLD_SANDBOX=sb-1
    SHELL=/bin/bash
    TMPDIR=/tmp
    USER=ada
    XDG_RUNTIME_DIR=/run/user/1000
    ");
}

#[test]
fn a_network_brings_the_proxy_and_the_roots() {
    let store = Facts {
        java_roots: Some(Path::new("/etc/ssl/cacerts")),
        ..with_network()
    };
    insta::assert_snapshot!(text(&build(&[], &EnvironmentPolicy::default(), &store)));
}

#[test]
fn node_gets_extra_roots_only_where_the_caller_has_some() {
    let name = "NODE_EXTRA_CA_CERTS";
    let built = |caller: &[(&str, &str)], policy| get(&build(&environ(caller), &policy, &with_network()), name);
    assert_eq!(built(&[], EnvironmentPolicy::default()), None);
    let caller = [(name, "/home/ada/corp.pem")];
    assert_eq!(
        built(&caller, EnvironmentPolicy::default()).as_deref(),
        Some("/etc/ssl/roots.pem")
    );
    assert_eq!(built(&caller, pass(&[name])).as_deref(), Some("/home/ada/corp.pem"));
}

#[test]
fn an_explicit_pass_carries_even_secrets_and_hooks() {
    let caller = environ(&[
        ("ANTHROPIC_API_KEY", "sk"),
        ("LD_PRELOAD", "/x.so"),
        ("EDITOR", "vi"),
        ("OTHER", "no"),
    ]);
    let policy = pass(&["ANTHROPIC_API_KEY", "LD_PRELOAD", "EDITOR", "ABSENT"]);
    let built = build(&caller, &policy, &facts());
    assert_eq!(get(&built, "ANTHROPIC_API_KEY").as_deref(), Some("sk"));
    assert_eq!(get(&built, "LD_PRELOAD").as_deref(), Some("/x.so"));
    assert_eq!(get(&built, "EDITOR").as_deref(), Some("vi"));
    assert_eq!(get(&built, "ABSENT"), None);
    assert_eq!(get(&built, "OTHER"), None);
    assert_eq!(
        passed_secrets(&caller, &policy)
            .map(|(name, _)| name)
            .collect::<Vec<_>>(),
        ["ANTHROPIC_API_KEY"]
    );
}

#[test]
fn a_pass_of_an_untrusted_workspace_file_is_ignored() {
    let origin = Origin::File {
        scope: Scope::Workspace,
        path: "/w/pinfold.toml".into(),
        line: 1,
        column: 1,
        key: "environment.pass".into(),
    };
    let policy = EnvironmentPolicy {
        pass: vec![("GITHUB_TOKEN".into(), origin)],
        ..Default::default()
    };
    let caller = environ(&[("GITHUB_TOKEN", "gh")]);
    assert_eq!(get(&build(&caller, &policy, &facts()), "GITHUB_TOKEN"), None);
    assert_eq!(passed_secrets(&caller, &policy).count(), 0);
}

#[test]
fn deny_beats_pass_and_set_and_the_allow_list_but_not_the_marker() {
    let origin = Origin::flag("--settings");
    let mut policy = pass(&["A"]);
    policy.set = set(&[("B", "b")]).set;
    policy.deny = ["A", "B", "LANG", "PINFOLD"]
        .map(|name| (name.to_owned(), origin.clone()))
        .to_vec();
    let built = build(&environ(&[("A", "a"), ("LANG", "C")]), &policy, &facts());
    assert_eq!(
        [get(&built, "A"), get(&built, "B"), get(&built, "LANG")],
        [None, None, None]
    );
    assert_eq!(get(&built, "PINFOLD").as_deref(), Some("1"));
}

#[test]
fn set_wins_over_everything_but_the_marker() {
    let policy = set(&[
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("TMPDIR", "/w/tmp"),
        ("PINFOLD", "0"),
        ("LANG", "C.UTF-8"),
    ]);
    let built = build(&environ(&[("LANG", "de_DE")]), &policy, &with_network());
    assert_eq!(get(&built, "HTTP_PROXY").as_deref(), Some("http://127.0.0.1:9"));
    assert_eq!(get(&built, "TMPDIR").as_deref(), Some("/w/tmp"));
    assert_eq!(get(&built, "LANG").as_deref(), Some("C.UTF-8"));
    assert_eq!(get(&built, "PINFOLD").as_deref(), Some("1"));
}

#[test]
fn passed_values_that_cannot_work_inside_give_way_and_others_are_merged_or_kept() {
    let caller = environ(&[
        ("HTTPS_PROXY", "http://corp:3128"),
        ("TMPDIR", "/home/ada/tmp"),
        ("SSL_CERT_FILE", "/home/ada/corp.pem"),
        ("JAVA_TOOL_OPTIONS", "-Xmx1g"),
        ("HOME", "/elsewhere"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ]);
    let policy = pass(&[
        "HTTPS_PROXY",
        "TMPDIR",
        "SSL_CERT_FILE",
        "JAVA_TOOL_OPTIONS",
        "XDG_RUNTIME_DIR",
    ]);
    let built = build(&caller, &policy, &with_network());
    assert_eq!(get(&built, "HTTPS_PROXY").as_deref(), Some("http://127.0.0.1:80"));
    assert_eq!(get(&built, "TMPDIR").as_deref(), Some("/tmp"));
    assert_eq!(get(&built, "HOME").as_deref(), Some("/home/ada"));
    assert_eq!(get(&built, "SSL_CERT_FILE").as_deref(), Some("/home/ada/corp.pem"));
    assert!(
        get(&built, "JAVA_TOOL_OPTIONS")
            .unwrap()
            .ends_with("-Dhttps.proxyPort=80 -Xmx1g")
    );
    assert_eq!(get(&built, "XDG_RUNTIME_DIR").as_deref(), Some("/run/user/1000"));
    let without = Facts {
        runtime: None,
        ..facts()
    };
    assert_eq!(get(&build(&caller, &policy, &without), "XDG_RUNTIME_DIR"), None);
}

#[test]
fn variables_of_visible_toolchains_pass_and_the_path_can_be_replaced() {
    let caller = environ(&[("RUSTUP_HOME", "/home/ada/rust"), ("PATH", "/home/ada:/usr/bin")]);
    let facts = Facts {
        toolchains: &["RUSTUP_HOME"],
        path: Some(OsStr::new("/usr/bin")),
        ..facts()
    };
    let built = build(&caller, &EnvironmentPolicy::default(), &facts);
    assert_eq!(get(&built, "RUSTUP_HOME").as_deref(), Some("/home/ada/rust"));
    assert_eq!(get(&built, "PATH").as_deref(), Some("/usr/bin"));
}

#[test]
fn git_is_told_which_directories_are_safe_behind_entries_of_the_policy() {
    let directories = [PathBuf::from("/w/one"), PathBuf::from("/w/two")];
    let facts = Facts {
        git_safe_directories: &directories,
        ..facts()
    };
    let policy = set(&[
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "user.name"),
        ("GIT_CONFIG_VALUE_0", "Ada"),
    ]);
    let built = build(&[], &policy, &facts);
    let read = |name: &str| get(&built, name).unwrap();
    assert_eq!(read("GIT_CONFIG_COUNT"), "3");
    assert_eq!(
        [
            read("GIT_CONFIG_KEY_0"),
            read("GIT_CONFIG_KEY_1"),
            read("GIT_CONFIG_KEY_2")
        ],
        ["user.name", "safe.directory", "safe.directory"]
    );
    assert_eq!(
        [read("GIT_CONFIG_VALUE_1"), read("GIT_CONFIG_VALUE_2")],
        ["/w/one", "/w/two"]
    );
}

#[test]
fn the_first_of_two_equal_names_wins_and_names_that_are_none_are_dropped() {
    let caller = environ(&[
        ("LANG", "one"),
        ("LANG", "two"),
        ("", "x"),
        ("LC_A=B", "x"),
        ("LC_N", "a\0b"),
    ]);
    let built = build(&caller, &set(&[("X=Y", "1"), ("OK", "1")]), &facts());
    assert_eq!(get(&built, "LANG").as_deref(), Some("one"));
    assert_eq!(get(&built, "OK").as_deref(), Some("1"));
    assert!(
        !built
            .iter()
            .any(|(name, value)| name.is_empty() || name.as_bytes().contains(&b'=') || value.as_bytes().contains(&0))
    );
}

#[test]
fn names_that_look_like_secrets_are_recognised() {
    for name in [
        "GITHUB_TOKEN",
        "npm_config__authToken",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "DB_PASS",
        "SSH_AUTH_SOCK",
        "OPENAI_API_KEY",
        "DATABASE_URL",
        "GH_PAT",
    ] {
        assert!(looks_secret(OsStr::new(name)), "{name}");
    }
    for name in [
        "PATH", "KEYBOARD", "EDITOR", "MONKEY", "PWD", "AUTHOR", "COMPASS", "LANG", "PATTERN",
    ] {
        assert!(!looks_secret(OsStr::new(name)), "{name}");
    }
}
