//! Panics as errors: a panic in any thread reaches the caller as an [`ErrorKind::Internal`].

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};

use crate::{Error, ErrorKind, Result};

/// Panics that one error names at most: a thread's, and those of the threads that waited for it.
const MOST: usize = 3;

/// What panics said, in order, since the last of them became an error.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Installs a panic hook that prints nothing: the error that a panic becomes says what and where.
pub fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(note)));
}

/// Calls `work` and returns its result; a panic in it becomes an error.
///
/// ```
/// use tiergraph_core::{ErrorKind, panics};
/// let caught = panics::caught(|| -> tiergraph_core::Result<()> { panic!("at the disco") });
/// let error = caught.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Internal);
/// assert!(error.to_string().contains("at the disco"));
/// ```
///
/// # Errors
/// Those of `work`; `Internal` if it panics.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What `work` had borrowed is either dropped with the error or behind locks that are poisoned.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(error(&*payload)))
}

/// The [`ErrorKind::Internal`] error of all panics since the last call, as [`keep`]'s hook noted them; of
/// `payload` alone where it noted none.
pub fn error(payload: &(dyn Any + Send)) -> Error {
    let mut said = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    if said.is_empty() {
        said.push(text(payload).to_owned());
    }
    Error::new(ErrorKind::Internal, "finish").got(format!("a panic: {}", said.join("; then ")))
}

/// The error of the panic that is unwinding this thread, for destructors that run meanwhile.
pub fn unwinding() -> Error {
    error(&"unknown")
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < MOST {
        said.push(format!("{}{}", text(info.payload()), place.unwrap_or_default()));
    }
}

fn text(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without words",
    }
}
