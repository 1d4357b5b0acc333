//! The shape of a policy file: what TOML is read into, and what the published JSON schema describes.
//!
//! Values keep their place in the text. What they mean is judged in [`parse`](super::parse).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use crate::protected::Group;

/// A Pinfold policy. Every key is optional; what is left out stays as strict as it is by default.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Pinfold policy")]
pub(super) struct Document {
    /// Version of this format.
    #[schemars(with = "i64", range(min = 1, max = 1))]
    pub(super) version: Option<Spanned<i64>>,
    /// What the wall is made of.
    #[schemars(with = "BackendName")]
    pub(super) backend: Option<Spanned<String>>,
    /// Named policies that this file builds on: shipped ones or the user's own.
    #[schemars(with = "Vec<String>")]
    pub(super) profiles: Vec<Spanned<String>>,
    pub(super) workspace: Workspace,
    pub(super) filesystem: Filesystem,
    pub(super) network: Network,
    pub(super) environment: Environment,
    pub(super) limits: LimitsTable,
    pub(super) git: Git,
    pub(super) report: Report,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the accepted text to the schema only")]
enum BackendName {
    Process,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the accepted text to the schema only")]
enum WorkspaceMode {
    Direct,
}

/// How the workspace is inside.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Workspace {
    /// `direct`: the same folder under the same path.
    #[schemars(with = "WorkspaceMode")]
    pub(super) mode: Option<Spanned<String>>,
}

/// Path rules. The more specific path wins, for the same path the stricter rule. Paths are absolute, `~/…`, or relative to the
/// file's folder; `*`, `?`, `**` and `[…]` are glob characters, `\` escapes them, `\xHH` is a byte. Profiles name no relative paths.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Filesystem {
    /// Visible, not writable.
    #[schemars(with = "Vec<PathEntry>")]
    pub(super) read: Vec<Spanned<PathEntry>>,
    /// Visible and writable, except for protected paths.
    #[schemars(with = "Vec<PathEntry>")]
    pub(super) write: Vec<Spanned<PathEntry>>,
    /// Neither listed nor readable.
    #[schemars(with = "Vec<PathEntry>")]
    pub(super) hide: Vec<Spanned<PathEntry>>,
    /// Not writable, even inside a writable folder. Makes nothing visible.
    #[schemars(with = "Vec<PathEntry>")]
    pub(super) readonly: Vec<Spanned<PathEntry>>,
    /// Groups of protected paths that may be written.
    #[schemars(schema_with = "liftable_groups")]
    pub(super) lift: Vec<Spanned<String>>,
    /// How deep below a writable folder protected names are searched.
    #[schemars(with = "i64", range(min = 1, max = 10))]
    pub(super) scan_depth: Option<Spanned<i64>>,
}

fn liftable_groups(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Group::all()
        .iter()
        .filter(|group| group.may_be_lifted())
        .map(|group| group.name())
        .collect();
    json_schema!({ "type": "array", "items": { "type": "string", "enum": names } })
}

/// Network rules: a host, `*.domain`, an address or a range, with optional ports (`host:8443`, `host:80,8000-8010`). Without ports
/// an allow rule means 443 and 80, a deny rule every port. Denials win.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Network {
    #[schemars(with = "Vec<HostEntry>")]
    pub(super) allow: Vec<Spanned<HostEntry>>,
    #[schemars(with = "Vec<HostEntry>")]
    pub(super) deny: Vec<Spanned<HostEntry>>,
    /// Opens every host. Denials and the rules about addresses still hold.
    #[schemars(with = "bool")]
    pub(super) allow_all: Option<Spanned<bool>>,
    /// Addresses and ranges that no permitted name may resolve to.
    #[schemars(with = "Vec<String>")]
    pub(super) refuse_addresses: Vec<Spanned<String>>,
    /// Forbids making Unix sockets.
    #[schemars(with = "bool")]
    pub(super) deny_unix_sockets: Option<Spanned<bool>>,
}

/// Environment variables. What is not named here and not on the built-in list stays outside.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Environment {
    /// Names that enter with the caller's value.
    #[schemars(with = "Vec<NameEntry>")]
    pub(super) pass: Vec<Spanned<NameEntry>>,
    /// Names with fixed values.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) set: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Names that never enter.
    #[schemars(with = "Vec<NameEntry>")]
    pub(super) deny: Vec<Spanned<NameEntry>>,
}

