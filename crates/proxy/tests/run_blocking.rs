//! The proxy as the runtime uses it: a thread of its own, started when the first connection already waits.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pinfold_model::net::{NetRule, NetworkPolicy};
use pinfold_model::origin::Origin;
use pinfold_model::verdict::{Decision, Outcome};
use pinfold_proxy::egress::{DecisionSink, Listeners, Options, Stopper, SystemResolver, run_blocking, stop_pair};

#[derive(Default)]
struct Kept {
    records: Mutex<Vec<Decision>>,
    collapsed: Mutex<u64>,
}

impl DecisionSink for Kept {
    fn record(&self, decision: Decision) {
        self.records.lock().unwrap().push(decision);
    }

    fn collapsed(&self, _like: &Decision, count: u64) {
        *self.collapsed.lock().unwrap() += count;
    }
}

struct Sandbox {
    http: SocketAddr,
    listeners: Listeners,
}

impl Sandbox {
    fn new() -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listeners = Listeners {
            http: listen(),
            socks: listen(),
        };
        Self {
            http: listeners.http.local_addr().unwrap(),
            listeners,
        }
    }

    fn start(self, allow: &[String], kept: &Arc<Kept>) -> (Stopper, JoinHandle<()>) {
        let parse = |text: &String| NetRule::parse_allow(text, None, Origin::flag("--allow")).unwrap();
        let policy = NetworkPolicy {
            allow: allow.iter().map(parse).collect(),
            ..NetworkPolicy::default()
        };
        let (stopper, stop) = stop_pair();
        let sink: Arc<dyn DecisionSink> = kept.clone();
        let thread = thread::spawn(move || {
            let resolver = Arc::new(SystemResolver);
            run_blocking(
                self.listeners,
                Arc::new(policy),
                sink,
                resolver,
                Options::default(),
                stop,
            )
            .unwrap();
        });
        (stopper, thread)
    }
}

fn ask(http: SocketAddr, target: &str) -> TcpStream {
    let mut client = TcpStream::connect(http).unwrap();
    write!(client, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    client
}

fn answer(mut client: TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_connection_that_waited_in_the_backlog_is_served_and_stopping_ends_the_thread() {
    let (sandbox, kept) = (Sandbox::new(), Arc::new(Kept::default()));
    let http = sandbox.http;
    let early = ask(http, "a.example:443");
    let (stopper, thread) = sandbox.start(&[], &kept);
    assert!(answer(early).starts_with("HTTP/1.1 403 Denied by pinfold: no rule\r\n"));
    for _ in 0..20 {
        answer(ask(http, "a.example:443"));
    }
    stopper.stop();
    thread.join().unwrap();
    let records = kept.records.lock().unwrap().len() as u64;
    assert_eq!(records + *kept.collapsed.lock().unwrap(), 21);
}

#[test]
fn dropping_the_stopper_stops_and_an_open_tunnel_is_recorded() {
    let (sandbox, kept) = (Sandbox::new(), Arc::new(Kept::default()));
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = server.local_addr().unwrap().to_string();
    let mut client = ask(sandbox.http, &target);
    let (stopper, thread) = sandbox.start(std::slice::from_ref(&target), &kept);
    let (mut upstream, _) = server.accept().unwrap();
    client.write_all(b"ping").unwrap();
    upstream.read_exact(&mut [0; 4]).unwrap();
    drop(stopper);
    thread.join().unwrap();
    let records = kept.records.lock().unwrap();
    assert!(
        matches!(
            records[..],
            [Decision {
                outcome: Outcome::Allowed {
                    sent: 4,
                    received: 0,
                    ..
                },
                ..
            }]
        ),
        "{records:?}"
    );
}

#[test]
fn the_system_resolver_is_asked_for_a_permitted_name_and_its_answer_is_judged() {
    let (sandbox, kept) = (Sandbox::new(), Arc::new(Kept::default()));
    let http = sandbox.http;
    let (stopper, thread) = sandbox.start(&["localhost".to_owned()], &kept);
    let text = answer(ask(http, "localhost:443"));
    assert!(
        text.starts_with("HTTP/1.1 403 Denied by pinfold: private address\r\n"),
        "{text}"
    );
    assert!(text.contains("localhost resolves to "), "{text}");
    stopper.stop();
    thread.join().unwrap();
}
