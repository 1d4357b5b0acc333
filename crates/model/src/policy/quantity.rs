//! Amounts as people write them: sizes, CPU shares, durations.

use std::time::Duration;

/// Why an amount was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityFault {
    #[error("'{text}' is not a size")]
    Size { text: String },
    #[error("{bytes} bytes are too little for any command")]
    SizeTooSmall { bytes: u64 },
    #[error("'{text}' is not a number of CPUs")]
    Cpus { text: String },
    #[error("'{text}' is not a number of processes")]
    Pids { text: String },
    #[error("'{text}' is not a duration")]
    Duration { text: String },
}

impl QuantityFault {
    /// What to write instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Size { .. } => "write a number with a unit, such as \"4GiB\" or \"512MB\", or a number of bytes",
            Self::SizeTooSmall { .. } => "write at least \"1MiB\"; a number without a unit counts bytes",
            Self::Cpus { .. } => "write a number from 0.01 to 4096 with at most three decimals, such as 2 or 0.5",
            Self::Pids { .. } => "write a whole number from 1 to 4194304",
            Self::Duration { .. } => "write a number with a unit, such as \"90s\", \"15m\", \"2h\" or \"1h30m\"",
        }
    }
}

/// The smallest memory limit that is not taken for a slip.
const SMALLEST_SIZE: u64 = 1024 * 1024;

/// The kernel's highest process number (`PID_MAX_LIMIT`).
const MOST_PIDS: u32 = 4_194_304;

const MOST_CPU_MILLIS: u32 = 4_096_000;

/// Reads a size in bytes. `K`, `KiB` and the like are powers of 1024, `KB` and the like powers of 1000; case does not matter.
///
/// # Errors
/// Anything else, zero, and amounts beyond 64 bits.
pub fn size(text: &str) -> Result<u64, QuantityFault> {
    let fault = || QuantityFault::Size { text: text.to_owned() };
    let (number, unit) = split(text);
    let (binary, power) = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => (true, 0),
        "k" | "kib" => (true, 1),
        "m" | "mib" => (true, 2),
        "g" | "gib" => (true, 3),
        "t" | "tib" => (true, 4),
        "kb" => (false, 1),
        "mb" => (false, 2),
        "gb" => (false, 3),
        "tb" => (false, 4),
        _ => return Err(fault()),
    };
    let scale = (if binary { 1024_u64 } else { 1000 }).pow(power);
    let thousandths = u128::from(thousandths(number).ok_or_else(fault)?);
    let bytes = u64::try_from(thousandths * u128::from(scale) / 1000).map_err(|_| fault())?;
    at_least_smallest(bytes)
}

/// Judges a size that was written as a number of bytes.
///
/// # Errors
/// Negative and very small numbers.
pub fn size_in_bytes(bytes: i64) -> Result<u64, QuantityFault> {
    at_least_smallest(u64::try_from(bytes).map_err(|_| QuantityFault::Size {
        text: bytes.to_string(),
    })?)
}

fn at_least_smallest(bytes: u64) -> Result<u64, QuantityFault> {
    if bytes < SMALLEST_SIZE {
        Err(QuantityFault::SizeTooSmall { bytes })
    } else {
        Ok(bytes)
    }
}

/// Reads a number of CPUs into thousandths of one.
///
/// # Errors
/// Anything but 0.01 to 4096 with at most three decimals.
pub fn cpus(text: &str) -> Result<u32, QuantityFault> {
    let fault = || QuantityFault::Cpus { text: text.to_owned() };
    let millis = thousandths(text)
        .and_then(|millis| u32::try_from(millis).ok())
        .ok_or_else(fault)?;
    if (10..=MOST_CPU_MILLIS).contains(&millis) {
        Ok(millis)
    } else {
        Err(fault())
    }
}

/// Reads a number of processes and threads.
///
/// # Errors
/// Anything but 1 to 4194304.
pub fn pids(text: &str) -> Result<u32, QuantityFault> {
    let number = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    };
    number
        .filter(|pids| (1..=MOST_PIDS).contains(pids))
        .ok_or_else(|| QuantityFault::Pids { text: text.to_owned() })
}

