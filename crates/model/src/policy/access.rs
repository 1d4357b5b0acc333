//! Which access a path has, and by which rule.
//!
//! Pure: rules with globs expanded and links resolved go in, a [`View`] comes out. The mount plan and `policy check` ask the
//! same view, so that what is said and what is built cannot differ.
//!
//! The more specific rule decides; of rules for the same path the stricter. `readonly` takes writing away and never makes a
//! path visible. A protected path stays unwritable below any `write` rule, however specific. Where no rule matches, a path is
//! hidden.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::PathAccess;
use crate::origin::Origin;

/// A path rule about exactly one path: absolute, without `.`, `..`, glob characters or links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedRule {
    pub path: PathBuf,
    pub access: PathAccess,
    pub origin: Origin,
}

/// What the sandbox can do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effective {
    Hidden,
    ReadOnly,
    ReadWrite,
}

/// One path of the view with what holds for it and everything below it, up to the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub path: &'a Path,
    pub effective: Effective,
    pub origin: &'a Origin,
}

/// Every rule, combined. The order in which rules came in does not matter, except that among equal rules the first one is
/// named as the origin.
#[derive(Clone, Debug, Default)]
pub struct View {
    nodes: BTreeMap<PathBuf, Node>,
}

#[derive(Clone, Debug)]
struct Node {
    effective: Effective,
    origin: Origin,
    /// The protected path at or above this one, if any.
    protected: Option<Origin>,
}

/// What the rules of one path say, before what lies above it is known.
#[derive(Default)]
struct Said {
    write: Option<Origin>,
    read: Option<Origin>,
    readonly: Option<Origin>,
    hide: Option<Origin>,
    protected: Option<Origin>,
}

static UNNAMED: LazyLock<Origin> = LazyLock::new(|| Origin::builtin("only what a rule names is visible"));

impl View {
    /// Combines `rules` (built-in defaults included) and the `protected` paths that no lift opened.
    #[must_use]
    pub fn new(
        rules: impl IntoIterator<Item = ResolvedRule>,
        protected: impl IntoIterator<Item = (PathBuf, Origin)>,
    ) -> Self {
        let mut said: BTreeMap<PathBuf, Said> = BTreeMap::new();
        for rule in rules {
            let here = said.entry(rule.path).or_default();
            let slot = match rule.access {
                PathAccess::Write => &mut here.write,
                PathAccess::Read => &mut here.read,
                PathAccess::ReadOnly => &mut here.readonly,
                PathAccess::Hide => &mut here.hide,
            };
            slot.get_or_insert(rule.origin);
        }
        for (path, origin) in protected {
            said.entry(path).or_default().protected.get_or_insert(origin);
        }
        Self { nodes: settle(said) }
    }

    /// What holds for `path`, and the rule that says so. `path` is absolute and resolved.
    #[must_use]
    pub fn access(&self, path: &Path) -> (Effective, &Origin) {
        let nearest = path.ancestors().find_map(|ancestor| self.nodes.get(ancestor));
        nearest.map_or((Effective::Hidden, &*UNNAMED), |node| (node.effective, &node.origin))
    }

    /// The paths at which access differs from that of the nearest entry above, parents before children. Everything that is in
    /// no entry's tree is hidden.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.nodes.iter().filter_map(|(path, node)| {
            let above = path.parent().map_or(Effective::Hidden, |parent| self.access(parent).0);
            (node.effective != above).then_some(Entry {
                path,
                effective: node.effective,
                origin: &node.origin,
            })
        })
    }
}

/// Walks the paths parents first (the order of [`PathBuf`] is by component), carrying down what each inherits.
fn settle(said: BTreeMap<PathBuf, Said>) -> BTreeMap<PathBuf, Node> {
    let mut nodes: BTreeMap<PathBuf, Node> = BTreeMap::new();
    let mut open: Vec<PathBuf> = Vec::new();
    for (path, here) in said {
        while open.last().is_some_and(|above| !path.starts_with(above)) {
            open.pop();
        }
        let above = open.last().and_then(|above| nodes.get(above));
        let node = here.below(above);
        open.push(path.clone());
        nodes.insert(path, node);
    }
    nodes
}

impl Said {
    fn below(self, above: Option<&Node>) -> Node {
        let inherited = above.map_or(Effective::Hidden, |node| node.effective);
        let inherited_origin = || above.map_or_else(|| UNNAMED.clone(), |node| node.origin.clone());
        let protected = self.protected.or_else(|| above.and_then(|node| node.protected.clone()));

        let (mut effective, mut origin) = if let Some(hide) = self.hide {
            (Effective::Hidden, hide)
        } else if let Some(read) = self.read {
            (Effective::ReadOnly, read)
        } else if let Some(write) = self.write {
            (Effective::ReadWrite, write)
        } else {
            (inherited, inherited_origin())
        };
        if effective == Effective::ReadWrite
            && let Some(readonly) = self.readonly
        {
            (effective, origin) = (Effective::ReadOnly, readonly);
        }
        if effective == Effective::ReadWrite
            && let Some(protected) = &protected
        {
            (effective, origin) = (Effective::ReadOnly, protected.clone());
        }
        Node {
            effective,
            origin,
            protected,
        }
    }
}

#[cfg(test)]
mod tests;
