//! The head of a message: a start line and fields, by the letter of RFC 9112.
//!
//! Refused, because two parsers may read them differently: bare CR or LF, control bytes, folded fields, a space before the
//! colon, empty field names, heads and lines that are too long.

/// Bytes of the longest head, up to and with its empty line.
pub const MAX_HEAD: usize = super::super::connection::CAPACITY;
/// Bytes of the longest line.
const MAX_LINE: usize = 32 * 1024;
/// Fields of the longest head.
const MAX_FIELDS: usize = 256;

/// Why bytes are not the head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("A line does not end with CR LF, or holds a CR or LF.")]
    LineEnd,
    #[error("The head holds a control byte.")]
    ControlByte,
    #[error("The head is longer than {MAX_HEAD} bytes, or one of its lines longer than {MAX_LINE}.")]
    TooLong,
    #[error("The head has more than {MAX_FIELDS} fields.")]
    TooManyFields,
    #[error("A header field is continued on the next line.")]
    Folded,
    #[error("A header field has no name, or a name with a byte that names cannot have.")]
    FieldName,
    #[error("The start line is malformed.")]
    StartLine,
    #[error("The protocol version is neither HTTP/1.1 nor HTTP/1.0.")]
    Version,
}

impl HeadError {
    /// Whether "too large" says more than "bad".
    #[must_use]
    pub fn is_size(self) -> bool {
        matches!(self, Self::TooLong | Self::TooManyFields)
    }
}

/// Looks for the end of a head in bytes that arrive piece by piece, and refuses as early as it can.
#[derive(Debug, Default)]
pub struct HeadScan {
    seen: usize,
    line_start: usize,
}

impl HeadScan {
    /// The length of the head, once it is complete. `bytes` holds everything so far, from the first byte of the message.
    ///
    /// # Errors
    /// When no continuation could make it a head.
    pub fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadError> {
        while let Some(&byte) = bytes.get(self.seen) {
            let after_cr = self.seen > 0 && bytes[self.seen - 1] == b'\r';
            match byte {
                b'\n' if !after_cr => return Err(HeadError::LineEnd),
                b'\n' => {
                    let length = self.seen - 1 - self.line_start;
                    if length == 0 && self.line_start == 0 {
                        return Err(HeadError::StartLine);
                    }
                    self.line_start = self.seen + 1;
                    if length == 0 {
                        return Ok(Some(self.seen + 1));
                    }
                }
                _ if after_cr => return Err(HeadError::LineEnd),
                b'\t' | b'\r' => {}
                0..=0x1f | 0x7f => return Err(HeadError::ControlByte),
                _ => {}
            }
            self.seen += 1;
            if self.seen - self.line_start > MAX_LINE || self.seen >= MAX_HEAD {
                return Err(HeadError::TooLong);
            }
        }
        Ok(None)
    }
}

/// A field as sent: the name is a token, the value has no white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: &'a str,
    pub value: &'a [u8],
}

impl Field<'_> {
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The start line and the fields of a complete head, as [`HeadScan`] delimited it.
///
/// # Errors
/// When the bytes are not a head.
pub fn split(head: &[u8]) -> Result<(&[u8], Vec<Field<'_>>), HeadError> {
    if HeadScan::default().find(head)? != Some(head.len()) {
        return Err(HeadError::LineEnd);
    }
    let text = &head[..head.len() - 4];
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let start = lines.next().unwrap_or_default();
    let mut fields = Vec::with_capacity(16);
    for line in lines {
        if fields.len() == MAX_FIELDS {
            return Err(HeadError::TooManyFields);
        }
        fields.push(field(line)?);
    }
    Ok((start, fields))
}

fn field(line: &[u8]) -> Result<Field<'_>, HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadError::FieldName)?;
    let name = token(&line[..colon]).ok_or(HeadError::FieldName)?;
    Ok(Field {
        name,
        value: line[colon + 1..].trim_ascii(),
    })
}

/// `bytes` as a token (RFC 9110, section 5.6.2).
pub(super) fn token(bytes: &[u8]) -> Option<&str> {
    let good = !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte));
    if good { std::str::from_utf8(bytes).ok() } else { None }
}

/// The minor version of `HTTP/1.1` or `HTTP/1.0`.
pub(super) fn version(bytes: &[u8]) -> Result<u8, HeadError> {
    match bytes {
        b"HTTP/1.1" => Ok(1),
        b"HTTP/1.0" => Ok(0),
        _ => Err(HeadError::Version),
    }
}
