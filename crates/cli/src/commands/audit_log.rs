//! `pinfold policy log`: what was allowed and denied, from the audit log.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Args;
use pinfold_model::verdict::{Decision, Outcome as Became, RequestKind};
use pinfold_server::audit::{
    AuditError, Damaged, Event, Filter, HostFilter, Outcome, Reader, Record, parse_utc, printable, printable_path,
    verify,
};

const OK: u8 = 0;
const IO_ERROR: u8 = 74;

/// Characters of a table cell; what is longer is cut and marked.
const WIDEST_CELL: usize = 64;

const HEADINGS: [&str; 7] = ["TIME", "SANDBOX", "VERDICT", "KIND", "HOST", "METHOD", "RULE OR REASON"];

/// Show what was allowed and denied.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArgs {
    /// Show what was denied (with --allowed: both).
    #[arg(long)]
    denied: bool,
    /// Show what was allowed.
    #[arg(long)]
    allowed: bool,
    /// Only this sandbox.
    #[arg(long, value_name = "ID")]
    sandbox: Option<String>,
    /// Only requests to this host and the names below it; `*` matches any run of characters.
    #[arg(long, value_name = "HOST")]
    host: Option<HostFilter>,
    /// Only records since then: an age such as 30m, 12h or 7d, or a time such as 2026-01-31T10:00Z.
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    since: Option<Since>,
    /// Show at most the last N records.
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Print the records as JSON, one a line.
    #[arg(long)]
    json: bool,
    /// Check the hash chain of the whole log instead of showing records.
    #[arg(long, conflicts_with_all = ["denied", "allowed", "sandbox", "host", "since", "last", "json"])]
    verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Age(Duration),
    Time(SystemTime),
}

