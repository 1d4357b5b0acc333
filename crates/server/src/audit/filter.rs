//! Which records a reader wants.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use pinfold_model::verdict;

use super::entry::{Event, Record};
use super::time::format_utc;

/// What became of a request, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    Denied,
    Failed,
}

/// Hosts by name or glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFilter {
    pattern: String,
    /// Whether the pattern has a `*`; without one it also means every name below it.
    glob: bool,
}

/// All parts that are set must hold. The default wants every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub sandbox: Option<String>,
    /// Empty means any; otherwise network records with one of these outcomes, refused starts, failed self-tests and
    /// quarantined names counting as denied.
    pub outcomes: Vec<Outcome>,
    /// Only network records of these hosts.
    pub host: Option<HostFilter>,
    /// Only records of this time or later.
    pub since: Option<SystemTime>,
}

impl Filter {
    /// Whether the record is wanted.
    #[must_use]
    pub fn wants(&self, record: &Record) -> bool {
        self.sandbox.as_ref().is_none_or(|wanted| *wanted == record.sandbox)
            && (self.outcomes.is_empty() || record.event.outcome().is_some_and(|o| self.outcomes.contains(&o)))
            && self.host.as_ref().is_none_or(|host| matches!(&record.event, Event::Network(d) if host.matches(&d.host)))
            // Time stamps of one form and length sort as text.
            && self.since.is_none_or(|since| record.time >= format_utc(since))
    }
}

impl Event {
    /// What became of the request or the start, for events that have such an answer.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Network(decision) => Some(match decision.outcome {
                verdict::Outcome::Allowed { .. } => Outcome::Allowed,
                verdict::Outcome::Denied { .. } => Outcome::Denied,
                verdict::Outcome::Failed { .. } => Outcome::Failed,
            }),
            Self::Started { .. } => Some(Outcome::Allowed),
            Self::StartRefused { .. } | Self::SelfTestFailed { .. } | Self::Quarantined { .. } => Some(Outcome::Denied),
            Self::AllowAll { .. } | Self::ChainRestarted { .. } | Self::Unknown => None,
        }
    }
}

impl HostFilter {
    /// Whether a host of the log is meant.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if self.glob {
            return glob(self.pattern.as_bytes(), host.as_bytes());
        }
        host.strip_suffix(&self.pattern)
            .is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }
}

impl FromStr for HostFilter {
    type Err = String;

    /// `example.com` means that name and every name below it; `*.example.com` and `10.0.*` are globs, `*` matching any run
    /// of characters.
    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = text.trim_matches('.').trim_matches(['[', ']']).to_ascii_lowercase();
        if pattern.is_empty() || pattern.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
            return Err(format!(
                "`{}` is not a host pattern; hint: write a name such as `example.com` or a glob such as `*.example.com`",
                super::printable(text)
            ));
        }
        Ok(Self {
            glob: pattern.contains('*'),
            pattern,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        })
    }
}

/// `*` matches any run of bytes; linear in memory, quadratic at worst in time over two short strings.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((after_star, from)) = retry {
            p = after_star;
            t = from + 1;
            retry = Some((after_star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_filter_without_a_star_means_the_name_and_all_below_it() {
        let filter: HostFilter = "Example.com".parse().unwrap();
        for (host, wanted) in [
            ("example.com", true),
            ("a.b.example.com", true),
            ("badexample.com", false),
            ("example.com.evil", false),
        ] {
            assert_eq!(filter.matches(host), wanted, "{host}");
        }
        assert_eq!(".example.com".parse(), Ok(filter));
    }

    #[test]
    fn a_star_matches_any_run_of_characters() {
        for (pattern, host, wanted) in [
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "example.com", false),
            ("10.0.*", "10.0.3.4", true),
            ("10.0.*", "110.0.3.4", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("*", "anything", true),
        ] {
            assert_eq!(
                pattern.parse::<HostFilter>().unwrap().matches(host),
                wanted,
                "{pattern} {host}"
            );
        }
        assert!("https://x".parse::<HostFilter>().is_err());
        assert!("".parse::<HostFilter>().is_err());
    }
}