/// Reads a duration: one or more numbers with units `ms`, `s`, `m`, `h`, `d`, the larger unit first.
///
/// # Errors
/// Anything else, zero, and more than a hundred years.
pub fn duration(text: &str) -> Result<Duration, QuantityFault> {
    const UNITS: [(&str, u64); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    const LONGEST: u64 = 36_500 * 86_400_000;
    let fault = || QuantityFault::Duration { text: text.to_owned() };
    let mut rest = text;
    let mut total = 0_u64;
    let mut units = UNITS.as_slice();
    while !rest.is_empty() {
        let (number, after) = split(rest);
        let unit = after
            .split(|next: char| !next.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        let place = units.iter().position(|(name, _)| *name == unit).ok_or_else(fault)?;
        let millis = thousandths(number)
            .and_then(|value| value.checked_mul(units[place].1))
            .ok_or_else(fault)?
            / 1000;
        total = total.checked_add(millis).ok_or_else(fault)?;
        units = &units[place + 1..];
        rest = &after[unit.len()..];
    }
    if (1..=LONGEST).contains(&total) {
        Ok(Duration::from_millis(total))
    } else {
        Err(fault())
    }
}

/// Splits a text into its leading number and the rest, without a single space between.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|next: char| !next.is_ascii_digit() && next != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number, rest.strip_prefix(' ').unwrap_or(rest))
}

/// A decimal number with at most three decimals, times 1000.
fn thousandths(number: &str) -> Option<u64> {
    let (whole, decimals) = number
        .split_once('.')
        .map_or((number, None), |(whole, decimals)| (whole, Some(decimals)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || decimals.is_some_and(|decimals| !digits(decimals) || decimals.len() > 3) {
        return None;
    }
    let fraction: u64 = format!("{:0<3}", decimals.unwrap_or_default()).parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

/// A size as [`size`] reads it.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let (mut amount, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount % 1024 != 0 || amount == 0 {
            break;
        }
        (amount, unit) = (amount / 1024, larger);
    }
    format!("{amount}{unit}")
}

/// A number of CPUs as [`cpus`] reads it.
#[must_use]
pub fn cpus_text(millis: u32) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration as [`duration`] reads it, to the millisecond.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let parts = [
        (millis / 3_600_000, "h"),
        (millis / 60_000 % 60, "m"),
        (millis / 1000 % 60, "s"),
        (millis % 1000, "ms"),
    ];
    parts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly_or_refused() {
        let table = [
            ("4GiB", Some(4 << 30)),
            ("4gib", Some(4 << 30)),
            ("4G", Some(4 << 30)),
            ("4 GiB", Some(4 << 30)),
            ("512MB", Some(512_000_000)),
            ("1.5GiB", Some(3 << 29)),
            ("1048576", Some(1 << 20)),
            ("1TiB", Some(1 << 40)),
            ("0", None),
            ("0GiB", None),
            ("1023KiB", None),
            ("", None),
            ("GiB", None),
            ("-1GiB", None),
            ("+1GiB", None),
            ("4  GiB", None),
            ("4GiBs", None),
            ("1.2345GiB", None),
            ("1.GiB", None),
            ("1e9", None),
            ("99999999999TiB", None),
            ("4ＧiB", None),
        ];
        for (text, expected) in table {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_read_exactly_or_refused() {
        let table = [
            ("90s", Some(90_000)),
            ("2h", Some(7_200_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("500ms", Some(500)),
            ("1d", Some(86_400_000)),
            ("90", None),
            ("", None),
            ("0s", None),
            ("30m1h", None),
            ("1h1h", None),
            ("2 hours", None),
            ("99999999999999999999s", None),
            ("40000d", None),
            ("-1s", None),
        ];
        for (text, expected) in table {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn cpus_and_pids_are_read_exactly_or_refused() {
        let table = [
            ("2", Some(2000)),
            ("0.5", Some(500)),
            ("1.25", Some(1250)),
            ("0", None),
            ("0.001", None),
            ("5000", None),
            ("1.2345", None),
            ("two", None),
            (".5", None),
            ("1e3", None),
        ];
        for (text, expected) in table {
            assert_eq!(cpus(text).ok(), expected, "{text}");
        }
        let table = [
            ("512", Some(512)),
            ("1", Some(1)),
            ("0", None),
            ("-1", None),
            ("+1", None),
            ("4194305", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(pids(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for bytes in [1 << 20, 3 << 29, 512_000_000, (1 << 40) + 1] {
            assert_eq!(size(&size_text(bytes)), Ok(bytes));
        }
        for millis in [10, 500, 1250, 2000, 16_000] {
            assert_eq!(cpus(&cpus_text(millis)), Ok(millis));
        }
        for millis in [1, 999, 1000, 90_061_001, 7_200_000] {
            assert_eq!(
                duration(&duration_text(Duration::from_millis(millis))),
                Ok(Duration::from_millis(millis))
            );
        }
    }
}
