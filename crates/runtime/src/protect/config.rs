//! The few keys of a git configuration that name folders and files which git obeys (git-config(1)).
//!
//! The text is hostile: it is read with a limit, and what cannot be understood is skipped, as far as git would go on at all.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// No honest configuration is longer.
pub(super) const LONGEST: usize = 1024 * 1024;

/// What a configuration says about where git looks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitConfig {
    /// `core.hooksPath`, the last one.
    pub(super) hooks_path: Option<PathBuf>,
    /// `core.worktree`, the last one.
    pub(super) worktree: Option<PathBuf>,
    /// `include.path` and `includeIf.*.path`, whatever the condition.
    pub(super) includes: Vec<PathBuf>,
}

/// Reads a configuration.
pub(super) fn parse(text: &[u8]) -> GitConfig {
    let mut config = GitConfig::default();
    let mut section = Section::Other;
    let mut reader = Reader {
        rest: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
    };
    while let Some(byte) = reader.next() {
        match byte {
            b'[' => section = reader.section(),
            b'#' | b';' => reader.skip_line(),
            _ if byte.is_ascii_whitespace() => {}
            _ if byte.is_ascii_alphabetic() => {
                let key = reader.key(byte);
                let value = reader.value();
                let Some(value) = value.filter(|value| !value.is_empty() && !value.contains(&0)) else {
                    continue;
                };
                let value = PathBuf::from(OsString::from_vec(value));
                match (section, key.as_slice()) {
                    (Section::Core, b"hookspath") => config.hooks_path = Some(value),
                    (Section::Core, b"worktree") => config.worktree = Some(value),
                    (Section::Include, b"path") => config.includes.push(value),
                    _ => {}
                }
            }
            _ => reader.skip_line(),
        }
    }
    config
}

/// A path of a configuration: `~/` is home, and what is relative is relative to `base`. Another user's home is none.
pub(super) fn absolute(path: &Path, base: &Path, home: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(below) => Some(home.join(below)),
        Err(_) if path.as_os_str().as_encoded_bytes().starts_with(b"~") => None,
        Err(_) => Some(base.join(path)),
    }
}

#[derive(Clone, Copy)]
enum Section {
    Core,
    Include,
    Other,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// The header after `[`; a subsection matters for `includeIf` only, where every one counts.
    fn section(&mut self) -> Section {
        let mut name = Vec::new();
        let mut quoted = false;
        let mut subsection = false;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'\\' if quoted => {
                    self.next();
                }
                b'"' => {
                    quoted = !quoted;
                    subsection = true;
                }
                b']' if !quoted => break,
                _ if quoted || byte.is_ascii_whitespace() => {}
                _ => name.push(byte.to_ascii_lowercase()),
            }
        }
        match name.as_slice() {
            b"core" if !subsection => Section::Core,
            b"include" | b"includeif" => Section::Include,
            _ => Section::Other,
        }
    }

    fn key(&mut self, first: u8) -> Vec<u8> {
        let mut key = vec![first.to_ascii_lowercase()];
        while let [byte, rest @ ..] = self.rest {
            if !byte.is_ascii_alphanumeric() && *byte != b'-' {
                break;
            }
            key.push(byte.to_ascii_lowercase());
            self.rest = rest;
        }
        key
    }

    /// The value after the key, up to the end of its line; none for a key alone.
    fn value(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.next()? {
                b' ' | b'\t' => {}
                b'=' => break,
                b'\n' => return None,
                _ => {
                    self.skip_line();
                    return None;
                }
            }
        }
        let mut value = Vec::new();
        let mut kept = 0;
        let mut quoted = false;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'"' => {
                    quoted = !quoted;
                    kept = value.len();
                }
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'\\' => match self.next() {
                    Some(b'\n') | None => {}
                    Some(b'\r') if self.rest.first() == Some(&b'\n') => {
                        self.next();
                    }
                    Some(escaped) => {
                        value.push(match escaped {
                            b'n' => b'\n',
                            b't' => b'\t',
                            b'b' => 8,
                            other => other,
                        });
                        kept = value.len();
                    }
                },
                _ if byte.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                _ => {
                    value.push(byte);
                    kept = value.len();
                }
            }
        }
        value.truncate(kept);
        Some(value)
    }
}
