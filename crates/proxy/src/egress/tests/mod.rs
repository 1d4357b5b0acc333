//! Whole connections over loopback, with a resolver that answers from a table. Loopback is allowed by an ordinary address
//! rule; ports below 1024 are led to the test's own listeners by a table that exists in test builds only.

mod connect;
mod http;
mod limits;
mod socks;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinfold_model::net::{HostName, NetRule, NetworkPolicy};
use pinfold_model::origin::Origin;
use pinfold_model::verdict::{Decision, Outcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{DecisionSink, Listeners, Options, Proxy, Resolve, Resolving};

thread_local! {
    static REDIRECTED: RefCell<HashMap<u16, SocketAddr>> = RefCell::default();
}

/// Where a dial to `address` goes in this test.
pub(super) fn redirected(address: SocketAddr) -> SocketAddr {
    REDIRECTED.with_borrow(|table| table.get(&address.port()).copied().unwrap_or(address))
}

/// Guards against a hang; says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Channel(mpsc::UnboundedSender<Decision>);

impl DecisionSink for Channel {
    fn record(&self, decision: Decision) {
        let _ = self.0.send(decision);
    }
}

#[derive(Default)]
struct Table {
    answers: HashMap<String, Vec<std::net::IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Resolve for Table {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(name.to_string());
            self.answers
                .get(name.as_str())
                .cloned()
                .ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

/// A proxy under test.
struct World {
    http: SocketAddr,
    socks: SocketAddr,
    decisions: mpsc::UnboundedReceiver<Decision>,
    table: Arc<Table>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<io::Result<()>>,
}

impl World {
    /// `names` resolve to loopback unless they say otherwise (`name=address,address`).
    async fn new(allow: &[&str], deny: &[&str], names: &[&str]) -> Self {
        Self::with(allow, deny, names, Options::default()).await
    }

    async fn with(allow: &[&str], deny: &[&str], names: &[&str], options: Options) -> Self {
        let origin = || Origin::flag("--allow");
        let policy = NetworkPolicy {
            allow: allow
                .iter()
                .map(|text| NetRule::parse_allow(text, None, origin()).unwrap())
                .collect(),
            deny: deny
                .iter()
                .map(|text| NetRule::parse_deny(text, None, origin()).unwrap())
                .collect(),
            ..NetworkPolicy::default()
        };
        let answers = names.iter().map(|entry| {
            let (name, addresses) = entry.split_once('=').unwrap_or((entry, "127.0.0.1"));
            (
                name.to_owned(),
                addresses.split(',').map(|address| address.parse().unwrap()).collect(),
            )
        });
        let table = Arc::new(Table {
            answers: answers.collect(),
            asked: Mutex::default(),
        });
        let (sender, decisions) = mpsc::unbounded_channel();
        let proxy = Proxy::new(Arc::new(policy), Arc::new(Channel(sender)), table.clone(), options);
        let listen = || std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listeners = Listeners {
            http: listen(),
            socks: listen(),
        };
        let (http, socks) = (
            listeners.http.local_addr().unwrap(),
            listeners.socks.local_addr().unwrap(),
        );
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(proxy.serve(listeners, async {
            let _ = stopped.await;
        }));
        Self {
            http,
            socks,
            decisions,
            table,
            stop: Some(stop),
            served,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.table.asked.lock().unwrap().clone()
    }

    async fn decision(&mut self) -> Decision {
        patient(self.decisions.recv()).await.unwrap()
    }

    /// The next decision as `allow HOST:PORT SENT/RECEIVED`, `deny HOST:PORT REASON` or `fail HOST:PORT`.
    async fn decided(&mut self) -> String {
        let decision = self.decision().await;
        let target = format!("{}:{}", decision.host, decision.port);
        match decision.outcome {
            Outcome::Allowed { sent, received, .. } => format!("allow {target} {sent}/{received}"),
            Outcome::Denied { denial } => format!("deny {target} {}", denial.reason),
            Outcome::Failed { .. } => format!("fail {target}"),
        }
    }

    /// Sends `bytes` to the HTTP listener and reads until the proxy closes.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = connect(self.http).await;
        client.write_all(bytes.as_ref()).await.unwrap();
        rest(&mut client).await
    }
}

async fn patient<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("nothing happened for long")
}

async fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address)).await.unwrap()
}

/// Everything up to the end; a reset counts as an end and leaves a mark.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let ended = patient(stream.read_to_end(&mut bytes)).await;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if ended.is_err() {
        text.push_str("[reset]");
    }
    text
}

/// Reads exactly as many bytes as `text` has, and compares.
async fn expect(stream: &mut TcpStream, text: impl AsRef<[u8]>) {
    let wanted = text.as_ref();
    let mut got = vec![0; wanted.len()];
    patient(stream.read_exact(&mut got)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(wanted));
}

/// Reads up to and with the empty line of a head.
async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        let count = patient(stream.read(&mut byte)).await.unwrap();
        assert_eq!(count, 1, "ended within a head: {:?}", String::from_utf8_lossy(&bytes));
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

/// A server of the test, which dials to `port` reach.
struct Server {
    listener: TcpListener,
    port: u16,
}

impl Server {
    /// Reached by dials to a port of its own.
    async fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    /// Reached by dials to `port`.
    async fn on(port: u16) -> Self {
        let server = Self::new().await;
        let address = server.listener.local_addr().unwrap();
        REDIRECTED.with_borrow_mut(|table| table.insert(port, address));
        Self { port, ..server }
    }

    async fn accept(&self) -> TcpStream {
        patient(self.listener.accept()).await.unwrap().0
    }

    /// Whether nobody has connected.
    fn is_untouched(&self) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        self.listener.poll_accept(&mut context).is_pending()
    }
}

fn filler(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 251) as u8).collect()
}
