//! One epoch: threads prepare windows of batches ahead, one caller takes the batches in order.
//!
//! What the threads do is in [`board`](crate::pipeline::queue).

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tiergraph_core::{Cancel, Result, threads};
use tiergraph_mem::Reservation;

use crate::gathering::edges::{EdgeValues, Held};
use crate::gathering::matrix::Matrix;
use crate::pipeline::queue::{Board, GLANCE, State, Workshop};
use crate::pipeline::shared::{SeedOrder, Shared};
use crate::pipeline::stats::EpochStats;
use crate::sampling::batch::MiniBatch;

/// A batch that is ready to train on.
#[derive(Debug)]
pub struct Prepared {
    /// What was sampled.
    pub batch: MiniBatch,
    /// The places of its seeds in the caller's list.
    pub input_id: Vec<u32>,
    /// The features of its nodes.
    pub x: Option<Matrix>,
    /// What is known about its edges.
    pub edges: EdgeValues,
    /// What of the graph's memory it holds.
    pub(crate) held: Arc<Reservation>,
}

impl Prepared {
    /// What of the graph's memory the batch counts for, until the last clone is dropped.
    pub fn held(&self) -> Arc<Reservation> {
        Arc::clone(&self.held)
    }

    /// Takes the features, with the memory that they count for.
    pub fn take_x(&mut self) -> Option<Held> {
        let matrix = self.x.take()?;
        Some(Held::new(matrix, &self.held))
    }

    /// Takes the features of the edges, with the memory that they count for.
    pub fn take_edge_features(&mut self) -> Option<Held> {
        let matrix = self.edges.features.take()?;
        Some(Held::new(matrix, &self.held))
    }
}

/// The batches of an epoch, in order. Dropping it stops its threads and waits for them.
#[derive(Debug)]
pub struct Epoch<W: Workshop = Shared> {
    board: Arc<Board<W>>,
    workers: Vec<JoinHandle<()>>,
}

impl<W: Workshop> Epoch<W> {
    pub(crate) fn start(
        shared: Arc<W>,
        epoch: u64,
        order: SeedOrder,
        first: usize,
    ) -> Result<Self> {
        let batches = order.batches();
        let first = first.min(batches);
        let state = State {
            claimed: first,
            reserving: first,
            taken: first,
            waiting: false,
            ready: BTreeMap::new(),
            failure: None,
            stop: false,
            told: false,
            stats: EpochStats::default(),
        };
        let threads = shared.options().threads.min(batches - first);
        let (news, halt) = (Condvar::new(), Cancel::default());
        let board =
            Arc::new(Board { shared, epoch, order, batches, state: Mutex::new(state), news, halt });
        let mut this = Self { board, workers: Vec::new() };
        for number in 0..threads {
            let board = Arc::clone(&this.board);
            this.workers.push(threads::start(&format!("batches-{number}"), move || board.work())?);
        }
        Ok(this)
    }

    /// Batches of the rank's epoch.
    pub fn len(&self) -> usize {
        self.board.batches
    }

    /// Whether the epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.board.batches == 0
    }

    /// What was done so far, by all threads.
    pub fn stats(&self) -> EpochStats {
        self.board.lock().stats
    }

    /// The next batch, waiting no longer than `limit`; `Ok(None)` if it is not ready by then or
    /// there is none (see [`is_done`](Self::is_done)).
    ///
    /// # Errors
    /// What preparing a batch met: reading, damage, memory, cancellation. The epoch is over then.
    pub fn poll(&mut self, limit: Duration) -> Result<Option<W::Prepared>> {
        let board = &*self.board;
        let since = Instant::now();
        let mut state = board.lock();
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
            if next == board.batches || state.stop || left.is_zero() {
                break Ok(None);
            }
            if let Err(error) = board.shared.graph().cancel().check("load batches") {
                break Err(error);
            }
            state = board.wait(state, left.min(GLANCE));
        };
        if taken.is_err() {
            (state.stop, state.told) = (true, true);
        }
        state.waiting = false;
        state.stats.seconds_wait += since.elapsed().as_secs_f64();
        drop(state);
        board.news.notify_all();
        taken
    }

    /// Whether every batch was taken, or the caller was told of an error.
    pub fn is_done(&self) -> bool {
        let state = self.board.lock();
        state.taken == self.board.batches || state.told
    }
}

impl<W: Workshop> Iterator for Epoch<W> {
    type Item = Result<W::Prepared>;

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

impl<W: Workshop> Drop for Epoch<W> {
    fn drop(&mut self) {
        self.board.halt.cancel();
        self.board.lock().stop = true;
        self.board.news.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so to whoever asked for a batch.
            let _ = worker.join();
        }
    }
}
