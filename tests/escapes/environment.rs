//! What of the caller's environment goes in, and what of it shows anywhere.

use std::fs;
use std::process::Stdio;

use crate::case::{Case, Live, SECRET, finish};

const HOSTILE: &[&str] = &[
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "NPM_TOKEN",
    "DATABASE_URL",
    "MY_PASSWORD",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
    "KUBECONFIG",
    "TMUX",
    "STY",
    "VSCODE_IPC_HOOK_CLI",
    "VSCODE_GIT_ASKPASS_MAIN",
    "WSL_INTEROP",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "GIT_DIR",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "GIT_ASKPASS",
    "PROMPT_COMMAND",
    "XDG_SESSION_ID",
    "SUDO_COMMAND",
    "UNKNOWN_VARIABLE",
];

/// Everything that may be inside without a rule, besides proxy variables.
const KNOWN: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "TMPDIR",
    "PINFOLD",
    "PINFOLD_SANDBOX",
    "XDG_RUNTIME_DIR",
    "PWD",
    "SHLVL",
    "_",
    "AWS_CA_BUNDLE",
    "BUNDLE_SSL_CA_CERT",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_ENV_PROXY",
    "JAVA_TOOL_OPTIONS",
    "UV_NATIVE_TLS",
];

fn hostile(case: &Case) -> std::process::Command {
    let mut pinfold = case.pinfold();
    for name in HOSTILE {
        // A loader variable with a value that the loader would act on makes noise of its own.
        pinfold.env(name, format!("/nonexistent/{SECRET}"));
    }
    pinfold.env("LISTEN_FDS", "1");
    pinfold
}

#[test]
fn secrets_sockets_and_hooks_of_the_caller_do_not_go_in() {
    let case = Case::new();
    let mut pinfold = hostile(&case);
    pinfold.args(["run", "--", "env"]);
    let ran = finish(pinfold.stdin(Stdio::null()));
    ran.expect_code(0);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    for name in HOSTILE {
        let own = ["JAVA_TOOL_OPTIONS", "NODE_OPTIONS"].contains(name) && !ran.stdout.contains(SECRET);
        let inside = ran.stdout.lines().any(|line| line.starts_with(&format!("{name}=")));
        assert!(own || !inside, "{name} went in");
    }
}

#[test]
fn no_secret_shows_in_any_process_of_the_sandbox_on_either_side() {
    let case = Case::new();
    let mut pinfold = hostile(&case);
    pinfold.args([
        "run",
        "--",
        "sh",
        "-c",
        "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' >seen; echo ready; read line; true",
    ]);
    let mut live = Live::spawn(&mut pinfold);
    assert_eq!(live.hear(), "ready");
    for pid in crate::leftovers::descendants(live.pid()) {
        for file in ["environ", "cmdline"] {
            let content = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&content).contains(SECRET), "{file} of {pid}");
        }
    }
    live.end().expect_code(0);
    assert!(
        !fs::read_to_string(case.workspace.join("seen"))
            .unwrap()
            .contains(SECRET)
    );
}

#[test]
fn the_environment_is_the_fixed_list_and_what_pinfold_sets() {
    let case = Case::new();
    let ran = case.run(&[] as &[&str], &["env"]);
    for line in ran.stdout.lines() {
        let name = line.split('=').next().unwrap_or_default();
        let proxy = name.to_ascii_lowercase().ends_with("_proxy");
        assert!(proxy || KNOWN.contains(&name), "{line}");
    }
    assert!(ran.stdout.contains("PINFOLD=1"), "{}", ran.stdout);
}

#[test]
fn the_callers_proxy_exceptions_do_not_go_in() {
    let case = Case::new();
    let mut pinfold = case.pinfold();
    for name in ["NO_PROXY", "no_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"] {
        pinfold.env(name, "http://callers.example.com:1");
    }
    pinfold.args(["run", "--", "env"]);
    let ran = finish(pinfold.stdin(Stdio::null()));
    assert!(!ran.stdout.contains("callers.example.com"), "{}", ran.stdout);
    let exceptions: Vec<_> = ran
        .stdout
        .lines()
        .filter(|line| line.to_lowercase().starts_with("no_proxy="))
        .collect();
    assert_eq!(exceptions.len(), 2, "{exceptions:?}");
    for line in exceptions {
        let (_, value) = line.split_once('=').unwrap();
        for host in value.split(',') {
            assert!(
                ["localhost", "127.0.0.1", "::1", "127.0.0.0/8", "[::1]"].contains(&host),
                "{line}"
            );
        }
    }
}

#[test]
fn loader_hooks_of_the_caller_do_not_reach_what_pinfold_starts() {
    let case = Case::new();
    let mut pinfold = case.pinfold();
    case.put("hook.sh", "echo hooked\n");
    pinfold
        .env("BASH_ENV", case.workspace.join("hook.sh"))
        .env("ENV", case.workspace.join("hook.sh"));
    pinfold.args(["run", "--", "bash", "-c", "echo clean"]);
    let ran = finish(pinfold.stdin(Stdio::null()));
    assert_eq!(ran.stdout, "clean\n", "{ran:?}");
}

#[test]
fn an_empty_entry_of_path_never_means_the_workspace() {
    let case = Case::new();
    let program = case.put("planted", "#!/bin/sh\necho planted\n");
    fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut pinfold = case.pinfold();
    pinfold.env("PATH", "/usr/bin::/bin:");
    pinfold.args(["run", "--", "planted"]);
    let ran = finish(pinfold.stdin(Stdio::null()));
    ran.expect_code(127);
}
