//! What the rules that hold come to. Pure: looks at nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pinfold_model::origin::Origin;
use pinfold_model::plan::Node;
use pinfold_model::policy::PathAccess;
use pinfold_model::policy::access::{Effective, ResolvedRule, View};

use super::error::{ResolveError, RuleName, Widening};
use super::follow::End;
use super::judge::{Case, may_drop};
use super::warnings::Warnings;
use super::{AbsentRule, Context, Resolved, dropped, shown};

/// Top-level folders that belong to the system, not to a person.
const SYSTEM: [&str; 20] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt", "/proc",
    "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var",
];
/// The result as it grows, in the order of the rules.
#[derive(Debug)]
pub(super) struct Outcome {
    resolved: Resolved,
    nodes: Vec<(PathBuf, Node)>,
    /// Many paths can be spelled through one link.
    links: BTreeMap<PathBuf, Origin>,
    warnings: Warnings,
}

impl Outcome {
    pub(super) fn new(warnings: Warnings) -> Self {
        Self {
            resolved: Resolved::default(),
            nodes: Vec::new(),
            links: BTreeMap::new(),
            warnings,
        }
    }

    pub(super) fn warn(&mut self, case: &Case<'_>, sentence: String) {
        if case.matched {
            self.warnings.say_of_match(case.rule, sentence);
        } else {
            self.warnings.say(sentence);
        }
    }

    pub(super) fn deny(
        &mut self,
        case: Case<'_>,
        context: &Context<'_>,
        roots: &BTreeSet<PathBuf>,
        shown_here: &BTreeSet<PathBuf>,
    ) {
        let Case { rule, ref landing, .. } = case;
        for link in &landing.links {
            if !self.links.contains_key(link) && planted(link, roots) {
                self.nodes.push((link.clone(), Node::Symlink));
                self.links.insert(link.clone(), rule.origin.clone());
            }
        }
        if out_of_view(&landing.path, context, shown_here) {
            return;
        }
        let path = landing.path.clone();
        let (path, access, node) = match &landing.end {
            End::Dir => (path, rule.access, Node::Dir),
            End::File | End::CharDevice => (path, rule.access, Node::File),
            End::Missing => {
                let (access, origin) = (rule.access, rule.origin.clone());
                self.resolved.absent.push(AbsentRule { path, access, origin });
                return;
            }
            End::Unreachable { nearest, why } => {
                let sentence = format!(
                    "'{}' cannot be looked at ({why}), so all of '{}' is hidden to keep it out of reach   ({})",
                    shown(&path),
                    shown(nearest),
                    rule.origin
                );
                self.warn(&case, sentence);
                (nearest.clone(), PathAccess::Hide, Node::Dir)
            }
        };
        self.add(path, access, &rule.origin, node);
    }

    /// A rule that goes through a link holds only as far as it opens nothing that the other rules do not open anyway, if that
    /// link is one that a sandbox could have made or leads where nobody means to point.
    pub(super) fn permit(
        &mut self,
        cases: Vec<Case<'_>>,
        context: &Context<'_>,
        roots: &BTreeSet<PathBuf>,
    ) -> Result<(), ResolveError> {
        let mut doubtful = Vec::new();
        for case in cases {
            match doubt(&case, roots) {
                Some(doubt) => doubtful.push((case, doubt)),
                None => self.grant(case),
            }
        }
        if doubtful.is_empty() {
            return Ok(());
        }
        let workspace = ResolvedRule {
            path: context.workspace.to_path_buf(),
            access: PathAccess::Write,
            origin: Origin::builtin("the workspace"),
        };
        let view = View::new(self.resolved.rules.iter().cloned().chain([workspace]), []);
        for (case, (link, widening)) in doubtful {
            let needed = if case.rule.access == PathAccess::Write {
                Effective::ReadWrite
            } else {
                Effective::ReadOnly
            };
            if view.access(&case.landing.path).0 >= needed {
                self.grant(case);
                continue;
            }
            let (rule, target) = (RuleName::of(case.rule), case.landing.path.clone());
            let error = ResolveError::Widens {
                rule,
                link,
                target,
                widening,
            };
            if case.matched || widening == Widening::Imported || may_drop(case.rule, &error) {
                self.warn(&case, dropped(&error));
            } else {
                return Err(error);
            }
        }
        Ok(())
    }

    fn grant(&mut self, case: Case<'_>) {
        let Case { rule, landing, .. } = case;
        let node = if landing.end == End::Dir { Node::Dir } else { Node::File };
        if landing.end == End::CharDevice && landing.path.starts_with("/dev") {
            self.nodes.push((landing.path.clone(), node));
            let (path, access, origin) = (landing.path, rule.access, rule.origin.clone());
            self.resolved.devices.push(ResolvedRule { path, access, origin });
        } else {
            self.add(landing.path, rule.access, &rule.origin, node);
        }
    }

    fn add(&mut self, path: PathBuf, access: PathAccess, origin: &Origin, node: Node) {
        self.nodes.push((path.clone(), node));
        self.resolved.rules.push(ResolvedRule {
            path,
            access,
            origin: origin.clone(),
        });
    }

