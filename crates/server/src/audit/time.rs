//! UTC time stamps as RFC 3339 with milliseconds, without a calendar library.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// `2026-01-31T23:59:59.123Z`. Times before 1970 are written as 1970.
#[must_use]
pub fn format_utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / DAY);
    let second = since.as_secs() % DAY;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Reads `2026-01-31`, `2026-01-31T23:59Z`, `…T23:59:59Z` and `…T23:59:59.123Z`; UTC only.
#[must_use]
pub fn parse_utc(text: &str) -> Option<SystemTime> {
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date, clock.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let mut fields = date.split('-');
    let (year, month, day) = (
        number(fields.next()?, 4)?,
        number(fields.next()?, 2)?,
        number(fields.next()?, 2)?,
    );
    if fields.next().is_some()
        || year < 1970
        || !(1..=12).contains(&month)
        || day == 0
        || day > month_length(year, month)
    {
        return None;
    }
    let (clock, millis) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, number(fraction, 3)?),
        None => (clock, 0),
    };
    let mut fields = clock.split(':');
    let (hour, minute) = (number(fields.next()?, 2)?, number(fields.next()?, 2)?);
    let second = fields.next().map_or(Some(0), |s| number(s, 2))?;
    if fields.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
}

fn number(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn month_length(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Year, month and day of a count of days since 1970. Years are counted from March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Days since 1970 of a valid date from 1970 on.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(format_utc(time), text);
            assert_eq!(parse_utc(text), Some(time));
        }
    }

    #[test]
    fn every_day_of_four_centuries_reads_back() {
        for day in 0..146_097 {
            let time = UNIX_EPOCH + Duration::from_secs(day * DAY);
            assert_eq!(parse_utc(&format_utc(time)), Some(time));
        }
    }

    #[test]
    fn short_forms_are_read_and_nonsense_is_not() {
        assert_eq!(parse_utc("2024-02-29"), parse_utc("2024-02-29T00:00:00.000Z"));
        assert_eq!(parse_utc("2024-02-29T10:20Z"), parse_utc("2024-02-29 10:20:00Z"));
        for text in [
            "",
            "2023-02-29",
            "2024-13-01",
            "2024-1-01",
            "2024-01-01T00:00:00",
            "2024-01-01T24:00:00Z",
            "1969-12-31",
            "+024-01-01",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }
}
