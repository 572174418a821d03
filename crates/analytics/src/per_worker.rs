//! A state for each worker.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A state for each worker, which stays from pass to pass.
#[derive(Debug)]
pub(crate) struct PerWorker<S>(Vec<Mutex<S>>);

impl<S> PerWorker<S> {
    /// The states of the first worker, the second, and so on.
    pub(crate) fn new(each: impl Iterator<Item = S>) -> Self {
        Self(each.map(Mutex::new).collect())
    }

    /// The number of states.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Locks the state of `worker`, which is its only user.
    pub(crate) fn of(&self, worker: usize) -> MutexGuard<'_, S> {
        self.0[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The states of all workers, without locks.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.0.iter_mut().map(|state| state.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}
