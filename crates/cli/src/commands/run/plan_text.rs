//! The plan of a dry run, for people and for programs.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pinfold_model::plan::{Access, Plan, Step};
use pinfold_server::audit::printable_path;

use crate::error::{Error, code};

/// Prints the plan; returns the exit code.
pub(super) fn print(plan: &Plan, json: bool) -> Result<u8, Error> {
    let text = if json { as_json(plan)? } else { as_text(plan) };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .or_else(|error| {
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                Ok(())
            } else {
                Err(error)
            }
        })
        .map_err(|error| Error::new(code::IO, format!("The plan cannot be written: {error}.")))?;
    Ok(0)
}

fn as_json(plan: &Plan) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(&text_of(plan)?)
        .map_err(|error| Error::new(code::BUG, format!("The plan cannot be written as JSON: {error}.")))?;
    text.push('\n');
    Ok(text)
}

/// The plan as JSON, with byte strings as text; bytes that are no text are escaped.
fn text_of(plan: &Plan) -> Result<serde_json::Value, Error> {
    let mut value = serde_json::to_value(plan)
        .map_err(|error| Error::new(code::BUG, format!("The plan cannot be written as JSON: {error}.")))?;
    bytes_to_text(&mut value);
    Ok(value)
}

fn bytes_to_text(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => {
            let bytes: Option<Vec<u8>> = items
                .iter()
                .map(|item| item.as_u64().and_then(|number| u8::try_from(number).ok()))
                .collect();
            match bytes {
                Some(bytes) => *value = serde_json::Value::String(shown(&bytes)),
                None => items.iter_mut().for_each(bytes_to_text),
            }
        }
        serde_json::Value::Object(fields) => fields.values_mut().for_each(bytes_to_text),
        _ => {}
    }
}

fn as_text(plan: &Plan) -> String {
    let mut lines = Vec::new();
    for step in &plan.view {
        lines.extend(line(step));
    }
    let network = match plan.network {
        Some(ports) => format!(
            "loopback only; proxy on 127.0.0.1:{} (HTTP) and :{} (SOCKS5)",
            ports.http, ports.socks
        ),
        None => "loopback only".to_owned(),
    };
    lines.push(format!("network   {network}"));
    lines.push(format!("landlock  {} rules", plan.grants.len()));
    lines.push(format!("seccomp   {} instructions", plan.filter.len()));
    if let Some(processes) = plan.rlimits.processes {
        lines.push(format!("processes {processes} at most"));
    }
    lines.join("\n") + "\n"
}

fn line(step: &Step) -> Option<String> {
    let access = |access: Access| {
        if access == Access::ReadOnly {
            "read     "
        } else {
            "write    "
        }
    };
    Some(match step {
        Step::Bind {
            source,
            target,
            access: a,
            ..
        } if source == target => format!("{} {}", access(*a), shown(target)),
        Step::Bind {
            source,
            target,
            access: a,
            ..
        }
        | Step::Rebind {
            source,
            target,
            access: a,
            ..
        } => {
            format!("{} {}   (is {})", access(*a), shown(target), shown(source))
        }
        Step::Mask { target, .. } => format!("hide      {}", shown(target)),
        Step::Overlay {
            lower, upper, target, ..
        } => {
            format!(
                "layer     {}   (reads {}, writes {})",
                shown(target),
                shown(lower),
                shown(upper)
            )
        }
        Step::Tmpfs { path, size, .. } => format!("private   {}   ({} MiB)", shown(path), size >> 20),
        Step::Proc { path } => format!("private   {}   (procfs)", shown(path)),
        Step::Devpts { path } => format!("private   {}   (terminals)", shown(path)),
        Step::Device { target, .. } => format!("device    {}", shown(target)),
        Step::File { path, .. } => format!("generated {}", shown(path)),
        Step::Symlink { path, target } => format!("link      {} -> {}", shown(path), shown(target)),
        Step::Dir { .. } | Step::EmptyFile { .. } | Step::Seal { .. } => return None,
    })
}

fn shown(bytes: &[u8]) -> String {
    printable_path(Path::new(OsStr::from_bytes(bytes)))
}
