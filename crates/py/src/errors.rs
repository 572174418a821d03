//! Errors of the engine as the exceptions of `tiergraph.errors`, and JSON as options and reports.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tiergraph_core::{Error, ErrorKind, Result};

/// The Python exception for `error`.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Format => "FormatError",
        ErrorKind::Io => "IoError",
        ErrorKind::Device => "DeviceError",
        ErrorKind::Budget => "BudgetError",
        ErrorKind::Input => "InputError",
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

/// What goes to Python as JSON text.
pub(crate) fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Options that come from Python as JSON text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::new(ErrorKind::Input, "read the options").got(e))
}
