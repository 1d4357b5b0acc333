//! Where decisions go, and the bound on how many of them a sandbox can cause.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pinfold_model::verdict::{Decision, Outcome};

/// Keeps decisions. Called from the proxy's thread: it must not block for long.
pub trait DecisionSink: Send + Sync {
    /// One decision: a denial at once, a permitted exchange when it has ended.
    fn record(&self, decision: Decision);

    /// `count` more denials or failures of the same host, port and reason as `like` were left out. Called at the latest when
    /// the proxy stops.
    fn collapsed(&self, like: &Decision, count: u64) {
        let _ = (like, count);
    }
}

/// Denials (and failures) of one host, port and reason that are recorded one by one; later ones are counted.
const SINGLY: u64 = 8;
/// Distinct denials that are remembered. When a sandbox causes more, the counts are handed over and counting starts anew,
/// so that the first of each kind is never lost and memory stays bounded.
const REMEMBERED: usize = 4096;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: u16,
    reason: String,
}

struct Seen {
    like: Decision,
    times: u64,
}

pub(crate) struct Log {
    sink: Arc<dyn DecisionSink>,
    denials: Mutex<HashMap<Key, Seen>>,
}

impl Log {
    pub(crate) fn new(sink: Arc<dyn DecisionSink>) -> Self {
        Self {
            sink,
            denials: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn record(&self, decision: Decision) {
        if self.is_worth_a_record(&decision) {
            self.sink.record(decision);
        }
    }

    fn is_worth_a_record(&self, decision: &Decision) -> bool {
        let Outcome::Denied { denial } = &decision.outcome else {
            return true;
        };
        let key = Key {
            host: decision.host.clone(),
            port: decision.port,
            reason: denial.reason.clone(),
        };
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = denials.get_mut(&key) {
            seen.times += 1;
            return seen.times <= SINGLY;
        }
        if denials.len() >= REMEMBERED {
            self.hand_over(&mut denials);
        }
        denials.insert(
            key,
            Seen {
                like: decision.clone(),
                times: 1,
            },
        );
        true
    }

    /// Reports what has been counted and not recorded.
    pub(crate) fn flush(&self) {
        self.hand_over(&mut self.denials.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn hand_over(&self, denials: &mut HashMap<Key, Seen>) {
        for (_, seen) in denials.drain().filter(|(_, seen)| seen.times > SINGLY) {
            self.sink.collapsed(&seen.like, seen.times - SINGLY);
        }
    }
}

/// What a client sent, safe to keep and to print: ASCII, control characters escaped, bounded.
pub(crate) fn escaped(bytes: &[u8], most: usize) -> String {
    let mut text: String = bytes[..bytes.len().min(most)].escape_ascii().to_string();
    if bytes.len() > most {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pinfold_model::verdict::{Denial, RequestKind};

    use super::*;

    #[derive(Default)]
    struct Kept {
        records: Mutex<Vec<Decision>>,
        collapsed: Mutex<Vec<(String, u64)>>,
    }

    impl DecisionSink for Kept {
        fn record(&self, decision: Decision) {
            self.records.lock().unwrap().push(decision);
        }

        fn collapsed(&self, like: &Decision, count: u64) {
            self.collapsed.lock().unwrap().push((like.host.clone(), count));
        }
    }

    fn denied(host: &str, reason: &str) -> Decision {
        let denial = Denial {
            reason: reason.to_owned(),
            matched: None,
            hint: String::new(),
        };
        Decision {
            kind: RequestKind::Connect,
            host: host.to_owned(),
            port: 443,
            method: None,
            path: None,
            duration_ms: 0,
            outcome: Outcome::Denied { denial },
        }
    }

    #[test]
    fn repeated_denials_are_counted_and_the_first_of_each_kind_is_recorded() {
        let kept = Arc::new(Kept::default());
        let log = Log::new(kept.clone());
        for _ in 0..100 {
            log.record(denied("a.example", "no rule"));
        }
        log.record(denied("a.example", "denied by rule"));
        log.record(denied("b.example", "no rule"));
        log.flush();
        assert_eq!(kept.records.lock().unwrap().len(), 8 + 2);
        assert_eq!(*kept.collapsed.lock().unwrap(), [("a.example".to_owned(), 92)]);
    }

    #[test]
    fn a_flood_of_distinct_denials_is_recorded_once_each_in_bounded_memory() {
        let kept = Arc::new(Kept::default());
        let log = Log::new(kept.clone());
        for number in 0..3 * REMEMBERED {
            log.record(denied(&format!("h{number}.example"), "no rule"));
            assert!(log.denials.lock().unwrap().len() <= REMEMBERED);
        }
        assert_eq!(kept.records.lock().unwrap().len(), 3 * REMEMBERED);
    }

    #[test]
    fn untrusted_text_is_escaped_and_cut() {
        assert_eq!(escaped(b"a\r\n\0\x1b\xffb", 100), "a\\r\\n\\x00\\x1b\\xffb");
        assert_eq!(escaped(b"abcdef", 3), "abc...");
    }
}
