//! Rules for one Rust file.

use super::Finding;
use super::lexer::code_only;

/// The only crate that may say `unsafe`.
pub(super) const UNSAFE_HOME: &str = "crates/sys/";

/// Lines from which a file smells, and from which it fails.
const SMELL: usize = 500;
const LIMIT: usize = 800;

/// Tables and generated files, which may be as long as they have to be.
const TABLES: [&str; 0] = [];

const DRAWERS: [&str; 8] = [
    "common", "helper", "helpers", "misc", "shared", "types", "util", "utils",
];

/// Lines above an `unsafe` block in which its reason is looked for.
const REASON_WITHIN: usize = 6;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let blanked = code_only(text);
    let code: Vec<&str> = blanked.lines().collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut findings: Vec<Finding> = length(path, lines.len()).into_iter().chain(name(path)).collect();
    let mut in_tests = is_test_file(path);
    for (index, line) in code.iter().enumerate() {
        in_tests |= opens_test_module(&code, index);
        let original = lines.get(index).copied().unwrap_or_default();
        let mut fault = |message: &str| findings.push(Finding::fault(path, index + 1, message));
        if let Some(column) = word(line, "unsafe") {
            if !path.starts_with(UNSAFE_HOME) {
                fault("unsafe code lives in crates/sys only");
            } else if is_block(&line[column..]) && !has_reason(&lines, index) {
                fault("this unsafe block lacks a SAFETY line");
            }
        }
        for unfinished in ["todo!", "unimplemented!"] {
            if line.contains(unfinished) {
                fault(&format!("{unfinished} is not finished work"));
            }
        }
        if in_tests && (line.contains("thread::sleep(") || line.contains("time::sleep(")) {
            fault("a test waits for a condition, it does not sleep");
        }
        if line.contains("#[ignore]") || original.contains("#[ignore = \"\"]") {
            fault("an ignored test names its reason: #[ignore = \"…\"]");
        }
        for drawer in DRAWERS {
            if line
                .trim_start()
                .trim_start_matches("pub ")
                .starts_with(&format!("mod {drawer} {{"))
            {
                fault(&format!("a module named {drawer} says nothing about what is in it"));
            }
        }
    }
    findings
}

fn length(path: &str, lines: usize) -> Option<Finding> {
    if TABLES.contains(&path) || lines <= SMELL {
        return None;
    }
    let message = format!("{lines} lines: files aim at 150 to 250");
    Some(if lines > LIMIT {
        Finding::fault(path, 1, message)
    } else {
        Finding::smell(path, 1, message)
    })
}

fn name(path: &str) -> Option<Finding> {
    let drawer = path
        .split('/')
        .map(|part| part.trim_end_matches(".rs"))
        .find(|part| DRAWERS.contains(part))?;
    Some(Finding::fault(
        path,
        1,
        format!("a module named {drawer} says nothing about what is in it"),
    ))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.starts_with("tests/") || path.contains("/tests/")
}

/// `#[cfg(test)] mod tests {`, which by the order of a file (rule 5) goes on to its end.
fn opens_test_module(code: &[&str], index: usize) -> bool {
    let mut after = code[index..]
        .iter()
        .skip_while(|line| line.trim_start().starts_with("#["));
    let module = after
        .next()
        .is_some_and(|line| line.contains("mod ") && line.trim_end().ends_with('{'));
    code[index].contains("#[cfg(test)]") && module
}

/// Where `wanted` stands as a word of its own.
fn word(line: &str, wanted: &str) -> Option<usize> {
    let is_part = |each: char| each.is_alphanumeric() || each == '_';
    line.match_indices(wanted)
        .map(|(at, _)| at)
        .find(|&at| !line[..at].ends_with(is_part) && !line[at + wanted.len()..].starts_with(is_part))
}

/// `unsafe { … }` and `unsafe impl`; an `unsafe fn` states its contract in its documentation instead.
fn is_block(from_unsafe: &str) -> bool {
    let rest = from_unsafe.trim_start_matches("unsafe").trim_start();
    rest.is_empty() || rest.starts_with('{') || rest.starts_with("impl")
}

fn has_reason(lines: &[&str], index: usize) -> bool {
    lines[index.saturating_sub(REASON_WITHIN)..=index]
        .iter()
        .any(|line| line.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn each_rule_finds_its_fault_and_nothing_else() {
        let cases = [
            ("crates/cli/src/a.rs", "fn f() { unsafe { g() } }", 1),
            (
                "crates/cli/src/a.rs",
                "#![forbid(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";",
                0,
            ),
            ("crates/sys/src/a.rs", "fn f() {\n    unsafe { g() }\n}", 1),
            (
                "crates/sys/src/a.rs",
                "// SAFETY: g has no contract.\nlet a = unsafe { g() };",
                0,
            ),
            ("crates/sys/src/a.rs", "pub unsafe fn f() {}", 0),
            ("crates/cli/src/a.rs", "fn f() { todo!() }", 1),
            ("crates/cli/src/a.rs", "thread::sleep(pause);", 0),
            (
                "crates/cli/src/a.rs",
                "#[cfg(test)]\nmod tests {\n    thread::sleep(pause);\n}",
                1,
            ),
            (
                "crates/cli/src/a.rs",
                "#[cfg(test)]\nfn f() {}\nfn g() {\n    thread::sleep(pause);\n}",
                0,
            ),
            ("crates/cli/src/a/tests.rs", "tokio::time::sleep(pause).await;", 1),
            ("crates/cli/src/a.rs", "#[ignore]\nfn f() {}", 1),
            (
                "crates/cli/src/a.rs",
                "#[ignore = \"needs a second machine\"]\nfn f() {}",
                0,
            ),
            ("crates/cli/src/utils.rs", "", 1),
            ("crates/cli/src/helpers/mod.rs", "", 1),
            ("crates/cli/src/a.rs", "mod common {\n}", 1),
        ];
        for (path, text, wanted) in cases {
            let found = messages(path, text);
            assert_eq!(found.len(), wanted, "{path}: {text}: {found:?}");
        }
    }

    #[test]
    fn a_long_file_smells_and_a_longer_one_fails() {
        let of_lines = |count: usize| check("crates/cli/src/a.rs", &"x\n".repeat(count));
        assert!(of_lines(500).is_empty());
        assert!(of_lines(501)[0].smell);
        assert!(!of_lines(801)[0].smell);
    }
}
