//! From an accepted connection to its end: what the client asks for, the decision, and then only what was decided.

use std::sync::Arc;
use std::time::Instant;

use pinfold_model::net::Host;
use pinfold_model::verdict::{Denial, RequestKind};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

use super::connection::{Connection, write_all};
use super::decide::{Asked, Gate, Ledger, Opened, Refusal};
use super::dial::DialError;
use super::hello::{ACCESS_DENIED, HelloError, HelloReader, check, refusal};
use super::http::{self, Parsing, Served, Standing, say};
use super::log::escaped;
use super::rules::NEVER_ALLOWED;
use super::socks::{self, NO_AUTHENTICATION, Reply, SocksError, Taken};
use super::tunnel;

pub(crate) async fn serve_http(gate: Arc<Gate>, stream: TcpStream) {
    let served = http::serve(&gate, Connection::new(stream), &Parsing::Proxy, None, None).await;
    let Served::Tunnel {
        client,
        host,
        port,
        since,
    } = served
    else {
        return;
    };
    let asked = asked(RequestKind::Connect, host.to_string(), port, since);
    match gate.open(&host, port).await {
        Ok(opened) => {
            if write_all(&client.stream, http::tunnel_open()).await.is_ok() {
                carry(&gate, client, opened, host, asked).await;
            }
        }
        Err(refusal) => http::turn_away(&gate, client, &asked, refusal).await,
    }
}

pub(crate) async fn serve_socks(gate: Arc<Gate>, stream: TcpStream) {
    let mut client = Connection::new(stream);
    let since = Instant::now();
    let shaken = timeout(gate.options.head_deadline, shake_hands(&mut client)).await;
    let (host, port) = match shaken {
        Ok(Ok(Some(destination))) => destination,
        Ok(Err(error)) => return refuse_socks(&gate, client, &error, since).await,
        Ok(Ok(None)) | Err(_) => return,
    };
    let asked = asked(RequestKind::Socks, host.to_string(), port, since);
    match gate.open(&host, port).await {
        Ok(opened) => {
            if write_all(&client.stream, &Reply::Succeeded.bytes()).await.is_ok() {
                carry(&gate, client, opened, host, asked).await;
            }
        }
        Err(Refusal::Denied(denial)) => {
            gate.record_denied(&asked, &denial);
            say(client, &Reply::NotAllowed.bytes()).await;
        }
        Err(Refusal::Failed { matched, error }) => {
            gate.record_failed(&asked, &matched, &error.to_string());
            say(client, &reply_to(&error).bytes()).await;
        }
    }
}

/// What follows the decision depends on the port alone: 443 is for TLS, 80 is for HTTP, and every other port was written
/// out in a rule (or opened with everything else), which lets any protocol pass.
async fn carry(gate: &Arc<Gate>, mut client: Connection, opened: Opened, host: Host, asked: Asked) {
    let Opened {
        connection: mut upstream,
        address,
        matched,
    } = opened;
    let port = asked.port;
    let ledger = gate.ledger(asked, matched, address);
    match port {
        443 => match await_hello(gate, &mut client, &host).await {
            Hello::Good => tunnel::relay(&mut client, &mut upstream, &ledger.traffic, gate.options.idle_limit).await,
            Hello::Refused { denial, alert } => {
                drop(upstream);
                ledger.deny(&denial);
                say(client, alert).await;
            }
            Hello::Gone => {}
        },
        80 => carry_http(gate, client, upstream, host, address, &ledger).await,
        _ => tunnel::relay(&mut client, &mut upstream, &ledger.traffic, gate.options.idle_limit).await,
    }
}

async fn carry_http(
    gate: &Arc<Gate>,
    client: Connection,
    upstream: Connection,
    host: Host,
    address: std::net::SocketAddr,
    ledger: &Ledger,
) {
    let standing = Standing {
        connection: upstream,
        host: host.clone(),
        address,
    };
    let parsing = Parsing::Tunnel {
        host,
        port: address.port(),
    };
    // A tunnel inside the tunnel is refused by the parser.
    let _ = http::serve(gate, client, &parsing, Some(standing), Some(&ledger.traffic)).await;
}

enum Hello {
    Good,
    Refused { denial: Denial, alert: &'static [u8] },
    Gone,
}

/// Reads until the ClientHello is complete; it stays in the buffer and is the first thing that is relayed.
async fn await_hello(gate: &Gate, client: &mut Connection, host: &Host) -> Hello {
    let refused = |error| Hello::Refused {
        denial: refusal(&error),
        alert: b"",
    };
    let mut reader = HelloReader::default();
    let mut fed = 0;
    let mut deadline = tokio::time::Instant::now() + gate.options.idle_limit;
    loop {
        let data = client.buffer.data();
        match reader.feed(&data[fed..]) {
            Err(error) => return refused(error),
            Ok(Some(named)) => {
                return match check(host, &named) {
                    Ok(()) => Hello::Good,
                    Err(denial) => Hello::Refused {
                        denial,
                        alert: &ACCESS_DENIED,
                    },
                };
            }
            Ok(None) if client.buffer.is_full() => return refused(HelloError::NotTls),
            Ok(None) => {}
        }
        if fed == 0 && !data.is_empty() {
            deadline = tokio::time::Instant::now() + gate.options.head_deadline;
        }
        fed = data.len();
        match timeout_at(deadline, client.fill()).await {
            Ok(Ok(count)) if count > 0 => {}
            // A connection that was opened ahead and never used.
            _ if fed == 0 => return Hello::Gone,
            _ => return refused(HelloError::NotTls),
        }
    }
}

/// Where the client wants to go; none when it left before it said so.
async fn shake_hands(client: &mut Connection) -> Result<Option<(Host, u16)>, SocksError> {
    if read_message(client, socks::greeting).await?.is_none() {
        return Ok(None);
    }
    if write_all(&client.stream, &NO_AUTHENTICATION).await.is_err() {
        return Ok(None);
    }
    read_message(client, socks::request).await
}

async fn read_message<T>(
    client: &mut Connection,
    parse: impl Fn(&[u8]) -> Result<Taken<T>, SocksError>,
) -> Result<Option<T>, SocksError> {
    loop {
        if let Some((message, length)) = parse(client.buffer.data())? {
            client.buffer.consume(length);
            return Ok(Some(message));
        }
        match client.fill().await {
            Ok(count) if count > 0 => {}
            _ => return Ok(None),
        }
    }
}

async fn refuse_socks(gate: &Gate, client: Connection, error: &SocksError, since: Instant) {
    let (host, port) = match error {
        SocksError::Host { sent, port, .. } => (escaped(sent, 255), *port),
        _ => ("-".to_owned(), 0),
    };
    let hint = match error {
        SocksError::Host { .. } => NEVER_ALLOWED.to_owned(),
        _ => error.to_string(),
    };
    let denial = Denial {
        reason: error.reason().to_owned(),
        matched: None,
        hint,
    };
    gate.record_denied(&asked(RequestKind::Socks, host, port, since), &denial);
    say(client, &error.answer()).await;
}

fn reply_to(error: &DialError) -> Reply {
    match error {
        DialError::Refused { source, .. } if source.kind() == std::io::ErrorKind::ConnectionRefused => {
            Reply::ConnectionRefused
        }
        _ => Reply::HostUnreachable,
    }
}

fn asked(kind: RequestKind, host: String, port: u16, since: Instant) -> Asked {
    Asked {
        kind,
        host,
        port,
        method: None,
        path: None,
        since,
    }
}