    /// Says what a broad write root exposes. Built-in rules are the product's own business.
    pub(super) fn warn_of_risks(&mut self, context: &Context<'_>) {
        let named = self
            .resolved
            .rules
            .iter()
            .filter(|rule| rule.access == PathAccess::Write);
        let named = named.filter(|rule| !matches!(rule.origin, Origin::Builtin { .. }));
        let mut roots: BTreeMap<&Path, String> = named
            .map(|rule| (rule.path.as_path(), rule.origin.to_string()))
            .collect();
        roots
            .entry(context.workspace)
            .or_insert_with(|| "the workspace".to_owned());
        let mut warnings = Vec::new();
        for (root, origin) in roots {
            let mut warn = |what: String| {
                warnings.push(format!(
                    "'{}' is writable in the sandbox {what}   ({origin})",
                    shown(root)
                ))
            };
            let etc = Path::new("/etc").starts_with(root);
            if etc {
                warn("and holds '/etc': what runs outside can be reconfigured".to_owned());
            }
            if let Some(folder) = context.search_path.iter().find(|folder| folder.starts_with(root)) {
                warn(format!(
                    "and holds '{}', which is on your PATH: programs that you start outside can be replaced",
                    shown(folder)
                ));
            }
            if context.home.starts_with(root) {
                warn(
                    "and holds your home folder: its keys can be read, and what programs load from it can be changed"
                        .to_owned(),
                );
            }
            if !etc && is_system(root) && !context.home.starts_with(root) {
                warn("and is a system folder: what runs outside relies on it".to_owned());
            }
        }
        warnings.into_iter().for_each(|sentence| self.warnings.say(sentence));
    }

    pub(super) fn finish(mut self) -> Resolved {
        let out = &mut self.resolved;
        out.rules.sort_by(by_path);
        out.rules.dedup_by(|a, b| a.path == b.path && a.access == b.access);
        out.devices.sort_by(by_path);
        restrict_devices(&mut out.devices, &out.rules);
        out.links = self.links.into_iter().collect();
        out.absent
            .sort_by(|a, b| a.path.cmp(&b.path).then(a.access.cmp(&b.access)));
        out.absent.dedup_by(|a, b| a.path == b.path && a.access == b.access);
        out.warnings = self.warnings.into_sorted();
        out.nodes = self.nodes.into_iter().collect();
        self.resolved
    }
}

/// Stable sorting by this keeps the order of equal rules, which is that of [`super::in_order`]: the first names the origin.
fn by_path(a: &ResolvedRule, b: &ResolvedRule) -> std::cmp::Ordering {
    a.path.cmp(&b.path).then(a.access.cmp(&b.access))
}

/// One rule for each device, the strictest; none where the same path is hidden.
fn restrict_devices(devices: &mut Vec<ResolvedRule>, rules: &[ResolvedRule]) {
    let said = |path: &Path, access| rules.iter().any(|rule| rule.path == path && rule.access == access);
    devices.retain(|device| !said(&device.path, PathAccess::Hide));
    // Sorted, so that of one path `write` comes first and the stricter `read` last.
    devices.reverse();
    devices.dedup_by(|a, b| a.path == b.path);
    devices.reverse();
    for device in devices {
        if said(&device.path, PathAccess::ReadOnly) {
            device.access = PathAccess::Read;
        }
    }
}

/// Whether something in a sandbox could have put `link` where it is.
fn planted(link: &Path, roots: &BTreeSet<PathBuf>) -> bool {
    link.ancestors().skip(1).any(|above| roots.contains(above))
}

/// Why a permission through links may open more than its author thinks.
fn doubt(case: &Case<'_>, roots: &BTreeSet<PathBuf>) -> Option<(PathBuf, Widening)> {
    let links = &case.landing.links;
    let target = &case.landing.path;
    let last = links.last()?;
    let builtin = matches!(case.rule.origin, Origin::Builtin { .. });
    let imported = matches!(case.rule.origin, Origin::Settings { .. });
    if imported && case.rule.access == PathAccess::Read && case.landing.is_link {
        return Some((last.clone(), Widening::Imported));
    }
    // Before the check for write roots: a rule that makes a folder above its own link writable is one itself.
    if !builtin && let Some(link) = links.iter().find(|link| link.starts_with(target)) {
        return Some((link.clone(), Widening::Above));
    }
    if let Some(link) = links.iter().find(|link| planted(link, roots)) {
        return Some((link.clone(), Widening::Planted));
    }
    (!builtin && is_system(target)).then(|| (last.clone(), Widening::System))
}

fn is_system(path: &Path) -> bool {
    path == Path::new("/") || SYSTEM.iter().any(|system| path == Path::new(system))
}

/// Whether a denied path cannot be seen anyway, because the sandbox has its own folder there and no rule shows the host's.
fn out_of_view(path: &Path, context: &Context<'_>, shown_here: &BTreeSet<PathBuf>) -> bool {
    const SAME_NAMES: [&str; 3] = ["/proc", "/sys", "/dev"];
    let place = context
        .private
        .iter()
        .filter(|place| path.starts_with(place) && path != **place)
        .max_by_key(|place| place.as_os_str().len());
    let Some(place) = place else { return false };
    // A home in such a place: parts of the real one show in the private one without a rule.
    if path.starts_with(context.home) {
        return false;
    }
    let same_names = SAME_NAMES.iter().any(|same| *place == Path::new(same));
    !same_names
        && !path
            .ancestors()
            .take_while(|above| above != place)
            .any(|above| shown_here.contains(above))
}
