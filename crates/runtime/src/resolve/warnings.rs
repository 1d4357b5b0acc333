//! What the person is told about rules that still let the sandbox start.

use std::collections::BTreeMap;

use pinfold_model::policy::PathRule;

use super::error::RuleName;

/// Sentences, few enough to be read: of what the matches of one pattern gave rise to, one stands for all.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    single: Vec<String>,
    matched: BTreeMap<(String, String), (String, usize)>,
}

impl Warnings {
    pub(super) fn say(&mut self, sentence: String) {
        self.single.push(sentence);
    }

    pub(super) fn say_of_match(&mut self, rule: &PathRule, sentence: String) {
        let key = (RuleName::of(rule).to_string(), format!("{:?}", rule.origin));
        let (said, count) = self.matched.entry(key).or_insert_with(|| (sentence.clone(), 0));
        *count += 1;
        // Folders are listed in no order that means anything.
        if sentence < *said {
            *said = sentence;
        }
    }

    pub(super) fn into_sorted(self) -> Vec<String> {
        let matched = self.matched.into_values().map(|(said, count)| match count - 1 {
            0 => said,
            more => format!("{said}\n  and {more} more of this rule"),
        });
        let mut all: Vec<String> = self.single.into_iter().chain(matched).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
