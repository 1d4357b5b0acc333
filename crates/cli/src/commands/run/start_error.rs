//! A sandbox that did not start: why on this host, and one thing to do about it.

use pinfold_model::wire::Layer;
use pinfold_runtime::backend::process::{StartError, layer_name};
use pinfold_runtime::diagnose;
use pinfold_server::audit::Event;
use rustix::io::Errno;

use crate::error::{Error, code};

/// The error for a person.
pub(in crate::commands) fn explain(error: StartError) -> Error {
    // Only words depend on the variable: a sandbox cannot be made inside one, whatever it says.
    if std::env::var_os("PINFOLD_SANDBOX").is_some() && matches!(error, StartError::Namespaces { .. }) {
        return Error::new(
            code::NOT_STARTED,
            "This is the inside of a Pinfold sandbox, and no second one can be made in it.",
        )
        .hint("run the command as it is: the walls around it hold for it too");
    }
    let hint = diagnose::hint(&error);
    let message = format!("The sandbox did not start: {error}.");
    match hint {
        Some(hint) => Error::new(code::NOT_STARTED, message).hint(hint),
        None => Error::new(code::NOT_STARTED, message).hint("pinfold doctor tells what works on this host"),
    }
}

/// The same for the audit log.
pub(super) fn event(error: &StartError) -> Event {
    let reason = error.to_string();
    match error {
        StartError::Layer { failure } if failure.layer == Layer::Proof => Event::SelfTestFailed {
            check: failure.step.clone(),
            reason,
        },
        StartError::Layer { failure } => Event::StartRefused {
            layer: layer_name(failure.layer).to_owned(),
            step: failure.step.clone(),
            reason,
        },
        _ => Event::StartRefused {
            layer: "namespaces".to_owned(),
            step: "start the guest".to_owned(),
            reason,
        },
    }
}

/// A command that could not be executed (shells' convention: 126 and 127).
pub(super) fn not_executed(errno: i32, what: &[u8]) -> Error {
    // A number that the guest made up is no error of the kernel's.
    let errno = Errno::from_io_error(&std::io::Error::from_raw_os_error(errno)).unwrap_or(Errno::IO);
    let name = what.escape_ascii();
    match errno {
        Errno::NOENT => Error::new(
            code::NOT_FOUND,
            format!("The command '{name}' was not found inside the sandbox."),
        )
        .hint("is it in a folder of PATH that the sandbox sees? --read PATH makes one visible"),
        errno => Error::new(
            code::NOT_EXECUTABLE,
            format!("The command '{name}' cannot be executed: {errno}."),
        )
        .hint("is the file executable, for this kind of machine, and are you allowed to?"),
    }
}
