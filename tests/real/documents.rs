//! What the documents say, held against the program.

use std::collections::BTreeSet;

use crate::desk::{Desk, said};

const README: &str = include_str!("../../README.md");
const README_ZH: &str = include_str!("../../README.zh-CN.md");
const POLICY: &str = include_str!("../../docs/guide/policy.md");
const SCHEMA: &str = include_str!("../../api/policy.schema.json");

/// The content of the fenced blocks of a language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let start = format!("```{language}\n");
    let blocks = text.split(start.as_str()).skip(1);
    blocks.map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// The dotted keys of a policy file.
fn keys() -> BTreeSet<String> {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let mut keys = BTreeSet::new();
    for (section, value) in schema["properties"].as_object().unwrap() {
        let reference = value["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        match reference.and_then(|name| schema["$defs"][name]["properties"].as_object()) {
            Some(inner) => keys.extend(inner.keys().map(|key| format!("{section}.{key}"))),
            None => {
                keys.insert(section.clone());
            }
        }
    }
    keys
}

#[test]
fn the_policy_of_the_readme_is_valid_in_both_languages() {
    for readme in [README, README_ZH] {
        let blocks = blocks(readme, "toml");
        assert_eq!(blocks.len(), 1);
        let desk = Desk::new();
        desk.file("policy.toml", blocks[0]);
        let mut show = desk.outside(env!("CARGO_BIN_EXE_pinfold"));
        let said = said(show.args(["policy", "show", "--config", "policy.toml"]));
        assert!(
            said.code == Some(0) && said.out.contains("10.1.0.0/16:5432"),
            "{said:?}"
        );
    }
}

#[test]
fn the_readme_says_the_same_in_both_languages() {
    for language in ["sh", "text"] {
        assert_eq!(blocks(README, language), blocks(README_ZH, language));
    }
    let headings = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('|')).count();
    let points = |text: &str| text.lines().filter(|line| line.starts_with("- ")).count();
    for count in [headings, rows, points] {
        assert_eq!(count(README), count(README_ZH));
    }
}

#[test]
fn the_page_about_the_policy_has_every_key_and_flag_and_no_other() {
    let keys = keys();
    assert!(keys.contains("filesystem.hide") && keys.contains("version"), "{keys:?}");
    let table = POLICY.split("## Keys of a policy file").nth(1).unwrap();
    let table = table.split("\n### ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<String> = rows
        .filter_map(|row| row.split('`').next())
        .map(str::to_owned)
        .collect();
    assert_eq!(told, keys);

    let desk = Desk::new();
    let help = said(
        desk.outside(env!("CARGO_BIN_EXE_pinfold"))
            .args(["policy", "show", "--help"]),
    )
    .out;
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    let output = ["--help", "--json"];
    for flag in flags.filter(|flag| !output.contains(flag)) {
        assert!(POLICY.contains(flag), "{flag} is not told");
    }
}

#[test]
fn the_page_about_the_policy_has_every_group_and_profile() {
    let desk = Desk::new();
    let mut pinfold = desk.pinfold();
    let refused = said(pinfold.args(["--lift", "zzzzzzzz", "--", "true"]));
    let groups = refused.err.split("the groups are ").nth(1).unwrap();
    for group in groups.trim().split(", ") {
        assert!(POLICY.contains(&format!("| `{group}` |")), "{group} is not told");
    }
    let profiles = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies")).unwrap();
    for profile in profiles {
        let name = profile
            .unwrap()
            .path()
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        assert!(POLICY.contains(&format!("`{name}`")), "{name} is not told");
    }
}