/// Limits of the whole process tree. Of several files the strictest holds; the command line replaces them.
#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub(super) struct LimitsTable {
    /// Bytes, or a text such as `4GiB` or `512MB`.
    #[schemars(with = "SizeForm")]
    pub(super) memory: Option<Spanned<Amount>>,
    /// A number of CPUs, fractions allowed.
    #[schemars(with = "f64", range(min = 0.01, max = 4096))]
    pub(super) cpus: Option<Spanned<Amount>>,
    /// Processes and threads.
    #[schemars(with = "i64", range(min = 1, max = 4194304))]
    pub(super) pids: Option<Spanned<Amount>>,
    /// Wall-clock life of the command, such as `2h` or `90s`.
    #[schemars(with = "String")]
    pub(super) timeout: Option<Spanned<Amount>>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "describes the accepted forms to the schema only")]
enum SizeForm {
    Text(String),
    Bytes(i64),
}

#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Git {
    /// Folders that git is told to trust (`safe.directory`). Permits no access.
    #[schemars(with = "Vec<String>")]
    pub(super) safe_directories: Vec<Spanned<String>>,
}

#[derive(serde::Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Report {
    /// Texts whose denials are left out of the summary at exit, by the command they apply to (`*` for all). The audit log keeps them.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub(super) quiet_denials: BTreeMap<String, Vec<Spanned<String>>>,
}

/// A list entry: a text, or a table with the text and the reason for it.
pub(super) struct Entry<K> {
    pub(super) text: String,
    pub(super) reason: Option<String>,
    kind: PhantomData<K>,
}

pub(super) type PathEntry = Entry<PathKey>;
pub(super) type HostEntry = Entry<HostKey>;
pub(super) type NameEntry = Entry<NameKey>;

/// What an entry's text is called in its table form.
pub(super) trait EntryKey {
    const KEY: &'static str;
    const KEYS: &'static [&'static str];
    const SCHEMA: &'static str;
}

pub(super) enum PathKey {}
pub(super) enum HostKey {}
pub(super) enum NameKey {}

impl EntryKey for PathKey {
    const KEY: &'static str = "path";
    const KEYS: &'static [&'static str] = &["path", "reason"];
    const SCHEMA: &'static str = "PathEntry";
}

impl EntryKey for HostKey {
    const KEY: &'static str = "host";
    const KEYS: &'static [&'static str] = &["host", "reason"];
    const SCHEMA: &'static str = "HostEntry";
}

impl EntryKey for NameKey {
    const KEY: &'static str = "name";
    const KEYS: &'static [&'static str] = &["name", "reason"];
    const SCHEMA: &'static str = "NameEntry";
}

impl<'de, K: EntryKey> Deserialize<'de> for Entry<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor(PhantomData))
    }
}

struct EntryVisitor<K>(PhantomData<K>);

impl<'de, K: EntryKey> Visitor<'de> for EntryVisitor<K> {
    type Value = Entry<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string, or a table {{ {} = \"…\", reason = \"…\" }}", K::KEY)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Entry {
            text: text.to_owned(),
            reason: None,
            kind: PhantomData,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut text, mut reason) = (None, None);
        while let Some(is_text) = map.next_key_seed(KeyName::<K>(PhantomData))? {
            if is_text {
                text = Some(map.next_value()?);
            } else {
                reason = Some(map.next_value()?);
            }
        }
        let text = text.ok_or_else(|| de::Error::missing_field(K::KEY))?;
        Ok(Entry {
            text,
            reason,
            kind: PhantomData,
        })
    }
}

/// Reads a key of an entry's table, and whether it is the one for the text. A seed, so that an error carries the key's place.
struct KeyName<K>(PhantomData<K>);

impl<'de, K: EntryKey> DeserializeSeed<'de> for KeyName<K> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<K: EntryKey> Visitor<'_> for KeyName<K> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` or `reason`", K::KEY)
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        match key {
            "reason" => Ok(false),
            _ if key == K::KEY => Ok(true),
            _ => Err(E::unknown_field(key, K::KEYS)),
        }
    }
}

impl<K: EntryKey> JsonSchema for Entry<K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        K::SCHEMA.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { K::KEY: { "type": "string" }, "reason": { "type": "string" } },
                    "required": [K::KEY],
                    "additionalProperties": false
                }
            ]
        })
    }
}

/// A number or a text, as written.
pub(super) enum Amount {
    Text(String),
    Whole(i64),
    Fraction(f64),
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount::Text(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount::Whole(number))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount::Fraction(number))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}
