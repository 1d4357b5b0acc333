//! `pinfold policy check`: what would happen to a host or a path, and by which rule.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use pinfold_model::net::Authority;
use pinfold_model::origin::Origin;
use pinfold_model::policy::Policy;
use pinfold_model::policy::access::{Effective, View};
use pinfold_model::policy::harmless_text;
use pinfold_model::policy::path::shown_path;
use pinfold_model::verdict::{Matched, Verdict};
use pinfold_runtime::host::{Caller, Host};
use pinfold_runtime::prepare::{self, Request};
use pinfold_runtime::proxy::egress::judge_host;
use pinfold_runtime::toolchains;

use super::current_folder;
use crate::error::say;
use crate::policy::{FILE_NAME, Folders, Ground, LoadError, Obstacle, PathAnswer, PolicyArgs, judge_path};

const ALLOWED: u8 = 0;
const DENIED: u8 = 77;

/// Tell what would happen to a host or a path in a run here.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["host", "read", "write"]))]
pub(crate) struct CheckArgs {
    /// A host, with a port other than 443.
    #[arg(value_name = "HOST[:PORT]")]
    host: Option<OsString>,
    /// May this path be read?
    #[arg(long, value_name = "PATH")]
    read: Option<PathBuf>,
    /// May this path be written?
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Read this policy file in place of your own.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Build on a named policy: a shipped profile or one of yours.
    #[arg(long, value_name = "NAME")]
    profile: Vec<String>,
}

/// A verdict in words.
struct Answer {
    allowed: bool,
    text: String,
    hint: Option<String>,
}

pub(super) fn run(args: &CheckArgs) -> Result<u8, LoadError> {
    let folders = Folders::from_environment();
    let here = current_folder()?;
    let policy = PolicyArgs::naming(args.config.clone(), args.profile.clone())
        .load(&folders, &here, &here)?
        .policy;
    let asked = [(&args.write, Effective::ReadWrite), (&args.read, Effective::ReadOnly)];
    let asked = asked
        .into_iter()
        .find_map(|(path, wanted)| Some((path.as_ref()?, wanted)));
    let answer = if let Some((path, wanted)) = asked {
        path_answer(judge(&policy, &folders, &here, &here.join(path))?, path, wanted)
    } else {
        let text = args.host.as_deref().unwrap_or_default();
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(text);
        let Authority { host, port } = Authority::parse(bytes).map_err(|source| LoadError::Host {
            text: harmless_text(&text.to_string_lossy()),
            source,
        })?;
        host_answer(judge_host(&policy.network, &host, port.unwrap_or(443)))
    };
    LoadError::unless_written(tell(&answer))?;
    Ok(if answer.allowed { ALLOWED } else { DENIED })
}

fn tell(answer: &Answer) -> io::Result<()> {
    let verdict = if answer.allowed { "allow" } else { "deny" };
    writeln!(io::stdout(), "{verdict:5}  {}", harmless_text(&answer.text))?;
    if let Some(hint) = &answer.hint {
        // Stands beside the answer on a terminal, and stays out of a pipe.
        say!("hint: {}", harmless_text(hint));
    }
    Ok(())
}

fn host_answer(verdict: Verdict) -> Answer {
    let by = |Matched { rule, reason, origin }: Matched| {
        format!(
            "{rule}   {origin}{}",
            reason.map(|reason| format!("   {reason}")).unwrap_or_default()
        )
    };
    match verdict {
        Verdict::Allow(matched) => Answer {
            allowed: true,
            text: by(matched),
            hint: None,
        },
        Verdict::Deny(denial) => {
            let rule = denial
                .matched
                .map(|matched| format!("   {}", by(matched)))
                .unwrap_or_default();
            Answer {
                allowed: false,
                text: format!("{}{rule}", denial.reason),
                hint: Some(denial.hint),
            }
        }
    }
}

fn path_answer(answer: PathAnswer, given: &Path, wanted: Effective) -> Answer {
    let PathAnswer {
        path,
        effective,
        origin,
        obstacle,
    } = answer;
    let access = match effective {
        Effective::Hidden => "hidden",
        Effective::ReadOnly => "read-only",
        Effective::ReadWrite => "readable and writable",
    };
    let allowed = effective >= wanted;
    let given = shown_path(given);
    let flag = if wanted == Effective::ReadWrite {
        "--write"
    } else {
        "--read"
    };
    let hint = match obstacle {
        Obstacle::Private(place) => {
            format!("inside, {place} is a private folder; the host's comes in with {flag} {given}")
        }
        Obstacle::Protected(group) if group.may_be_lifted() => format!("--lift {} opens this group", group.name()),
        Obstacle::Protected(_) | Obstacle::Credential => "never allowed".to_owned(),
        Obstacle::Rule if matches!(origin, Origin::Builtin { .. }) => format!("pinfold run {flag} {given} …"),
        Obstacle::Rule => format!("change {origin}"),
    };
    Answer {
        allowed,
        text: format!("{}   {access}   {origin}", shown_path(&path)),
        hint: (!allowed).then_some(hint),
    }
}

/// Asks the view that a run here would have.
fn judge(policy: &Policy, folders: &Folders, workspace: &Path, path: &Path) -> Result<PathAnswer, LoadError> {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let home = folders.home.as_ref().ok_or(LoadError::NoHome)?;
    let home = home.canonicalize().map_err(|source| LoadError::Folder {
        path: home.clone(),
        source,
    })?;
    let data = folders.data.clone().ok_or(LoadError::NoHome)?;
    let caller = Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        // Who the sandbox says the user is has no part in what a path is.
        user: String::new(),
        shell: String::new(),
        home,
    };
    let own_paths: Vec<PathBuf> = folders
        .config
        .iter()
        .cloned()
        .chain([workspace.join(FILE_NAME), data.clone()])
        .collect();
    let request = Request {
        policy,
        caller: &caller,
        workspace,
        rootfs: None,
        data: &data,
        own_paths: &own_paths,
        environment: &environment,
        id: "check",
    };
    let view = prepare::view(&request)?;
    let ground = ground(caller.home, &view, &environment);
    Ok(judge_path(policy, &view, &ground, &resolved(path)))
}

/// What of this host shows, or is masked, whatever the rules say.
fn ground(home: PathBuf, view: &View, environment: &[(OsString, OsString)]) -> Ground {
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path.clone())
        .unwrap_or_default();
    let visible = view
        .entries()
        .filter(|entry| entry.effective != Effective::Hidden && entry.path.starts_with(&home));
    let visible: Vec<PathBuf> = visible.map(|entry| entry.path.to_owned()).collect();
    let trees = toolchains::find(&home, &path, environment, &visible).trees;
    let hidden = trees
        .iter()
        .flat_map(|tree| tree.hidden.iter().map(|below| tree.source.join(below)));
    let secrets = Host::look()
        .secrets
        .into_iter()
        .map(|(path, _)| path)
        .chain(hidden)
        .collect();
    let settings = [".gitconfig", ".config/git"].iter().map(|name| home.join(name));
    let shown = trees.iter().map(|tree| tree.source.clone()).chain(settings).collect();
    Ground { home, shown, secrets }
}

/// The path without links as far as it exists, and folded by text from there on.
fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path.to_owned();
    loop {
        if let Ok(real) = existing.canonicalize() {
            return missing.into_iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.file_name().map(OsString::from), existing.pop()) {
            (Some(name), true) => missing.push(name),
            (None, true) => {}
            (_, false) => return path.to_owned(),
        }
    }
}
