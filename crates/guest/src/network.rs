//! The sandbox's side of the network: a loopback device and the proxy's listening sockets, which the host accepts from.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use pinfold_model::plan::Listeners;
use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::{Errno, loopback};

use crate::failure::{During, failure};

/// Brings up loopback. Done without any network rule too: servers of the agent's own need it.
pub(crate) fn bring_up() -> Result<(), Failure> {
    loopback::bring_up().during(Layer::Network, || "bring up the loopback device".to_owned())
}

/// Listens on the proxy's ports, HTTP then SOCKS.
pub(crate) fn listen(ports: Listeners) -> Result<[OwnedFd; 2], Failure> {
    Ok([listen_on(ports.http)?, listen_on(ports.socks)?])
}

fn listen_on(port: u16) -> Result<OwnedFd, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(OwnedFd::from)
        .map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            failure(Layer::Network, format!("listen on 127.0.0.1:{port}"), errno)
        })
}
