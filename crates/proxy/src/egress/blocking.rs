//! The proxy for a caller without an async runtime: one thread that serves until it is told to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pinfold_model::net::NetworkPolicy;
use tokio::sync::oneshot;

use super::log::DecisionSink;
use super::resolve::Resolve;
use super::server::{Listeners, Options, Proxy};

/// Threads that look names up at a time.
const RESOLVERS: usize = 16;

/// Stops the proxy that holds the other half, also when dropped.
#[derive(Debug)]
pub struct Stopper(oneshot::Sender<()>);

impl Stopper {
    pub fn stop(self) {
        // A proxy that is gone already has stopped.
        let _ = self.0.send(());
    }
}

/// What [`run_blocking`] waits for.
#[derive(Debug)]
pub struct StopSignal(oneshot::Receiver<()>);

/// The two ends of a stop signal. Needs no runtime.
#[must_use]
pub fn stop_pair() -> (Stopper, StopSignal) {
    let (sender, receiver) = oneshot::channel();
    (Stopper(sender), StopSignal(receiver))
}

/// Serves on the calling thread until the [`Stopper`] is used or dropped. Connections that came in before it was called wait
/// in the listeners' backlog and are served.
///
/// # Errors
/// When the runtime or the listeners cannot be used.
pub fn run_blocking(
    listeners: Listeners,
    policy: Arc<NetworkPolicy>,
    sink: Arc<dyn DecisionSink>,
    resolver: Arc<dyn Resolve>,
    options: Options,
    stop: StopSignal,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(RESOLVERS)
        .thread_keep_alive(Duration::from_secs(2))
        .build()?;
    let proxy = Proxy::new(policy, sink, resolver, options);
    let served = runtime.block_on(proxy.serve(listeners, async {
        let _ = stop.0.await;
    }));
    // A lookup that hangs must not hold up the end.
    runtime.shutdown_background();
    served
}
