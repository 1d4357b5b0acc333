//! The protected names, each with the reason.

use super::Group;

/// One component of a protected path. Case does not matter: the same checkout may be used on a file system that folds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Exact(&'static str),
    /// Every name that starts so.
    Starts(&'static str),
    /// Every name that starts with the first and ends with the second.
    Between(&'static str, &'static str),
}

impl Name {
    /// Whether a file name is meant; only ASCII letters are folded.
    pub fn matches(self, name: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => name.eq_ignore_ascii_case(exact.as_bytes()),
            Self::Starts(start) => starts_with(name, start),
            Self::Between(start, end) => {
                name.len() >= start.len() + end.len()
                    && starts_with(name, start)
                    && name[name.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
            }
        }
    }

    /// A name that it stands for and that can be compared with a directory listing; none for a pattern.
    pub const fn exact(self) -> Option<&'static str> {
        match self {
            Self::Exact(exact) => Some(exact),
            Self::Starts(_) | Self::Between(..) => None,
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(exact) => f.write_str(exact),
            Self::Starts(start) => write!(f, "{start}*"),
            Self::Between(start, end) => write!(f, "{start}*{end}"),
        }
    }
}

fn starts_with(name: &[u8], start: &str) -> bool {
    name.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// A protected path, relative to the folder it belongs to. What is below it is protected with it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub group: Group,
    pub path: &'static [Name],
    /// Obeyed in the home folder only.
    pub home_only: bool,
    /// Its first component is made together with a repository, and a repository made during a run belongs to the run.
    pub of_repository: bool,
    /// What obeys it.
    pub reason: &'static str,
}

const fn entry(group: Group, path: &'static [Name], reason: &'static str) -> Entry {
    Entry {
        group,
        path,
        home_only: false,
        of_repository: false,
        reason,
    }
}

const fn home(group: Group, path: &'static [Name], reason: &'static str) -> Entry {
    Entry {
        group,
        path,
        home_only: true,
        of_repository: false,
        reason,
    }
}

const fn repository(group: Group, path: &'static [Name], reason: &'static str) -> Entry {
    Entry {
        group,
        path,
        home_only: false,
        of_repository: true,
        reason,
    }
}

use Name::{Between, Exact, Starts};

