//! From a permitted name to addresses.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

use pinfold_model::net::HostName;

/// The answer of a resolver, on its way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks names up. Asked only for names that the rules permit; every address of the answer is judged afterwards.
pub trait Resolve: Send + Sync {
    /// All addresses of `name`. An empty answer counts as a failure.
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a>;
}

/// The resolver of the host's C library, asked anew for each connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
            let mut seen = std::collections::HashSet::new();
            addresses.retain(|address| seen.insert(*address));
            Ok(addresses)
        })
    }
}
