//! Where in the view a missing path means something.

use std::collections::BTreeMap;

use pinfold_model::plan::Step;

/// The mounts of a view, and whether each shows exactly what the host has there.
pub(super) struct Places(BTreeMap<Vec<u8>, bool>);

impl Places {
    pub(super) fn of(view: &[Step]) -> Self {
        let places = view.iter().filter_map(|step| match step {
            Step::Bind { source, target, .. } => Some((target, source == target)),
            Step::Overlay { lower, target, .. } => Some((target, lower == target)),
            Step::Rebind { target, .. } | Step::Mask { target, .. } => Some((target, false)),
            Step::Tmpfs { path, .. } | Step::Proc { path } | Step::Devpts { path } => Some((path, false)),
            _ => None,
        });
        Self(places.map(|(path, same)| (path.to_vec(), same)).collect())
    }

    /// Whether a path that is missing inside is missing on the host as well, so that nobody has to be told. A program looks
    /// for thousands of such paths.
    pub(super) fn is_truly_missing(&self, path: &[u8]) -> bool {
        let mut path = path;
        loop {
            if let Some(same) = self.0.get(path) {
                return *same;
            }
            match path.iter().rposition(|byte| *byte == b'/') {
                Some(slash) if slash > 0 => path = &path[..slash],
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pinfold_model::plan::{Access, Node};

    use super::*;

    #[test]
    fn a_missing_path_is_news_only_where_the_view_differs_from_the_host() {
        let bind = |source: &str, target: &str| Step::Bind {
            source: source.as_bytes().to_vec().into(),
            target: target.as_bytes().to_vec().into(),
            access: Access::ReadOnly,
            node: Node::Dir,
        };
        let mask = Step::Mask {
            target: b"/usr/secret".to_vec().into(),
            node: Node::Dir,
        };
        let view = [
            bind("/usr", "/usr"),
            mask,
            bind("/data/home", "/home/me"),
            bind("/home/me/app", "/home/me/app"),
        ];
        let places = Places::of(&view);
        for (path, missing) in [
            ("/usr/lib/x.so", true),
            ("/usr/secret/key", false),
            ("/usr2", false),
            ("/home/me/.bashrc", false),
            ("/home/me/app/x", true),
            ("/etc", false),
            ("/", false),
        ] {
            assert_eq!(places.is_truly_missing(path.as_bytes()), missing, "{path}");
        }
    }
}
