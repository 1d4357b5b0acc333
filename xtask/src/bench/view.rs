//! A list of bubblewrap arguments that builds about what a start of ours builds.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Places;
use crate::invoke;

/// Arguments for `bwrap`, up to the command, and where they came from.
#[derive(Debug)]
pub(super) struct View {
    pub(super) arguments: Vec<OsString>,
    pub(super) mounts: usize,
    pub(super) source: &'static str,
}

/// From our own plan when bubblewrap can carry that out, else a list by hand.
pub(super) fn like_ours(places: &Places, workspace: &Path) -> View {
    let mut dry_run = places.pinfold_run(workspace);
    dry_run.args(["--dry-run", "--json", "--", "true"]);
    let plan = invoke::output(&mut dry_run)
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let ours = plan.as_ref().and_then(find_steps).map(|steps| View {
        arguments: isolation(steps.iter().flat_map(arguments_of).collect(), workspace),
        mounts: steps.iter().map(mounts_of).sum(),
        source: "the plan of this start",
    });
    ours.filter(works).unwrap_or_else(|| by_hand(workspace))
}

fn works(view: &View) -> bool {
    invoke::output(Command::new("bwrap").args(&view.arguments).arg("true")).is_ok()
}

fn isolation(mut arguments: Vec<OsString>, workspace: &Path) -> Vec<OsString> {
    let fixed = [
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--clearenv",
    ];
    arguments.extend(fixed.iter().map(OsString::from));
    arguments.extend(["--setenv", "PATH", "/usr/bin:/bin", "--chdir"].map(OsString::from));
    arguments.push(workspace.into());
    arguments
}

/// The plan's steps, wherever the document keeps them.
fn find_steps(json: &Value) -> Option<&Vec<Value>> {
    match json {
        Value::Object(fields) => match fields.get("view").and_then(Value::as_array) {
            Some(steps) => Some(steps),
            None => fields.values().find_map(find_steps),
        },
        _ => None,
    }
}

/// A step is `{"Bind": {…}}`, in whatever case its names are printed.
fn step(json: &Value) -> Option<(String, &Value)> {
    let (name, fields) = json.as_object()?.iter().next()?;
    Some((name.to_lowercase(), fields))
}

fn mounts_of(json: &Value) -> usize {
    match step(json) {
        Some((name, _)) if matches!(name.as_str(), "dir" | "emptyfile" | "file" | "symlink") => 0,
        Some(_) => 1,
        None => 0,
    }
}

fn arguments_of(json: &Value) -> Vec<OsString> {
    let Some((name, fields)) = step(json) else {
        return Vec::new();
    };
    let at = |field: &str| path(&fields[field]).into_os_string();
    let below_dev = |field: &str| path(&fields[field]).starts_with("/dev");
    let read_only = fields["access"]
        .as_str()
        .is_some_and(|access| access.to_lowercase().replace('_', "") == "readonly");
    let bind = |read_only: bool| OsString::from(if read_only { "--ro-bind-try" } else { "--bind-try" });
    match name.as_str() {
        "dir" if below_dev("path") => Vec::new(),
        "dir" => vec!["--dir".into(), at("path")],
        "symlink" if below_dev("path") => Vec::new(),
        "symlink" => vec!["--symlink".into(), at("target"), at("path")],
        // `--dev` makes the tmpfs, the devices, the links and the devpts in one go.
        "tmpfs" if path(&fields["path"]) == Path::new("/dev") => vec!["--dev".into(), "/dev".into()],
        "tmpfs" => vec!["--tmpfs".into(), at("path")],
        "bind" => vec![bind(read_only), at("source"), at("target")],
        "rebind" => vec![bind(read_only), at("source"), at("target")],
        "overlay" => vec![bind(false), at("lower"), at("target")],
        "mask"
            if fields["node"]
                .as_str()
                .is_some_and(|node| node.eq_ignore_ascii_case("dir")) =>
        {
            vec!["--tmpfs".into(), at("target")]
        }
        "mask" => vec!["--ro-bind".into(), "/dev/null".into(), at("target")],
        "proc" => vec!["--proc".into(), at("path")],
        _ => Vec::new(),
    }
}

/// Paths are printed as text or as a list of bytes.
fn path(json: &Value) -> PathBuf {
    match json {
        Value::String(text) => text.into(),
        Value::Array(bytes) => {
            let bytes = bytes
                .iter()
                .filter_map(Value::as_u64)
                .filter_map(|byte| u8::try_from(byte).ok());
            OsString::from_vec(bytes.collect()).into()
        }
        _ => PathBuf::new(),
    }
}

/// System folders, private ones, the workspace and the files below it that stay read-only.
fn by_hand(workspace: &Path) -> View {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut mounts = 0;
    let mut mount = |words: &[&str]| {
        arguments.extend(words.iter().map(OsString::from));
        mounts += 1;
    };
    for folder in ["/usr", "/etc", "/opt"] {
        mount(&["--ro-bind-try", folder, folder]);
    }
    mount(&["--proc", "/proc"]);
    mount(&["--dev", "/dev"]);
    for folder in ["/tmp", "/var/tmp", "/run", "/home", "/root"] {
        mount(&["--tmpfs", folder]);
    }
    let inside = workspace.display().to_string();
    mount(&["--bind", &inside, &inside]);
    for name in [".git/hooks", ".git/config", ".vscode", ".idea", ".claude", ".mcp.json"] {
        let protected = format!("{inside}/{name}");
        if Path::new(&protected).exists() {
            mount(&["--ro-bind", &protected, &protected]);
        }
    }
    for file in ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf"] {
        mount(&["--ro-bind-try", file, file]);
    }
    for folder in ["bin", "sbin", "lib", "lib64"] {
        arguments.extend(["--symlink", &format!("usr/{folder}"), &format!("/{folder}")].map(OsString::from));
    }
    View {
        arguments: isolation(arguments, workspace),
        mounts,
        source: "a list by hand",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{arguments_of, find_steps};

    #[test]
    fn steps_of_a_plan_become_arguments_whatever_the_spelling_of_paths() {
        let cases = [
            (
                json!({"Bind": {"source": "/usr", "target": "/usr", "access": "ReadOnly"}}),
                "--ro-bind-try /usr /usr",
            ),
            (
                json!({"bind": {"source": [47, 97], "target": [47, 97], "access": "read_write"}}),
                "--bind-try /a /a",
            ),
            (json!({"Tmpfs": {"path": "/dev"}}), "--dev /dev"),
            (json!({"Device": {"source": "/dev/null", "target": "/dev/null"}}), ""),
            (
                json!({"Symlink": {"path": "/bin", "target": "usr/bin"}}),
                "--symlink usr/bin /bin",
            ),
            (json!({"Mask": {"target": "/x", "node": "Dir"}}), "--tmpfs /x"),
        ];
        for (step, wanted) in cases {
            let words: Vec<String> = arguments_of(&step)
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            assert_eq!(words.join(" "), wanted, "{step}");
        }
        assert_eq!(find_steps(&json!({"plan": {"view": [1, 2]}})).map(Vec::len), Some(2));
    }
}
