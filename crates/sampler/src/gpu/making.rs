//! The thread that makes the batches of an epoch: it samples the next one while the caller trains.
//!
//! ```text
//! caller:  allocate ─┐
//! thread:  sample ───┴ fill ─ sample …
//! ```
//! Only the caller's own calls take time of the caller: what waits for the GPU is the thread. The caller makes
//! arrays of the size of the batches before, so that the thread never waits for it while it trains. Where
//! those do not suit a batch, the thread says how large it is, and waits for others.

use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tiergraph_core::{Cancel, Error, ErrorKind, Result, panics, threads};
use tiergraph_gpu::kernels::Sampled;

use super::arrays::{BatchSize, Outputs};
use super::epoch::{GpuBatch, lock};
use super::{Filling, GpuLoader};
use crate::pipeline::epoch::{Epoch, Prepared};
use crate::pipeline::order::SeedOrder;
use crate::pipeline::stats::EpochStats;

/// Between two looks at whether to stop, where the CPU's batches are waited for.
const PATIENCE: Duration = Duration::from_millis(20);

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
    /// How many batches there are.
    pub fn batches(&self) -> usize {
        match self {
            Self::Sample { order, .. } => order.batches(),
            Self::Gather(batches) => batches.len(),
            Self::Select { vertices, most } => vertices.div_ceil(*most),
        }
    }

    /// Makes batch `number`, until its sizes are known: of `selected` vertices alone, where the GPU does
    /// not sample.
    fn make(&self, loader: &mut GpuLoader, number: usize, selected: &[u32]) -> Result<Sampled> {
        match self {
            Self::Sample { epoch, order } => {
                loader.sample(*epoch, order.seeds_of(number), &order.input_id(number))
            }
            Self::Gather(_) => {
                let selected = loader.select(selected)?;
                loader.recent.push(BatchSize::of(&selected));
                Ok(selected)
            }
            Self::Select { .. } => loader.select(selected),
        }
    }

    /// The size of all batches but the last, where it is known before any is made.
    pub fn size(&self) -> Option<BatchSize> {
        match self {
            Self::Sample { .. } | Self::Gather(_) => None,
            Self::Select { vertices, most } => {
                Some(BatchSize { nodes: *most.min(vertices), edges: 0 })
            }
        }
    }

    /// The batch of these sizes, as the caller gets it.
    fn batch(&self, number: usize, sampled: Sampled, by_cpu: Option<Prepared>) -> GpuBatch {
        let (number, seeds) = match (self, &by_cpu) {
            (Self::Sample { order, .. }, _) => {
                let seeds = order.seeds_of(number);
                (seeds.number, seeds.vertices.len())
            }
            (_, Some(prepared)) => (prepared.batch.number, 0),
            (_, None) => (number as u32, 0),
        };
        GpuBatch { number, sampled, seeds, by_cpu }
    }
}

/// What the thread tells.
pub(super) enum Made {
    /// The first arrays that were given do not suit their batch, which is this large.
    Refused(BatchSize),
    /// The first arrays that were given are being filled.
    Filled(Box<MadeBatch>),
}

/// A batch whose arrays are being filled, and what that took.
pub(super) struct MadeBatch {
    pub batch: GpuBatch,
    pub filling: Filling,
    /// Until its sizes were known.
    pub sample_time: Duration,
    /// To start filling it.
    pub fill_time: Duration,
    /// The counts of the CPU's epoch; `None` where the GPU samples.
    pub by_cpu: Option<EpochStats>,
}

/// The two ways in which arrays come to the thread.
struct Arrays<Way> {
    /// Those of batches whose sizes are not known yet, in order.
    expected: Way,
    /// Those of the batch that refused the ones before.
    exact: Way,
}

/// The thread, and what it has made. Dropping it ends the thread.
pub(super) struct Making {
    arrays: Option<Arrays<Sender<Outputs>>>,
    made: Receiver<Result<Made>>,
    thread: Option<JoinHandle<()>>,
    stop: Cancel,
}

