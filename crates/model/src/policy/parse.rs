//! From the text of a policy file to a layer.

use std::ops::Range;

use toml::Spanned;

use super::document::{Amount, Document, Filesystem, LimitsTable, Network, PathEntry};
use super::entry::Fault;
use super::error::PolicyError;
use super::path::{Base, PathFault, is_relative};
use super::source::{Source, SourceName};
use super::spelling::closest;
use super::{Authority, Layer, Limit, PathAccess, quantity};
use crate::origin::{Origin, Scope};

/// Bytes of the largest policy file that is read.
pub const LARGEST_FILE: usize = 1024 * 1024;

/// Backends of other builds, named so that the error can say more than "unknown".
const OTHER_BACKENDS: [&str; 3] = ["docker", "microvm", "kubernetes"];
const OTHER_MODES: [&str; 3] = ["clone", "overlay", "none"];

impl Layer {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Everything that is not exactly understood, with line and column.
    pub fn parse(bytes: &[u8], name: &SourceName, base: &Base) -> Result<Self, PolicyError> {
        let source = Source::new(name, bytes)?;
        if bytes.len() > LARGEST_FILE {
            let message = format!(
                "the file has {} bytes, and a policy has at most {LARGEST_FILE}",
                bytes.len()
            );
            return Err(source.error(0..0, message, "is this the right file?".to_owned()));
        }
        let document: Document = toml::from_str(source.text).map_err(|error| syntax_error(&source, &error))?;
        let authority = match name {
            SourceName::File {
                scope: Scope::Workspace,
                ..
            } => Authority::TightenOnly,
            _ => Authority::Full,
        };
        let mut reader = Reader {
            source,
            base,
            layer: Self::new(authority),
        };
        reader.read(document)?;
        if let Some((origin, fault)) = reader.layer.contradiction() {
            return Err(reader.source.error_at(origin, fault.message, fault.hint));
        }
        Ok(reader.layer)
    }
}

struct Reader<'a> {
    source: Source<'a>,
    base: &'a Base,
    layer: Layer,
}

