//! Accepts what comes from one sandbox, within that sandbox's limits.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pinfold_model::net::NetworkPolicy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::decide::Gate;
use super::log::{DecisionSink, Log};
use super::resolve::Resolve;
use super::session::{serve_http, serve_socks};

/// How long accepting rests when the process has no descriptors left.
const EXHAUSTED: Duration = Duration::from_millis(20);

/// The sockets that a sandbox connects to; both already listen.
#[derive(Debug)]
pub struct Listeners {
    pub http: std::net::TcpListener,
    pub socks: std::net::TcpListener,
}

/// Limits of one sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Client connections at a time; more wait in the listeners' backlog. Each takes two descriptors and up to 128 KiB, and
    /// four more descriptors while it moves much.
    pub max_connections: usize,
    /// From the first byte of a request head or a handshake to its last.
    pub head_deadline: Duration,
    pub resolve_deadline: Duration,
    /// Over all addresses of a host.
    pub dial_deadline: Duration,
    /// How long nothing may move on a connection before it is closed; there is no limit in total.
    pub idle_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            head_deadline: Duration::from_secs(30),
            resolve_deadline: Duration::from_secs(15),
            dial_deadline: Duration::from_secs(30),
            idle_limit: Duration::from_secs(2 * 60 * 60),
        }
    }
}

/// The proxy of one sandbox.
pub struct Proxy {
    gate: Arc<Gate>,
}

impl Proxy {
    #[must_use]
    pub fn new(
        policy: Arc<NetworkPolicy>,
        sink: Arc<dyn DecisionSink>,
        resolver: Arc<dyn Resolve>,
        options: Options,
    ) -> Self {
        Self {
            gate: Arc::new(Gate {
                policy,
                resolver,
                log: Log::new(sink),
                options,
            }),
        }
    }

    /// Serves until `shutdown` is ready, then cuts what is open; every permitted exchange is recorded before this returns.
    ///
    /// # Errors
    /// When the listeners cannot be used.
    pub async fn serve(self, listeners: Listeners, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let http = listening(listeners.http)?;
        let socks = listening(listeners.socks)?;
        let mut sessions = JoinSet::new();
        tokio::select! {
            () = shutdown => {}
            () = accept(&self.gate, &http, &socks, &mut sessions) => {}
        }
        sessions.shutdown().await;
        self.gate.log.flush();
        Ok(())
    }
}

fn listening(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Never ends. A session that panics takes only its own connection with it.
async fn accept(gate: &Arc<Gate>, http: &TcpListener, socks: &TcpListener, sessions: &mut JoinSet<()>) {
    let places = Arc::new(Semaphore::new(gate.options.max_connections));
    loop {
        let mut place = pin!(Arc::clone(&places).acquire_owned());
        let place = loop {
            tokio::select! {
                place = &mut place => break place,
                Some(_) = sessions.join_next() => {}
            }
        };
        let accepted = loop {
            tokio::select! {
                accepted = http.accept() => break accepted.map(|(stream, _)| (stream, Listener::Http)),
                accepted = socks.accept() => break accepted.map(|(stream, _)| (stream, Listener::Socks)),
                Some(_) = sessions.join_next() => {}
            }
        };
        match accepted {
            Ok((stream, listener)) => {
                let session = session(Arc::clone(gate), stream, listener);
                sessions.spawn(async move {
                    session.await;
                    drop(place);
                });
            }
            Err(error) if is_exhaustion(&error) => sleep(EXHAUSTED).await,
            // The client was gone before it was accepted.
            Err(_) => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Listener {
    Http,
    Socks,
}

async fn session(gate: Arc<Gate>, stream: TcpStream, listener: Listener) {
    // Latency only; a socket that refuses the option still works.
    let _ = stream.set_nodelay(true);
    match listener {
        Listener::Http => serve_http(gate, stream).await,
        Listener::Socks => serve_socks(gate, stream).await,
    }
}

fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let kinds = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| kinds.contains(&errno))
}
