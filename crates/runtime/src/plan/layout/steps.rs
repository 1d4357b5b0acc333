//! From placements to the steps that build them.

use std::path::{Path, PathBuf};

use pinfold_model::plan::{Access, Node, RawPath, Step};

use super::{Layout, Placement};
use crate::plan::{raw, runtime_dir};

impl Layout<'_> {
    /// Paths that landlock grants writing on.
    pub(in crate::plan) fn writable(&self) -> impl Iterator<Item = &Path> {
        let runtime_dir = runtime_dir(self.inputs.caller);
        self.places
            .iter()
            .filter(move |(path, placement)| match placement {
                Placement::Host {
                    access: Access::ReadWrite,
                    ..
                }
                | Placement::PrivateHome { .. }
                | Placement::Layered { .. }
                | Placement::Devpts => true,
                // `/run` itself stays writable by the mount alone: the self-test shows there that landlock holds.
                Placement::Tmpfs { sealed: false, .. } => path.as_path() != Path::new("/run"),
                Placement::Folder { .. } => **path == runtime_dir,
                _ => false,
            })
            .map(|(path, _)| path.as_path())
    }

    /// The steps that build the layout.
    pub(in crate::plan) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.places.len() * 2);
        let mut seals = Vec::new();
        for (path, placement) in &self.places {
            if let Some(point) = self.mount_point(path, placement) {
                steps.push(point);
            }
            self.push_steps(path, placement, &mut steps);
            if matches!(placement, Placement::Tmpfs { sealed: true, .. }) {
                seals.push(Step::Seal { path: raw(path) });
            }
        }
        steps.extend(seals);
        steps
    }

    fn push_steps(&self, path: &Path, placement: &Placement, steps: &mut Vec<Step>) {
        let at = raw(path);
        steps.push(match placement {
            Placement::Folder { mode } => Step::Dir { path: at, mode: *mode },
            Placement::Tmpfs { mode, size, inodes, .. } => Step::Tmpfs {
                path: at,
                mode: *mode,
                size: *size,
                inodes: *inodes,
            },
            Placement::Host { access, node } => Step::Bind {
                source: at.clone(),
                target: at,
                access: *access,
                node: *node,
            },
            Placement::From { source, node } => Step::Bind {
                source: raw(source),
                target: at,
                access: Access::ReadOnly,
                node: *node,
            },
            Placement::PrivateHome { source } => Step::Bind {
                source: raw(source),
                target: at,
                access: Access::ReadWrite,
                node: Node::Dir,
            },
            Placement::Layered { lower, upper, work } => Step::Overlay {
                lower: raw(lower),
                upper: raw(upper),
                work: raw(work),
                target: at,
            },
            Placement::Masked { node } => Step::Mask {
                target: at,
                node: *node,
            },
            Placement::Link { target } => Step::Symlink {
                path: at,
                target: raw(target),
            },
            Placement::Generated { content } => file(at, content),
            Placement::Proc => Step::Proc { path: at },
            Placement::Devpts => Step::Devpts { path: at },
            Placement::Device => Step::Device {
                source: at.clone(),
                target: at,
            },
        });
    }

    /// The step that makes the mount point, where it is ours to make.
    fn mount_point(&self, path: &Path, placement: &Placement) -> Option<Step> {
        let node = match placement {
            Placement::Folder { .. } | Placement::Link { .. } | Placement::Generated { .. } => {
                return self.missing_parent(path);
            }
            Placement::Host { node, .. } | Placement::From { node, .. } | Placement::Masked { node } => *node,
            Placement::Device => Node::File,
            _ => Node::Dir,
        };
        if !self.is_ours_to_make_in(path) {
            return None;
        }
        Some(match node {
            Node::Dir => Step::Dir {
                path: raw(path),
                mode: 0o755,
            },
            Node::File | Node::Symlink => Step::EmptyFile { path: raw(path) },
        })
    }

    pub(in crate::plan) fn home_points(&self) -> Vec<(PathBuf, Node)> {
        self.places
            .iter()
            .filter(|(path, _)| matches!(self.above(path), Some((_, Placement::PrivateHome { .. }))))
            .filter_map(|(path, placement)| {
                let node = match placement {
                    Placement::Host { node, .. } | Placement::From { node, .. } | Placement::Masked { node } => *node,
                    _ => Node::Dir,
                };
                let relative = path.strip_prefix(&self.inputs.caller.home).ok()?;
                Some((relative.to_owned(), node))
            })
            .collect()
    }

    fn missing_parent(&self, path: &Path) -> Option<Step> {
        let parent = path.parent()?;
        (parent != Path::new("/") && !self.places.contains_key(parent) && self.is_ours_to_make_in(path)).then(|| {
            Step::Dir {
                path: raw(parent),
                mode: 0o755,
            }
        })
    }

    /// Whether what stands above a path is a file system of the sandbox's own (its root, or a tmpfs).
    fn is_ours_to_make_in(&self, path: &Path) -> bool {
        matches!(
            self.above(path),
            None | Some((_, Placement::Tmpfs { .. } | Placement::Folder { .. }))
        )
    }
}

fn file(path: RawPath, content: &str) -> Step {
    Step::File {
        path,
        mode: 0o644,
        content: content.as_bytes().to_vec().into(),
    }
}
