//! What the proxy costs: allowed plain HTTP on one keep-alive connection, from inside a sandbox, next to the same bytes
//! over loopback and through another sandbox's proxy.

use std::process::Command;

use serde_json::Value;

use super::report::{Good, Report, Samples};
use super::{Options, Places, fresh_folder, http, peers};
use crate::{Outcome, invoke};

const ROUNDS: usize = 5;
const REQUESTS: &str = "500";

/// Body size and how many of them in a row.
const BODIES: [(&str, &str, &str); 3] = [
    ("65536:200", "65536", "64 KiB"),
    ("16777216:8", "16777216", "16 MiB"),
    ("1073741824:1", "1073741824", "1 GiB"),
];

/// One way to the server, and what was measured on it.
struct Way {
    name: &'static str,
    command: Command,
    latencies: Vec<f64>,
    throughputs: [Vec<f64>; BODIES.len()],
}

pub(super) fn measure(places: &Places, options: &Options) -> Outcome<Report> {
    let workspace = fresh_folder(&places.scratch, "proxy")?;
    let port = http::serve()?.to_string();
    let mut report = Report::new("proxy");
    let client = |mut command: Command, kind: &str| {
        command
            .arg(&places.xtask)
            .args(["bench-client", &port, kind, REQUESTS])
            .args(BODIES.map(|(body, ..)| body));
        command
    };
    let mut inside = places.pinfold_run(&workspace);
    inside
        .args(["--allow", &format!("127.0.0.1:{port}"), "--read"])
        .arg(&places.xtask)
        .arg("--");
    let mut ways = vec![
        Way::new("direct", client(Command::new("env"), "direct")),
        Way::new("pinfold", client(inside, "proxy")),
    ];
    match peers::Srt::find(places) {
        Ok(srt) => ways.push(Way::new("srt", client(srt.command(&workspace), "proxy"))),
        Err(reason) => report.note(reason),
    }
    for _ in 0..options.runs.unwrap_or(ROUNDS) {
        let mut broken = None;
        for (index, way) in ways.iter_mut().enumerate() {
            match way.run() {
                Err(reason) if way.name == "srt" => broken = Some((index, reason)),
                other => other?,
            }
        }
        if let Some((index, reason)) = broken {
            ways.remove(index);
            report.note(format!("srt was left out: {reason}"));
        }
    }
    for way in ways {
        report.row(format!("{} latency", way.name), "ms", Samples::new(way.latencies));
        for ((_, _, size), rates) in BODIES.into_iter().zip(way.throughputs) {
            report.row(format!("{} {size}", way.name), "MB/s", Samples::new(rates));
        }
    }
    let (_, _, largest) = BODIES[BODIES.len() - 1];
    report.ratio(
        &format!("pinfold {largest}"),
        &format!("direct {largest}"),
        Good::AtLeast,
        0.7,
    );
    report.ratio(
        &format!("pinfold {largest}"),
        &format!("srt {largest}"),
        Good::AtLeast,
        4.0,
    );
    if let (Some(ours), Some(direct)) = (report.median("pinfold latency"), report.median("direct latency")) {
        report.bar("added median latency, ms", ours - direct, Good::AtMost, 0.5);
    }
    Ok(report)
}

impl Way {
    fn new(name: &'static str, command: Command) -> Self {
        Self {
            name,
            command,
            latencies: Vec::new(),
            throughputs: Default::default(),
        }
    }

    fn run(&mut self) -> Outcome {
        let text = invoke::output(&mut self.command)?;
        let line = text.lines().last().unwrap_or_default();
        let measured: Value = serde_json::from_str(line).map_err(|error| format!("{}: {error}: {text}", self.name))?;
        let latencies = measured["latency"].as_array().map_or(&[][..], Vec::as_slice);
        self.latencies.extend(latencies.iter().filter_map(Value::as_f64));
        for ((_, size, _), rates) in BODIES.iter().zip(&mut self.throughputs) {
            rates.extend(measured["throughput"][size].as_f64());
        }
        Ok(())
    }
}
