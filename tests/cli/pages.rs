//! Executes the pages of this folder: Markdown whose `console` blocks hold commands and what they say.
//!
//! ```text
//! $ command          run by a shell in the page's workspace; lines that start with "> " go on with it
//! output             standard output and error as they come; [..] stands for any text, a line "..." for any lines
//! ? 7                the exit code, unless it is 0
//! ```
//!
//! The home folder is shown as `/home/me`, the workspace as `/home/me/app`. `PINFOLD_PAGES=write` writes what commands say
//! into the pages, for a person to look at.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::home::Home;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli");

/// A command of a page and what it has to say.
struct Step {
    /// Where the command stands, counted from 1.
    line: usize,
    command: String,
    expected: Vec<String>,
    /// The lines of the page that hold the expectation.
    at: std::ops::Range<usize>,
}

fn execute(name: &str) {
    let path = Path::new(FOLDER).join(name);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let lines: Vec<&str> = page.lines().collect();
    let home = Home::new();
    let mut wrong = String::new();
    let mut written: Vec<String> = Vec::new();
    let mut copied = 0;
    for step in steps(&lines) {
        let said = run(&home, &step.command);
        written.extend(lines[copied..step.at.start].iter().map(|line| (*line).to_owned()));
        copied = step.at.end;
        if matches(&step.expected, &said) {
            written.extend(step.expected);
            continue;
        }
        let (command, expected) = (&step.command, step.expected.join("\n"));
        let _ = write!(
            wrong,
            "\n{name}:{}: $ {command}\n--- expected\n{expected}\n--- said\n{}\n",
            step.line,
            said.join("\n")
        );
        written.extend(said);
    }
    written.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
    if std::env::var_os("PINFOLD_PAGES").is_some_and(|mode| mode == "write") {
        std::fs::write(&path, written.join("\n") + "\n").expect("the page is written");
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            inside = *line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: number + 1,
                command: command.to_owned(),
                expected: Vec::new(),
                at: number + 1..number + 1,
            });
        } else {
            let step = steps.last_mut().expect("a block starts with a command");
            step.at.end = number + 1;
            match line.strip_prefix("> ") {
                Some(more) if step.expected.is_empty() => {
                    step.command = format!("{}\n{more}", step.command);
                    step.at.start = number + 1;
                }
                _ => step.expected.push((*line).to_owned()),
            }
        }
    }
    steps
}

/// What a command says, by line, with its exit code.
fn run(home: &Home, command: &str) -> Vec<String> {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut shell = home.command("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(writer.try_clone().expect("a descriptor"))
        .stderr(writer);
    let mut child = shell.spawn().expect("a shell");
    drop(shell);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).expect("the output is read");
    let status = child.wait().expect("the shell ends");
    let root = home.root().to_str().expect("a plain path");
    let said = String::from_utf8_lossy(&said).replace(root, "");
    let mut lines: Vec<String> = said.lines().map(|line| line.trim_end().to_owned()).collect();
    match status.code() {
        Some(0) => {}
        Some(code) => lines.push(format!("? {code}")),
        None => lines.push(format!("? {status}")),
    }
    lines
}

fn matches<E: AsRef<str>, S: AsRef<str>>(expected: &[E], said: &[S]) -> bool {
    match expected.split_first() {
        None => said.is_empty(),
        Some((any, rest)) if any.as_ref() == "..." => (0..=said.len()).any(|skipped| matches(rest, &said[skipped..])),
        Some((line, rest)) => said
            .split_first()
            .is_some_and(|(first, others)| matches_line(line.as_ref(), first.as_ref()) && matches(rest, others)),
    }
}

fn matches_line(expected: &str, said: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == said,
        Some((start, rest)) => said.strip_prefix(start).is_some_and(|said| {
            said.char_indices()
                .map(|(at, _)| at)
                .chain([said.len()])
                .any(|at| matches_line(rest, &said[at..]))
        }),
    }
}

macro_rules! pages {
    ($($test:ident $file:literal,)*) => {
        $(#[test]
        fn $test() {
            execute($file);
        })*

        #[test]
        fn every_page_is_executed() {
            let listed = [$($file),*];
            for entry in std::fs::read_dir(FOLDER).expect("the folder is there") {
                let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
                assert!(!name.ends_with(".md") || listed.contains(&name.as_str()), "{name} is not executed");
            }
        }
    };
}

pages! {
    the_page_about_running_holds "run.md",
    the_page_about_policies_holds "policy.md",
    the_page_about_errors_holds "errors.md",
    the_page_about_the_network_holds "network.md",
    the_page_about_dry_runs_holds "dry-run.md",
    the_page_about_help_holds "help.md",
    the_page_about_explanations_holds "explain.md",
}

#[test]
fn wildcards_stand_for_any_text_and_any_lines() {
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["...", "d"], &["d"]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert!(matches_line("x [..] y [..]", "x 1 y "));
    assert!(!matches_line("x [..] y", "x 1 z"));
}
