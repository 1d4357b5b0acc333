//! `pinfold schema`: the JSON schema of the policy file.

use std::io::{self, Write as _};

use clap::Args;

use crate::policy::LoadError;

/// Print the JSON schema of the policy file, for editors.
#[derive(Args, Clone, Debug)]
pub(crate) struct SchemaArgs {}

/// # Errors
/// The output cannot be written.
pub(crate) fn run(_: &SchemaArgs) -> Result<u8, LoadError> {
    LoadError::unless_written(io::stdout().write_all(pinfold_model::policy::json_schema().as_bytes()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_the_one_that_is_printed() {
        let committed = include_str!("../../../../api/policy.schema.json");
        let printed = pinfold_model::policy::json_schema();
        assert!(
            committed == printed,
            "write it anew: pinfold schema > api/policy.schema.json"
        );
    }
}
