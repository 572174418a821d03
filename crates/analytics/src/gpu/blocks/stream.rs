//! How blocks reach the device from elsewhere: the workers that read them, and the slots that they fill.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Result, ThreadPool};
use tiergraph_gpu::kernels::{EdgeMap, Program};
use tiergraph_gpu::{CuFile, Device, DeviceBuf, PinnedPool};
use tiergraph_graph::Graph;
use tiergraph_io::engine::{ReaderThreads, Retry, RetrySettings};
use tiergraph_io::pipeline::{Buffers, Consumer, NextPass, ReadWorkers};
use tiergraph_io::{CuFiles, EnginePool, EngineReport};

use super::locked::LockedBlocks;
use super::shape::Shape;
use super::slots::Slots;
use super::tables::Tables;
use crate::gpu::Transfers;
use crate::gpu::timeline::{Origin, Timeline};

/// Bytes of the host buffers of all workers: of more, less would still be in the processor's cache when
/// it is copied, and both reading and copying would wait for memory.
const BUFFERS_BYTES: usize = 96 << 20;
/// The same where blocks come only once: locking memory takes longer than reading it.
const BUFFERS_ONCE_BYTES: usize = 64 << 20;
/// Host buffers of a worker: some are being read into, some copied from.
const BUFFERS: RangeInclusive<usize> = 2..=16;
/// Reads of cuFile in flight of each worker: calls that wait, each on a thread.
const CUFILE_DEPTH: usize = 4;

/// What reads a graph's blocks for the device.
pub(in crate::gpu) struct BlockReader {
    workers: ReadWorkers,
    /// Where blocks stay in host memory; none where none may.
    locked: Option<Arc<LockedBlocks>>,
    /// The files, where cuFile reads them.
    cufile: Option<Arc<CuFiles>>,
}

impl BlockReader {
    /// A reader of a graph's blocks, by as many workers as there are lanes of slots; whether each comes
    /// `once`; `keeps` as many of them in host memory.
    pub fn new(
        graph: &Graph,
        device: &Device,
        tables: &Tables,
        (transfers, workers): (Transfers, usize),
        (once, keeps): (bool, usize),
    ) -> Result<Self> {
        let threads = Arc::new(ThreadPool::new(workers));
        if transfers == Transfers::Direct {
            let files = Arc::new(CuFiles::new(graph.files(), device)?);
            let engines = cufile_engines(graph, &files);
            let workers = ReadWorkers::new(threads, engines, |_| Buffers::locked(Vec::new(), None));
            return Ok(Self { workers, locked: None, cufile: Some(files) });
        }
        let bytes = if once { BUFFERS_ONCE_BYTES } else { BUFFERS_BYTES };
        let (least, most) = BUFFERS.into_inner();
        let share = (bytes / (workers * tables.block_bytes)).clamp(least, most);
        let mut buffers = PinnedPool::buffers(device, workers * share, tables.block_bytes)?;
        let shares: Vec<_> =
            (0..workers).map(|_| Mutex::new(buffers.split_off(buffers.len() - share))).collect();
        let keeps = if transfers == Transfers::Synchronous { 0 } else { keeps };
        let locked = (keeps > 0)
            .then(|| Arc::new(LockedBlocks::new(graph, device, tables.block_bytes, keeps)));
        let spare = locked.clone();
        let own = move |number: usize| {
            let free = std::mem::take(&mut *lock(&shares[number]));
            let spare = spare.clone();
            Buffers::locked(free, spare.map(|spare| Arc::new(move || spare.next()) as _))
        };
        let workers = ReadWorkers::new(threads, Arc::clone(graph.engines()), own);
        Ok(Self { workers, locked, cufile: None })
    }

    /// Which way it reads, if without host memory.
    pub fn direct(&self) -> Option<String> {
        self.cufile.as_ref().map(|files| files.how())
    }

