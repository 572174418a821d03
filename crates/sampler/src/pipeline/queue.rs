//! Where the workers of an epoch and its caller meet, and what the workers do.
//!
//! How a window is made is a [`Workshop`]'s: of graphs of one type, or of several. A worker claims
//! the next window when no more than `window + prefetch` batches are begun and not yet taken. It
//! samples the window, reserves the memory of its features, gathers them, and lays the batches out.
//! Windows reserve in their order, so that a later one never holds the memory that an earlier one
//! waits for. Which thread prepares a window, and when, changes nothing in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tiergraph_core::{Cancel, Error, ErrorKind, Result, panics};
use tiergraph_graph::{Graph, PageReader};
use tiergraph_mem::Reservation;

use crate::options::LoaderOptions;
use crate::pipeline::shared::SeedOrder;
use crate::pipeline::stats::EpochStats;

/// How long a wait lasts before it looks whether the run was cancelled or memory became free.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// What the workers and the caller tell each other.
#[derive(Debug)]
pub struct State<P> {
    /// The next batch to be claimed.
    pub(crate) claimed: usize,
    /// The next batch whose memory may be reserved.
    pub(crate) reserving: usize,
    /// The next batch to be taken.
    pub(crate) taken: usize,
    /// Whether the caller waits for it.
    pub(crate) waiting: bool,
    pub(crate) ready: BTreeMap<usize, P>,
    pub(crate) failure: Option<Error>,
    pub(crate) stop: bool,
    /// Whether the caller was told how the epoch failed: it is told once.
    pub(crate) told: bool,
    pub(crate) stats: EpochStats,
}

/// What epochs are made by: all that the threads of a loader share, and how one of them makes a
/// window of batches.
pub trait Workshop: Debug + Send + Sync + 'static {
    /// What a thread has for itself.
    type Tools;
    /// A batch that is ready.
    type Prepared: Debug + Send;

    /// The graph whose memory batches count for, and whose flag stops them.
    fn graph(&self) -> &Graph;

    /// How many batches are made, and when.
    fn options(&self) -> &LoaderOptions;

    /// Whether anything is read, so that the batches of a window share reads.
    fn reads(&self) -> bool;

    /// A thread's tools: used ones, or new.
    ///
    /// # Errors
    /// What does not fit the memory, what the system refuses.
    fn take_tools(&self) -> Result<Self::Tools>;

    /// Keeps a thread's tools for the next epoch.
    fn give_tools(&self, tools: Self::Tools);

    /// The reader among the tools, which the end of an epoch stops.
    fn reader(tools: &mut Self::Tools) -> &mut PageReader;

    /// Makes the batches of a window ready.
    ///
    /// # Errors
    /// What making them meets.
    fn prepare(board: &Board<Self>, tools: &mut Self::Tools, window: Range<usize>) -> Result<()>
    where
        Self: Sized;
}

/// Where the workers of one epoch and its caller meet.
#[derive(Debug)]
pub struct Board<W: Workshop> {
    pub(crate) shared: Arc<W>,
    pub(crate) epoch: u64,
    pub(crate) order: SeedOrder,
    pub(crate) batches: usize,
    pub(crate) state: Mutex<State<W::Prepared>>,
    /// Something happened.
    pub(crate) news: Condvar,
    /// Ends the workers' reads.
    pub(crate) halt: Cancel,
}

/// Tells the caller if the worker that holds it panics.
struct Watch<'a, W: Workshop>(&'a Board<W>);

impl<W: Workshop> Drop for Watch<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(panics::unwinding());
        }
    }
}

impl<W: Workshop> Board<W> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<W::Prepared>> {
        // No update leaves the state torn, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State<W::Prepared>>,
        limit: Duration,
    ) -> MutexGuard<'a, State<W::Prepared>> {
        self.news.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        state.stop = true;
        drop(state);
        self.halt.cancel();
        self.news.notify_all();
    }

    /// What a worker does: windows, until there are no more.
    pub(crate) fn work(&self) {
        let _watch = Watch(self);
        let done = self.shared.take_tools().and_then(|mut tools| {
            let done = self.windows(&mut tools);
            self.shared.give_tools(tools);
            done
        });
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn windows(&self, tools: &mut W::Tools) -> Result<()> {
        W::reader(tools).stop_by(self.halt.clone());
        while let Some(window) = self.claim() {
            self.shared.graph().cancel().check("load batches")?;
            W::prepare(self, tools, window)?;
        }
        Ok(())
    }

    /// The next window, once there is room for it; `None` when all are claimed or the epoch ends.
    fn claim(&self) -> Option<Range<usize>> {
        let options = self.shared.options();
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
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Batches of a window: one where nothing is read, so that few batches occupy all threads.
    fn window(&self) -> usize {
        if self.shared.reads() { self.shared.options().window } else { 1 }
    }

    /// The places of a batch's seeds in the caller's list.
    pub(crate) fn input_id(&self, number: usize) -> Vec<u32> {
        let range = self.order.range(number);
        match &self.order.places {
            Some(places) => places[range].to_vec(),
            None => (range.start as u32..range.end as u32).collect(),
        }
    }

    /// Hands over what is ready.
    pub(crate) fn deliver(&self, ready: Vec<(usize, W::Prepared)>, stats: &EpochStats) {
        let mut state = self.lock();
        state.ready.extend(ready);
        state.stats.add(stats);
        drop(state);
        self.news.notify_all();
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
        self.news.notify_all();
        Ok(held)
    }

    /// Reserves the memory of batch `number` of the window from `first` on. While there is too little,
    /// waits for the caller to drop batches, unless it waits for this very window: then nobody would
    /// ever make room. A batch that `may_wait` is then left for when the first ones were handed over.
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
                match self.shared.graph().reserve(bytes, &what) {
                    Ok(held) => return Ok(Some(held)),
                    Err(error) if state.waiting && state.taken >= first => {
                        return if may_wait { Ok(None) } else { Err(error) };
                    }
                    Err(_) => {}
                }
            }
            state = self.wait(state, GLANCE);
        }
    }
}
