//! An epoch on a GPU: batches are begun ahead of the one that is handed over.
//!
//! The caller allocates arrays; a batch is sampled, and they are filled. A thread samples and fills
//! ([`making`](super::making)), so that the caller waits for neither. Rows that are in no memory are read
//! meanwhile, and waited for when the batch is handed over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_gpu::Stream;
use tiergraph_gpu::kernels::Sampled;

use super::arrays::{BatchSize, Outputs, RecentSizes};
use super::making::{Made, MadeBatch, Making, Work};
use super::row_reads::LateRows;
use super::rows::RowTiers;
use super::{Done, Filling, GpuLoader};
use crate::pipeline::epoch::Prepared;
use crate::pipeline::order::Inputs;
use crate::pipeline::stats::EpochStats;

/// A batch that was sampled, so that its sizes are known.
#[derive(Debug)]
pub struct GpuBatch {
    /// The batch's number in the whole epoch.
    pub number: u32,
    /// Nodes and edges by hop; of a batch that the CPU sampled, its nodes alone.
    pub sampled: Sampled,
    /// The number of its seeds; 0 if the GPU did not sample it.
    pub seeds: usize,
    /// The batch as the CPU sampled it, without features; `None` if the GPU sampled it.
    pub by_cpu: Option<Prepared>,
}

/// A batch whose arrays are being filled, or that is handed over.
#[derive(Debug)]
pub struct Filled<B> {
    /// The batch: its sizes and seeds.
    pub batch: GpuBatch,
    /// The owner of its arrays.
    pub buffers: B,
    filling: Filling,
}

/// Counts and times of an epoch so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GpuEpochStats {
    /// Batches that were sampled.
    pub batches: u64,
    /// Nodes of all batches.
    pub nodes: u64,
    /// Edges of all batches.
    pub edges: u64,
    /// Seconds of sampling, with the wait for the batches' sizes.
    pub seconds_sample: f64,
    /// Seconds of starting to fill batches.
    pub seconds_fill: f64,
    /// Seconds that rows from storage were waited for.
    pub seconds_gather: f64,
    /// Seconds that the caller waited for batches.
    pub seconds_wait: f64,
    /// Reads from storage, and submissions to the GPU.
    #[serde(flatten)]
    pub done: Done,
    /// Counts of the CPU's epoch; `None` where the GPU samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_cpu: Option<EpochStats>,
}

/// The batches of one epoch of a [`GpuLoader`], in order. Dropping it gives up those that are begun.
pub struct GpuEpoch<B> {
    loader: Arc<Mutex<GpuLoader>>,
    late: Option<Arc<LateRows>>,
    handing: Arc<Stream>,
    making: Making,
    /// How many batches there are, and which is the next that has no arrays.
    batches: usize,
    next: usize,
    /// The number of batches that have arrays before the one before them is handed over.
    ahead: usize,
    /// The size of all batches but the last; `None` where those before one say how large it will be.
    size: Option<BatchSize>,
    recent: RecentSizes,
    /// The owners of the arrays that the thread was given and does not fill yet, in order.
    given: VecDeque<B>,
    /// The size of the batch that the first of those do not suit.
    refused: Option<BatchSize>,
    begun: VecDeque<Filled<B>>,
    stats: GpuEpochStats,
    /// The loader's counts before this epoch.
    before: Done,
    failed: bool,
}

impl<B> GpuEpoch<B> {
    /// Begins epoch `epoch` over `inputs` from the rank's batch `first` on.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have, too many, or bounds that do not cut
    /// them; threads that the system refuses.
    pub fn start(
        loader: &Arc<Mutex<GpuLoader>>,
        epoch: u64,
        inputs: Inputs<'_>,
        first: usize,
    ) -> Result<Self> {
        let work = lock(loader).work(epoch, inputs, first)?;
        Self::over(loader, work, first)
    }

    /// Begins to hand over the features of all vertices, at most `most` at a time, in the order of the
    /// graph: batches without edges and without seeds.
    ///
    /// # Errors
    /// Threads that the system refuses.
    pub fn of_all_rows(loader: &Arc<Mutex<GpuLoader>>, most: usize) -> Result<Self> {
        let held = lock(loader);
        let most = most.clamp(1, held.most_selected());
        let work = Work::Select { vertices: held.vertices, most };
        drop(held);
        Self::over(loader, work, 0)
    }

    fn over(loader: &Arc<Mutex<GpuLoader>>, work: Work, first: usize) -> Result<Self> {
        let held = lock(loader);
        let (ahead, before, handing) = (held.ahead(), held.done(), Arc::clone(&held.handing));
        let recent = held.recent.clone();
        let late = held.rows.as_ref().and_then(RowTiers::late).cloned();
        drop(held);
        let (batches, size) = (work.batches(), work.size());
        Ok(Self {
            making: Making::start(loader, work, first..batches)?,
            loader: Arc::clone(loader),
            late,
            handing,
            batches,
            next: first,
            ahead,
            size,
            recent,
            given: VecDeque::new(),
            refused: None,
            begun: VecDeque::new(),
            stats: GpuEpochStats::default(),
            before,
            failed: false,
        })
    }

    /// How large the next arrays should be that the caller makes, for [`give`](Self::give); `None` if no other
    /// batch may be begun now.
    ///
    /// As large as the batches before, or of no size where there were none. A batch that these do not suit
    /// is asked for again, with its own size.
    ///
    /// # Errors
    /// Any error of the driver or of a read. The epoch is over then.
    pub fn wanted(&mut self) -> Result<Option<BatchSize>> {
        while !self.given.is_empty() && self.receive(Duration::ZERO)? {}
        Ok(match (self.refused, self.size.or(self.recent.expected())) {
            (Some(size), _) => Some(size),
            (None, Some(size)) if self.has_room() => Some(size),
            (None, None) if self.has_room() && self.given.is_empty() => Some(BatchSize::default()),
            _ => None,
        })
    }