    /// What device memory that is read into is registered with.
    pub fn cufile(&self) -> Option<&'static CuFile> {
        self.cufile.as_ref().map(|files| files.cufile())
    }

    /// Where blocks stay in host memory; none where none may.
    pub fn locked(&self) -> Option<&Arc<LockedBlocks>> {
        self.locked.as_ref()
    }

    /// Hands `blocks` of the graph's file to `consumers`, one a worker; blocks may stay in locked memory
    /// if they `may_stay`.
    pub fn pass(
        &mut self,
        graph: &Graph,
        (tables, blocks): (&Tables, &[u32]),
        (next, may_stay): (NextPass, bool),
        consumers: &[Mutex<impl Consumer + Send>],
    ) -> Result<()> {
        let requests = graph.block_requests(tables.file, blocks)?;
        let mut around = graph.surroundings();
        around.residency = around.residency.filter(|_| may_stay);
        self.workers.pass(&requests, next, around, |number| lock(&consumers[number]))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Engines that read a graph's files into device memory.
fn cufile_engines(graph: &Graph, files: &Arc<CuFiles>) -> Arc<EnginePool> {
    let (files, of_graph) = (Arc::clone(files), Arc::clone(graph.files()));
    let open = move |_: &Arc<_>| {
        let engine = ReaderThreads::cufile(&files, CUFILE_DEPTH)?;
        let engine = Retry::new(engine, Arc::clone(&of_graph), RetrySettings::default());
        let report = EngineReport { engine: "cufile", why: files.how(), depth: CUFILE_DEPTH };
        Ok((Box::new(engine) as _, report))
    };
    EnginePool::new(Arc::clone(graph.files()), Arc::new(open), 0)
}

/// A reader and the slots that it fills.
pub(in crate::gpu) struct BlockStream {
    reader: BlockReader,
    slots: Vec<Slots>,
    /// Whether reads, copies and computing overlap; else one block comes after the other.
    is_ahead: bool,
}

impl BlockStream {
    /// Bytes of device memory that it takes.
    pub fn device_bytes(shape: Shape, tables: &Tables) -> u64 {
        (shape.lanes * shape.slots * shape.batch) as u64 * tables.slot_bytes()
    }

    /// The slots of `shape`, which `reader` fills.
    pub fn new(
        graph: &Graph,
        device: &Device,
        (transfers, shape, tables): (Transfers, Shape, &Tables),
        reader: BlockReader,
    ) -> Result<Self> {
        let is_ahead = transfers != Transfers::Synchronous;
        let how = (reader.cufile(), !is_ahead);
        let slots =
            |lane| Slots::new(device, shape, tables, how, Timeline::new(graph.trace(), lane));
        let slots = (0..shape.lanes).map(slots).collect::<Result<_>>()?;
        Ok(Self { reader, slots, is_ahead })
    }

    /// Which way direct reads go.
    pub fn direct(&self) -> Option<String> {
        let unregistered = self.slots.iter().find_map(Slots::unregistered);
        let slots = unregistered.map_or_else(String::new, |why| format!("; {why}"));
        self.reader.direct().map(|how| format!("{how}{slots}"))
    }

    /// Where blocks stay in host memory; none where none may.
    pub fn locked(&self) -> Option<&Arc<LockedBlocks>> {
        self.reader.locked()
    }

    /// Runs `programs` over `blocks`, and waits.
    pub fn run<P: Program>(
        &mut self,
        graph: &Graph,
        (tables, blocks): (&Tables, &[u32]),
        (kernel, programs, active): (&EdgeMap<P>, &[P], Option<&DeviceBuf<u8>>),
        next: NextPass,
    ) -> Result<()> {
        // Nothing is read ahead where one block comes after the other, nor into slots that are computed on.
        let is_ahead = self.is_ahead && self.reader.cufile.is_none();
        let next = if is_ahead { next } else { NextPass::Unknown };
        let pass = |slots| Slots::for_pass(slots, (tables, blocks), (kernel, programs, active));
        let slots: Vec<_> = self.slots.iter_mut().map(pass).map(Mutex::new).collect();
        self.reader.pass(graph, (tables, blocks), (next, true), &slots)?;
        drop(slots);
        self.slots.iter().try_for_each(Slots::synchronize)
    }

    /// Tells a run's trace when the slots did what.
    pub fn tell(&mut self, origin: Option<&Origin>) -> Result<()> {
        self.slots.iter_mut().try_for_each(|slots| slots.timeline().tell(origin))
    }
}
