//! One client connection: request after request, each judged anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use std::net::SocketAddr;

use pinfold_model::net::Host;
use pinfold_model::verdict::{Denial, Matched, RequestKind};
use tokio::time::{timeout, timeout_at};

use super::super::connection::Connection;
use super::super::decide::{Asked, Gate, Ledger, Refusal, Traffic};
use super::super::tunnel;
use super::Framing;
use super::answer::{connect_denied, connect_failed, malformed, say};
use super::exchange::{Broken, Ended, exchange};
use super::head::{HeadError, HeadScan};
use super::request::{Arrival, Fault, Forward, Refused, Request, parse};

/// Where the client is connected to.
pub(crate) enum Parsing {
    Proxy,
    /// A tunnel that was opened to this host and port.
    Tunnel {
        host: Host,
        port: u16,
    },
}

/// A connection to a host that may serve another request for it.
pub(crate) struct Standing {
    pub(crate) connection: Connection,
    pub(crate) host: Host,
    pub(crate) address: SocketAddr,
}

/// What is left to do when no more requests are served.
pub(crate) enum Served {
    Nothing,
    /// The client sent `CONNECT`.
    Tunnel {
        client: Connection,
        host: Host,
        port: u16,
        since: Instant,
    },
}

/// Serves until the connection ends. `outer` counts what a tunnel's own record reports.
pub(crate) async fn serve(
    gate: &Arc<Gate>,
    mut client: Connection,
    parsing: &Parsing,
    mut standing: Option<Standing>,
    outer: Option<&Traffic>,
) -> Served {
    loop {
        let request = match read_head(gate, &mut client).await {
            Incoming::Head(length) => {
                let request = parse(&client.buffer.data()[..length], arrival(parsing));
                client.buffer.consume(length);
                request
            }
            Incoming::Bad(error) => Err(unread(parsing, error)),
            Incoming::End => return Served::Nothing,
        };
        let since = Instant::now();
        let request = match request {
            Ok(Request::Forward(request)) => request,
            Ok(Request::Tunnel { host, port }) => {
                return Served::Tunnel {
                    client,
                    host,
                    port,
                    since,
                };
            }
            Err(refused) => {
                refuse(gate, client, &refused, since).await;
                return Served::Nothing;
            }
        };
        let Some((next_client, next_standing)) = forward(gate, client, &request, standing, since, outer).await else {
            return Served::Nothing;
        };
        client = next_client;
        standing = next_standing;
    }
}

fn arrival(parsing: &Parsing) -> Arrival<'_> {
    match parsing {
        Parsing::Proxy => Arrival::Proxy,
        Parsing::Tunnel { host, port } => Arrival::Tunnel { host, port: *port },
    }
}

fn unread(parsing: &Parsing, error: HeadError) -> Refused {
    let (host, port) = match parsing {
        Parsing::Proxy => ("-".to_owned(), 0),
        Parsing::Tunnel { host, port } => (host.to_string(), *port),
    };
    Refused {
        fault: Fault::Head(error),
        host,
        port,
        method: None,
    }
}

enum Incoming {
    /// Complete in the buffer, with this length.
    Head(usize),
    Bad(HeadError),
    /// The client is gone, or was silent or slow for too long.
    End,
}

/// A connection may be idle between requests for long; a head that has begun must be finished soon.
async fn read_head(gate: &Gate, client: &mut Connection) -> Incoming {
    if client.buffer.is_empty() {
        match timeout(gate.options.idle_limit, client.fill()).await {
            Ok(Ok(count)) if count > 0 => {}
            _ => return Incoming::End,
        }
    }
    let deadline = tokio::time::Instant::now() + gate.options.head_deadline;
    let mut scan = HeadScan::default();
    loop {
        match scan.find(client.buffer.data()) {
            Ok(Some(length)) => return Incoming::Head(length),
            Err(error) => return Incoming::Bad(error),
            Ok(None) => {}
        }
        match timeout_at(deadline, client.fill()).await {
            Ok(Ok(count)) if count > 0 => {}
            _ => return Incoming::End,
        }
    }
}

async fn refuse(gate: &Gate, client: Connection, refused: &Refused, since: Instant) {
    let asked = Asked {
        kind: if refused.method.as_deref() == Some("CONNECT") {
            RequestKind::Connect
        } else {
            RequestKind::Http
        },
        host: refused.host.clone(),
        port: refused.port,
        method: refused.method.clone(),
        path: None,
        since,
    };
    let reason = refused.fault.reason().to_owned();
    gate.record_denied(
        &asked,
        &Denial {
            reason,
            matched: None,
            hint: refused.fault.to_string(),
        },
    );
    say(client, &malformed(&refused.fault)).await;
}

