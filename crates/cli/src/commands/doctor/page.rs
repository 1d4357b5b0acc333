//! The report as a person reads it: a line for a backend, one for each part of its walls, then what else to know.

use pinfold_runtime::doctor::{Part, Report, State};
use pinfold_server::audit::printable;

/// The reports of all backends.
pub(super) fn page(reports: &[Report]) -> String {
    let mut lines = Vec::new();
    for report in reports {
        add(report, &mut lines);
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&printable(line.trim_end()));
        text.push('\n');
    }
    text
}

fn add(report: &Report, lines: &mut Vec<String>) {
    let name = report.backend;
    match &report.state {
        State::Ready { summary } => lines.push(format!("{name:8}  ready      {summary}")),
        State::NotReady(obstacle) => {
            lines.push(format!("{name:8}  not ready  {}", obstacle.cause));
            lines.extend(obstacle.fix.iter().map(|fix| format!("          fix: {fix}")));
        }
    }
    let width = report.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
    for part in &report.parts {
        add_part(part, width, lines);
    }
    lines.extend(report.warnings.iter().map(|warning| format!("note: {warning}")));
}

fn add_part(part: &Part, width: usize, lines: &mut Vec<String>) {
    let word = match (part.works, part.held.is_empty()) {
        (true, _) => "works",
        (false, false) => "partly",
        (false, true) => "no",
    };
    lines.push(format!("  {:width$}  {word:6}  {}", part.name, part.detail));
    let mut failed = part.failed.iter().peekable();
    while let Some(first) = failed.next() {
        let (reason, fix) = split(&first.reason);
        let mut checks = first.check.clone();
        // What has the same fix is one thing to do.
        while let Some(next) = failed.next_if(|next| fix.is_some() && split(&next.reason).1 == fix) {
            checks = format!("{checks}, {}", next.check);
        }
        lines.push(format!("  {:width$}    {checks}: {reason}", ""));
        lines.extend(fix.map(|fix| format!("  {:width$}    fix: {fix}", "")));
    }
}

/// A message of the library and the hint behind it.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(" hint: ") {
        Some((reason, fix)) => (reason, Some(fix)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use pinfold_runtime::doctor::{Failed, Obstacle};

    use super::*;

    #[test]
    fn a_backend_is_one_line_with_its_parts_below_and_its_fix_beside_the_cause() {
        let part = |name: &str, works, failed: Vec<Failed>| Part {
            name: name.to_owned(),
            works,
            detail: "1 of 2 checks".to_owned(),
            held: vec!["a".to_owned()],
            failed,
        };
        let failed = ["memory", "cpu"].map(|check| Failed {
            check: check.to_owned(),
            reason: "not handed down. hint: ask for it".to_owned(),
        });
        let report = Report {
            backend: "process",
            state: State::NotReady(Obstacle {
                cause: "the kernel refused new namespaces".to_owned(),
                fix: Some("sysctl user.max_user_namespaces=15000".to_owned()),
            }),
            parts: vec![part("files", true, Vec::new()), part("cgroup", false, failed.to_vec())],
            warnings: vec!["you are root".to_owned()],
        };
        assert_eq!(
            page(&[report]),
            "process   not ready  the kernel refused new namespaces\n\
             \u{20}         fix: sysctl user.max_user_namespaces=15000\n\
             \u{20} files   works   1 of 2 checks\n\
             \u{20} cgroup  partly  1 of 2 checks\n\
             \u{20}           memory, cpu: not handed down.\n\
             \u{20}           fix: ask for it\n\
             note: you are root\n"
        );
    }
}
