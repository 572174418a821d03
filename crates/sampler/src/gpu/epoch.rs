//! An epoch on a GPU: batches are begun ahead of the one that is handed over.
//!
//! A batch is sampled, which tells its sizes; the caller allocates its arrays; they are filled in order
//! with the loader's stream. Rows that are in no memory are read meanwhile, and waited for when the
//! batch is handed over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::Sampled;

use super::{Done, GpuLoader, Outputs};
use crate::pipeline::epoch::{Epoch, Prepared};
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::pipeline::stats::EpochStats;

/// A batch that was sampled, so that its sizes are known.
#[derive(Debug)]
pub struct GpuBatch {
    /// The batch's number in the whole epoch.
    pub number: u32,
    /// Nodes and edges by hop; of a batch that the CPU sampled, its nodes alone.
    pub sampled: Sampled,
    /// The indices of its seeds in the caller's list; empty if the CPU sampled it.
    pub input_id: Vec<u32>,
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
    /// The ticket of the rows that are read from storage; `None` if there are none.
    ticket: Option<u64>,
}

impl<B> Filled<B> {
    /// Whether rows came from storage: they are copied to the batch after all else that filled it.
    pub fn has_late_rows(&self) -> bool {
        self.ticket.is_some()
    }
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
    /// Seconds of allocating and filling.
    pub seconds_fill: f64,
    /// Seconds that rows from storage were waited for.
    pub seconds_gather: f64,
    /// Seconds that the caller waited for batches, which has the others in it.
    pub seconds_wait: f64,
    /// Reads from storage, and submissions to the GPU.
    #[serde(flatten)]
    pub done: Done,
    /// Counts of the CPU's epoch; `None` where the GPU samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_cpu: Option<EpochStats>,
}

/// The longest wait for a batch of the CPU where none is begun on the GPU.
const PATIENCE: Duration = Duration::from_millis(100);

/// The source of an epoch's batches.
pub(super) enum Work {
    /// The GPU samples neighbourhoods of the seeds in this order.
    Sample { epoch: u64, order: SeedOrder },
    /// The CPU samples batches, without their features.
    Gather(Epoch),
    /// All vertices, at most `most` at a time, in the order of the graph, without edges.
    Select { vertices: usize, most: usize },
}

impl Work {
    fn batches(&self) -> usize {
        match self {
            Self::Sample { order, .. } => order.batches(),
            Self::Gather(batches) => batches.len(),
            Self::Select { vertices, most } => vertices.div_ceil(*most),
        }
    }

    /// Makes batch `number`, until its sizes are known; `None` if the CPU needs longer than `patience`.
    fn begin(
        &mut self,
        loader: &Mutex<GpuLoader>,
        number: usize,
        patience: Duration,
    ) -> Result<Option<GpuBatch>> {
        Ok(Some(match self {
            Self::Sample { epoch, order } => {
                let seeds = order.seeds_of(number);
                let sampled = lock(loader).sample(*epoch, seeds)?;
                let input_id = order.input_id(number);
                GpuBatch { number: seeds.number, sampled, input_id, by_cpu: None }
            }
            Self::Gather(batches) => {
                let Some(prepared) = batches.poll(patience)? else { return Ok(None) };
                let sampled = lock(loader).select(&prepared.batch.nodes[0].n_id)?;
                let number = prepared.batch.number;
                GpuBatch { number, sampled, input_id: Vec::new(), by_cpu: Some(prepared) }
            }
            Self::Select { vertices, most } => {
                let range = number * *most..((number + 1) * *most).min(*vertices);
                let selected: Vec<u32> = range.map(|vertex| vertex as u32).collect();
                let sampled = lock(loader).select(&selected)?;
                GpuBatch { number: number as u32, sampled, input_id: Vec::new(), by_cpu: None }
            }
        }))
    }
}

