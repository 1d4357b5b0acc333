//! Connects to one of the addresses that were judged, and to nothing else.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long an address may stay silent before the next one is tried beside it (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);
/// Addresses that are tried; all of them have been judged.
const MOST_ADDRESSES: usize = 16;

/// Why a permitted host could not be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("The name could not be resolved: {source}.")]
    Unresolved { source: io::Error },
    #[error("The name resolves to no address.")]
    NoAddress,
    #[error("The resolver did not answer in time.")]
    SlowResolver,
    #[error("The connection to {address} failed: {source}.")]
    Refused { address: SocketAddr, source: io::Error },
    #[error("No address of the host answered in time.")]
    TimedOut,
}

/// The first connection that stands, of staggered attempts in the order given.
pub(crate) async fn dial(addresses: &[SocketAddr], deadline: Duration) -> Result<(TcpStream, SocketAddr), DialError> {
    timeout(deadline, race(addresses))
        .await
        .unwrap_or(Err(DialError::TimedOut))
}

async fn race(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), DialError> {
    if let [address] = addresses {
        return attempt(*address).await;
    }
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.iter().copied().take(MOST_ADDRESSES);
    let mut last = DialError::NoAddress;
    let mut next = waiting.next();
    loop {
        if let Some(address) = next.take() {
            attempts.spawn(attempt(address));
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => {
                    last = error;
                    next = waiting.next();
                }
                Err(_) => next = waiting.next(),
            },
            () = sleep(STAGGER), if more => next = waiting.next(),
            else => return Err(last),
        }
    }
}

async fn attempt(address: SocketAddr) -> Result<(TcpStream, SocketAddr), DialError> {
    #[cfg(test)]
    let target = super::tests::redirected(address);
    #[cfg(not(test))]
    let target = address;
    let stream = TcpStream::connect(target)
        .await
        .map_err(|source| DialError::Refused { address, source })?;
    // Latency only; a socket that refuses the option still works.
    let _ = stream.set_nodelay(true);
    Ok((stream, address))
}
