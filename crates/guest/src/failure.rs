//! Errors of setting up, each with the layer and step that failed.

use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::Errno;

/// A step of a layer that the kernel refused.
pub(crate) fn failure(layer: Layer, step: impl Into<String>, errno: Errno) -> Failure {
    Failure {
        layer,
        step: step.into(),
        errno: errno.raw_os_error(),
    }
}

/// Names the layer and step of a kernel error.
pub(crate) trait During<T> {
    fn during(self, layer: Layer, step: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, layer: Layer, step: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|errno| failure(layer, step(), errno))
    }
}

/// Bytes of a path for a message, with what is not printable escaped.
pub(crate) fn shown(path: &[u8]) -> String {
    path.escape_ascii().to_string()
}
