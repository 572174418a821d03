//! Long calls from Python: without the GIL, stopped by Ctrl-C, with progress reported to Python.

use std::cell::RefCell;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result, panics, threads};

use crate::errors::raise;

const SIGNAL_POLL: Duration = Duration::from_millis(100);

thread_local! {
    /// Addresses of the objects locked by calls that wait for this thread.
    static LOCKED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A long call: its cancellation flag, and the Python callable that its progress is reported to.
pub(crate) struct Call {
    /// The flag that cancels the work.
    pub(crate) cancel: Cancel,
    callable: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
    /// Addresses of objects that the caller has locked, which `callable` must not wait for.
    locked: Vec<usize>,
}

impl Call {
    /// A call that tells its progress to `callable(stage, done, total, unit)`, if there is one.
    pub(crate) fn new(callable: Option<Py<PyAny>>) -> Self {
        let locked = LOCKED.with_borrow(Clone::clone);
        Self { cancel: Cancel::default(), callable, raised: Mutex::new(None), locked }
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
            let worker = threads::start_in(scope, "call", move || {
                let result = panics::caught(work);
                // The receiver lives until this thread is joined.
                let _ = done.send(());
                result
            });
            let worker = worker.map_err(|e| raise(py, &e))?;
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
            let result = result.unwrap_or_else(|payload| Err(panics::error(&*payload)));
            result.map_err(|e| raise(py, &e))
        })
    }

    /// Cancels the work with `error`; the caller sees the first error that did so.
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
            let before = LOCKED.replace(self.locked.clone());
            let called = callable.call1(py, (stage, done, total, unit));
            LOCKED.set(before);
            if let Err(error) = called {
                self.stop(error);
            }
        });
    }
}

/// A note that this thread holds an object's lock, until dropped: asking for that lock once more, from a
/// progress callable or a signal handler, would wait for ever and is an error.
pub(crate) struct Locked(usize);

impl Locked {
    /// Notes that this thread takes the lock of `object`; fails if it holds that lock already.
    pub(crate) fn by_this_call<T>(py: Python<'_>, object: &T, what: &str) -> PyResult<Self> {
        let address = std::ptr::from_ref(object).addr();
        if LOCKED.with_borrow(|all| all.contains(&address)) {
            let error = Error::new(ErrorKind::Input, "use")
                .object(what)
                .expected("one that is not in a call")
                .got("a call from within another on it, as from its `progress`")
                .hint("note what is to be done, and do it when that call has returned");
            return Err(raise(py, &error));
        }
        LOCKED.with_borrow_mut(|all| all.push(address));
        Ok(Self(address))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        LOCKED.with_borrow_mut(|all| {
            if let Some(at) = all.iter().rposition(|&address| address == self.0) {
                all.remove(at);
            }
        });
    }
}
