//! How blocks stream to the device: the workers that read them, and the slots that these fill.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Result, ThreadPool};
use tiergraph_gpu::kernels::{EdgeMap, Program};
use tiergraph_gpu::{CuFile, Device, DeviceBuf, PinnedPool};
use tiergraph_graph::Graph;
use tiergraph_io::engine::{ReaderThreads, Retry, RetrySettings};
use tiergraph_io::pipeline::{Buffers, Consumer, NextPass, ReadWorkers};
use tiergraph_io::{CuFiles, EnginePool, EngineReport};

use super::index::BlockIndex;
use super::pinned_tier::PinnedTier;
use super::slot_plan::SlotPlan;
use super::slots::Slots;
use crate::gpu::Transfers;
use crate::gpu::timeline::{Origin, Timeline};

/// Bytes of the host buffers of all workers: of more, less would still be in the processor's cache when
/// it is copied, and both reading and copying would wait for memory.
const BUFFERS_BYTES: usize = 96 << 20;
/// Bytes of all workers' host buffers for a single pass: pinning takes longer than reading into them.
const BUFFERS_ONCE_BYTES: usize = 64 << 20;
/// Host buffers of a worker: some are being read into, some copied from.
const BUFFERS: RangeInclusive<usize> = 2..=16;
/// Reads of cuFile in flight of each worker: calls that wait, each on a thread.
const CUFILE_DEPTH: usize = 4;

/// The blocks that a pass goes over.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Selection<'a> {
    /// The index of the file that has the blocks.
    pub index: &'a BlockIndex,
    /// The blocks' numbers.
    pub blocks: &'a [u32],
}

/// The work of a pass: each program over every block, or over the tiles that are active.
pub(in crate::gpu) struct Work<'a, P> {
    pub kernel: &'a EdgeMap<P>,
    pub programs: &'a [P],
    /// A flag for every `2^columns_log2` vertices; tiles without an active column are skipped.
    pub active: Option<&'a DeviceBuf<u8>>,
}

impl<P> Clone for Work<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Work<'_, P> {}

/// The workers that read a graph's blocks for the device.
pub(in crate::gpu) struct BlockReader {
    workers: ReadWorkers,
    worker_count: usize,
    /// The pinned memory that blocks may stay in; `None` where none may.
    pinned: Option<Arc<PinnedTier>>,
    /// The files, where cuFile reads them.
    cufile: Option<Arc<CuFiles>>,
}

impl BlockReader {
    /// Makes a reader with the workers of `plan`; `once` says that a single pass reads the blocks. Up to
    /// `pinned_blocks` of them may stay in pinned memory.
    pub fn new(
        graph: &Graph,
        device: &Device,
        index: &BlockIndex,
        plan: SlotPlan,
        once: bool,
        pinned_blocks: usize,
    ) -> Result<Self> {
        let worker_count = plan.workers;
        let threads = Arc::new(ThreadPool::new(worker_count));
        if plan.transfers == Transfers::Direct {
            let files = Arc::new(CuFiles::new(graph.engines().files(), device)?);
            let engines = cufile_engines(graph, &files);
            let workers = ReadWorkers::new(threads, engines, |_| Buffers::locked(Vec::new(), None));
            return Ok(Self { workers, worker_count, pinned: None, cufile: Some(files) });
        }
        let bytes = if once { BUFFERS_ONCE_BYTES } else { BUFFERS_BYTES };
        let (least, most) = BUFFERS.into_inner();
        let each = (bytes / (worker_count * index.block_bytes)).clamp(least, most);
        let mut buffers = PinnedPool::buffers(device, worker_count * each, index.block_bytes)?;
        let of_workers: Vec<_> = (0..worker_count)
            .map(|_| Mutex::new(buffers.split_off(buffers.len() - each)))
            .collect();
        let pinned_blocks = if plan.is_synchronous() { 0 } else { pinned_blocks };
        let pinned = (pinned_blocks > 0)
            .then(|| Arc::new(PinnedTier::new(graph, device, index.block_bytes, pinned_blocks)));
        let spare = pinned.clone();
        let own = move |number: usize| {
            let free = std::mem::take(&mut *lock(&of_workers[number]));
            let spare = spare.clone();
            Buffers::locked(free, spare.map(|spare| Arc::new(move || spare.next()) as _))
        };
        let workers = ReadWorkers::new(threads, Arc::clone(graph.engines()), own);
        Ok(Self { workers, worker_count, pinned, cufile: None })
    }

    /// The number of workers that read.
    pub fn workers(&self) -> usize {
        self.worker_count
    }