/// Carries the command out on the log kept in `directory` and returns the exit code.
pub(crate) fn run(args: &LogArgs, directory: &Path) -> u8 {
    let mut out = BufWriter::new(io::stdout().lock());
    let done = print(args, directory, SystemTime::now(), &mut out, &mut io::stderr()).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match done {
        Ok(code) => code,
        // The reader of the pipe has seen enough.
        Err(Failure::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(failure) => {
            // Nothing is left to tell when standard error is gone too.
            let _ = writeln!(io::stderr(), "pinfold: {failure}");
            IO_ERROR
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Log(#[from] AuditError),
    #[error("the records could not be printed: {0}; hint: check where standard output leads")]
    Output(#[from] io::Error),
}

fn print(
    args: &LogArgs,
    directory: &Path,
    now: SystemTime,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<u8, Failure> {
    let reader = Reader::open(directory)?;
    if args.verify {
        return print_check(reader, directory, out);
    }
    let (records, damaged) = reader.last(&args.filter(now), args.last)?;
    if args.json {
        for record in &records {
            writeln!(out, "{}", printable(&record.line))?;
        }
    } else if records.is_empty() {
        writeln!(err, "pinfold: no record matches in {}", printable_path(directory))?;
    } else {
        print_table(&records, out)?;
    }
    if let Some(first) = damaged.first() {
        let place = place(first);
        writeln!(
            err,
            "pinfold: the audit log has lines that are no intact record, the first at {place}; they were left out; \
             hint: `pinfold policy log --verify` tells a crash from a change"
        )?;
    }
    Ok(OK)
}

impl LogArgs {
    fn filter(&self, now: SystemTime) -> Filter {
        let mut outcomes = Vec::new();
        if self.denied {
            outcomes.push(Outcome::Denied);
        }
        if self.allowed {
            outcomes.extend([Outcome::Allowed, Outcome::Failed]);
        }
        let since = self.since.map(|since| match since {
            Since::Time(time) => time,
            Since::Age(age) => now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
        });
        Filter {
            sandbox: self.sandbox.clone(),
            outcomes,
            host: self.host.clone(),
            since,
        }
    }
}

fn print_check(reader: Reader, directory: &Path, out: &mut impl Write) -> Result<u8, Failure> {
    let found = verify(reader)?;
    if let (Some(first), Some(last)) = (&found.first, &found.last) {
        let (first, last) = (printable(first), printable(last));
        writeln!(
            out,
            "{} intact records in {} files, from {first} to {last}",
            found.records, found.files
        )?;
    } else {
        writeln!(out, "no intact record in {}", printable_path(directory))?;
    }
    for torn in &found.torn {
        writeln!(
            out,
            "{}: torn by a crash, and noticed by the log when it went on",
            place(torn)
        )?;
    }
    let Some(broken) = found.broken else {
        writeln!(out, "the chain is whole")?;
        return Ok(OK);
    };
    writeln!(
        out,
        "{}:{}: the chain is broken here: {}",
        printable_path(&broken.file),
        broken.line,
        broken.what
    )?;
    writeln!(
        out,
        "hint: what comes before this line is as it was written; trust nothing from there on"
    )?;
    Ok(IO_ERROR)
}

fn place(at: &Damaged) -> String {
    format!("{}:{}", printable_path(&at.file), at.line)
}

fn print_table(records: &[Record], out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<[String; 7]> = records.iter().map(row).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    print_row(HEADINGS, &widths, out)?;
    for row in &rows {
        print_row(row.each_ref().map(String::as_str), &widths, out)?;
    }
    Ok(())
}

fn print_row(cells: [&str; 7], widths: &[usize; 7], out: &mut impl Write) -> io::Result<()> {
    let line: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    writeln!(out, "{}", line.join("  ").trim_end())
}

fn row(record: &Record) -> [String; 7] {
    let [verdict, kind, host, method, why] = match &record.event {
        Event::Network(decision) => network(decision),
        Event::Started { backend } => cells("allowed", "start", format!("{backend} backend")),
        Event::StartRefused { layer, step, reason } => cells("denied", "start", format!("{layer}, {step}: {reason}")),
        Event::SelfTestFailed { check, reason } => cells("denied", "self-test", format!("{check}: {reason}")),
        Event::Quarantined { path, moved_to } => cells("denied", "quarantine", format!("{path}, now {moved_to}")),
        Event::AllowAll { origin } => cells("", "start", format!("every host is open: {origin}")),
        Event::ChainRestarted { .. } => cells("", "log", "damaged lines before this record".to_owned()),
        Event::Unknown => cells("", "", "an event of a newer version of pinfold".to_owned()),
    };
    [
        record.time.clone(),
        record.sandbox.clone(),
        verdict,
        kind,
        host,
        method,
        why,
    ]
    .map(|cell| cut(&printable(&cell)))
}

fn cells(verdict: &str, kind: &str, why: String) -> [String; 5] {
    [verdict.to_owned(), kind.to_owned(), String::new(), String::new(), why]
}

fn network(decision: &Decision) -> [String; 5] {
    let kind = match decision.kind {
        RequestKind::Http => "http",
        RequestKind::Connect => "connect",
        RequestKind::Socks => "socks",
    };
    let (verdict, why) = match &decision.outcome {
        Became::Allowed { matched, .. } => (Outcome::Allowed, format!("{}, {}", matched.rule, matched.origin)),
        Became::Failed { matched, error } => (Outcome::Failed, format!("{error} ({})", matched.rule)),
        Became::Denied { denial } => (
            Outcome::Denied,
            denial.matched.as_ref().map_or_else(
                || denial.reason.clone(),
                |matched| format!("{}: {}, {}", denial.reason, matched.rule, matched.origin),
            ),
        ),
    };
    let host = if decision.host.contains(':') {
        format!("[{}]", decision.host)
    } else {
        decision.host.clone()
    };
    [
        verdict.to_string(),
        kind.to_owned(),
        format!("{host}:{}", decision.port),
        decision.method.clone().unwrap_or_default(),
        why,
    ]
}

fn cut(cell: &str) -> String {
    if cell.chars().count() <= WIDEST_CELL {
        return cell.to_owned();
    }
    cell.chars().take(WIDEST_CELL - 1).chain(['…']).collect()
}

fn parse_since(text: &str) -> Result<Since, String> {
    if let Some(time) = parse_utc(text) {
        return Ok(Since::Time(time));
    }
    let wrong =
        || "write an age such as 30m, 12h or 7d, or a UTC time such as 2026-01-31 or 2026-01-31T10:00Z".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let count: u64 = if all_digits {
        digits.parse().map_err(|_| wrong())?
    } else {
        return Err(wrong());
    };
    Ok(Since::Age(Duration::from_secs(count.saturating_mul(seconds))))
}

#[cfg(test)]
mod tests;
