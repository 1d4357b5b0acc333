//! From the head of a response to what the client is told.

use super::Framing;
use super::fields::{Connection, FieldError, framing, write_field, write_framing};
use super::head::{Field, HeadError, split, version};

/// Why the other side's answer cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    #[error("{0}")]
    Head(#[from] HeadError),
    #[error("{0}")]
    Fields(#[from] FieldError),
    #[error("It switches protocols, which was not asked for.")]
    Switch,
}

/// What of the request decides how its response is read.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The method was `HEAD`.
    pub head_only: bool,
    pub websocket: bool,
    /// The client's minor version of HTTP/1.
    pub minor: u8,
}

/// A response head, parsed.
#[derive(Debug)]
pub struct Response<'a> {
    pub status: u16,
    /// How the body that follows is read.
    pub framing: Framing,
    /// The connection to the other side may be used again after the body.
    pub stays: bool,
    start: &'a [u8],
    fields: Vec<Field<'a>>,
    connection: Connection<'a>,
}

/// How the client's connection goes on after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Stay,
    Close,
    /// It becomes a tunnel.
    Switch,
}

impl<'a> Response<'a> {
    /// Parses the head of a response, which must be complete.
    ///
    /// # Errors
    /// When it is malformed, ambiguous, or an upgrade that was not asked for.
    pub fn parse(head: &'a [u8], context: Context) -> Result<Self, BadResponse> {
        let (start, fields) = split(head)?;
        let (protocol, rest) = start.split_at_checked(8).ok_or(HeadError::StartLine)?;
        let minor = version(protocol)?;
        let (status, reason) = rest.split_at_checked(4).ok_or(HeadError::StartLine)?;
        let status = match status {
            [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
            }
            _ => return Err(HeadError::StartLine.into()),
        };
        if !reason.is_empty() && reason[0] != b' ' {
            return Err(HeadError::StartLine.into());
        }
        let connection = Connection::of(&fields)?;
        let stated = framing(&fields, minor)?;
        let framing = match status {
            101 if !(context.websocket && switches_to_websocket(&fields, &connection)) => {
                return Err(BadResponse::Switch);
            }
            100..=199 | 204 | 304 => Framing::None,
            _ if context.head_only => Framing::None,
            _ => stated.unwrap_or(Framing::UntilClose),
        };
        let stays = connection.stays(minor) && minor == 1 && framing != Framing::UntilClose;
        Ok(Self {
            status,
            framing,
            stays,
            start: &start[9..],
            fields,
            connection,
        })
    }

    /// How the body is framed for the client: as it came, except for a client that does not know chunks.
    #[must_use]
    pub fn client_framing(&self, context: Context) -> Framing {
        match self.framing {
            Framing::Chunked if context.minor == 0 => Framing::UntilClose,
            framing => framing,
        }
    }

    /// The rebuilt head, complete.
    #[must_use]
    pub fn rebuild(&self, context: Context, after: After) -> Vec<u8> {
        let mut head = Vec::with_capacity(1024);
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(self.start);
        head.extend_from_slice(b"\r\n");
        // Without a body the length is information: it tells what a GET would have brought.
        let keeps_length = self.framing == Framing::None && self.status >= 200 && self.status != 204;
        for field in &self.fields {
            let framing = field.is("content-length") && !keeps_length;
            if !framing && !self.connection.is_hop_by_hop(field) {
                write_field(&mut head, field.name, field.value);
            }
        }
        write_framing(&mut head, self.client_framing(context));
        match after {
            After::Close => write_field(&mut head, "Connection", b"close"),
            After::Stay if context.minor == 0 => write_field(&mut head, "Connection", b"keep-alive"),
            After::Stay => {}
            After::Switch => {
                write_field(&mut head, "Connection", b"Upgrade");
                write_field(&mut head, "Upgrade", b"websocket");
            }
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn switches_to_websocket(fields: &[Field<'_>], connection: &Connection<'_>) -> bool {
    let mut upgrades = fields.iter().filter(|field| field.is("upgrade"));
    let to_websocket = upgrades
        .next()
        .is_some_and(|field| field.value.eq_ignore_ascii_case(b"websocket"));
    connection.upgrade && to_websocket && upgrades.next().is_none()
}

#[cfg(test)]
mod tests;