    /// How cuFile reads, in words; `None` where blocks pass through host memory.
    pub fn direct(&self) -> Option<String> {
        self.cufile.as_ref().map(|files| files.how())
    }

    /// The cuFile library that reads blocks; `None` where they pass through host memory.
    pub fn cufile(&self) -> Option<&'static CuFile> {
        self.cufile.as_ref().map(|files| files.cufile())
    }

    /// The pinned memory that blocks may stay in; `None` where none may.
    pub fn pinned(&self) -> Option<&Arc<PinnedTier>> {
        self.pinned.as_ref()
    }

    /// Hands the blocks of `selection` to `consumers`, one for each worker. Without `may_stay` all are
    /// read, and none stays in pinned memory. `next` says what may be read ahead.
    pub fn pass(
        &mut self,
        graph: &Graph,
        selection: Selection<'_>,
        next: NextPass,
        may_stay: bool,
        consumers: &[Mutex<impl Consumer + Send>],
    ) -> Result<()> {
        let requests = graph.blocks(selection.index.file).requests(selection.blocks)?;
        let mut around = graph.surroundings();
        around.residency = around.residency.filter(|_| may_stay);
        self.workers.pass(&requests, next, around, |number| lock(&consumers[number]))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool of engines that read a graph's files into device memory.
fn cufile_engines(graph: &Graph, files: &Arc<CuFiles>) -> Arc<EnginePool> {
    let (files, of_graph) = (Arc::clone(files), Arc::clone(graph.engines().files()));
    let open = move |_: &Arc<_>| {
        let engine = ReaderThreads::cufile(&files, CUFILE_DEPTH)?;
        let engine = Retry::new(engine, Arc::clone(&of_graph), RetrySettings::default());
        let report = EngineReport { engine: "cufile", why: files.how(), depth: CUFILE_DEPTH };
        Ok((Box::new(engine) as _, report))
    };
    EnginePool::new(Arc::clone(graph.engines().files()), Arc::new(open), 0)
}

/// A block reader and the slots on the device that it fills.
pub(in crate::gpu) struct BlockStream {
    reader: BlockReader,
    slots: Vec<Slots>,
    /// Whether a pass may begin to read for the next one: reads, copies and computing overlap, and no
    /// read goes into a slot that is computed on.
    reads_ahead: bool,
}

impl BlockStream {
    /// Makes the slots of `plan`, for blocks of `index` that `reader` reads.
    pub fn new(
        graph: &Graph,
        device: &Device,
        index: &BlockIndex,
        plan: SlotPlan,
        reader: BlockReader,
    ) -> Result<Self> {
        let cufile = reader.cufile();
        let slots =
            |worker| Slots::new(device, plan, index, cufile, Timeline::new(graph.trace(), worker));
        let slots = (0..plan.workers).map(slots).collect::<Result<_>>()?;
        Ok(Self { reads_ahead: !plan.is_synchronous() && cufile.is_none(), reader, slots })
    }

    /// How cuFile reads, in words; `None` where blocks pass through host memory.
    pub fn direct(&self) -> Option<String> {
        let unregistered = self.slots.iter().find_map(Slots::unregistered);
        let slots = unregistered.map_or_else(String::new, |why| format!("; {why}"));
        self.reader.direct().map(|how| format!("{how}{slots}"))
    }

    /// The pinned memory that blocks may stay in; `None` where none may.
    pub fn pinned(&self) -> Option<&Arc<PinnedTier>> {
        self.reader.pinned()
    }

    /// Does `work` on the blocks of `selection`, and waits until it has ended.
    pub fn run<P: Program>(
        &mut self,
        graph: &Graph,
        selection: Selection<'_>,
        work: Work<'_, P>,
        next: NextPass,
    ) -> Result<()> {
        let next = if self.reads_ahead { next } else { NextPass::Unknown };
        let pass = |slots| Slots::for_pass(slots, selection, work);
        let slots: Vec<_> = self.slots.iter_mut().map(pass).map(Mutex::new).collect();
        self.reader.pass(graph, selection, next, true, &slots)?;
        drop(slots);
        self.slots.iter().try_for_each(Slots::synchronize)
    }

    /// Moves the spans of work that has ended in the slots to the run's trace. `origin` relates the
    /// device's clock to the host's; with `None` (no trace), nothing is recorded.
    pub fn record(&mut self, origin: Option<&Origin>) -> Result<()> {
        self.slots.iter_mut().try_for_each(|slots| slots.timeline().record(origin))
    }
}