/// Protected in the root of a write root, in home and in the folders below.
pub const ENTRIES: &[Entry] = &[
    entry(
        Group::GitConfig,
        &[Exact(".gitconfig")],
        "git reads it in the home folder, aliases and pagers are commands",
    ),
    entry(
        Group::GitConfig,
        &[Exact(".gitmodules")],
        "tells git which repositories to fetch, from where, to which folder",
    ),
    entry(
        Group::GitConfig,
        &[Exact(".config"), Exact("git"), Exact("config")],
        "the second place of the user's git configuration",
    ),
    entry(
        Group::GitConfig,
        &[Exact(".config"), Exact("git"), Exact("attributes")],
        "decides which filter program runs on which file",
    ),
    repository(
        Group::VersionControl,
        &[Exact(".hg"), Exact("hgrc")],
        "Mercurial runs hooks and loads extensions named in it",
    ),
    entry(Group::ShellStart, &[Exact(".bashrc")], "run by every interactive bash"),
    entry(Group::ShellStart, &[Exact(".bash_profile")], "run by every login bash"),
    entry(
        Group::ShellStart,
        &[Exact(".bash_login")],
        "run by a login bash without .bash_profile",
    ),
    entry(
        Group::ShellStart,
        &[Exact(".bash_logout")],
        "run when a login bash ends",
    ),
    entry(
        Group::ShellStart,
        &[Exact(".bash_aliases")],
        "run by the .bashrc of most distributions",
    ),
    entry(
        Group::ShellStart,
        &[Exact(".profile")],
        "run by login shells and display managers",
    ),
    entry(Group::ShellStart, &[Exact(".zshrc")], "run by every interactive zsh"),
    entry(Group::ShellStart, &[Exact(".zprofile")], "run by every login zsh"),
    entry(Group::ShellStart, &[Exact(".zshenv")], "run by every zsh, scripts too"),
    entry(
        Group::ShellStart,
        &[Exact(".zlogin")],
        "run by every login zsh, after .zshrc",
    ),
    entry(Group::ShellStart, &[Exact(".zlogout")], "run when a login zsh ends"),
    entry(
        Group::ShellStart,
        &[Exact(".config"), Exact("fish")],
        "fish runs config.fish, conf.d and functions from it",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".ripgreprc")],
        "adds arguments to every rg, and --pre names a program",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".mcp.json")],
        "names server programs that an MCP client starts",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".ssh"), Exact("config")],
        "ProxyCommand and LocalCommand are commands",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".ssh"), Exact("authorized_keys")],
        "who may log in",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".ssh"), Exact("rc")],
        "run by sshd at each login",
    ),
    entry(
        Group::ToolStart,
        &[Exact(".ssh"), Exact("environment")],
        "variables of each login, LD_PRELOAD too",
    ),
    home(
        Group::Autostart,
        &[Exact(".config"), Exact("autostart")],
        "the desktop starts every entry at login",
    ),
    home(
        Group::Autostart,
        &[Exact(".config"), Exact("systemd"), Exact("user")],
        "units of the user's service manager",
    ),
    home(
        Group::Autostart,
        &[Exact(".pam_environment")],
        "variables of each login",
    ),
    home(
        Group::Autostart,
        &[Exact(".xprofile")],
        "run when a graphical session starts",
    ),
    entry(
        Group::Ide,
        &[Exact(".vscode")],
        "tasks, debuggers and interpreter paths of VS Code and its kin",
    ),
    entry(
        Group::Ide,
        &[Exact(".idea")],
        "run configurations and external tools of JetBrains editors",
    ),
    entry(Group::Ide, &[Exact(".zed")], "tasks and language servers of Zed"),
    entry(Group::Ide, &[Exact(".fleet")], "run configurations of Fleet"),
    entry(
        Group::Ide,
        &[Exact(".devcontainer")],
        "commands and mounts that editors run on the host for a container",
    ),
    entry(
        Group::Ide,
        &[Exact(".devcontainer.json")],
        "the one-file form of .devcontainer",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Between("settings", ".json")],
        "hooks, permissions and helper commands",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Exact("commands")],
        "prompts with commands that run on use",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Exact("agents")],
        "agents with tool grants of their own",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Exact("hooks")],
        "programs that settings refer to",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Exact("skills")],
        "instructions and scripts that are run on use",
    ),
    entry(
        Group::Agents,
        &[Exact(".claude"), Exact("plugins")],
        "hooks and servers in a bundle",
    ),
    entry(
        Group::Agents,
        &[Exact(".codex")],
        "configuration with servers and notification commands",
    ),
    entry(Group::Agents, &[Exact(".agents")], "skills shared by several agents"),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Exact("mcp.json")],
        "names server programs",
    ),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Starts("hooks")],
        "programs run around each step",
    ),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Exact("commands")],
        "prompts with commands",
    ),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Exact("plugins")],
        "hooks and servers in a bundle",
    ),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Starts("skills")],
        "instructions and scripts that are run on use",
    ),
    entry(
        Group::Agents,
        &[Exact(".cursor"), Exact("rules")],
        "instructions that are always obeyed",
    ),
    entry(
        Group::Agents,
        &[Exact(".gemini")],
        "settings with servers and tool commands",
    ),
    entry(Group::Agents, &[Exact(".windsurf")], "rules and workflows"),
    entry(Group::Agents, &[Exact(".continue")], "configuration with servers"),
    entry(Group::Agents, &[Exact(".opencode")], "plugins, commands and agents"),
    entry(Group::Agents, &[Exact(".aider.conf.yml")], "lint and test commands"),
    entry(
        Group::Pinfold,
        &[Exact("pinfold.toml")],
        "the project's policy for its own sandboxes",
    ),
];

/// Protected in every git directory, relative to it.
pub const GIT_ENTRIES: &[Entry] = &[
    entry(Group::GitHooks, &[Exact("hooks")], "programs that git runs"),
    entry(
        Group::GitConfig,
        &[Exact("config")],
        "aliases, filters, pagers, fsmonitor and hook paths are commands",
    ),
    entry(
        Group::GitConfig,
        &[Exact("config.worktree")],
        "the same, for one worktree",
    ),
    entry(
        Group::GitConfig,
        &[Exact("info"), Exact("attributes")],
        "decides which filter program runs on which file",
    ),
    entry(
        Group::GitConfig,
        &[Exact("commondir")],
        "sends git to another folder for configuration and hooks",
    ),
    entry(
        Group::GitConfig,
        &[Exact("gitdir")],
        "says which checkout the folder belongs to",
    ),
];

/// Protected in each `worktrees/<id>` of a git directory, relative to that.
pub const WORKTREE_ENTRIES: &[Entry] = &[
    entry(
        Group::GitConfig,
        &[Exact("commondir")],
        "sends git to another folder for configuration and hooks",
    ),
    entry(
        Group::GitConfig,
        &[Exact("gitdir")],
        "says which checkout the folder belongs to",
    ),
    entry(
        Group::GitConfig,
        &[Exact("config.worktree")],
        "configuration of one worktree",
    ),
];

/// Names in a git directory that ordinary work has to write. Lock files belong to them: any name that ends in `.lock`.
pub const GIT_WRITABLE: &[&str] = &[
    "objects",
    "refs",
    "logs",
    "HEAD",
    "index",
    "packed-refs",
    "reftable",
    "shallow",
];

/// Folders that are closed as a whole where they exist, since nothing but protected names lives in them.
pub const CLOSED_FOLDERS: &[(Group, &[Name])] = &[
    (Group::GitConfig, &[Exact(".config"), Exact("git")]),
    (Group::Autostart, &[Exact(".config"), Exact("systemd")]),
];

/// The hooks that git knows (githooks(5)): what is protected where the hooks folder is the checkout itself.
pub const GIT_HOOK_NAMES: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "post-index-change",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
];
