//! Untrusted text made safe for a terminal and for people who read the file with `cat`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Whether a character could steer a terminal, reorder a line or be invisible.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every control, bidirectional and invisible character written as `\u{…}`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The path as text: bytes that are not UTF-8 as `\xNN`, unsafe characters as [`printable`] writes them.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(&printable(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// JSON on one line whose strings hold no unsafe character unescaped.
pub(crate) fn to_safe_json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut out = Vec::with_capacity(512);
    value.serialize(&mut Serializer::with_formatter(&mut out, SafeFormatter))?;
    // The serializer writes whole characters only; were that ever wrong, a replaced byte is better than a panic.
    Ok(String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

struct SafeFormatter;

impl Formatter for SafeFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_unsafe(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn terminal_sequences_and_bidi_controls_are_spelled_out() {
        assert_eq!(printable("plain é 漢"), "plain é 漢");
        assert_eq!(
            printable("a\x1b[31mb\u{9b}c\u{202e}d\u{200b}\n"),
            "a\\u{1b}[31mb\\u{9b}c\\u{202e}d\\u{200b}\\u{a}"
        );
    }

    #[test]
    fn bytes_that_are_not_text_stay_distinguishable_in_a_path() {
        let path = Path::new(OsStr::from_bytes(b"/a/\xff\xfe/\x1bb"));
        assert_eq!(printable_path(path), "/a/\\xff\\xfe/\\u{1b}b");
    }

    #[test]
    fn json_is_ascii_where_it_could_harm_and_reads_back_the_same() {
        let text = "x\x1b\u{7f}\u{9b}\u{202e}\u{e0041}é\"\\";
        let json = to_safe_json(&text).unwrap();
        assert!(!json.chars().any(is_unsafe), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
