//! What the fields of a head say about framing and about the connection, for both directions alike.

use super::Framing;
use super::head::Field;

/// Why fields contradict each other or themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("The message has both a Content-Length and a Transfer-Encoding.")]
    TwoFramings,
    #[error("The message has more than one Content-Length.")]
    RepeatedLength,
    #[error("The Content-Length is not a plain number.")]
    BadLength,
    #[error("The Transfer-Encoding is not exactly \"chunked\".")]
    BadCoding,
    #[error("The Connection field is malformed.")]
    BadConnection,
}

/// The framing that the fields state; none when they state none.
pub(super) fn framing(fields: &[Field<'_>], minor: u8) -> Result<Option<Framing>, FieldError> {
    let mut lengths = fields.iter().filter(|field| field.is("content-length"));
    let mut codings = fields.iter().filter(|field| field.is("transfer-encoding"));
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(FieldError::TwoFramings),
        (Some(length), None) => match lengths.next() {
            Some(_) => Err(FieldError::RepeatedLength),
            None => plain_number(length.value)
                .map(|length| Some(Framing::Length(length)))
                .ok_or(FieldError::BadLength),
        },
        (None, Some(coding)) => {
            let chunked = codings.next().is_none() && minor >= 1 && coding.value.eq_ignore_ascii_case(b"chunked");
            if chunked {
                Ok(Some(Framing::Chunked))
            } else {
                Err(FieldError::BadCoding)
            }
        }
    }
}

fn plain_number(digits: &[u8]) -> Option<u64> {
    const MOST_DIGITS: usize = 18;
    let plain = (1..=MOST_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if plain {
        std::str::from_utf8(digits).ok()?.parse().ok()
    } else {
        None
    }
}

/// What `Connection` (and the `Proxy-Connection` that some clients send instead) says.
#[derive(Debug, Default)]
pub(super) struct Connection<'a> {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
    /// Fields that are for this hop only.
    named: Vec<&'a [u8]>,
}

impl<'a> Connection<'a> {
    pub(super) fn of(fields: &[Field<'a>]) -> Result<Self, FieldError> {
        let mut connection = Self::default();
        for field in fields
            .iter()
            .filter(|field| field.is("connection") || field.is("proxy-connection"))
        {
            for option in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if option.is_empty() {
                    continue;
                }
                super::head::token(option).ok_or(FieldError::BadConnection)?;
                if option.eq_ignore_ascii_case(b"close") {
                    connection.close = true;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    connection.keep_alive = true;
                } else if option.eq_ignore_ascii_case(b"upgrade") {
                    connection.upgrade = true;
                } else {
                    connection.named.push(option);
                }
            }
        }
        Ok(connection)
    }

    /// Whether the sender of these fields keeps the connection open.
    pub(super) fn stays(&self, minor: u8) -> bool {
        !self.close && (minor >= 1 || self.keep_alive)
    }

    /// Whether a field ends here (RFC 9110, section 7.6.1).
    pub(super) fn is_hop_by_hop(&self, field: &Field<'_>) -> bool {
        const FIELDS: [&str; 6] = [
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        FIELDS.iter().any(|name| field.is(name))
            || field
                .name
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
            || self
                .named
                .iter()
                .any(|name| field.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Appends `name: value` and the line end.
pub(super) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the field that states `framing`.
pub(super) fn write_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Length(length) => write_field(out, "Content-Length", length.to_string().as_bytes()),
        Framing::Chunked => write_field(out, "Transfer-Encoding", b"chunked"),
        Framing::None | Framing::UntilClose => {}
    }
}
