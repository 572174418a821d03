//! Threads whose start can fail: a system that gives no more of them is an error, not a panic.

use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{Error, Result};

/// Starts a thread called `tiergraph-NAME`.
///
/// # Errors
/// The system gives no more threads.
pub fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    named(name).spawn(body).map_err(|e| refused(name, e))
}

/// Starts a thread called `tiergraph-NAME` that ends before `scope` does.
///
/// # Errors
/// The system gives no more threads.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    named(name).spawn_scoped(scope, body).map_err(|e| refused(name, e))
}

fn named(name: &str) -> Builder {
    Builder::new().name(format!("tiergraph-{name}"))
}

fn refused(name: &str, error: std::io::Error) -> Error {
    Error::io("start the thread", name, error).hint(MORE)
}

/// The hint of errors that say that a thread could not be started.
pub const MORE: &str = "use fewer `--threads`, or raise the limit of processes (`ulimit -u`, or the \
    container's limit of pids)";
