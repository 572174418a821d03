//! One epoch: threads prepare windows of batches ahead, one caller takes the batches in order.
//!
//! What the threads do is in module `queue`.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tiergraph_core::{Cancel, Result, threads};
use tiergraph_mem::Reservation;

use crate::gathering::edges::{EdgeValues, Held};
use crate::gathering::matrix::Matrix;
use crate::pipeline::order::SeedOrder;
use crate::pipeline::queue::{POLL_INTERVAL, PrefetchQueue, QueueState};
use crate::pipeline::shared::Shared;
use crate::pipeline::stats::EpochStats;
use crate::sampling::batch::MiniBatch;

/// A batch that is ready to train on.
#[derive(Debug)]
pub struct Prepared {
    /// The sampled nodes and edges.
    pub batch: MiniBatch,
    /// The indices of its seeds in the caller's list.
    pub input_id: Vec<u32>,
    /// The features of its nodes, by node type; `None` without any.
    pub x: Vec<Option<Matrix>>,
    /// The values of its edges, by edge type.
    pub edges: Vec<EdgeValues>,
    /// The batch's reservation in the graph's memory budget.
    pub(crate) held: Arc<Reservation>,
}

impl Prepared {
    /// The batch's reservation, which lasts until the last clone is dropped.
    pub fn held(&self) -> Arc<Reservation> {
        Arc::clone(&self.held)
    }

    /// Takes the features of a node type out of the batch, with the memory that they count for.
    pub fn take_x(&mut self, node_type: usize) -> Option<Held> {
        let matrix = self.x[node_type].take()?;
        Some(Held::new(matrix, &self.held))
    }

    /// Takes the features of an edge type out of the batch, with the memory that they count for.
    pub fn take_edge_features(&mut self, edge_type: usize) -> Option<Held> {
        let matrix = self.edges[edge_type].features.take()?;
        Some(Held::new(matrix, &self.held))
    }
}

/// The batches of an epoch, in order. Dropping it stops its threads and waits for them.
#[derive(Debug)]
pub struct Epoch {
    queue: Arc<PrefetchQueue>,
    workers: Vec<JoinHandle<()>>,
}

impl Epoch {
    pub(crate) fn start(
        shared: Arc<Shared>,
        epoch: u64,
        order: SeedOrder,
        first: usize,
    ) -> Result<Self> {
        let batches = order.batches();
        let first = first.min(batches);
        let state =
            QueueState { claimed: first, reserving: first, taken: first, ..QueueState::default() };
        let threads = shared.options.threads.min(batches - first);
        let (state, changed, halt) = (Mutex::new(state), Condvar::new(), Cancel::default());
        let queue = Arc::new(PrefetchQueue { shared, epoch, order, batches, state, changed, halt });
        let mut this = Self { queue, workers: Vec::new() };
        for number in 0..threads {
            let queue = Arc::clone(&this.queue);
            this.workers.push(threads::start(&format!("batches-{number}"), move || queue.work())?);
        }
        Ok(this)
    }

    /// The number of batches in the rank's epoch.
    pub fn len(&self) -> usize {
        self.queue.batches
    }

    /// Whether the epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.queue.batches == 0
    }

    /// Counts and times so far, of all threads.
    pub fn stats(&self) -> EpochStats {
        self.queue.lock().stats
    }

    /// The next batch, waiting no longer than `limit`; `Ok(None)` if it is not ready by then or
    /// there is none (see [`is_done`](Self::is_done)).
    ///
    /// # Errors
    /// Errors of preparing a batch: reading, damage, memory, cancellation. The epoch is over then.
    pub fn poll(&mut self, limit: Duration) -> Result<Option<Prepared>> {
        let queue = &*self.queue;
        let since = Instant::now();
        let mut state = queue.lock();
        state.waiting = true;
        let taken = loop {
            if state.told {
                break Ok(None);
            }
            if let Some(error) = state.failure.take() {
                break Err(error);
            }
            let next = state.taken;
            if let Some(batch) = state.ready.remove(&next) {
                state.taken += 1;
                state.stats.batches += 1;
                break Ok(Some(batch));
            }
            let left = limit.saturating_sub(since.elapsed());
            if next == queue.batches || state.stop || left.is_zero() {
                break Ok(None);
            }
            if let Err(error) = queue.shared.any().cancel().check("load batches") {
                break Err(error);
            }
            state = queue.wait(state, left.min(POLL_INTERVAL));
        };
        if taken.is_err() {
            (state.stop, state.told) = (true, true);
        }
        state.waiting = false;
        state.stats.seconds_wait += since.elapsed().as_secs_f64();
        drop(state);
        queue.changed.notify_all();
        taken
    }

    /// Whether every batch was taken, or the epoch failed and the caller was told.
    pub fn is_done(&self) -> bool {
        let state = self.queue.lock();
        state.taken == self.queue.batches || state.told
    }
}

impl Iterator for Epoch {
    type Item = Result<Prepared>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.poll(Duration::from_secs(1)) {
                Ok(None) if self.is_done() => return None,
                Ok(None) => {}
                other => return other.transpose(),
            }
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.queue.halt.cancel();
        self.queue.lock().stop = true;
        self.queue.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so to whoever asked for a batch.
            let _ = worker.join();
        }
    }
}
