//! What a sandboxed run said, and how the attempts in it ended.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code, or 1000 and the signal that ended pinfold itself.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let signal = || 1000 + output.status.signal().unwrap_or(0);
        Self {
            code: output.status.code().unwrap_or_else(signal),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// How an attempt ended.
    pub(crate) fn outcome(&self, name: &str) -> &str {
        let line = self.stdout.lines().find_map(|line| {
            let (found, outcome) = line.split_once('\t')?;
            (found == name).then_some(outcome)
        });
        line.unwrap_or_else(|| panic!("the attack did not get to '{name}': {self:?}"))
    }

    /// Every attempt of the attack, in order.
    pub(crate) fn outcomes(&self) -> Vec<(&str, &str)> {
        self.stdout
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter(|(name, _)| *name != "the end")
            .collect()
    }

    /// Checks attempts against the outcomes that are right; several are separated by `|`.
    #[track_caller]
    pub(crate) fn expect(&self, table: &[(&str, &str)]) {
        let wrong: Vec<String> = table
            .iter()
            .filter(|(name, right)| !right.split('|').any(|right| right == self.outcome(name)))
            .map(|(name, right)| format!("{name}: {} instead of {right}", self.outcome(name)))
            .collect();
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), self.stderr);
    }

    /// Checks that every attempt ended in one of the errors, and that there was one.
    #[track_caller]
    pub(crate) fn expect_all(&self, errors: &str) {
        let wrong: Vec<_> = self
            .outcomes()
            .into_iter()
            .filter(|(_, outcome)| !errors.split('|').any(|right| right == *outcome))
            .collect();
        assert!(!self.outcomes().is_empty(), "nothing was tried: {self:?}");
        assert!(wrong.is_empty(), "not one of {errors}: {wrong:?}\n{}", self.stderr);
    }

    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// An attack that broke off has proven nothing.
    #[track_caller]
    pub(crate) fn assert_ran_to_its_end(&self) {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(self.stdout.contains("the end\treached"), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn assert_never_says(&self, secret: &str) {
        assert!(
            !self.stdout.contains(secret) && !self.stderr.contains(secret),
            "{self:?}"
        );
    }
}
