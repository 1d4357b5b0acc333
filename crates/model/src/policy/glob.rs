//! Glob patterns over path bytes.
//!
//! `*` and `?` stay within one component, `**` as a component of its own spans any number of them, `[a-z]` and `[!a-z]` are
//! sets. `\` takes the meaning from the character after it; `\xHH` is one byte. A leading dot is nothing special. Owns reading,
//! writing and matching of patterns; walking a file system with one is elsewhere. Refuses every form it does not know.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component as PathComponent, Path};

use super::path::PathFault;

/// A pattern for paths relative to the folder it starts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    components: Vec<Component>,
}

/// What one component of a path has to look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// Exactly these bytes.
    Literal(Vec<u8>),
    /// `**`: any number of components, none included.
    Deep,
    Pattern(Pattern),
}

/// A component with glob characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    One,
    Many,
    Set {
        negated: bool,
        ranges: Vec<RangeInclusive<u32>>,
    },
}

impl Glob {
    /// Reads the `glob` part of a [`PathPattern`](super::PathPattern).
    ///
    /// # Errors
    /// Forms that cannot be enforced; never for text that came out of [`PathPattern::parse`](super::PathPattern::parse).
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let components = text
            .split('/')
            .map(|part| Component::parse(part.as_bytes()))
            .collect::<Result<_, _>>()?;
        Ok(Self { components })
    }

    /// The components in order, for a walk that descends only where a match is possible.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Whether the whole of `relative` matches.
    #[must_use]
    pub fn matches(&self, relative: &Path) -> bool {
        let names: Vec<&[u8]> = relative
            .components()
            .filter_map(|part| match part {
                PathComponent::Normal(name) => Some(name.as_bytes()),
                _ => None,
            })
            .collect();
        let (mut at, mut name) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while name < names.len() {
            match self.components.get(at) {
                Some(Component::Deep) => {
                    retry = Some((at + 1, name));
                    at += 1;
                    continue;
                }
                Some(component) if component.matches(names[name]) => {
                    at += 1;
                    name += 1;
                    continue;
                }
                _ => {}
            }
            let Some((after, from)) = retry else { return false };
            retry = Some((after, from + 1));
            at = after;
            name = from + 1;
        }
        self.components[at..].iter().all(|rest| *rest == Component::Deep)
    }
}

impl Component {
    pub(super) fn parse(text: &[u8]) -> Result<Self, PathFault> {
        if text == b"**" {
            return Ok(Self::Deep);
        }
        let tokens = lex(text)?;
        let literal: Option<Vec<u8>> = tokens
            .iter()
            .map(|token| {
                if let Token::Byte(byte) = token {
                    Some(*byte)
                } else {
                    None
                }
            })
            .collect();
        Ok(literal.map_or(Self::Pattern(Pattern(tokens)), Self::Literal))
    }

    /// Whether `name`, one component without slashes, matches. [`Component::Deep`] matches every name.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Literal(bytes) => bytes == name,
            Self::Deep => true,
            Self::Pattern(pattern) => pattern.matches(name),
        }
    }

    /// Appends the text that reads back as this component.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Literal(bytes) => write_literal(bytes, out),
            Self::Deep => out.push_str("**"),
            Self::Pattern(Pattern(tokens)) => {
                for run in tokens.chunk_by(|a, b| matches!((a, b), (Token::Byte(_), Token::Byte(_)))) {
                    write_run(run, out);
                }
            }
        }
    }
}

impl Pattern {
    fn matches(&self, name: &[u8]) -> bool {
        let tokens = &self.0;
        let (mut at, mut rest) = (0, name);
        let mut retry: Option<(usize, &[u8])> = None;
        while !rest.is_empty() {
            match tokens.get(at) {
                Some(Token::Many) => {
                    at += 1;
                    retry = Some((at, rest));
                    continue;
                }
                Some(token) => {
                    if let Some(left) = token.take(rest) {
                        at += 1;
                        rest = left;
                        continue;
                    }
                }
                None => {}
            }
            let Some((after, from)) = retry else { return false };
            let (_, shorter) = unit(from);
            retry = Some((after, shorter));
            at = after;
            rest = shorter;
        }
        tokens[at..].iter().all(|token| *token == Token::Many)
    }
}

impl Token {
    /// What is left of `rest`, which is not empty, after this token; none where it does not match.
    fn take<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Byte(byte) => rest.strip_prefix(&[*byte]),
            Self::One => Some(unit(rest).1),
            Self::Many => Some(rest),
            Self::Set { negated, ranges } => {
                let (value, left) = unit(rest);
                (ranges.iter().any(|range| range.contains(&value)) != *negated).then_some(left)
            }
        }
    }
}

/// Numbers above every code point stand for bytes that are no UTF-8.
const STRAY: u32 = 0x11_0000;

/// Splits off one character, or one byte where the bytes are no UTF-8. `bytes` is not empty.
fn unit(bytes: &[u8]) -> (u32, &[u8]) {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or(""),
    };
    valid.chars().next().map_or_else(
        || (STRAY + u32::from(bytes[0]), &bytes[1..]),
        |character| (u32::from(character), &bytes[character.len_utf8()..]),
    )
}

