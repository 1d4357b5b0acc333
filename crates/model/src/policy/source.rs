//! A policy text with the name it goes by, and the way from byte offsets to lines and columns.

use std::ops::Range;
use std::path::PathBuf;

use super::error::{Place, PolicyError, excerpt, harmless_text};
use super::path::shown_path;
use crate::origin::{Origin, Scope};

/// Where a policy text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    File { path: PathBuf, scope: Scope },
    Profile { name: String },
}

/// A policy text that is known to be UTF-8.
pub(super) struct Source<'a> {
    pub(super) name: &'a SourceName,
    pub(super) text: &'a str,
    /// Byte offsets at which lines start.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    /// # Errors
    /// Bytes that are no UTF-8, with their position.
    pub(super) fn new(name: &'a SourceName, bytes: &'a [u8]) -> Result<Self, PolicyError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self {
                name,
                text,
                lines: line_starts(text),
            }),
            Err(error) => {
                let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                let before = Self {
                    name,
                    text: good,
                    lines: line_starts(good),
                };
                let message = format!(
                    "byte 0x{:02x} is no UTF-8, and a policy is UTF-8 text",
                    bytes[error.valid_up_to()]
                );
                let hint = "save the file as UTF-8; a byte of a path is written '\\xHH' in single quotes".to_owned();
                Err(before.error(good.len()..good.len(), message, hint))
            }
        }
    }

    /// Line and column, both from 1, of a byte offset.
    pub(super) fn position(&self, offset: usize) -> (u32, u32) {
        let offset = (0..=offset.min(self.text.len()))
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0);
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let column = self.text[start..offset].chars().count() + 1;
        (
            u32::try_from(line.max(1)).unwrap_or(u32::MAX),
            u32::try_from(column).unwrap_or(u32::MAX),
        )
    }

    pub(super) fn origin(&self, offset: usize, key: String) -> Origin {
        let (line, column) = self.position(offset);
        match self.name {
            SourceName::Profile { name } => Origin::Profile {
                name: name.clone(),
                line,
                column,
                key,
            },
            SourceName::File { path, scope } => Origin::File {
                scope: *scope,
                path: path.clone(),
                line,
                column,
                key,
            },
        }
    }

    pub(super) fn error(&self, span: Range<usize>, message: String, hint: String) -> PolicyError {
        let (line, column) = self.position(span.start);
        let width = self
            .text
            .get(span)
            .map_or(1, |marked| marked.lines().next().unwrap_or_default().chars().count());
        PolicyError::File {
            place: self.place(line, column, width),
            message: harmless_text(&message),
            hint: harmless_text(&hint),
        }
    }

    /// An error at the place that an origin of this source names.
    pub(super) fn error_at(&self, origin: &Origin, message: String, hint: String) -> PolicyError {
        let (line, column) = match origin {
            Origin::Profile { line, column, .. } | Origin::File { line, column, .. } => (*line, *column),
            _ => (1, 1),
        };
        PolicyError::File {
            place: self.place(line, column, 1),
            message: harmless_text(&message),
            hint: harmless_text(&hint),
        }
    }

    fn place(&self, line: u32, column: u32, width: usize) -> Place {
        let file = match self.name {
            SourceName::Profile { name } => format!("profile {name}"),
            SourceName::File { path, .. } => shown_path(path),
        };
        let start = self.lines.get(line.saturating_sub(1) as usize).copied().unwrap_or(0);
        let text = self.text[start..].lines().next().unwrap_or_default();
        Place {
            file,
            line,
            column,
            excerpt: excerpt(line, text, column, width),
        }
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0)
        .chain(
            text.bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect()
}
