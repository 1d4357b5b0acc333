//! What is wrong with a policy, where, and what to do about it.

use std::fmt;
use std::fmt::Write as _;

use super::loosening::Loosening;
use crate::origin::Origin;

/// Characters of a source line that an error shows at most.
const SHOWN: usize = 120;

/// Why a policy was refused. The text is a sentence with the place; [`PolicyError::hint`] is the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A policy file or profile says something that it cannot say.
    #[error("{message}   ({place})\n{}", place.excerpt)]
    File {
        place: Place,
        message: String,
        hint: String,
    },
    /// A flag says something that it cannot say.
    #[error("{message}   (command line, {flag})")]
    Flag {
        flag: String,
        message: String,
        hint: String,
    },
    /// A source that is no text of ours contradicts itself.
    #[error("{message}   ({origin})")]
    Source {
        origin: Origin,
        message: String,
        hint: String,
    },
    /// A workspace file that is not trusted says something that only a trusted source can.
    #[error("a workspace file that is not trusted would loosen the policy{}", listed(found))]
    Untrusted { found: Vec<Loosening> },
}

impl PolicyError {
    /// The next step for the person, without the word "hint".
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::File { hint, .. } | Self::Flag { hint, .. } | Self::Source { hint, .. } => hint,
            Self::Untrusted { .. } => {
                "read the file, then run `pinfold trust` to accept exactly this content, or take these rules out"
            }
        }
    }
}

/// A place in a policy text, with the line itself for the person to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the person knows it, or `profile NAME`.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// The line with a mark below it, ready to print.
    pub excerpt: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Draws `text`, one line, with a mark under `width` characters from `column` (from 1) on. The line may be hostile: what would
/// steer a terminal is replaced.
pub(super) fn excerpt(line: u32, text: &str, column: u32, width: usize) -> String {
    let column = column.saturating_sub(1) as usize;
    let skipped = if column > SHOWN - 20 { column - 20 } else { 0 };
    let shown: String = text.chars().skip(skipped).take(SHOWN).map(harmless).collect();
    let marked = (column - skipped).min(SHOWN);
    let width = width.clamp(1, (shown.chars().count().saturating_sub(marked)).max(1));
    let mut out = String::new();
    let number = line.to_string();
    let _ = writeln!(out, "  {number} | {shown}");
    let _ = write!(
        out,
        "  {:pad$} | {:marked$}{}",
        "",
        "",
        "^".repeat(width),
        pad = number.len()
    );
    out
}

/// Whether a character prints as itself: not a control character, and none that reorders or hides text.
#[must_use]
pub fn is_harmless(character: char) -> bool {
    let reorders =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !reorders && !character.is_control()
}

fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        plain if is_harmless(plain) => plain,
        _ => '\u{fffd}',
    }
}

/// A text that may be hostile, without what would steer a terminal or reorder its line.
#[must_use]
pub fn harmless_text(text: &str) -> String {
    text.chars().map(harmless).collect()
}

fn listed(found: &[Loosening]) -> String {
    let mut out = String::new();
    for Loosening { rule, origin } in found.iter().take(10) {
        let _ = write!(
            out,
            "\n  {}   ({})",
            harmless_text(rule),
            harmless_text(&origin.to_string())
        );
    }
    if found.len() > 10 {
        let _ = write!(out, "\n  and {} more", found.len() - 10);
    }
    out
}
