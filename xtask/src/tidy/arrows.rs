//! Which of our crates may know which.
//!
//! `cli → server → runtime → {proxy, sys} → model` and `guest → {sys, model}`. What is not in the table is forbidden:
//! above all, the proxy knows neither the runtime nor the kernel, and the model knows nobody.

use super::Finding;
use crate::metadata::Package;

const ARROWS: [(&str, &[&str]); 9] = [
    ("pinfold", &["pinfold-server", "pinfold-runtime", "pinfold-model"]),
    ("pinfold-server", &["pinfold-runtime", "pinfold-model"]),
    ("pinfold-runtime", &["pinfold-proxy", "pinfold-sys", "pinfold-model"]),
    ("pinfold-proxy", &["pinfold-model"]),
    ("pinfold-guest", &["pinfold-sys", "pinfold-model"]),
    ("pinfold-sys", &["pinfold-model"]),
    ("pinfold-model", &[]),
    ("pinfold-fuzz", &["pinfold-proxy", "pinfold-model"]),
    ("xtask", &[]),
];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let is_ours = |name: &str| packages.iter().any(|package| package.ours && package.name == name);
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.ours) {
        let mut fault =
            |message: String| findings.push(Finding::fault("Cargo.toml", 0, format!("{}: {message}", package.name)));
        let Some(allowed) = arrows_of(&package.name) else {
            fault("a new crate needs a reason and a line in xtask/src/tidy/arrows.rs".to_owned());
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| is_ours(&dependency.name))
        {
            let known = allowed.contains(&dependency.name.as_str());
            let from_tests = dependency.dev && reaches(&package.name, &dependency.name);
            if !(known || from_tests) {
                fault(format!("must not know {}", dependency.name));
            }
        }
    }
    findings
}

fn arrows_of(name: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Tests may use what their crate stands on at any depth; no arrow turns round for them.
fn reaches(from: &str, to: &str) -> bool {
    arrows_of(from)
        .unwrap_or_default()
        .iter()
        .any(|&next| next == to || reaches(next, to))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::metadata::{self, Dependency, Package};

    #[test]
    fn the_arrows_between_the_crates_run_one_way() {
        let graph = metadata::read().expect("cargo metadata runs in the work tree");
        assert_eq!(check(&graph.packages), []);
    }

    #[test]
    fn an_arrow_against_the_design_is_found() {
        let cases = [
            ("pinfold-proxy", "pinfold-sys", false, 1),
            ("pinfold-proxy", "pinfold-runtime", false, 1),
            ("pinfold-model", "pinfold-sys", true, 1),
            ("pinfold", "pinfold-sys", false, 1),
            ("pinfold", "pinfold-sys", true, 0),
            ("pinfold-runtime", "pinfold-sys", false, 0),
            ("pinfold-runtime", "serde", false, 0),
        ];
        for (from, to, dev, wanted) in cases {
            let ours = |name: &str| Package {
                name: name.to_owned(),
                ours: true,
                ..Package::default()
            };
            let mut source = ours(from);
            source.dependencies.push(Dependency {
                name: to.to_owned(),
                dev,
            });
            let mut target = ours(to);
            target.ours = to.starts_with("pinfold");
            assert_eq!(check(&[source, target]).len(), wanted, "{from} to {to}");
        }
        let stranger = Package {
            name: "pinfold-extra".to_owned(),
            ours: true,
            ..Package::default()
        };
        assert_eq!(check(&[stranger]).len(), 1);
    }
}
