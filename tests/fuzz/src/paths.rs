//! Path rules and globs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pinfold_model::policy::glob::Glob;
use pinfold_model::policy::{Base, PathPattern};

/// The first line is the pattern, the rest the path it is held against.
pub(crate) fn glob(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let Ok(pattern) = std::str::from_utf8(&bytes[..end]) else {
        return;
    };
    let Ok(glob) = Glob::parse(pattern) else { return };
    let path = bytes.get(end + 1..).unwrap_or_default();
    let _ = glob.matches(Path::new(OsStr::from_bytes(path)));
}

/// A parsed rule is absolute and has nothing left that could lead elsewhere.
pub(crate) fn path_rule(bytes: &[u8]) {
    let base = Base {
        folder: "/srv/app".into(),
        home: Some("/home/user".into()),
    };
    let Ok(pattern) = PathPattern::parse(bytes, &base) else {
        return;
    };
    assert!(pattern.path.is_absolute(), "relative: {:?}", pattern.path);
    let parts = pattern.path.as_os_str().as_bytes().split(|&byte| byte == b'/');
    assert!(
        !parts.clone().any(|part| part == b"." || part == b".."),
        "not folded: {:?}",
        pattern.path
    );
    assert!(!pattern.path.as_os_str().as_bytes().contains(&0), "holds NUL");
    assert!(!pattern.to_text().is_empty());
}