impl Making {
    /// Starts to make the batches of these numbers of `work`.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(
        loader: &Arc<Mutex<GpuLoader>>,
        work: Work,
        numbers: Range<usize>,
    ) -> Result<Self> {
        let ((expected, next), (exact, other), (told, made)) =
            (unbounded(), unbounded(), unbounded());
        let (given, stop) = (Arrays { expected: next, exact: other }, Cancel::default());
        let maker = Maker { loader: Arc::clone(loader), work, given, told, stop: stop.clone() };
        let run = move || {
            let mut maker = maker;
            if let Err(error) = panics::caught(|| maker.run(numbers)) {
                // Nobody listens to an epoch that was dropped.
                let _ = maker.told.send(Err(error));
            }
        };
        let thread = Some(threads::start("batches-gpu", run)?);
        Ok(Self { arrays: Some(Arrays { expected, exact }), made, thread, stop })
    }

    /// Gives the arrays of the next batch that has none.
    pub fn give(&self, to: Outputs) {
        if let Some(arrays) = &self.arrays {
            // A thread that failed has told so.
            let _ = arrays.expected.send(to);
        }
    }

    /// Gives the arrays of the batch that refused those it was given.
    pub fn give_exact(&self, to: Outputs) {
        if let Some(arrays) = &self.arrays {
            // A thread that failed has told so.
            let _ = arrays.exact.send(to);
        }
    }

    /// What was made next; `None` if nothing is within `patience`.
    ///
    /// # Errors
    /// Any error of the thread, which has ended then.
    pub fn next(&self, patience: Duration) -> Result<Option<Made>> {
        match self.made.recv_timeout(patience) {
            Ok(made) => made.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::new(ErrorKind::Internal, "wait for a batch")
                    .expected("one that is made")
                    .got("the end of all"))
            }
        }
    }

    /// Whether something was made that nobody took.
    pub fn is_waited_for(&self) -> bool {
        !self.made.is_empty()
    }

    /// Ends the thread; what it had made until then.
    pub fn end(&mut self) -> impl Iterator<Item = Made> {
        self.stop.cancel();
        self.arrays = None;
        // A thread that panicked has told so.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
        self.made.try_iter().filter_map(Result::ok)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.end().for_each(drop);
    }
}

/// What the thread has.
struct Maker {
    loader: Arc<Mutex<GpuLoader>>,
    work: Work,
    given: Arrays<Receiver<Outputs>>,
    told: Sender<Result<Made>>,
    stop: Cancel,
}

impl Maker {
    /// Makes batches until the last one, or the end of who takes them.
    fn run(&mut self, numbers: Range<usize>) -> Result<()> {
        for number in numbers {
            let since = Instant::now();
            let Some((selected, by_cpu)) = self.selected(number)? else { return Ok(()) };
            let (sampled, made) = {
                let mut loader = lock(&self.loader);
                (self.work.make(&mut loader, number, &selected)?, loader.made)
            };
            let counts = match &self.work {
                Work::Gather(batches) => Some(batches.stats()),
                Work::Sample { .. } | Work::Select { .. } => None,
            };
            let batch = self.work.batch(number, sampled, by_cpu);
            let sample_time = since.elapsed();
            let Some(to) = self.arrays_of(BatchSize::of(&batch.sampled)) else { return Ok(()) };
            let since = Instant::now();
            let mut loader = lock(&self.loader);
            if loader.made != made {
                // Another epoch of the loader made one meanwhile. The same comes out again.
                self.work.make(&mut loader, number, &selected)?;
            }
            let filling = loader.fill(&batch.sampled, batch.seeds, &to)?;
            drop(loader);
            let fill_time = since.elapsed();
            let made = MadeBatch { batch, filling, sample_time, fill_time, by_cpu: counts };
            if self.told.send(Ok(Made::Filled(Box::new(made)))).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Arrays that suit a batch of this size, when they are given; `None` if nobody takes batches any more.
    fn arrays_of(&self, size: BatchSize) -> Option<Outputs> {
        let given = self.given.expected.recv().ok()?;
        if given.room.suits(size) {
            return Some(given);
        }
        self.told.send(Ok(Made::Refused(size))).ok()?;
        self.given.exact.recv().ok()
    }

    /// The vertices of batch `number` where the GPU does not sample, and what the CPU sampled; `None` if it
    /// is over.
    fn selected(&mut self, number: usize) -> Result<Option<(Vec<u32>, Option<Prepared>)>> {
        match &mut self.work {
            Work::Sample { .. } => Ok(Some((Vec::new(), None))),
            Work::Select { vertices, most } => {
                let range = number * *most..((number + 1) * *most).min(*vertices);
                Ok(Some((range.map(|vertex| vertex as u32).collect(), None)))
            }
            Work::Gather(batches) => {
                while !self.stop.is_cancelled() {
                    if let Some(prepared) = batches.poll(PATIENCE)? {
                        return Ok(Some((prepared.batch.nodes[0].n_id.clone(), Some(prepared))));
                    }
                }
                Ok(None)
            }
        }
    }
}
