//! The engine's errors as exceptions of `tiergraph.errors`; options and reports as JSON.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tiergraph_core::{Error, ErrorKind, Result, panics};

/// The Python exception that stands for `error`.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Format => "FormatError",
        ErrorKind::Io => "IoError",
        ErrorKind::Device => "DeviceError",
        ErrorKind::Budget => "BudgetError",
        ErrorKind::Input => "InputError",
        ErrorKind::Internal => "InternalError",
        ErrorKind::Interrupted => return PyKeyboardInterrupt::new_err(()),
    };
    let made = py
        .import("tiergraph.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((error.to_string(),)))
        .and_then(|made| match error.enough_bytes() {
            Some(bytes) => made.setattr("enough_bytes", bytes).map(|()| made),
            None => Ok(made),
        });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// Does `work` on this thread without the GIL; a panic in it is an exception like any error.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| panics::caught(work)).map_err(|e| raise(py, &e))
}

/// The exception for `what`, whose lock was held by a call that panicked.
pub(crate) fn spoilt(py: Python<'_>, what: &str) -> PyErr {
    let error = Error::new(ErrorKind::Input, "use")
        .object(what)
        .expected("one whose earlier calls came to an end")
        .got("one in which a call panicked")
        .hint("open it again");
    raise(py, &error)
}

/// Writes a report as JSON text for Python.
pub(crate) fn to_json(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|e| raise(py, &Error::new(ErrorKind::Internal, "write the report").got(e)))
}

/// Reads options that Python passes as JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::new(ErrorKind::Input, "read the options").got(e))
}