impl Reader<'_> {
    fn read(&mut self, document: Document) -> Result<(), PolicyError> {
        if let Some(version) = document.version
            && *version.get_ref() != 1
        {
            let message = format!(
                "this build reads version 1 of the policy format, not {}",
                version.get_ref()
            );
            return Err(self.source.error(
                version.span(),
                message,
                "write version = 1, or use the build the file was written for".to_owned(),
            ));
        }
        if let Some(backend) = &document.backend {
            self.only("backend", backend, "process", &OTHER_BACKENDS)?;
        }
        if let Some(mode) = &document.workspace.mode {
            self.only("workspace mode", mode, "direct", &OTHER_MODES)?;
        }
        for (index, name) in document.profiles.iter().enumerate() {
            if matches!(self.source.name, SourceName::Profile { .. }) {
                return Err(self.source.error(
                    name.span(),
                    "a profile cannot build on another profile".to_owned(),
                    "name both where the profile is used".to_owned(),
                ));
            }
            self.entry(name.span(), format!("profiles[{index}]"), |layer, _, origin| {
                layer.add_profile(name.get_ref(), origin)
            })?;
        }
        self.filesystem(document.filesystem)?;
        self.network(document.network)?;
        for (index, name) in document.environment.pass.into_iter().enumerate() {
            self.entry(name.span(), format!("environment.pass[{index}]"), |layer, _, origin| {
                layer.add_pass(&name.get_ref().text, origin)
            })?;
        }
        for (index, name) in document.environment.deny.into_iter().enumerate() {
            self.entry(name.span(), format!("environment.deny[{index}]"), |layer, _, origin| {
                layer.add_env_deny(&name.get_ref().text, origin)
            })?;
        }
        for (name, value) in document.environment.set {
            let key = format!("environment.set.{}", name.get_ref());
            self.entry(name.span(), key, |layer, _, origin| {
                layer.add_set(name.get_ref(), value.get_ref(), origin)
            })?;
        }
        self.limits(document.limits)?;
        for (index, path) in document.git.safe_directories.into_iter().enumerate() {
            self.check_path_text(&path.span(), path.get_ref())?;
            self.entry(
                path.span(),
                format!("git.safe_directories[{index}]"),
                |layer, base, origin| layer.add_safe_directory(path.get_ref(), base, origin),
            )?;
        }
        for (command, texts) in document.report.quiet_denials {
            let at = texts.first().map_or(0, |text| text.span().start);
            self.layer
                .quiet_origin
                .get_or_insert_with(|| self.source.origin(at, "report.quiet_denials".to_owned()));
            let quiet = self.layer.quiet_denials.entry(command).or_default();
            quiet.extend(texts.into_iter().map(Spanned::into_inner));
        }
        Ok(())
    }

    fn filesystem(&mut self, table: Filesystem) -> Result<(), PolicyError> {
        self.paths("read", PathAccess::Read, table.read)?;
        self.paths("write", PathAccess::Write, table.write)?;
        self.paths("hide", PathAccess::Hide, table.hide)?;
        self.paths("readonly", PathAccess::ReadOnly, table.readonly)?;
        for (index, name) in table.lift.into_iter().enumerate() {
            self.entry(name.span(), format!("filesystem.lift[{index}]"), |layer, _, origin| {
                layer.add_lift(name.get_ref(), origin)
            })?;
        }
        if let Some(depth) = table.scan_depth {
            self.entry(depth.span(), "filesystem.scan_depth".to_owned(), |layer, _, origin| {
                let value = u8::try_from(*depth.get_ref())
                    .ok()
                    .filter(|depth| (1..=10).contains(depth));
                let value = value.ok_or_else(|| {
                    Fault::new(
                        format!("a scan depth of {} is out of range", depth.get_ref()),
                        "write a number from 1 to 10",
                    )
                })?;
                layer.scan_depth = Some(Limit { value, origin });
                Ok(())
            })?;
        }
        Ok(())
    }

    fn paths(&mut self, key: &str, access: PathAccess, entries: Vec<Spanned<PathEntry>>) -> Result<(), PolicyError> {
        for (index, entry) in entries.into_iter().enumerate() {
            let span = entry.span();
            let PathEntry { text, reason, .. } = entry.into_inner();
            self.check_path_text(&span, &text)?;
            self.entry(span, format!("filesystem.{key}[{index}]"), |layer, base, origin| {
                layer.add_path(access, text.as_bytes(), reason, base, origin)
            })?;
        }
        Ok(())
    }

    /// What can be seen only in the text as written, or depends on what kind of source this is.
    fn check_path_text(&self, span: &Range<usize>, text: &str) -> Result<(), PolicyError> {
        // TOML 1.1 reads "\xff" as the character U+00FF, which is two bytes: another path than the one meant.
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        if let Some(at) = quoted_byte(written) {
            let fault = PathFault::QuotedByte;
            return Err(self.source.error(
                span.start + at..span.start + at + 4,
                fault.to_string(),
                fault.hint().to_owned(),
            ));
        }
        if matches!(self.source.name, SourceName::Profile { .. }) && is_relative(text.as_bytes()) && !text.is_empty() {
            return Err(self.source.error(
                span.clone(),
                format!("'{text}' is relative, and a profile is used in many folders"),
                "start the path with '/' or '~/'".to_owned(),
            ));
        }
        Ok(())
    }

    fn network(&mut self, table: Network) -> Result<(), PolicyError> {
        for (index, entry) in table.allow.into_iter().enumerate() {
            let span = entry.span();
            let entry = entry.into_inner();
            self.entry(span, format!("network.allow[{index}]"), |layer, _, origin| {
                layer.add_allow(&entry.text, entry.reason, origin)
            })?;
        }
        for (index, entry) in table.deny.into_iter().enumerate() {
            let span = entry.span();
            let entry = entry.into_inner();
            self.entry(span, format!("network.deny[{index}]"), |layer, _, origin| {
                layer.add_deny(&entry.text, entry.reason, origin)
            })?;
        }
        for (index, text) in table.refuse_addresses.into_iter().enumerate() {
            self.entry(
                text.span(),
                format!("network.refuse_addresses[{index}]"),
                |layer, _, origin| layer.add_refused_address(text.get_ref(), origin),
            )?;
        }
        if let Some(all) = table.allow_all.filter(|all| *all.get_ref()) {
            self.layer.network.allow_all = Some(self.source.origin(all.span().start, "network.allow_all".to_owned()));
        }
        if let Some(deny) = table.deny_unix_sockets.filter(|deny| *deny.get_ref()) {
            self.layer.deny_unix_sockets = Some(
                self.source
                    .origin(deny.span().start, "network.deny_unix_sockets".to_owned()),
            );
        }
        Ok(())
    }

    fn limits(&mut self, table: LimitsTable) -> Result<(), PolicyError> {
        if let Some(memory) = table.memory {
            self.entry(memory.span(), "limits.memory".to_owned(), |layer, _, origin| {
                let value = match memory.get_ref() {
                    Amount::Whole(bytes) => quantity::size_in_bytes(*bytes),
                    other => quantity::size(&other.text()),
                };
                layer.set_memory(value, origin)
            })?;
        }
        if let Some(cpus) = table.cpus {
            self.entry(cpus.span(), "limits.cpus".to_owned(), |layer, _, origin| {
                layer.set_cpus(quantity::cpus(&cpus.get_ref().text()), origin)
            })?;
        }
        if let Some(pids) = table.pids {
            self.entry(pids.span(), "limits.pids".to_owned(), |layer, _, origin| {
                layer.set_pids(quantity::pids(&pids.get_ref().text()), origin)
            })?;
        }
        if let Some(timeout) = table.timeout {
            self.entry(timeout.span(), "limits.timeout".to_owned(), |layer, _, origin| {
                layer.set_timeout(quantity::duration(&timeout.get_ref().text()), origin)
            })?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        span: Range<usize>,
        key: String,
        add: impl FnOnce(&mut Layer, &Base, Origin) -> Result<(), Fault>,
    ) -> Result<(), PolicyError> {
        let origin = self.source.origin(span.start, key);
        add(&mut self.layer, self.base, origin).map_err(|fault| self.source.error(span, fault.message, fault.hint))
    }

    fn only(&self, what: &str, given: &Spanned<String>, known: &str, elsewhere: &[&str]) -> Result<(), PolicyError> {
        let name = given.get_ref();
        if name == known {
            return Ok(());
        }
        let (message, hint) = if elsewhere.contains(&name.as_str()) {
            (
                format!("this build has the {known} {what} only, not '{name}'"),
                format!("write \"{known}\", or leave the key out"),
            )
        } else {
            let near = closest(name, std::iter::once(known).chain(elsewhere.iter().copied()));
            (
                format!("'{name}' is no {what}"),
                near.map_or_else(
                    || format!("write \"{known}\""),
                    |near| format!("did you mean '{near}'?"),
                ),
            )
        };
        Err(self.source.error(given.span(), message, hint))
    }
}

