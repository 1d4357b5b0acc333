//! The chunked coding (RFC 9112, section 7.1), decoded by the letter. Extensions and trailers are dropped.

/// Hexadecimal digits of the longest chunk size.
const MAX_DIGITS: u8 = 15;
/// Bytes of extensions and trailers that a body may carry in all; they buy nothing here.
const MAX_OVERHEAD: usize = 64 * 1024;

/// The body is not validly chunked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The chunked body is malformed.")]
pub struct BadChunk;

/// What comes next in the bytes given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of framing.
    pub skip: usize,
    /// Bytes of content after them.
    pub data: usize,
    /// The body ends here; what follows belongs to the next message.
    pub done: bool,
}

/// Decodes a chunked body from pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    overhead: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    SizeStart,
    Size {
        size: u64,
        digits: u8,
    },
    Extension {
        size: u64,
    },
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastLf,
    Done,
}

impl Decoder {
    /// Reads as far as the next run of content. The caller consumes `skip` and `data` before it calls again; nothing
    /// skipped and no content means that more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are not chunked coding; decoding cannot go on then.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, BadChunk> {
        let mut skip = 0;
        loop {
            match self.state {
                State::Done => {
                    return Ok(Step {
                        skip,
                        data: 0,
                        done: true,
                    });
                }
                State::Data { left } => {
                    let available = (bytes.len() - skip) as u64;
                    let data = left.min(available);
                    let left = left - data;
                    self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                    // Bounded by the length of a slice.
                    return Ok(Step {
                        skip,
                        data: usize::try_from(data).unwrap_or(usize::MAX),
                        done: false,
                    });
                }
                _ => {}
            }
            let Some(&byte) = bytes.get(skip) else {
                return Ok(Step {
                    skip,
                    data: 0,
                    done: false,
                });
            };
            self.state = self.next(byte)?;
            skip += 1;
        }
    }

    /// Whether the body has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn next(&mut self, byte: u8) -> Result<State, BadChunk> {
        Ok(match (self.state, byte) {
            (State::SizeStart, _) => State::Size {
                size: digit(byte)?,
                digits: 1,
            },
            (State::Size { size, .. }, b'\r') | (State::Extension { size }, b'\r') => State::SizeEnd { size },
            (State::Size { size, .. }, b';' | b' ' | b'\t') => State::Extension { size },
            (State::Size { size, digits }, _) if digits < MAX_DIGITS => State::Size {
                size: size * 16 + digit(byte)?,
                digits: digits + 1,
            },
            (State::Extension { size }, _) => {
                self.spend(byte)?;
                State::Extension { size }
            }
            (State::SizeEnd { size: 0 }, b'\n') => State::TrailerStart,
            (State::SizeEnd { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::SizeStart,
            (State::TrailerStart, b'\r') => State::LastLf,
            (State::TrailerStart, b' ' | b'\t') => return Err(BadChunk),
            (State::TrailerStart, _) => {
                self.spend(byte)?;
                State::Trailer
            }
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::Trailer, _) => {
                self.spend(byte)?;
                State::Trailer
            }
            (State::TrailerEnd, b'\n') => State::TrailerStart,
            (State::LastLf, b'\n') => State::Done,
            _ => return Err(BadChunk),
        })
    }

    fn spend(&mut self, byte: u8) -> Result<(), BadChunk> {
        self.overhead += 1;
        let control = byte != b'\t' && byte.is_ascii_control();
        if control || self.overhead > MAX_OVERHEAD {
            Err(BadChunk)
        } else {
            Ok(())
        }
    }
}

fn digit(byte: u8) -> Result<u64, BadChunk> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(BadChunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The decoded content and the bytes after the body, read in pieces of `size`.
    fn decode(bytes: &[u8], size: usize) -> Result<(Vec<u8>, usize, bool), BadChunk> {
        let mut decoder = Decoder::default();
        let mut content = Vec::new();
        let mut used = 0;
        for piece in bytes.chunks(size) {
            let mut at = 0;
            loop {
                let step = decoder.step(&piece[at..])?;
                content.extend(&piece[at + step.skip..at + step.skip + step.data]);
                at += step.skip + step.data;
                if step.done || at == piece.len() {
                    break;
                }
            }
            used += at;
            if decoder.is_done() {
                break;
            }
        }
        Ok((content, used, decoder.is_done()))
    }

    #[test]
    fn content_is_the_same_however_the_bytes_are_split() {
        let body = b"4\r\nWiki\r\n6;name=\"v\"\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\nGET /";
        for size in 1..body.len() {
            let (content, used, done) = decode(body, size).unwrap();
            assert_eq!(content, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!((&body[used..], done), (&b"GET /"[..], true), "{size}");
        }
    }

    #[test]
    fn anything_that_another_parser_might_read_differently_is_refused() {
        for body in [
            &b"4\nWiki\r\n0\r\n\r\n"[..],
            b"4\r\nWiki\n0\r\n\r\n",
            b"+4\r\nWiki\r\n",
            b"0x4\r\nWiki\r\n",
            b"\r\n",
            b" 4\r\nWiki\r\n",
            b"-1\r\n",
            b"g\r\n",
            b"4\r\nWikipedia\r\n",
            b"4\r\nWiki0\r\n\r\n",
            b"fffffffffffffffff\r\n",
            b"4\r\r\nWiki",
            b"4;a\0\r\nWiki",
            b"4;a\nWiki",
            b"0\r\n\n",
            b"0\r\na\n\r\n",
            b"0\r\n b\r\n\r\n",
            b"4 \x0b\r\nWiki",
        ] {
            assert_eq!(decode(body, 1), Err(BadChunk), "{body:?}");
            assert_eq!(decode(body, 1000), Err(BadChunk), "{body:?}");
        }
        let mut long = b"4;".to_vec();
        long.extend(vec![b'a'; MAX_OVERHEAD + 1]);
        assert_eq!(decode(&long, 4096), Err(BadChunk));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_alike_in_any_pieces(bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'0'), any::<u8>()], 0..60), size in 1..60_usize) {
            prop_assert_eq!(decode(&bytes, size), decode(&bytes, 1));
        }
    }
}
