//! One request and its response. Both directions flow at the same time: a server may answer before it has read everything,
//! and a client that waits for `100 Continue` sends its body only afterwards.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpStream;

use super::super::connection::{Buffer, Connection, end_writing, write_all};
use super::super::decide::Traffic;
use super::Framing;
use super::body::{Body, BodyError};
use super::head::HeadScan;
use super::request::Forward;
use super::response::{After, BadResponse, Context, Response};

/// What may be done with the two connections afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client's stays; the other one may serve another request to the same host if `reusable`.
    Whole { reusable: bool },
    /// The client has been told that its connection closes.
    Last,
    /// Both are a tunnel now; what has been read already is in their buffers.
    Switched,
}

/// How an exchange failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The other side closed without a word: an idle connection that it gave up, perhaps.
    NoResponse,
    /// The other side's answer is malformed; nothing of it was passed on.
    BadResponse(BadResponse),
    /// The client's body is malformed; nothing was answered yet.
    BadRequestBody,
    /// Broken off after the answer had begun, or by the client.
    Cut,
}

/// What the two directions tell each other.
#[derive(Default)]
struct Progress {
    /// The request has been sent whole.
    asked: AtomicBool,
    /// A final response has begun.
    answering: AtomicBool,
}

pub(super) async fn exchange(
    request: &Forward,
    client: &mut Connection,
    upstream: &mut Connection,
    traffic: &Traffic,
) -> Result<Ended, Broken> {
    let Connection {
        stream: inner,
        buffer: from_inner,
    } = client;
    let Connection {
        stream: outer,
        buffer: from_outer,
    } = upstream;
    let progress = Progress::default();
    let body = Body {
        from: inner,
        buffer: from_inner,
        to: outer,
        moved: &traffic.sent,
    };
    let mut ask = pin!(ask(request, body, &progress));
    let body = Body {
        from: outer,
        buffer: from_outer,
        to: inner,
        moved: &traffic.received,
    };
    let mut answer = pin!(answer(request, body, &progress));
    let mut asking = true;
    loop {
        tokio::select! {
            biased;
            error = &mut ask, if asking => match error {
                // It may have answered all the same.
                BodyError::Target => asking = false,
                BodyError::Malformed if !progress.answering.load(Ordering::Relaxed) => return Err(Broken::BadRequestBody),
                BodyError::Malformed | BodyError::Source => return Err(Broken::Cut),
            },
            ended = &mut answer => return ended,
        }
    }
}

/// Returns only when something fails. Once the request is sent it watches the client: one that ends its direction has that
/// passed on, and what it sends ahead is kept for later.
async fn ask(request: &Forward, mut body: Body<'_>, progress: &Progress) -> BodyError {
    if let Err(error) = body.relay(&request.head, request.framing, request.framing).await {
        return error;
    }
    progress.asked.store(true, Ordering::Relaxed);
    while !body.buffer.is_full() {
        match body.buffer.fill(body.from).await {
            Ok(0) => {
                end_writing(body.to);
                break;
            }
            Ok(_) => {}
            Err(_) => return BodyError::Source,
        }
    }
    pending().await
}

async fn answer(request: &Forward, mut body: Body<'_>, progress: &Progress) -> Result<Ended, Broken> {
    let context = Context {
        head_only: request.method == "HEAD",
        websocket: request.websocket,
        minor: request.minor,
    };
    loop {
        let length = read_head(body.from, body.buffer).await?;
        let data = &body.buffer.data()[..length];
        let response = Response::parse(data, context).map_err(Broken::BadResponse)?;
        if response.status == 101 {
            let head = response.rebuild(context, After::Switch);
            body.buffer.consume(length);
            progress.answering.store(true, Ordering::Relaxed);
            return write_all(body.to, &head)
                .await
                .map(|()| Ended::Switched)
                .map_err(|_| Broken::Cut);
        }
        if response.status < 200 {
            let head = response.rebuild(Context { minor: 1, ..context }, After::Stay);
            body.buffer.consume(length);
            if context.minor >= 1 {
                write_all(body.to, &head).await.map_err(|_| Broken::Cut)?;
            }
            continue;
        }
        let written = response.client_framing(context);
        let whole = request.stays && written != Framing::UntilClose && progress.asked.load(Ordering::Relaxed);
        let head = response.rebuild(context, if whole { After::Stay } else { After::Close });
        let (framing, reusable) = (response.framing, response.stays);
        body.buffer.consume(length);
        progress.answering.store(true, Ordering::Relaxed);
        body.relay(&head, framing, written).await.map_err(|_| Broken::Cut)?;
        return Ok(if whole { Ended::Whole { reusable } } else { Ended::Last });
    }
}

/// The length of the next response head, which then stands complete in the buffer.
async fn read_head(from: &TcpStream, buffer: &mut Buffer) -> Result<usize, Broken> {
    let mut scan = HeadScan::default();
    loop {
        match scan.find(buffer.data()) {
            Ok(Some(length)) => return Ok(length),
            Ok(None) => {}
            Err(error) => return Err(Broken::BadResponse(error.into())),
        }
        match buffer.fill(from).await {
            Ok(count) if count > 0 => {}
            _ => return Err(Broken::NoResponse),
        }
    }
}
