//! Samples, what is made of them, and the bars they are held against.

use std::fmt;

use serde_json::{Value, json};

/// Samples of one thing measured, all in one unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    pub(super) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { sorted: values }
    }

    pub(super) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// By linear interpolation; NaN when there are no samples.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let Some(last) = self.sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        let place = part * last as f64;
        let (low, high) = (self.sorted[place.floor() as usize], self.sorted[place.ceil() as usize]);
        low + (high - low) * place.fract()
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }
}

/// Which side of the bar is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Good {
    AtMost,
    AtLeast,
}

/// One measured thing.
#[derive(Debug)]
struct Row {
    name: String,
    unit: &'static str,
    samples: Samples,
}

/// One promise and what became of it.
#[derive(Debug)]
struct Bar {
    what: String,
    value: f64,
    good: Good,
    limit: f64,
}

impl Bar {
    fn holds(&self) -> bool {
        match self.good {
            Good::AtMost => self.value <= self.limit,
            Good::AtLeast => self.value >= self.limit,
        }
    }
}

/// The outcome of a benchmark.
#[derive(Debug)]
pub(super) struct Report {
    name: &'static str,
    rows: Vec<Row>,
    bars: Vec<Bar>,
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: Vec::new(),
            bars: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, name: impl Into<String>, unit: &'static str, samples: Samples) {
        self.rows.push(Row {
            name: name.into(),
            unit,
            samples,
        });
    }

    pub(super) fn bar(&mut self, what: impl Into<String>, value: f64, good: Good, limit: f64) {
        self.bars.push(Bar {
            what: what.into(),
            value,
            good,
            limit,
        });
    }

    /// The median of a row, if it was measured.
    pub(super) fn median(&self, name: &str) -> Option<f64> {
        self.rows
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.samples.median())
    }

    /// A ratio of two medians; nothing when one of them was not measured.
    pub(super) fn ratio(&mut self, of: &str, to: &str, good: Good, limit: f64) {
        if let (Some(of_median), Some(to_median)) = (self.median(of), self.median(to)) {
            self.bar(format!("{of} / {to}"), of_median / to_median, good, limit);
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(super) fn json(&self) -> Value {
        let row = |row: &Row| {
            let samples = &row.samples;
            json!({
                "name": row.name, "unit": row.unit, "runs": samples.len(),
                "median": samples.median(), "p10": samples.quantile(0.1), "p90": samples.quantile(0.9),
            })
        };
        let bar = |bar: &Bar| {
            let good = if bar.good == Good::AtMost {
                "at most"
            } else {
                "at least"
            };
            json!({ "what": bar.what, "value": bar.value, "good": good, "limit": bar.limit, "holds": bar.holds() })
        };
        json!({
            "benchmark": self.name,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "bars": self.bars.iter().map(bar).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let wide = self
            .rows
            .iter()
            .map(|row| row.name.chars().count())
            .max()
            .unwrap_or(0)
            .max(12);
        writeln!(f, "{name:wide$}  {:>10}  {:>10}        {:>5}", "median", "p90", "runs")?;
        for row in &self.rows {
            let (median, p90) = (row.samples.median(), row.samples.quantile(0.9));
            let (name, unit, runs) = (&row.name, row.unit, row.samples.len());
            writeln!(f, "{name:wide$}  {median:>10.3}  {p90:>10.3} {unit:<6} {runs:>5}")?;
        }
        for bar in &self.bars {
            let verdict = if bar.holds() { "pass" } else { "FAIL" };
            let sign = if bar.good == Good::AtMost { "≤" } else { "≥" };
            writeln!(f, "{verdict}  {}: {:.3} {sign} {:.3}", bar.what, bar.value, bar.limit)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note  {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Good, Report, Samples};

    #[test]
    fn quantiles_are_interpolated() {
        let samples = Samples::new(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(
            (samples.median(), samples.quantile(1.0), samples.quantile(0.0)),
            (2.5, 4.0, 1.0)
        );
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn a_bar_is_only_held_against_what_was_measured() {
        let mut report = Report::new("start");
        report.row("a", "ms", Samples::new(vec![2.0]));
        report.row("b", "ms", Samples::new(vec![4.0]));
        report.ratio("a", "b", Good::AtMost, 0.5);
        report.ratio("b", "a", Good::AtMost, 1.0);
        report.ratio("a", "missing", Good::AtMost, 1.0);
        let verdicts: Vec<bool> = report.bars.iter().map(super::Bar::holds).collect();
        assert_eq!(verdicts, [true, false]);
    }
}
