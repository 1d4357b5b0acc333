//! What may come in from outside: licences by name, packages by number.

use super::Finding;
use crate::metadata::Package;

/// The same list as in `deny.toml`.
const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages in `Cargo.lock`, ours included. Raised on purpose, in the change that needs it.
const PACKAGE_CAP: usize = 180;

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = packages.iter().filter_map(licence).collect();
    if packages.len() > PACKAGE_CAP {
        let message = format!(
            "{} packages, and the cap is {PACKAGE_CAP} (xtask/src/tidy/licences.rs)",
            packages.len()
        );
        findings.push(Finding::fault("Cargo.lock", 0, message));
    }
    findings
}

fn licence(package: &Package) -> Option<Finding> {
    let named = format!("{} {}", package.name, package.version);
    let message = match &package.licence {
        None => format!("{named} names no licence"),
        Some(expression) if permits(expression) => return None,
        Some(expression) => format!("{named}: the licence {expression} is not on the list"),
    };
    Some(Finding::fault("Cargo.lock", 0, message))
}

/// Whether an SPDX expression can be met with the allowed licences alone. The old `MIT/Apache-2.0` spelling means `OR`.
fn permits(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(words: &mut &[&str]) -> bool {
    let mut permitted = all(words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        // Both sides have to be read, whatever the first one says.
        permitted |= all(words);
    }
    permitted
}

fn all(words: &mut &[&str]) -> bool {
    let mut permitted = one(words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        permitted &= one(words);
    }
    permitted
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let permitted = any(words);
            let [")", rest @ ..] = *words else { return false };
            *words = rest;
            permitted
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()) || ALLOWED.contains(licence)
        }
        [licence, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::permits;

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("GPL-3.0-only AND MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR GPL-2.0-only) AND GPL-2.0-only", false),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("(MIT", false),
            ("", false),
        ];
        for (expression, wanted) in cases {
            assert_eq!(permits(expression), wanted, "{expression}");
        }
    }
}
