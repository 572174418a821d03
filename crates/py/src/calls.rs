//! Long calls: the GIL released, Ctrl-C looked for while they run, progress told to Python.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tiergraph_core::{Cancel, Progress, Result};

use crate::errors::raise;

const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// One long call: what stops it, and whom it tells how far it is.
pub(crate) struct Call {
    /// The flag that the work looks at.
    pub(crate) cancel: Cancel,
    callable: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Call {
    /// A call that tells its progress to `callable(stage, done, total, unit)`, if there is one.
    pub(crate) fn new(callable: Option<Py<PyAny>>) -> Self {
        Self { cancel: Cancel::default(), callable, raised: Mutex::new(None) }
    }

    /// Runs `work` on a thread of its own and waits for it without the GIL.
    ///
    /// Python runs signal handlers on the calling thread only, and only when asked, so the caller
    /// asks ten times a second. Once a handler raises (Ctrl-C does), the call is cancelled, `work`
    /// is waited for, and what the handler raised is returned; so with the progress callable.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        thread::scope(|scope| {
            let (done, finished) = bounded(1);
            let worker = scope.spawn(move || {
                let result = work();
                // The receiver lives until this thread is joined.
                let _ = done.send(());
                result
            });
            while py.detach(|| finished.recv_timeout(SIGNAL_POLL)) == Err(RecvTimeoutError::Timeout)
            {
                if let Err(error) = py.check_signals() {
                    self.stop(error);
                }
            }
            let result = py.detach(|| worker.join());
            if let Some(error) = self.raised.lock().ok().and_then(|mut raised| raised.take()) {
                return Err(error);
            }
            match result {
                Ok(result) => result.map_err(|e| raise(py, &e)),
                Err(_) => Err(PyRuntimeError::new_err("a worker thread of tiergraph panicked")),
            }
        })
    }

    /// Cancels the work; the first error that stopped it is the one that the caller sees.
    pub(crate) fn stop(&self, error: PyErr) {
        self.cancel.cancel();
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
    }
}

impl Progress for Call {
    fn update(&self, stage: &str, done: u64, total: u64, unit: &str) {
        let Some(callable) = &self.callable else { return };
        if self.cancel.is_cancelled() {
            return;
        }
        Python::attach(|py| {
            if let Err(error) = callable.call1(py, (stage, done, total, unit)) {
                self.stop(error);
            }
        });
    }
}
