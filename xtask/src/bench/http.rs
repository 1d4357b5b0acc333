//! A small HTTP/1.1 server and client, on threads and keep-alive connections, that cost next to nothing themselves.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use serde_json::json;

use crate::Outcome;

const BUFFER: usize = 256 * 1024;
const LONGEST_HEAD: usize = 16 * 1024;

/// Body of the requests whose latency is taken.
const SMALL: u64 = 1024;

/// Serves `GET /N` with N bytes until the process ends; returns the port on the loopback address.
pub(super) fn serve() -> Outcome<u16> {
    let failed = |error: Error| format!("the benchmark's server could not listen: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A client that goes away ends its own connection only.
            std::thread::spawn(move || drop(answer(connection)));
        }
    });
    Ok(port)
}

fn answer(stream: TcpStream) -> IoResult<()> {
    let mut connection = Connection::new(stream)?;
    let body = vec![b'x'; BUFFER];
    while let Some(head) = connection.head()? {
        let target = head.split(' ').nth(1).unwrap_or_default();
        let length: u64 = target
            .rsplit('/')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        let stream = &mut connection.stream;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
        )?;
        let mut left = length;
        while left > 0 {
            let part = body.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            stream.write_all(&body[..part])?;
            left -= part as u64;
        }
    }
    Ok(())
}

/// `bench-client PORT direct|proxy REQUESTS SIZE:COUNT…`: prints latencies in ms and throughputs in MB/s as JSON.
pub(crate) fn client(words: &[&str]) -> Outcome {
    let [port, way, requests, sizes @ ..] = words else {
        return Err("bench-client PORT direct|proxy REQUESTS SIZE:COUNT…".to_owned());
    };
    let requests = number(requests)?;
    let mut client = Client::connect(port, *way == "proxy")?;
    let failed = |error: Error| format!("the request failed: {error}");
    let mut latencies = Vec::new();
    for _ in 0..requests {
        let start = Instant::now();
        client.get(SMALL).map_err(failed)?;
        latencies.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let mut throughputs = serde_json::Map::new();
    for each in sizes {
        let (size, count) = each
            .split_once(':')
            .ok_or_else(|| format!("{each} is not SIZE:COUNT"))?;
        let (bytes, count) = (number(size)?, number(count)?);
        let start = Instant::now();
        for _ in 0..count {
            client.get(bytes).map_err(failed)?;
        }
        let rate = (bytes * count) as f64 / 1e6 / start.elapsed().as_secs_f64();
        throughputs.insert(size.to_owned(), json!(rate));
    }
    println!("{}", json!({ "latency": latencies, "throughput": throughputs }));
    Ok(())
}

fn number(word: &str) -> Outcome<u64> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

struct Client {
    connection: Connection,
    prefix: String,
    headers: String,
    sink: Vec<u8>,
}

impl Client {
    fn connect(port: &str, through_proxy: bool) -> Outcome<Self> {
        let origin = format!("127.0.0.1:{port}");
        let (address, prefix, mut headers) = if through_proxy {
            let variable = std::env::var("http_proxy").or_else(|_| std::env::var("HTTP_PROXY"));
            let variable = variable.map_err(|_| "no proxy is named in the environment".to_owned())?;
            let (address, credentials) = proxy(&variable);
            let authorization = credentials
                .map(|pair| format!("Proxy-Authorization: Basic {}\r\n", base64(&pair)))
                .unwrap_or_default();
            (address, format!("http://{origin}"), authorization)
        } else {
            (origin.clone(), String::new(), String::new())
        };
        headers.push_str(&format!("Host: {origin}\r\n"));
        let stream =
            TcpStream::connect(&address).map_err(|error| format!("{address} could not be reached: {error}"))?;
        let connection = Connection::new(stream).map_err(|error| error.to_string())?;
        Ok(Self {
            connection,
            prefix,
            headers,
            sink: vec![0; BUFFER],
        })
    }

    fn get(&mut self, bytes: u64) -> IoResult<()> {
        let request = format!("GET {}/{bytes} HTTP/1.1\r\n{}\r\n", self.prefix, self.headers);
        self.connection.stream.write_all(request.as_bytes())?;
        let head = self
            .connection
            .head()?
            .ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?;
        if head.split(' ').nth(1) != Some("200") {
            return Err(Error::other(format!(
                "the answer was {}",
                head.lines().next().unwrap_or_default()
            )));
        }
        match content_length(&head) {
            Some(length) if length == bytes => self.connection.discard(length, &mut self.sink),
            other => Err(Error::other(format!(
                "{bytes} bytes were asked for, {other:?} were announced"
            ))),
        }
    }
}

fn content_length(head: &str) -> Option<u64> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().ok())
                .flatten()
        })
}

/// A stream and what was read of it beyond the last head.
struct Connection {
    stream: TcpStream,
    pending: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> IoResult<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            pending: Vec::new(),
        })
    }

    /// The next message's head, without its empty line; none when the peer closed before it.
    fn head(&mut self) -> IoResult<Option<String>> {
        loop {
            if let Some(end) = self.pending.windows(4).position(|window| window == b"\r\n\r\n") {
                let head: Vec<u8> = self.pending.drain(..end + 4).take(end).collect();
                return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part)? {
                0 if self.pending.is_empty() => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.pending.extend_from_slice(&part[..count]),
            }
            if self.pending.len() > LONGEST_HEAD {
                return Err(Error::other("the head has no end"));
            }
        }
    }

    fn discard(&mut self, length: u64, sink: &mut [u8]) -> IoResult<()> {
        let known = self.pending.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        self.pending.drain(..known);
        let mut left = length - known as u64;
        while left > 0 {
            let part = sink.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.stream.read(&mut sink[..part])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => left -= count as u64,
            }
        }
        Ok(())
    }
}

/// Address and credentials of a proxy variable such as `http://user:word@localhost:3128/`.
fn proxy(variable: &str) -> (String, Option<String>) {
    let rest = variable
        .split_once("://")
        .map_or(variable, |(_, rest)| rest)
        .trim_end_matches('/');
    match rest.rsplit_once('@') {
        Some((credentials, address)) => (address.to_owned(), Some(percent_decoded(credentials))),
        None => (rest.to_owned(), None),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// RFC 4648, section 4.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = (group >> (18 - 6 * place)) & 63;
            encoded.push(if place <= chunk.len() {
                char::from(ALPHABET[digit as usize])
            } else {
                '='
            });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::{Client, base64, proxy, serve};

    #[test]
    fn one_connection_carries_many_bodies() {
        let port = serve().expect("the loopback address can be listened on");
        let mut client = Client::connect(&port.to_string(), false).expect("the server listens");
        for bytes in [0, 1, 5000, 1 << 20] {
            client.get(bytes).expect("the server answers");
        }
    }

    #[test]
    fn proxy_variables_are_taken_apart() {
        let cases = [
            ("http://127.0.0.1:880", ("127.0.0.1:880", None)),
            ("http://a:b%3D@localhost:3128/", ("localhost:3128", Some("a:b="))),
        ];
        for (variable, (address, credentials)) in cases {
            assert_eq!(proxy(variable), (address.to_owned(), credentials.map(str::to_owned)));
        }
    }

    #[test]
    fn base64_pads_what_is_left_over() {
        for (text, wanted) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(text), wanted);
        }
    }
}
