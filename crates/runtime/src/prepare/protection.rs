//! From what the scan found to what the plan cuts out of the view.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::plan::Node;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::Effective;
use pinfold_model::protected::Group;

use crate::plan::Protection;
use crate::protect::{Access, Kind, Scan};
use crate::resolve::Resolved;

/// Why a path of a group is read-only, for verdicts.
pub(super) fn origin(group: Group) -> Origin {
    Origin::builtin(&format!(
        "protected, {} (lift: --lift {})",
        group.reason(),
        group.name()
    ))
}

/// Everything that keeps paths closed whatever the rules say.
pub(super) fn of(
    scan: &Scan,
    resolved: &Resolved,
    more_sockets: &[PathBuf],
    other_names: &[(PathBuf, Effective)],
    data: &Path,
) -> Protection {
    let mut protection = Protection {
        pinned: scan.pinned.clone(),
        ..Protection::default()
    };
    let cuts = &mut protection.cuts;
    for grant in &scan.grants {
        let effective = match grant.access {
            Access::Read => Effective::ReadOnly,
            Access::Write => Effective::ReadWrite,
        };
        let node = super::node_of(&grant.path).unwrap_or(Node::Dir);
        cuts.insert(grant.path.clone(), (effective, node));
    }
    for found in &scan.existing {
        cuts.insert(found.path.clone(), (Effective::ReadOnly, node(found.kind)));
    }
    for closed in &scan.closed {
        cuts.insert(closed.path.clone(), (Effective::ReadOnly, Node::Dir));
    }
    for hidden in &scan.hidden {
        cuts.insert(hidden.clone(), (Effective::Hidden, Node::Dir));
    }
    for socket in scan.sockets.iter().chain(more_sockets) {
        cuts.insert(socket.clone(), (Effective::Hidden, Node::File));
    }
    for (name, effective) in other_names {
        let cut = cuts.entry(name.clone()).or_insert((*effective, Node::File));
        cut.0 = cut.0.min(*effective);
    }
    for (link, _) in &resolved.links {
        cuts.insert(link.clone(), (Effective::ReadOnly, Node::Symlink));
    }
    protection.pinned.extend(above_denied(resolved));
    let cuts = &mut protection.cuts;
    // Pinfold's own state: the audit log, private homes of other projects. Wherever a rule would show it.
    if data.is_dir() {
        cuts.insert(data.to_owned(), (Effective::Hidden, Node::Dir));
    }
    protection
}

/// The folders above what rules deny. Moved away, they would take a path out of reach of the same rules in the next run.
fn above_denied(resolved: &Resolved) -> BTreeSet<PathBuf> {
    let denied = resolved
        .rules
        .iter()
        .filter(|rule| matches!(rule.access, PathAccess::Hide | PathAccess::ReadOnly));
    let mut above = BTreeSet::new();
    for rule in denied {
        for folder in rule.path.ancestors().skip(1) {
            if !above.insert(folder.to_owned()) {
                break;
            }
        }
    }
    above
}

fn node(kind: Kind) -> Node {
    match kind {
        Kind::Dir => Node::Dir,
        Kind::File => Node::File,
        Kind::Symlink => Node::Symlink,
    }
}
