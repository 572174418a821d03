//! The thread that makes the batches of an epoch: it samples the next one while the caller trains.
//!
//! ```text
//! thread:  sample ─ sizes ─┐            ┌─ fill ─ sample …
//! caller:                  └─ allocate ─┘
//! ```
//! Only the caller's own calls take time of the caller: what waits for the GPU is the thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tiergraph_core::{Cancel, Error, ErrorKind, Result, panics, threads};
use tiergraph_gpu::kernels::Sampled;

use super::epoch::{GpuBatch, lock};
use super::{Filling, GpuLoader, Outputs};
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
            Self::Sample { epoch, order } => loader.sample(*epoch, order.seeds_of(number)),
            Self::Gather(_) | Self::Select { .. } => loader.select(selected),
        }
    }

    /// The batch of these sizes, as the caller gets it.
    fn batch(&self, number: usize, sampled: Sampled, by_cpu: Option<Prepared>) -> GpuBatch {
        let (number, input_id) = match (self, &by_cpu) {
            (Self::Sample { order, .. }, _) => {
                (order.seeds_of(number).number, order.input_id(number))
            }
            (_, Some(prepared)) => (prepared.batch.number, Vec::new()),
            (_, None) => (number as u32, Vec::new()),
        };
        GpuBatch { number, sampled, input_id, by_cpu }
    }
}

/// What the thread tells.
pub(super) enum Made {
    /// A batch whose sizes are known, how long that took, and the counts of the CPU's epoch.
    Sampled(Box<GpuBatch>, Duration, Option<EpochStats>),
    /// The batch before is being filled, and how long it took to start that.
    Filled(Filling, Duration),
}

/// The thread, and what it has made. Dropping it ends the thread.
pub(super) struct Making {
    outputs: Option<Sender<Outputs>>,
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
        let ((send, outputs), (told, made)) = (unbounded(), unbounded());
        let stop = Cancel::default();
        let maker = Maker { loader: Arc::clone(loader), work, outputs, told, stop: stop.clone() };
        let run = move || {
            let mut maker = maker;
            if let Err(error) = panics::caught(|| maker.run(numbers)) {
                // Nobody listens to an epoch that was dropped.
                let _ = maker.told.send(Err(error));
            }
        };
        let thread = Some(threads::start("batches-gpu", run)?);
        Ok(Self { outputs: Some(send), made, thread, stop })
    }

    /// Has the batch that was sampled last filled.
    pub fn fill(&self, to: Outputs) {
        if let Some(outputs) = &self.outputs {
            // A thread that failed has told so.
            let _ = outputs.send(to);
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
        self.outputs = None;
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
    outputs: Receiver<Outputs>,
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
            let batch = self.work.batch(number, sampled.clone(), by_cpu);
            if self.told.send(Ok(Made::Sampled(Box::new(batch), since.elapsed(), counts))).is_err()
            {
                return Ok(());
            }
            let Ok(to) = self.outputs.recv() else { return Ok(()) };
            let since = Instant::now();
            let mut loader = lock(&self.loader);
            if loader.made != made {
                // Another epoch of the loader made one meanwhile. The same comes out again.
                self.work.make(&mut loader, number, &selected)?;
            }
            let filling = loader.fill(&sampled, &to)?;
            drop(loader);
            if self.told.send(Ok(Made::Filled(filling, since.elapsed()))).is_err() {
                return Ok(());
            }
        }
        Ok(())
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
