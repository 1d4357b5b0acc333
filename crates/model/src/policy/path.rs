//! The grammar of paths in rules.
//!
//! | form | meaning |
//! |---|---|
//! | `/a/b` | absolute |
//! | `~`, `~/a` | the caller's home folder |
//! | `a`, `./a`, `../a` | relative to the file's folder, on the command line to the working directory; `..` only in front |
//! | `//`, `/./`, `/` at the end | folded |
//! | `a/**` | the same as `a`: a rule covers what is below it |
//! | `*`, `?`, `**`, `[…]` | see [`glob`](super::glob); at least one folder in front has to be named |
//! | `\*`, `\xHH` | that character, that byte |
//!
//! Everything else that looks as if it meant something (`~user`, `$VAR`, `!x`, `{a,b}`, `a/../b`) is refused: a rule that names
//! another path than its author thinks is worse than none.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::PathPattern;
use super::glob::{Component, shown, write_literal};

/// Bytes of the longest path the kernel takes (`PATH_MAX` without its NUL).
const LONGEST: usize = 4095;

/// What relative forms are relative to. Both folders are absolute; `folder` holds no links, so that a `..` in front can be
/// folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    pub folder: PathBuf,
    /// None refuses `~`.
    pub home: Option<PathBuf>,
}

/// Why a path in a rule was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    #[error("the path is empty")]
    Empty,
    #[error("the path holds a NUL byte, which no path can")]
    Nul,
    #[error("the path is longer than {LONGEST} bytes, the longest the kernel takes")]
    TooLong,
    #[error("'~' cannot be resolved, because no home folder is known")]
    NoHome,
    #[error("'{name}' names another user's home folder, which is not looked up")]
    OtherUser { name: String },
    #[error("'{component}' looks like a variable, and variables in paths are not expanded")]
    Variable { component: String },
    #[error("a leading '!' takes nothing back: every rule stands on its own")]
    Negation,
    #[error("'..' stands after a name, where a link could lead it elsewhere")]
    Parent,
    #[error("'{sequence}' is no escape of the path grammar")]
    Escape { sequence: String },
    #[error("'\\x2f' is a slash, which no name can hold")]
    EscapedSlash,
    #[error("'\\x' in double quotes is a character of TOML, not a byte of the path")]
    QuotedByte,
    #[error("'{component}' uses '**' beside other characters")]
    DeepNotAlone { component: String },
    #[error("'{component}' {what}")]
    Set { component: String, what: &'static str },
    #[error("'{component}' lists alternatives in braces, which are not expanded")]
    Braces { component: String },
    #[error("the pattern would have to search the whole file system")]
    GlobAtRoot,
    #[error("a pattern that ends in '/' would match folders only, which cannot be told when a name appears later")]
    GlobEndsInSlash,
}

impl PathFault {
    /// What to write instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "name a path, such as './secrets' or '~/.netrc'",
            Self::Nul => "take the NUL out",
            Self::TooLong => "name a folder above it",
            Self::NoHome | Self::OtherUser { .. } => "write the folder in full, starting with '/'",
            Self::Variable { .. } => "write '~/' for home, the folder in full, or '\\$' for the character itself",
            Self::Negation => "make an exception with a more specific rule, or write '\\!' for the character itself",
            Self::Parent => "write the path that it leads to",
            Self::Escape { .. } => {
                "escapes are \\\\ \\* \\? \\[ \\] \\{ \\} \\~ \\! \\$ and \\xHH; in TOML put the path in single quotes"
            }
            Self::EscapedSlash => "write '/' between names",
            Self::QuotedByte => "put the path in single quotes",
            Self::DeepNotAlone { .. } => "write '**' between slashes ('a/**/b'), or '*' for a part of a name",
            Self::Set { .. } => "a set looks like [abc], [a-z] or [!a-z]; '\\[' is the character itself",
            Self::Braces { .. } => "write one entry for each alternative, or '\\{' for the character itself",
            Self::GlobAtRoot => "start the pattern in a named folder, such as '/srv/*' or './**/.env'",
            Self::GlobEndsInSlash => "leave out the '/' at the end",
        }
    }
}

impl PathPattern {
    /// Reads a path as written in a rule.
    ///
    /// # Errors
    /// Every form that does not mean exactly one set of paths.
    pub fn parse(text: &[u8], base: &Base) -> Result<Self, PathFault> {
        let (mut path, rest) = start(text, base)?;
        let mut glob: Vec<Component> = Vec::new();
        let mut named = !is_relative(text);
        for part in rest.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." if named => return Err(PathFault::Parent),
                b".." => {
                    path.pop();
                }
                _ => {
                    named = true;
                    match Component::parse(part)? {
                        // An escape may not smuggle in what was folded or refused above.
                        Component::Literal(name) if name == b"." || name == b".." => return Err(PathFault::Parent),
                        Component::Literal(name) if glob.is_empty() => path.push(OsStr::from_bytes(&name)),
                        Component::Deep if glob.last() == Some(&Component::Deep) => {}
                        component => glob.push(component),
                    }
                }
            }
        }
        if glob.last() == Some(&Component::Deep) {
            glob.pop();
        } else if !glob.is_empty() && rest.ends_with(b"/") {
            return Err(PathFault::GlobEndsInSlash);
        }
        finish(path, &glob)
    }

    /// The pattern as text that [`PathPattern::parse`] reads back the same, whatever the base.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        write_literal(self.path.as_os_str().as_bytes(), &mut text);
        if let Some(glob) = &self.glob {
            if !text.ends_with('/') {
                text.push('/');
            }
            text.push_str(glob);
        }
        text
    }

    /// The pattern for exactly `path`, which is absolute and folded.
    #[must_use]
    pub fn literal(path: PathBuf) -> Self {
        Self { path, glob: None }
    }
}

/// A path's bytes as text for a message.
#[must_use]
pub fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_bytes())
}

/// Whether the text starts at the base's folder.
pub(super) fn is_relative(text: &[u8]) -> bool {
    !matches!(text, [b'/', ..] | [b'~', b'/', ..] | [b'~'])
}

/// The folder that the text starts in, and what is left to read.
fn start<'a>(text: &'a [u8], base: &Base) -> Result<(PathBuf, &'a [u8]), PathFault> {
    let first = || shown(text.split(|byte| *byte == b'/').next().unwrap_or_default());
    match text {
        [] => Err(PathFault::Empty),
        [b'/', rest @ ..] => Ok((PathBuf::from("/"), rest)),
        [b'~'] | [b'~', b'/', ..] => {
            let home = base.home.clone().ok_or(PathFault::NoHome)?;
            Ok((home, &text[1..]))
        }
        [b'~', ..] => Err(PathFault::OtherUser { name: first() }),
        [b'$', ..] => Err(PathFault::Variable { component: first() }),
        [b'!', ..] => Err(PathFault::Negation),
        _ => Ok((base.folder.clone(), text)),
    }
}

fn finish(path: PathBuf, glob: &[Component]) -> Result<PathPattern, PathFault> {
    if !glob.is_empty() && path.parent().is_none() {
        return Err(PathFault::GlobAtRoot);
    }
    // Collecting again folds what a base with `//` or `/./` would bring in.
    let path: PathBuf = path.components().collect();
    let mut text = String::new();
    for (index, component) in glob.iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        component.write(&mut text);
    }
    if path.as_os_str().len() + text.len() > LONGEST {
        return Err(PathFault::TooLong);
    }
    Ok(PathPattern {
        path,
        glob: (!glob.is_empty()).then_some(text),
    })
}

#[cfg(test)]
mod tests;