/// The connections that are left for the next request; none when the client's was closed.
async fn forward(
    gate: &Arc<Gate>,
    mut client: Connection,
    request: &Forward,
    standing: Option<Standing>,
    since: Instant,
    outer: Option<&Traffic>,
) -> Option<(Connection, Option<Standing>)> {
    let asked = Asked {
        kind: RequestKind::Http,
        host: request.host.to_string(),
        port: request.port,
        method: Some(request.method.clone()),
        path: Some(request.path.clone()),
        since,
    };
    let judged = gate
        .judge(&request.host, request.port)
        .and_then(|matched| without_tls(request).map(|()| matched));
    let matched = match judged {
        Ok(matched) => matched,
        Err(denial) => {
            deny(gate, client, &asked, &denial).await;
            return None;
        }
    };
    let mut reused = standing.and_then(|standing| still_good(gate, request, standing));
    loop {
        let fresh = reused.is_none();
        let mut upstream = match reused.take() {
            Some(standing) => standing,
            None => match gate.open(&request.host, request.port).await {
                Ok(opened) => {
                    let host = request.host.clone();
                    Standing {
                        connection: opened.connection,
                        host,
                        address: opened.address,
                    }
                }
                Err(refusal) => {
                    turn_away(gate, client, &asked, refusal).await;
                    return None;
                }
            },
        };
        let ledger = gate.ledger(asked.clone(), Matched::clone(&matched), upstream.address);
        let ended = tokio::select! {
            ended = exchange(request, &mut client, &mut upstream.connection, &ledger.traffic) => ended,
            () = tunnel::idleness(&ledger.traffic, gate.options.idle_limit) => Err(Broken::Cut),
        };
        if ended == Ok(Ended::Switched) {
            tunnel::relay(
                &mut client,
                &mut upstream.connection,
                &ledger.traffic,
                gate.options.idle_limit,
            )
            .await;
        }
        count(outer, &ledger.traffic);
        match ended {
            Ok(Ended::Whole { reusable }) => return Some((client, reusable.then_some(upstream))),
            Ok(Ended::Switched) => return None,
            Ok(Ended::Last) => {
                drop(ledger);
                drop(upstream);
                say(client, b"").await;
                return None;
            }
            Err(Broken::NoResponse) if !fresh && is_repeatable(request) => ledger.discard(),
            Err(broken) => {
                break_off(client, &broken, request, ledger).await;
                return None;
            }
        }
    }
}

/// Port 443 is for TLS, inside a tunnel: a plain request there is a mistake or a trick.
fn without_tls(request: &Forward) -> Result<(), Denial> {
    if request.port == 443 {
        let hint = "use an https:// URL".to_owned();
        return Err(Denial {
            reason: "plain HTTP on port 443".to_owned(),
            matched: None,
            hint,
        });
    }
    Ok(())
}

/// A connection to the same host and port, to an address that is still permitted, on which nothing has arrived unasked.
fn still_good(gate: &Gate, request: &Forward, mut standing: Standing) -> Option<Standing> {
    let same = standing.host == request.host && standing.address.port() == request.port;
    let quiet = |standing: &mut Standing| {
        let Connection { stream, buffer } = &mut standing.connection;
        buffer.is_empty() && buffer.fill_now(stream).is_none()
    };
    let good = same && gate.still_permits(&request.host, standing.address) && quiet(&mut standing);
    good.then_some(standing)
}

/// Whether a request may be sent again after the other side closed without an answer (RFC 9110, section 9.2.2).
fn is_repeatable(request: &Forward) -> bool {
    let idempotent = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains(&request.method.as_str());
    idempotent && matches!(request.framing, Framing::None | Framing::Length(0))
}

fn count(outer: Option<&Traffic>, inner: &Traffic) {
    if let Some(outer) = outer {
        outer
            .sent
            .fetch_add(inner.sent.load(Ordering::Relaxed), Ordering::Relaxed);
        outer
            .received
            .fetch_add(inner.received.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

async fn deny(gate: &Gate, client: Connection, asked: &Asked, denial: &Denial) {
    gate.record_denied(asked, denial);
    say(client, &connect_denied(&asked.host, asked.port, denial)).await;
}

/// Answers a request that could not be let through or not be carried out.
pub(crate) async fn turn_away(gate: &Gate, client: Connection, asked: &Asked, refusal: Refusal) {
    match refusal {
        Refusal::Denied(denial) => deny(gate, client, asked, &denial).await,
        Refusal::Failed { matched, error } => {
            let error = error.to_string();
            gate.record_failed(asked, &matched, &error);
            say(client, &connect_failed(&asked.host, asked.port, &error)).await;
        }
    }
}

async fn break_off(client: Connection, broken: &Broken, request: &Forward, ledger: Ledger) {
    let failed = |error: &str| connect_failed(&request.host.to_string(), request.port, error);
    match broken {
        Broken::Cut => tunnel::reset(&client.stream),
        Broken::NoResponse => {
            let error = "The other side closed the connection without an answer.";
            ledger.fail(error);
            say(client, &failed(error)).await;
        }
        Broken::BadResponse(error) => {
            let error = format!("The other side's answer is malformed. {error}");
            ledger.fail(&error);
            say(client, &failed(&error)).await;
        }
        Broken::BadRequestBody => {
            let fault = Fault::Chunks;
            ledger.deny(&Denial {
                reason: fault.reason().to_owned(),
                matched: None,
                hint: fault.to_string(),
            });
            say(client, &malformed(&fault)).await;
        }
    }
}
