//! Protected names that do not exist, and the folders in which they could appear.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pinfold_model::protected::{Entry, Group, Name};

/// The rest of a protected path, relative to a folder; its last name is the protected one.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub group: Group,
    rest: Rest,
}

#[derive(Clone, Debug)]
enum Rest {
    Table(&'static [Name]),
    Literal(Vec<OsString>),
}

/// How a name in a folder relates to a protected path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It is the protected name.
    Last(Group),
    /// The protected name lies below it.
    Above(Wanted),
}

/// A folder in which protected names could appear.
#[derive(Clone, Debug)]
pub struct AbsentIn {
    pub folder: PathBuf,
    pub wanted: Vec<Wanted>,
    /// Names that match and existed at the scan: they are guarded by mounts, and are never quarantined.
    pub known: Vec<OsString>,
}

impl Wanted {
    pub(super) fn entry(entry: &Entry) -> Self {
        Self {
            group: entry.group,
            rest: Rest::Table(entry.path),
        }
    }

    pub(super) fn exact(group: Group, name: &'static str) -> Self {
        Self {
            group,
            rest: Rest::Literal(vec![name.into()]),
        }
    }

    /// A path of plain names, relative to a folder; none if it is empty.
    pub(super) fn literal(group: Group, path: &Path) -> Option<Self> {
        let rest: Vec<OsString> = path.iter().map(OsString::from).collect();
        (!rest.is_empty()).then_some(Self {
            group,
            rest: Rest::Literal(rest),
        })
    }

    /// What a name in the folder is to this path.
    pub(super) fn step(&self, name: &[u8]) -> Option<Step> {
        let (matches, last) = match &self.rest {
            Rest::Table(names) => (names.first()?.matches(name), names.len() == 1),
            Rest::Literal(names) => (names.first()?.as_bytes().eq_ignore_ascii_case(name), names.len() == 1),
        };
        if !matches {
            return None;
        }
        let rest = match &self.rest {
            _ if last => return Some(Step::Last(self.group)),
            Rest::Table(names) => Rest::Table(&names[1..]),
            Rest::Literal(names) => Rest::Literal(names[1..].to_vec()),
        };
        Some(Step::Above(Self {
            group: self.group,
            rest,
        }))
    }

    /// The first byte of the next name, in lower case; the quick check before [`Self::step`].
    pub(super) fn first_byte(&self) -> Option<u8> {
        let first = match &self.rest {
            Rest::Table(names) => match names.first()? {
                Name::Exact(text) | Name::Starts(text) | Name::Between(text, _) => text.as_bytes().first(),
            },
            Rest::Literal(names) => names.first()?.as_bytes().first(),
        };
        first.map(u8::to_ascii_lowercase)
    }

    /// What is left of a table entry when the folder's own path already ends with its first names.
    pub(super) fn continued(entry: &Entry, folder: &Path) -> Option<Step> {
        let components: Vec<&[u8]> = folder.iter().map(OsStrExt::as_bytes).collect();
        for taken in (1..=entry.path.len()).rev() {
            let Some(tail) = components.len().checked_sub(taken).map(|start| &components[start..]) else {
                continue;
            };
            if entry
                .path
                .iter()
                .zip(tail)
                .all(|(name, component)| name.matches(component))
            {
                return Some(if taken == entry.path.len() {
                    Step::Last(entry.group)
                } else {
                    Step::Above(Self {
                        group: entry.group,
                        rest: Rest::Table(&entry.path[taken..]),
                    })
                });
            }
        }
        None
    }
}