    /// Has a batch written to the arrays that were [`wanted`](Self::wanted), after what the loader's stream for
    /// allocating does; `buffers` owns the memory that `to` names.
    pub fn give(&mut self, buffers: B, to: &Outputs) {
        if self.refused.take().is_some() {
            self.making.give_exact(*to);
            self.given.pop_front();
            self.given.push_front(buffers);
        } else {
            self.making.give(*to);
            self.next += 1;
            self.given.push_back(buffers);
        }
    }

    /// The next batch, with all that fills it in order with the loader's stream for handing over;
    /// `Ok(None)` if it is not there within `patience`, or arrays may be [`wanted`](Self::wanted) meanwhile, or
    /// there is no further batch (see [`is_done`](Self::is_done)).
    ///
    /// # Errors
    /// A row that cannot be read or is damaged, any error of the driver. The epoch is over then.
    pub fn poll(&mut self, patience: Duration) -> Result<Option<Filled<B>>> {
        while self.begun.is_empty() && !self.given.is_empty() {
            if self.refused.is_some() || !self.receive(patience)? {
                return Ok(None);
            }
        }
        let Some(first) = self.begun.front() else { return Ok(None) };
        let since = Instant::now();
        let rows = match (&self.late, first.filling.late_rows) {
            (Some(late), Some(ticket)) => {
                // What the thread tells is taken where arrays were given.
                let is_called = || !self.given.is_empty() && self.making.is_waited_for();
                late.wait(ticket, patience, is_called).map(|done| done.map(Some))
            }
            _ => Ok(Some(None)),
        };
        self.stats.seconds_gather += since.elapsed().as_secs_f64();
        let Some(rows) = self.over_if_failed(rows)? else { return Ok(None) };
        let Some(first) = self.begun.pop_front() else { return Ok(None) };
        let waited = [Some(&first.filling.filled), rows.as_ref()];
        let waited = waited.into_iter().flatten().try_for_each(|e| self.handing.wait_for(e));
        self.over_if_failed(waited)?;
        Ok(Some(first))
    }

    /// Whether every batch was handed over, or the epoch failed.
    pub fn is_done(&self) -> bool {
        let is_idle = self.begun.is_empty() && self.given.is_empty();
        self.failed || (is_idle && self.next >= self.batches)
    }

    /// Counts and times so far.
    pub fn stats(&self) -> GpuEpochStats {
        let mut stats = self.stats;
        stats.done = lock(&self.loader).done().since(&self.before);
        if let Some(by_cpu) = &stats.by_cpu {
            stats.done.reads.add_sampled(by_cpu);
        }
        stats
    }

    /// Adds `time` to the caller's waits for batches.
    pub fn waited(&mut self, time: Duration) {
        self.stats.seconds_wait += time.as_secs_f64();
    }

    /// Ends the epoch, and gives up the batches that are begun: counts do not change any more.
    pub fn end(&mut self) {
        let made: Vec<Made> = self.making.end().collect();
        made.into_iter().for_each(|made| self.take(made));
        self.failed = true;
        for begun in self.begun.drain(..) {
            // Before its arrays are dropped: kernels may write to them until then.
            let late = self.late.as_ref().zip(begun.filling.late_rows);
            late.into_iter().for_each(|(late, ticket)| late.give_up(ticket));
            // After an error of the driver no kernel runs any more.
            let _ = begun.filling.filled.synchronize();
        }
        self.given.clear();
        self.refused = None;
    }

    /// Whether another batch may be begun.
    fn has_room(&self) -> bool {
        let begun = self.begun.len() + self.given.len();
        !self.failed && self.next < self.batches && begun <= self.ahead
    }

    /// Takes what the thread made next; false if there is nothing within `patience`.
    fn receive(&mut self, patience: Duration) -> Result<bool> {
        let made = self.making.next(patience);
        let Some(made) = self.over_if_failed(made)? else { return Ok(false) };
        self.take(made);
        Ok(true)
    }

    /// Takes what the thread tells.
    fn take(&mut self, made: Made) {
        match made {
            Made::Refused(size) => self.refused = Some(size),
            Made::Filled(made) => {
                self.recent.push(BatchSize::of(&made.batch.sampled));
                self.count(&made);
                if let Some(buffers) = self.given.pop_front() {
                    let MadeBatch { batch, filling, .. } = *made;
                    self.begun.push_back(Filled { batch, buffers, filling });
                }
            }
        }
    }

    /// Adds a batch that was made to counts and times.
    fn count(&mut self, made: &MadeBatch) {
        let MadeBatch { batch, sample_time, fill_time, by_cpu, .. } = made;
        let edges = batch.by_cpu.as_ref().map(|prepared| prepared.batch.edge_count());
        let stats = &mut self.stats;
        stats.batches += 1;
        stats.nodes += batch.sampled.nodes() as u64;
        stats.edges += edges.unwrap_or(batch.sampled.edges() as u64);
        stats.seconds_sample += sample_time.as_secs_f64();
        stats.seconds_fill += fill_time.as_secs_f64();
        stats.by_cpu = *by_cpu;
    }

    fn over_if_failed<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.end();
        }
        result
    }
}

impl<B> Drop for GpuEpoch<B> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Locks the loader; a call that panicked left counts behind that the next one writes anew.
pub(super) fn lock(loader: &Mutex<GpuLoader>) -> MutexGuard<'_, GpuLoader> {
    loader.lock().unwrap_or_else(PoisonError::into_inner)
}
