//! Policy files and imported settings, as the workspace may hold them.

use std::path::Path;

use pinfold_model::origin::{Origin, Scope};
use pinfold_model::policy::srt::{ImportContext, UnknownKeys, import};
use pinfold_model::policy::{Authority, Base, Layer, PathAccess, Policy, SourceName, merge};

/// An untrusted file never permits what the trusted layers before it did not; what is printed loads again.
pub(crate) fn policy_file(bytes: &[u8]) {
    let base = Base {
        folder: "/srv/app".into(),
        home: Some("/home/user".into()),
    };
    let workspace = SourceName::File {
        path: "/srv/app/pinfold.toml".into(),
        scope: Scope::Workspace,
    };
    if let Ok(layer) = Layer::parse(bytes, &workspace, &base)
        && let Ok(policy) = merge(vec![trusted(), layer])
    {
        assert_not_loosened(&policy);
    }
    let user = SourceName::File {
        path: "/home/user/policy.toml".into(),
        scope: Scope::Trusted,
    };
    let Ok(layer) = Layer::parse(bytes, &user, &base) else {
        return;
    };
    let Ok(policy) = merge(vec![layer]) else { return };
    let printed = policy.to_toml();
    if let Err(error) = Layer::parse(printed.as_bytes(), &user, &base) {
        panic!("printed, but not read again: {error}\n{printed}");
    }
}

/// An imported settings file never opens every host, and says what is wrong with it in whole sentences.
pub(crate) fn settings_file(bytes: &[u8]) {
    let context = ImportContext {
        file: Path::new("settings.json"),
        home: Path::new("/home/user"),
        cwd: Path::new("/srv/app"),
        unknown_keys: UnknownKeys::Refuse,
        allow_disabled_filesystem: false,
    };
    match import(bytes, &context) {
        Ok(imported) => {
            assert!(imported.layer.network.allow_all.is_none(), "opened every host");
            drop(merge(vec![imported.layer]));
        }
        Err(error) => assert!(!error.faults.is_empty() && !error.to_string().is_empty()),
    }
}

fn trusted() -> Layer {
    let rule = pinfold_model::net::NetRule::parse_allow("example.com", None, Origin::flag("--allow"));
    let mut layer = Layer::new(Authority::Full);
    layer.network.allow.extend(rule);
    layer
}

fn assert_not_loosened(policy: &Policy) {
    assert!(policy.network.allow_all.is_none(), "opened every host");
    assert!(policy.lift.is_empty(), "lifted a protection");
    let writes = policy.filesystem.iter().filter(|rule| rule.access == PathAccess::Write);
    assert_eq!(writes.count(), 0, "opened a path for writing");
    assert!(policy.git_safe_directories.is_empty(), "made git trust a folder");
    let before = merge(vec![trusted()]).unwrap_or_default();
    for rule in &policy.network.allow {
        assert!(
            before.network.allow.iter().any(|each| each.host == rule.host),
            "permitted a host: {rule:?}"
        );
    }
}