/// The batches of one epoch of a [`GpuLoader`], in order. Dropping it gives up those that are begun.
pub struct GpuEpoch<B> {
    loader: Arc<Mutex<GpuLoader>>,
    work: Work,
    /// The next batch to be sampled.
    next: usize,
    /// The number of batches that may be begun and not handed over.
    ahead: usize,
    /// The batch whose arrays the caller is allocating, and since when.
    sampled: Option<(GpuBatch, Instant)>,
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
        Ok(Self::over(loader, work, first))
    }

    /// Begins to hand over the features of all vertices, at most `most` at a time, in the order of the
    /// graph: batches without edges and without seeds.
    pub fn of_all_rows(loader: &Arc<Mutex<GpuLoader>>, most: usize) -> Self {
        let held = lock(loader);
        let work =
            Work::Select { vertices: held.vertices, most: most.clamp(1, held.most_selected()) };
        drop(held);
        Self::over(loader, work, 0)
    }

    fn over(loader: &Arc<Mutex<GpuLoader>>, work: Work, first: usize) -> Self {
        let held = lock(loader);
        Self {
            loader: Arc::clone(loader),
            work,
            next: first,
            ahead: held.ahead(),
            sampled: None,
            begun: VecDeque::new(),
            stats: GpuEpochStats::default(),
            before: held.done(),
            failed: false,
        }
    }

    /// Begins the next batch, whose arrays the caller then gives to [`fill`](Self::fill); `None` if no
    /// other may be begun now. Where none is begun, waits a moment for a batch that the CPU samples.
    ///
    /// # Errors
    /// Any error of the driver. The epoch is over then.
    pub fn sample(&mut self) -> Result<Option<&GpuBatch>> {
        if self.failed || self.next >= self.work.batches() || self.begun.len() > self.ahead {
            return Ok(None);
        }
        let since = Instant::now();
        let patience = if self.begun.is_empty() { PATIENCE } else { Duration::ZERO };
        let batch = self.work.begin(&self.loader, self.next, patience);
        self.stats.seconds_sample += since.elapsed().as_secs_f64();
        let Some(batch) = self.over_if_failed(batch)? else { return Ok(None) };
        let by_cpu = batch.by_cpu.as_ref().map(|prepared| prepared.batch.edge_count());
        self.next += 1;
        self.stats.batches += 1;
        self.stats.nodes += batch.sampled.nodes() as u64;
        self.stats.edges += by_cpu.unwrap_or(batch.sampled.edges() as u64);
        Ok(Some(&self.sampled.insert((batch, Instant::now())).0))
    }

    /// Fills the arrays of the batch that was sampled last, in order with the loader's stream;
    /// `buffers` owns the memory that `to` names.
    ///
    /// # Errors
    /// No batch was sampled, any error of the driver. The epoch is over then.
    pub fn fill(&mut self, buffers: B, to: &Outputs) -> Result<()> {
        let Some((batch, since)) = self.sampled.take() else {
            return Err(Error::new(ErrorKind::Input, "fill a batch").expected("a sampled one"));
        };
        let ticket = lock(&self.loader).fill(&batch.sampled, to);
        let ticket = self.over_if_failed(ticket)?;
        self.begun.push_back(Filled { batch, buffers, ticket });
        self.stats.seconds_fill += since.elapsed().as_secs_f64();
        Ok(())
    }

    /// The next batch, with all its rows in order with the stream; `Ok(None)` if these are not read
    /// within `patience`, or there is no further batch (see [`is_done`](Self::is_done)).
    ///
    /// # Errors
    /// A row that cannot be read or is damaged, any error of the driver. The epoch is over then.
    pub fn poll(&mut self, patience: Duration) -> Result<Option<Filled<B>>> {
        let Some(first) = self.begun.front() else { return Ok(None) };
        let (since, ticket) = (Instant::now(), first.ticket);
        let finished = match ticket {
            Some(ticket) => lock(&self.loader).finish(ticket, patience),
            None => Ok(true),
        };
        self.stats.seconds_gather += since.elapsed().as_secs_f64();
        let finished = self.over_if_failed(finished)?;
        Ok(if finished { self.begun.pop_front() } else { None })
    }

    /// Whether every batch was handed over, or the epoch failed.
    pub fn is_done(&self) -> bool {
        self.failed || (self.begun.is_empty() && self.next >= self.work.batches())
    }

    /// Counts and times so far.
    pub fn stats(&self) -> GpuEpochStats {
        let mut stats = self.stats;
        stats.done = lock(&self.loader).done().since(&self.before);
        if let Work::Gather(batches) = &self.work {
            let by_cpu = batches.stats();
            stats.done.reads.add_sampled(&by_cpu);
            stats.by_cpu = Some(by_cpu);
        }
        stats
    }

    /// Adds `time` to the caller's waits for batches.
    pub fn waited(&mut self, time: Duration) {
        self.stats.seconds_wait += time.as_secs_f64();
    }

    fn over_if_failed<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.failed = true;
            self.give_up();
        }
        result
    }

    fn give_up(&mut self) {
        let mut loader = lock(&self.loader);
        for begun in self.begun.drain(..) {
            // Before its arrays are dropped: kernels may write to them until then.
            begun.ticket.into_iter().for_each(|ticket| loader.give_up(ticket));
        }
    }
}

impl<B> Drop for GpuEpoch<B> {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Locks the loader; a call that panicked left counts behind that the next one writes anew.
fn lock(loader: &Mutex<GpuLoader>) -> MutexGuard<'_, GpuLoader> {
    loader.lock().unwrap_or_else(PoisonError::into_inner)
}
