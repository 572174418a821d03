//! A panic on purpose, for tests of how panics are reported.

use std::thread;

use pyo3::prelude::*;
use tiergraph_core::ThreadPool;
use tiergraph_core::{Error, ErrorKind, Result};

use crate::calls::Call;
use crate::errors::detached;

/// Panics at `place`: on the thread of a `call`, on threads of a `team`, on a `scoped` thread that a
/// call waits for, or `here`, on the calling thread.
#[pyfunction]
pub(crate) fn panic(py: Python<'_>, place: &str) -> PyResult<()> {
    match place {
        "call" => Call::new(None).run(py, asked),
        "team" => Call::new(None).run(py, || ThreadPool::new(2).each(|_| asked()).map(|_| ())),
        "scoped" => Call::new(None).run(py, || {
            thread::scope(|scope| drop(scope.spawn(asked)));
            Ok(())
        }),
        "here" => detached(py, asked),
        other => detached(py, || Err(Error::new(ErrorKind::Input, "panic on").object(other))),
    }
}

fn asked() -> Result<()> {
    panic!("a panic was asked for")
}
