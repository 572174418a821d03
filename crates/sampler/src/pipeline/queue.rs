//! The queue of batches between the workers of an epoch and its caller.
//!
//! A worker claims the next window when no more than `window + prefetch` batches are begun and not yet taken. It
//! samples the window, reserves the memory of its features, gathers them, and lays the batches out.
//! Windows reserve in their order, so that a later one never holds the memory that an earlier one
//! waits for. Which thread prepares a window, and when, changes nothing in it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tiergraph_core::{Cancel, Error, ErrorKind, Result, panics};
use tiergraph_mem::Reservation;

use crate::pipeline::epoch::Prepared;
use crate::pipeline::order::SeedOrder;
use crate::pipeline::scratch::Scratch;
use crate::pipeline::shared::Shared;
use crate::pipeline::stats::EpochStats;

/// The longest wait between looks at whether the run was cancelled or memory is free.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The state of an epoch's queue: how far the workers and the caller are.
#[derive(Debug, Default)]
pub(crate) struct QueueState {
    /// The next batch to be claimed.
    pub(crate) claimed: usize,
    /// The next batch whose memory may be reserved.
    pub(crate) reserving: usize,
    /// The next batch to be taken.
    pub(crate) taken: usize,
    /// Whether the caller waits for that batch.
    pub(crate) waiting: bool,
    pub(crate) ready: BTreeMap<usize, Prepared>,
    pub(crate) failure: Option<Error>,
    pub(crate) stop: bool,
    /// Whether the caller was told how the epoch failed: it is told once.
    pub(crate) told: bool,
    pub(crate) stats: EpochStats,
}

/// The batches of one epoch: claimed by workers, taken in order by one caller.
#[derive(Debug)]
pub(crate) struct PrefetchQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) epoch: u64,
    pub(crate) order: SeedOrder,
    pub(crate) batches: usize,
    pub(crate) state: Mutex<QueueState>,
    /// Signals that the state changed.
    pub(crate) changed: Condvar,
    /// The flag that stops the workers' reads.
    pub(crate) halt: Cancel,
}

/// A guard that fails the epoch if the worker that holds it panics.
struct PanicGuard<'a>(&'a PrefetchQueue);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(panics::unwinding());
        }
    }
}

impl PrefetchQueue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No update leaves the state torn, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        limit: Duration,
    ) -> MutexGuard<'a, QueueState> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        state.stop = true;
        drop(state);
        self.halt.cancel();
        self.changed.notify_all();
    }

    /// Runs a worker: prepares windows until none is left.
    pub(crate) fn work(&self) {
        let _watch = PanicGuard(self);
        let done = self.shared.take_scratch().and_then(|mut scratch| {
            let done = self.windows(&mut scratch);
            self.shared.scratch.give(scratch);
            done
        });
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn windows(&self, scratch: &mut Scratch) -> Result<()> {
        scratch.reader.stop_by(self.halt.clone());
        while let Some(window) = self.claim() {
            self.shared.any().cancel().check("load batches")?;
            self.prepare(scratch, window)?;
        }
        Ok(())
    }

    /// The next window, once there is room for it; `None` when all are claimed or the epoch ends.
    fn claim(&self) -> Option<Range<usize>> {
        let options = &self.shared.options;
        let mut state = self.lock();
        loop {
            if state.stop || state.claimed == self.batches {
                return None;
            }
            let begin = state.claimed;
            let end = self.batches.min(begin + self.window());
            if end - state.taken <= options.window + options.prefetch {
                state.claimed = end;
                return Some(begin..end);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The number of batches in a window: 1 where nothing is read, so that few occupy all threads.
    fn window(&self) -> usize {
        if self.shared.reads() { self.shared.options.window } else { 1 }
    }

    /// Puts batches that are ready into the queue.
    pub(crate) fn deliver(&self, ready: Vec<(usize, Prepared)>, stats: &EpochStats) {
        let mut state = self.lock();
        state.ready.extend(ready);
        state.stats.add(stats);
        drop(state);
        self.changed.notify_all();
    }

    /// Reserves the memory of the first batches of `window`, once all earlier windows have theirs: of
    /// all, or of as many as there is room for when the caller waits for the first of them.
    pub(crate) fn reserve(
        &self,
        window: &Range<usize>,
        bytes: Vec<u64>,
    ) -> Result<Vec<Reservation>> {
        let mut held: Vec<Reservation> = Vec::new();
        for (number, bytes) in window.clone().zip(bytes) {
            match self.reserve_one(window.start, number, bytes, !held.is_empty())? {
                Some(one) => held.push(one),
                None => break,
            }
        }
        self.lock().reserving = window.start + held.len();
        self.changed.notify_all();
        Ok(held)
    }

    /// Reserves the memory of batch `number` of the window from `first` on. While there is too little,
    /// waits for the caller to drop batches, unless it waits for this very window: then there would
    /// never be room. A batch that `may_wait` is then left for when the first ones were handed over.
    fn reserve_one(
        &self,
        first: usize,
        number: usize,
        bytes: u64,
        may_wait: bool,
    ) -> Result<Option<Reservation>> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Err(Error::new(ErrorKind::Interrupted, "load batches").got("an early end"));
            }
            if state.reserving == first {
                let what = format!(
                    "batch {number} (a smaller `--batch-size`, `--window` or `--fanout` needs less)"
                );
                match self.shared.any().memory().reserve(bytes, &what) {
                    Ok(held) => return Ok(Some(held)),
                    Err(error) if state.waiting && state.taken >= first => {
                        return if may_wait { Ok(None) } else { Err(error) };
                    }
                    Err(_) => {}
                }
            }
            state = self.wait(state, POLL_INTERVAL);
        }
    }
}
