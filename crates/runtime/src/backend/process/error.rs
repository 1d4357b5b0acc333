//! Why a sandbox does not start, and what its guest may not say.

use pinfold_model::wire::{Failure, Layer};
use pinfold_sys::Errno;
use pinfold_sys::namespace::InitStep;
use thiserror::Error;

/// A sandbox that does not start. Nothing is left of it.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("pinfold runs with privileges from its own file (set-user-ID or file capabilities)")]
    SetUserId,
    #[error("the kernel refused new namespaces: {errno}")]
    Namespaces { errno: Errno },
    #[error("cannot {}: {errno}", step.words())]
    Init { step: InitStep, errno: Errno },
    #[error("{}", describe(failure))]
    Layer { failure: Failure },
    #[error("cannot {step}: {source}")]
    Host { step: &'static str, source: std::io::Error },
    #[error("the guest failed: {what}")]
    Guest { what: String },
}

impl StartError {
    pub(super) fn host(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Host { step, source }
    }

    pub(super) fn errno(step: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Host {
            step,
            source: errno.into(),
        }
    }
}

/// A message that a guest does not send. Its sandbox is to be dropped.
#[derive(Debug, Error)]
pub enum Breach {
    #[error("the guest sent a frame larger than allowed")]
    TooLarge,
    #[error("the guest sent a frame that cannot be read")]
    Malformed,
    #[error("the guest sent descriptors that it may not send")]
    Descriptors,
    #[error("the control socket failed: {errno}")]
    Socket { errno: Errno },
}

/// A failed layer in words.
fn describe(failure: &Failure) -> String {
    let layer = layer_name(failure.layer);
    if failure.errno == 0 {
        format!("{layer}: {}", failure.step)
    } else {
        format!(
            "{layer}: cannot {}: {}",
            failure.step,
            std::io::Error::from_raw_os_error(failure.errno)
        )
    }
}

/// The name of a layer for messages and the audit log.
#[must_use]
pub fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Protocol => "protocol",
        Layer::Namespaces => "namespaces",
        Layer::Mounts => "mounts",
        Layer::Proc => "procfs",
        Layer::Network => "network",
        Layer::Landlock => "landlock",
        Layer::Seccomp => "seccomp",
        Layer::Capabilities => "capabilities",
        Layer::Limits => "limits",
        Layer::Terminal => "terminal",
        Layer::Proof => "self-test",
        Layer::Trace => "tracing",
    }
}
