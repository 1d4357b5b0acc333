//! Links in Markdown files have to lead somewhere.

use super::Finding;

/// `exists` answers for a path relative to the root of the work tree.
pub(super) fn check(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for target in targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:") || file.is_empty();
            if !elsewhere && !resolve(path, file).is_some_and(|file| exists(&file)) {
                findings.push(Finding::fault(
                    path,
                    index + 1,
                    format!("the link to {target} leads nowhere"),
                ));
            }
        }
    }
    findings
}

/// The targets of `[words](target)` in a line, code spans left out; words that are code are split off with them, the
/// target stays.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        let is_code = index % 2 == 1;
        if is_code {
            continue;
        }
        for (at, _) in part.match_indices("](") {
            let rest = &part[at + 2..];
            found.extend(rest.find(')').map(|end| &rest[..end]));
        }
    }
    found
}

/// Relative to the folder of the page; none when it climbs out of the tree.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        let cases = [
            ("docs/a.md", "see [b](b.md#part)", 0),
            ("docs/a.md", "see [`b`](b.md) and [c](c.md)", 1),
            ("docs/a.md", "see [up](../README.md)", 0),
            ("docs/a.md", "see [out](../../etc/passwd)", 1),
            ("docs/a.md", "see [web](https://example.com/x) and [here](#part)", 0),
            ("docs/a.md", "```\n[x](missing.md)\n```", 0),
            ("docs/a.md", "`[x](missing.md)`", 0),
        ];
        let exists = |path: &str| ["docs/b.md", "README.md"].contains(&path);
        for (path, text, wanted) in cases {
            assert_eq!(check(path, text, exists).len(), wanted, "{text}");
        }
    }
}
