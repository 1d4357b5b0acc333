//! Rules for any text file: nothing in it may depend on the machine it was written on.

use super::Finding;
use crate::invoke;

/// Hosts of package registries: builds use the client's own settings, whatever mirror those name.
const REGISTRIES: [&[&str]; 7] = [
    &["index", "crates", "io"],
    &["static", "crates", "io"],
    &["registry", "npmjs", "org"],
    &["files", "pythonhosted", "org"],
    &["pypi", "org"],
    &["deb", "debian", "org"],
    &["proxy", "golang", "org"],
];

/// Where such hosts are what the text is about: rules of the product, and the tests and pages that show them.
const ABOUT_HOSTS: [&str; 7] = [
    "crates/",
    "policies/",
    "tests/",
    "docs/reference/",
    "README.md",
    "docs/guide/",
    "SECURITY.md",
];

/// Paths of this machine that must not be in the tree: the checkout itself and the tool's own folders.
pub(super) fn machine_paths() -> Vec<String> {
    let mut paths = vec!["/root/.cargo".to_owned(), "/root/.rustup".to_owned()];
    let root = invoke::root();
    // A checkout right below the root directory has a name that any text may hold.
    if root.components().count() > 2 {
        paths.push(root.display().to_string());
    }
    if let Some(home) = std::env::var_os("HOME") {
        paths.push(format!("{}/.cargo", home.display()));
    }
    paths
}

pub(super) fn check(path: &str, text: &str, machine_paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The rule names what it looks for.
    let itself = path == "xtask/src/tidy/text.rs";
    let about_hosts = ABOUT_HOSTS.iter().any(|prefix| path.starts_with(prefix));
    for (index, line) in text.lines().enumerate() {
        let mut fault = |message: String| findings.push(Finding::fault(path, index + 1, message));
        if let Some(found) = machine_paths.iter().find(|each| !itself && names(line, each)) {
            fault(format!("{found} is a path of the machine this was written on"));
        }
        if let Some(host) = REGISTRIES
            .iter()
            .map(|parts| parts.join("."))
            .find(|host| !about_hosts && line.contains(host))
        {
            fault(format!(
                "{host} is a registry's host: leave it to the client's own settings"
            ));
        }
    }
    findings
}

/// Whether the path stands in the line, and not as the start of a longer name.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let continues = |each: char| each.is_alphanumeric() || each == '-' || each == '_';
        !line[at + path.len()..].starts_with(continues)
    })
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn machine_paths_and_registry_hosts_are_found() {
        let machine = ["/srv/build/pinfold".to_owned()];
        let host = ["pypi", "org"].join(".");
        let cases = [
            (".ci/run", "cd /srv/build/pinfold/x".to_owned(), 1),
            (".ci/run", "cd /srv/build/pinfold-other".to_owned(), 0),
            (".ci/run", format!("curl https://{host}/simple"), 1),
            ("policies/python.toml", format!("allow = ['{host}']"), 0),
        ];
        for (path, text, wanted) in cases {
            assert_eq!(check(path, &text, &machine).len(), wanted, "{path}: {text}");
        }
    }
}