impl Amount {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(number) => number.to_string(),
            Self::Fraction(number) => number.to_string(),
        }
    }
}

/// Where `\x` stands in a double-quoted string.
fn quoted_byte(written: &str) -> Option<usize> {
    let open = written.find(['"', '\''])?;
    if written.as_bytes()[open] != b'"' {
        return None;
    }
    let mut characters = written.char_indices().skip(open + 1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' {
            match characters.next() {
                Some((_, 'x')) => return Some(at),
                Some(_) => {}
                None => return None,
            }
        }
    }
    None
}

fn syntax_error(source: &Source<'_>, error: &toml::de::Error) -> PolicyError {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let mut quoted = rest.split('`').step_by(2);
        let given = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.filter(|word| !word.is_empty()).collect();
        let hint = closest(given, known.iter().copied()).map_or_else(
            || format!("the keys here are {}", known.join(", ")),
            |near| format!("did you mean '{near}'?"),
        );
        return source.error(span, format!("unknown key '{given}'"), hint);
    }
    let mut lines = message.lines();
    let first = in_our_words(lines.next().unwrap_or("the text is not TOML"));
    let rest = lines.collect::<Vec<_>>().join("; ");
    let hint = if rest.is_empty() {
        "`pinfold schema` prints what a policy file can hold".to_owned()
    } else {
        rest
    };
    source.error(span, first, hint)
}

/// The deserializer's words for a wrong type, without the names of Rust types.
fn in_our_words(message: &str) -> String {
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.split_once(", expected "))
    else {
        return message.to_owned();
    };
    let expected = match expected {
        "i64" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a table",
        other => other,
    };
    format!("expected {expected}, found {found}")
}

#[cfg(test)]
mod tests;
