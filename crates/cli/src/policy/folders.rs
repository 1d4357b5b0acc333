//! The folders of the person who runs pinfold, from the environment.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Home, and Pinfold's own folders. A folder that is not known is none; nothing is made here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folders {
    pub(crate) home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME/pinfold`, or `~/.config/pinfold`.
    pub(crate) config: Option<PathBuf>,
    /// `$XDG_DATA_HOME/pinfold`, or `~/.local/share/pinfold`.
    pub(crate) data: Option<PathBuf>,
}

impl Folders {
    /// Reads `HOME`, `XDG_CONFIG_HOME` and `XDG_DATA_HOME`.
    #[must_use]
    pub(crate) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        Self::new(
            variable("HOME").as_deref(),
            variable("XDG_CONFIG_HOME").as_deref(),
            variable("XDG_DATA_HOME").as_deref(),
        )
    }

    /// A value that is not an absolute path counts as not set (XDG Base Directory specification).
    fn new(home: Option<&OsStr>, config: Option<&OsStr>, data: Option<&OsStr>) -> Self {
        let absolute = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute(home);
        let below_home = |below: &str| home.as_ref().map(|home| home.join(below));
        Self {
            config: absolute(config)
                .or_else(|| below_home(".config"))
                .map(|folder| folder.join("pinfold")),
            data: absolute(data)
                .or_else(|| below_home(".local/share"))
                .map(|folder| folder.join("pinfold")),
            home,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_follow_the_xdg_variables_and_fall_back_to_home() {
        let table = [
            (
                Some("/h"),
                None,
                Some("/h/.config/pinfold"),
                Some("/h/.local/share/pinfold"),
            ),
            (Some("/h"), Some("/c"), Some("/c/pinfold"), Some("/c/pinfold")),
            (
                Some("/h"),
                Some("relative"),
                Some("/h/.config/pinfold"),
                Some("/h/.local/share/pinfold"),
            ),
            (None, None, None, None),
            (Some(""), None, None, None),
        ];
        for (home, xdg, config, data) in table {
            let folders = Folders::new(home.map(OsStr::new), xdg.map(OsStr::new), xdg.map(OsStr::new));
            assert_eq!(folders.config, config.map(PathBuf::from), "{home:?} {xdg:?}");
            assert_eq!(folders.data, data.map(PathBuf::from), "{home:?} {xdg:?}");
        }
    }
}
