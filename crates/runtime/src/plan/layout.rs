//! What stands where in the sandbox's root: one placement per path, parents before children.
//!
//! The order of rules cannot matter, since placements are kept by path. A mount point is made only where the folder above
//! it is the sandbox's own; on the host nothing is ever made.

mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinfold_model::plan::{Access, Node};
use pinfold_model::policy::access::Effective;

use super::{Home, Inputs, Layered, etc, runtime_dir};

const MIB: u64 = 1 << 20;

/// Devices that every sandbox has.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placement {
    /// A plain folder of the sandbox's own root.
    Folder {
        mode: u32,
    },
    Tmpfs {
        mode: u32,
        size: u64,
        inodes: u64,
        sealed: bool,
    },
    /// The host's path of the same name.
    Host {
        access: Access,
        node: Node,
    },
    /// Another path of the host, read-only.
    From {
        source: PathBuf,
        node: Node,
    },
    /// The project's own home folder.
    PrivateHome {
        source: PathBuf,
    },
    Layered {
        lower: PathBuf,
        upper: PathBuf,
        work: PathBuf,
    },
    Masked {
        node: Node,
    },
    Link {
        target: PathBuf,
    },
    Generated {
        content: String,
    },
    Proc,
    Devpts,
    Device,
}

pub(super) struct Layout<'a> {
    inputs: &'a Inputs<'a>,
    places: BTreeMap<PathBuf, Placement>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>) -> Self {
        let mut layout = Self {
            inputs,
            places: BTreeMap::new(),
        };
        layout.place_own();
        layout.place_home();
        layout.place_view();
        layout.place_generated();
        layout
    }

    fn put(&mut self, path: impl Into<PathBuf>, placement: Placement) {
        self.places.insert(path.into(), placement);
    }

    /// The parts that are never the host's.
    fn place_own(&mut self) {
        let host = self.inputs.host;
        for (path, target) in &host.links {
            self.put(path, Placement::Link { target: target.clone() });
        }
        self.put("/proc", Placement::Proc);
        let scratch = Placement::Tmpfs {
            mode: 0o1777,
            size: host.memory / 2,
            inodes: 2_000_000,
            sealed: false,
        };
        self.put("/tmp", scratch.clone());
        self.put("/var/tmp", scratch);
        self.put(
            "/run",
            Placement::Tmpfs {
                mode: 0o755,
                size: 64 * MIB,
                inodes: 65_536,
                sealed: false,
            },
        );
        self.put("/run/user", Placement::Folder { mode: 0o755 });
        self.put(runtime_dir(self.inputs.caller), Placement::Folder { mode: 0o700 });
        self.put(
            "/dev",
            Placement::Tmpfs {
                mode: 0o755,
                size: MIB,
                inodes: 4096,
                sealed: true,
            },
        );
        for device in DEVICES
            .iter()
            .map(PathBuf::from)
            .chain(self.inputs.devices.iter().cloned())
        {
            self.put(device, Placement::Device);
        }
        self.put("/dev/pts", Placement::Devpts);
        self.put(
            "/dev/shm",
            Placement::Tmpfs {
                mode: 0o1777,
                size: host.memory / 4,
                inodes: 1_000_000,
                sealed: false,
            },
        );
        for (name, target) in [
            ("/dev/ptmx", "pts/ptmx"),
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ] {
            self.put(name, Placement::Link { target: target.into() });
        }
    }

    fn place_home(&mut self) {
        let Home::Private { folder, layers, shown } = self.inputs.home else {
            return;
        };
        self.put(
            &self.inputs.caller.home,
            Placement::PrivateHome { source: folder.clone() },
        );
        for layer in layers {
            let Layered {
                tree,
                source,
                upper,
                work,
                ..
            } = layer.clone();
            self.put(
                tree,
                Placement::Layered {
                    lower: source,
                    upper,
                    work,
                },
            );
            for (path, node) in &layer.hidden {
                self.put(path, Placement::Masked { node: *node });
            }
        }
        for path in shown {
            self.put(
                &path.path,
                Placement::From {
                    source: path.source.clone(),
                    node: path.node,
                },
            );
        }
    }

    /// The paths of the host, as the policy's view has them.
    fn place_view(&mut self) {
        let inputs = self.inputs;
        for entry in inputs.view.entries() {
            let node = inputs.nodes.get(entry.path).copied().unwrap_or(Node::Dir);
            let placement = match entry.effective {
                Effective::Hidden => Placement::Masked { node },
                Effective::ReadOnly
                    if inputs.host.root.is_some() && inputs.host.system.iter().any(|s| s == entry.path) =>
                {
                    Placement::From {
                        source: inputs.host.source(entry.path),
                        node,
                    }
                }
                Effective::ReadOnly => Placement::Host {
                    access: Access::ReadOnly,
                    node,
                },
                Effective::ReadWrite => Placement::Host {
                    access: Access::ReadWrite,
                    node,
                },
            };
            if entry.path == Path::new("/") || self.is_own(entry.path) || self.is_shown(entry.path, entry.effective) {
                continue;
            }
            // In the private home a hidden path simply is not there.
            if matches!(placement, Placement::Masked { .. }) && !self.is_on_host(entry.path) {
                continue;
            }
            self.put(entry.path, placement);
        }
        self.place_protection();
        self.hollow_out();
    }

    fn place_protection(&mut self) {
        let inputs = self.inputs;
        let cuts = &inputs.protection.cuts;
        // A rule that writes below a protected path does not open it.
        let nearest = |path: &Path| {
            path.ancestors()
                .skip(1)
                .find_map(|above| cuts.get(above))
                .map(|cut| cut.0)
        };
        self.places.retain(|path, placement| {
            !matches!(
                placement,
                Placement::Host {
                    access: Access::ReadWrite,
                    ..
                }
            ) || nearest(path).is_none_or(|above| above == Effective::ReadWrite)
        });
        for (path, (effective, node)) in cuts {
            if matches!(self.places.get(path), Some(Placement::Masked { .. })) {
                continue;
            }
            let placement = match effective {
                Effective::Hidden => Placement::Masked { node: *node },
                Effective::ReadOnly => Placement::Host {
                    access: Access::ReadOnly,
                    node: *node,
                },
                Effective::ReadWrite => Placement::Host {
                    access: Access::ReadWrite,
                    node: *node,
                },
            };
            self.put(path, placement);
        }
        for path in &inputs.protection.pinned {
            if matches!(
                self.above(path),
                Some((
                    _,
                    Placement::Host {
                        access: Access::ReadWrite,
                        ..
                    }
                ))
            ) {
                self.places.entry(path.clone()).or_insert(Placement::Host {
                    access: Access::ReadWrite,
                    node: Node::Dir,
                });
            }
        }
    }

    /// A hidden folder with something visible below it becomes an empty folder that can hold mount points.
    fn hollow_out(&mut self) {
        let hollow: Vec<PathBuf> = self
            .places
            .iter()
            .filter(|(path, placement)| {
                matches!(placement, Placement::Masked { node: Node::Dir })
                    && self
                        .places
                        .range((*path).clone()..)
                        .skip(1)
                        .take_while(|(below, _)| below.starts_with(path))
                        .any(|(_, below)| !matches!(below, Placement::Masked { .. }))
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in hollow {
            self.put(
                &path,
                Placement::Tmpfs {
                    mode: 0o555,
                    size: MIB,
                    inodes: 65_536,
                    sealed: true,
                },
            );
        }
        // What is hidden inside something that is not there needs no cover.
        let needless: Vec<PathBuf> = self
            .places
            .iter()
            .filter(|(path, placement)| matches!(placement, Placement::Masked { .. }) && !self.is_on_host(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in needless {
            self.places.remove(&path);
        }
    }

    fn place_generated(&mut self) {
        let Inputs { caller, host, .. } = self.inputs;
        for path in &host.databases {
            let content = match *path {
                "/etc/passwd" => etc::passwd(caller),
                "/etc/group" => etc::group(caller),
                _ => etc::hosts().to_owned(),
            };
            self.put(*path, Placement::Generated { content });
        }
        if let Some(path) = &host.resolv_conf {
            self.put(
                path,
                Placement::Generated {
                    content: etc::resolv_conf().to_owned(),
                },
            );
        }
        for (path, node) in &self.inputs.host.secrets {
            if self.is_on_host(path) {
                self.put(path, Placement::Masked { node: *node });
            }
        }
    }

    /// Whether the sandbox has its own instance of exactly this path.
    fn is_own(&self, path: &Path) -> bool {
        matches!(
            self.places.get(path),
            Some(
                Placement::Tmpfs { sealed: false, .. }
                    | Placement::Proc
                    | Placement::Devpts
                    | Placement::Device
                    | Placement::Folder { .. }
                    | Placement::Link { .. }
            )
        ) || path == Path::new("/dev")
    }

    /// Whether the private home shows exactly this path already, and no rule asks for more.
    fn is_shown(&self, path: &Path, effective: Effective) -> bool {
        effective == Effective::ReadOnly
            && matches!(
                self.places.get(path),
                Some(Placement::Layered { .. } | Placement::From { .. })
            )
    }

    /// The nearest placement above a path.
    fn above(&self, path: &Path) -> Option<(&Path, &Placement)> {
        path.ancestors()
            .skip(1)
            .find_map(|above| self.places.get_key_value(above))
            .map(|(path, placement)| (path.as_path(), placement))
    }

    /// Whether the path lies in a tree of the host, where it exists already.
    fn is_on_host(&self, path: &Path) -> bool {
        matches!(
            self.above(path),
            Some((
                _,
                Placement::Host { .. } | Placement::From { .. } | Placement::Layered { .. }
            ))
        )
    }

    pub(super) fn first_masked_file(&self) -> Option<&Path> {
        self.places
            .iter()
            .find(|(_, placement)| **placement == Placement::Masked { node: Node::File })
            .map(|(path, _)| path.as_path())
    }

    /// A protected path that the view shows.
    pub(super) fn first_protected(&self) -> Option<&Path> {
        let cuts = &self.inputs.protection.cuts;
        let shown = |(path, placement): (&'a PathBuf, &Placement)| {
            matches!(
                placement,
                Placement::Host {
                    access: Access::ReadOnly,
                    node: Node::Dir | Node::File,
                }
            )
            .then_some(path.as_path())
        };
        cuts.iter()
            .filter(|(_, (effective, _))| *effective == Effective::ReadOnly)
            .find_map(|(path, _)| self.places.get(path).and_then(|placement| shown((path, placement))))
    }
}
