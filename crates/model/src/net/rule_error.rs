//! Why a text is not a network rule, and what to write instead.

use super::host::HostError;

/// Why a rule was refused at load. The message says what is wrong; [`RuleError::hint`] says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("The network rule is empty.")]
    Empty,
    #[error("\"{text}\" is a URL; a network rule names a host.")]
    Url { text: String, host: Option<String> },
    #[error("\"{text}\" carries a user name or password; a network rule names a host.")]
    Userinfo { text: String },
    #[error("\"{text}\" has a `*` in a place where it has no meaning: a `*` stands for the whole first label only.")]
    Wildcard { text: String },
    #[error("\"{text}\" matches every host.")]
    EveryHost { text: String },
    #[error("\"{text}\" matches names that anyone can register: \"{suffix}\" is a public suffix.")]
    PublicSuffix { text: String, suffix: String },
    #[error("\"{text}\" covers too many addresses.")]
    BroadNetwork { text: String },
    #[error("\"{text}\" can never hold: {what} is never reachable from a sandbox, whatever the rules say.")]
    NeverReachable { text: String, what: String },
    #[error("\"{text}\" is not an address range in CIDR form.")]
    BadNetwork { text: String },
    #[error("\"{text}\" has address bits beyond its prefix length.")]
    HostBits { text: String, network: String },
    #[error("\"{port}\" in \"{text}\" is not a port: ports are numbers from 1 to 65535.")]
    BadPort { text: String, port: String },
    #[error("The port range \"{range}\" in \"{text}\" ends before it starts.")]
    BackwardRange { text: String, range: String },
    #[error("\"{text}\" does not name a host. {source}")]
    BadHost { text: String, source: HostError },
}

impl RuleError {
    /// What to write instead, without the word "hint".
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Empty => "write a host such as api.example.com, or remove the entry".to_owned(),
            Self::Url { host: Some(host), .. } => format!("write \"{host}\""),
            Self::Url { host: None, .. } | Self::Userinfo { .. } => "write the host alone, or host:port".to_owned(),
            Self::Wildcard { .. } => {
                "write *.example.com for every name below example.com, and example.com as a rule of its own".to_owned()
            }
            Self::EveryHost { .. } => "name the hosts, or set allow_all to open every host".to_owned(),
            Self::PublicSuffix { suffix, .. } => {
                format!("name the host, or a domain that one owner controls, such as *.example.{suffix}")
            }
            Self::BroadNetwork { .. } => {
                "write a smaller range (at least /8 for IPv4, /7 for IPv6), or set allow_all to open every host"
                    .to_owned()
            }
            Self::NeverReachable { .. } => "remove the rule".to_owned(),
            Self::BadNetwork { .. } => "write a range such as 10.1.0.0/16 or fd12::/32".to_owned(),
            Self::HostBits { network, .. } => format!("write \"{network}\""),
            Self::BadPort { .. } => "write host:443, host:80,443 or host:8000-8999".to_owned(),
            Self::BackwardRange { .. } => "write the smaller port first".to_owned(),
            Self::BadHost {
                source: HostError::BareIpv6,
                ..
            } => "put the IPv6 address in brackets".to_owned(),
            Self::BadHost {
                source: HostError::NumericSpelling,
                ..
            } => "write the address as four decimal numbers, such as 10.0.0.1".to_owned(),
            Self::BadHost { .. } => {
                "write a host such as api.example.com, *.example.com, 10.0.0.1 or [fd12::1]".to_owned()
            }
        }
    }
}
