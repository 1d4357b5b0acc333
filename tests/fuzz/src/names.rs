//! Host names and network rules, as a client or a policy file spells them.

use pinfold_model::net::{Authority, Host, HostName, NetRule};
use pinfold_model::origin::Origin;

/// What a client puts into a request line. A name that is taken is canonical: it reads as itself.
pub(crate) fn authority(bytes: &[u8]) {
    drop(Authority::parse(bytes));
    drop(Host::parse(bytes));
    if let Ok(name) = HostName::parse(bytes) {
        let canonical = name.as_str();
        assert!(canonical.len() <= 253, "longer than DNS permits: {canonical}");
        assert!(
            canonical
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_')),
            "not canonical: {canonical}"
        );
        assert_eq!(
            HostName::parse(canonical.as_bytes()).ok().as_ref(),
            Some(&name),
            "not stable: {canonical}"
        );
    }
}

/// A rule of a policy file that the workspace, and so the agent, may have written.
pub(crate) fn network_rule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let origin = || Origin::flag("--allow");
    let allowed = NetRule::parse_allow(text, None, origin());
    if let Err(error) = &allowed {
        assert!(!error.to_string().is_empty());
    }
    // Whatever may be allowed may be denied too: a deny rule is never the narrower language.
    if allowed.is_ok() {
        assert!(
            NetRule::parse_deny(text, None, origin()).is_ok(),
            "can be allowed, cannot be denied: {text:?}"
        );
    }
}
