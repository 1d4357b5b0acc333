//! Reading objects key by key: types are checked where a key is taken, and what nobody took is unknown.

use super::super::error::harmless_text;
use super::super::spelling::closest;
use super::json::Value;
use super::{Fault, UnknownKeys};

/// A file that is wrong throughout is not answered with a list as long as itself.
const MOST_FAULTS: usize = 1000;
const MOST_NOTES: usize = 200;

/// Unknown keys of one object that a suggestion is looked for.
const MOST_UNKNOWN: usize = 50;

/// What has been found so far.
pub(super) struct Report {
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<String>,
    unknown_keys: UnknownKeys,
}

impl Report {
    pub(super) fn new(unknown_keys: UnknownKeys) -> Self {
        Self {
            faults: Vec::new(),
            notes: Vec::new(),
            unknown_keys,
        }
    }

    pub(super) fn fault(&mut self, key_path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let (key_path, message, hint) = match self.faults.len() {
            0..MOST_FAULTS => (key_path, message.into(), hint.into()),
            MOST_FAULTS => (
                "",
                "there are more faults than are listed".to_owned(),
                "mend these first".to_owned(),
            ),
            _ => return,
        };
        self.faults.push(Fault {
            key_path: key_path.to_owned(),
            message: harmless_text(&message),
            hint: harmless_text(&hint),
        });
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        match self.notes.len() {
            0..MOST_NOTES => self.notes.push(harmless_text(&note.into())),
            MOST_NOTES => self
                .notes
                .push("There are more notes about the settings file than are listed.".to_owned()),
            _ => {}
        }
    }

    /// A key that is accepted without effect.
    pub(super) fn ignored(&mut self, at: &At<'_>, why: &str) {
        self.note(format!("`{}` has no effect: {why}.", at.key));
    }
}

/// Text of the file for a message.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().count() <= SHOWN {
        return format!("\"{text}\"");
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("\"{head}…\"")
}

/// A value with its key path.
#[derive(Clone, Debug)]
pub(super) struct At<'v> {
    pub(super) key: String,
    value: &'v Value,
}

impl<'v> At<'v> {
    fn wrong(&self, wanted: &str, report: &mut Report) {
        report.fault(
            &self.key,
            format!("the value must be {wanted}, but it is {}", self.value.kind()),
            format!("write {wanted}"),
        );
    }

    pub(super) fn bool(&self, report: &mut Report) -> Option<bool> {
        if let Value::Bool(value) = self.value {
            return Some(*value);
        }
        self.wrong("a boolean", report);
        None
    }

    pub(super) fn string(&self, report: &mut Report) -> Option<&'v str> {
        if let Value::String(value) = self.value {
            return Some(value);
        }
        self.wrong("a string", report);
        None
    }

    pub(super) fn integer(&self, least: u16, most: u16, report: &mut Report) -> Option<u16> {
        let Value::Number(number) = self.value else {
            self.wrong("a number", report);
            return None;
        };
        let found = (least..=most).find(|value| f64::from(*value) == *number);
        if found.is_none() {
            report.fault(
                &self.key,
                format!("{number} is not a whole number from {least} to {most}"),
                format!("write a number from {least} to {most}"),
            );
        }
        found
    }

    pub(super) fn list(&self, report: &mut Report) -> Option<Vec<At<'v>>> {
        let Value::Array(items) = self.value else {
            self.wrong("a list", report);
            return None;
        };
        Some(
            items
                .iter()
                .enumerate()
                .map(|(index, value)| At {
                    key: format!("{}[{index}]", self.key),
                    value,
                })
                .collect(),
        )
    }

    /// The strings of a list with their places; items of other types are faults.
    pub(super) fn strings(&self, report: &mut Report) -> Option<Vec<(String, &'v str)>> {
        let items = self.list(report)?;
        Some(
            items
                .into_iter()
                .filter_map(|item| item.string(report).map(|text| (item.key, text)))
                .collect(),
        )
    }

    pub(super) fn section(&self, report: &mut Report) -> Option<Section<'v>> {
        let fields = self.fields(report)?;
        Some(Section {
            key: self.key.clone(),
            fields,
            known: Vec::new(),
            strict: false,
        })
    }

    /// The entries of a map whose keys are free.
    pub(super) fn entries(&self, report: &mut Report) -> Option<Vec<(&'v str, At<'v>)>> {
        let fields = self.fields(report)?;
        Some(
            fields
                .into_iter()
                .map(|(name, value)| {
                    (
                        name,
                        At {
                            key: format!("{}[{}]", self.key, quoted(name)),
                            value,
                        },
                    )
                })
                .collect(),
        )
    }

    fn fields(&self, report: &mut Report) -> Option<Vec<(&'v str, &'v Value)>> {
        let Value::Object(fields) = self.value else {
            self.wrong("an object", report);
            return None;
        };
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let mut doubled: Vec<&str> = names
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .collect();
        doubled.dedup();
        for name in doubled {
            let key = below(&self.key, name);
            report.fault(
                &key,
                "the key stands more than once in its object, and only one could count",
                "keep one of them",
            );
        }
        Some(fields.iter().map(|(name, value)| (name.as_str(), value)).collect())
    }
}

