//! The JSON schema of the policy file, for editors.

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform as _};

use super::document::Document;

/// The schema (JSON Schema, draft 2020-12) as pretty-printed JSON with a final newline.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = schemars::schema_for!(Document);
    // Left out is the default everywhere; TOML has no null to say so.
    RecursiveTransform(|part: &mut Schema| drop(part.remove("default"))).transform(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema)
        .expect("a schema is a JSON value without special numbers or non-text keys");
    text.push('\n');
    text
}