fn lex(text: &[u8]) -> Result<Vec<Token>, PathFault> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut brace: Option<bool> = None;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'\\' => {
                let (byte, tail) = escape(tail)?;
                tokens.push(Token::Byte(byte));
                rest = tail;
            }
            b'*' if tail.first() == Some(&b'*') => return Err(PathFault::DeepNotAlone { component: shown(text) }),
            b'*' => tokens.push(Token::Many),
            b'?' => tokens.push(Token::One),
            b'[' => {
                let (set, tail) = lex_set(tail, text)?;
                tokens.push(set);
                rest = tail;
            }
            b']' => {
                return Err(PathFault::Set {
                    component: shown(text),
                    what: "has a ']' without a '['",
                });
            }
            0 => return Err(PathFault::Nul),
            other => {
                match other {
                    b'{' => brace = Some(false),
                    b',' => brace = brace.map(|_| true),
                    b'}' if brace == Some(true) => return Err(PathFault::Braces { component: shown(text) }),
                    _ => {}
                }
                tokens.push(Token::Byte(other));
            }
        }
    }
    Ok(tokens)
}

/// Reads what follows a backslash.
fn escape(tail: &[u8]) -> Result<(u8, &[u8]), PathFault> {
    match tail {
        [b'x', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            let digit = |byte: u8| (byte as char).to_digit(16).map_or(0, |value| value as u8);
            match digit(*high) << 4 | digit(*low) {
                0 => Err(PathFault::Nul),
                b'/' => Err(PathFault::EscapedSlash),
                byte => Ok((byte, rest)),
            }
        }
        [
            byte @ (b'\\' | b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'~' | b'!' | b'$' | b' '),
            rest @ ..,
        ] => Ok((*byte, rest)),
        _ => Err(PathFault::Escape {
            sequence: format!("\\{}", shown(&tail[..tail.len().min(3)])),
        }),
    }
}

/// Reads a set after its `[`.
fn lex_set<'a>(mut rest: &'a [u8], component: &[u8]) -> Result<(Token, &'a [u8]), PathFault> {
    let fault = |what| PathFault::Set {
        component: shown(component),
        what,
    };
    let negated = matches!(rest.first(), Some(b'!' | b'^'));
    if negated {
        rest = &rest[1..];
    }
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    loop {
        match rest {
            [] => return Err(fault("has a '[' without a ']'")),
            [b']', _tail @ ..] if ranges.is_empty() => return Err(fault("has an empty set")),
            [b']', tail @ ..] => return Ok((Token::Set { negated, ranges }, tail)),
            [b'[', ..] => return Err(fault("has a '[' inside a set, which no form here means")),
            _ => {}
        }
        let (first, tail) = set_member(rest)?;
        rest = tail;
        let last = match rest {
            [b'-', b']', ..] | [b'-'] => first,
            [b'-', tail @ ..] => {
                let (last, tail) = set_member(tail)?;
                rest = tail;
                last
            }
            _ => first,
        };
        if last < first {
            return Err(fault("has a range that runs backwards"));
        }
        ranges.push(first..=last);
    }
}

fn set_member(rest: &[u8]) -> Result<(u32, &[u8]), PathFault> {
    match rest {
        [b'\\', b'-', tail @ ..] => Ok((u32::from(b'-'), tail)),
        [b'\\', b'^', tail @ ..] => Ok((u32::from(b'^'), tail)),
        [b'\\', tail @ ..] => {
            let (byte, tail) = escape(tail)?;
            Ok((
                if byte.is_ascii() {
                    u32::from(byte)
                } else {
                    STRAY + u32::from(byte)
                },
                tail,
            ))
        }
        [0, ..] => Err(PathFault::Nul),
        _ => Ok(unit(rest)),
    }
}

/// Writes bytes so that they read back as themselves.
pub(super) fn write_literal(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' | '*' | '?' | '[' | ']' | '{' | '}' => out.extend(['\\', character]),
                // Control characters would garble the terminal and the file they are printed to.
                control if control.is_ascii_control() => {
                    let _ = write!(out, "\\x{:02x}", u32::from(control));
                }
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

fn write_run(run: &[Token], out: &mut String) {
    match run {
        [Token::One] => out.push('?'),
        [Token::Many] => out.push('*'),
        [Token::Set { negated, ranges }] => {
            out.push_str(if *negated { "[!" } else { "[" });
            for range in ranges {
                write_member(*range.start(), out);
                if range.end() != range.start() {
                    out.push('-');
                    write_member(*range.end(), out);
                }
            }
            out.push(']');
        }
        bytes => {
            let bytes: Vec<u8> = bytes
                .iter()
                .filter_map(|token| {
                    if let Token::Byte(byte) = token {
                        Some(*byte)
                    } else {
                        None
                    }
                })
                .collect();
            write_literal(&bytes, out);
        }
    }
}

fn write_member(value: u32, out: &mut String) {
    match char::from_u32(value) {
        Some(special @ ('\\' | '[' | ']' | '-' | '^' | '!')) => out.extend(['\\', special]),
        Some(control) if control.is_ascii_control() => {
            let _ = write!(out, "\\x{value:02x}");
        }
        Some(character) => out.push(character),
        None => {
            let _ = write!(out, "\\x{:02x}", value - STRAY);
        }
    }
}

/// Bytes as text for a message: no control characters, no lost bytes.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.extend(chunk.valid().chars().flat_map(|character| {
            let escaped: Box<dyn Iterator<Item = char>> = if character.is_control() {
                Box::new(character.escape_unicode())
            } else {
                Box::new(std::iter::once(character))
            };
            escaped
        }));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}