/// An object with the keys that the format gives it.
pub(super) struct Section<'v> {
    key: String,
    fields: Vec<(&'v str, &'v Value)>,
    known: Vec<&'static str>,
    /// Unknown keys are errors of the format itself here.
    strict: bool,
}

impl<'v> Section<'v> {
    pub(super) fn root(value: &'v Value, report: &mut Report) -> Option<Self> {
        At {
            key: String::new(),
            value,
        }
        .section(report)
    }

    pub(super) fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    pub(super) fn key(&self, name: &str) -> String {
        below(&self.key, name)
    }

    /// The value of a key, if it is there; of duplicates the first.
    pub(super) fn take(&mut self, name: &'static str) -> Option<At<'v>> {
        self.known.push(name);
        let (_, value) = self.fields.iter().find(|(field, _)| *field == name)?;
        Some(At {
            key: self.key(name),
            value,
        })
    }

    /// The value of a key that has to be there.
    pub(super) fn require(&mut self, name: &'static str, report: &mut Report) -> Option<At<'v>> {
        let found = self.take(name);
        if found.is_none() {
            report.fault(
                &self.key(name),
                "the key is required and missing",
                "add it; an empty list is a valid value for a list",
            );
        }
        found
    }

    pub(super) fn bool(&mut self, name: &'static str, report: &mut Report) -> Option<bool> {
        self.take(name)?.bool(report)
    }

    pub(super) fn string(&mut self, name: &'static str, report: &mut Report) -> Option<&'v str> {
        self.take(name)?.string(report)
    }

    pub(super) fn strings(&mut self, name: &'static str, report: &mut Report) -> Option<Vec<(String, &'v str)>> {
        self.take(name)?.strings(report)
    }

    pub(super) fn section(&mut self, name: &'static str, report: &mut Report) -> Option<Section<'v>> {
        self.take(name)?.section(report)
    }

    pub(super) fn require_section(&mut self, name: &'static str, report: &mut Report) -> Option<Section<'v>> {
        self.require(name, report)?.section(report)
    }

    /// Judges the keys that nobody took.
    pub(super) fn close(self, report: &mut Report) {
        let mut unknown: Vec<&str> = self
            .fields
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !self.known.contains(name))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        for (index, name) in unknown.into_iter().enumerate() {
            let key = below(&self.key, name);
            let known = self.known.iter().copied().filter(|_| index < MOST_UNKNOWN);
            let hint = closest(name, known).map_or_else(
                || format!("the keys here are {}", self.known.join(", ")),
                |meant| format!("did you mean `{meant}`?"),
            );
            if report.unknown_keys == UnknownKeys::Note && !self.strict {
                report.note(format!("`{key}` has no effect: it is no key of the format ({hint})."));
            } else {
                report.fault(&key, "the format has no such key", hint);
            }
        }
    }
}

fn below(key: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (key.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{key}.{name}"),
        (_, false) => format!("{key}[{}]", harmless_text(&quoted(name))),
    }
}
