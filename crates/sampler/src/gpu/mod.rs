//! A loader on a GPU: the same batches as the CPU's, bit for bit, made where models train on them.
//!
//! Neighbours lie in device memory if they fit half of it, else in pinned host memory that kernels
//! read. Feature rows fill what is left of device memory, hottest first, then pinned host memory
//! (Hyperion §III-B2: first what saves the most transactions over PCIe); the rest is read from
//! storage, batch by batch. Presampling runs on the GPU itself.
//!
//! Batches that kernels cannot sample come from a loader on the CPU ([`GpuLoader::of_cpus`]); kernels
//! gather their features from the same tiers.

mod drive_rows;
mod epoch;
mod from_cpu;
mod placed;
mod readers;
mod rows;
mod storage;
mod tiers;

use std::sync::Arc;
use std::time::Duration;

use tiergraph_cache::placement::by_hotness;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{BatchOutputs, Lists, Request, Sampled, Sampler};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use crate::options::LoaderOptions;
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::sampling::batch::Seeds;
use crate::sampling::philox::{EpochKey, Purpose};
use rows::{RowReads, RowTiers};

use epoch::Work;
use from_cpu::CpuSampler;

pub use epoch::{Filled, GpuBatch, GpuEpoch, GpuEpochStats};
pub use placed::{Done, GpuTiers, Outputs, Placed};
pub use storage::StorageReads;

/// The number of batches that are begun and not handed over, where rows are read from storage.
const STORAGE_AHEAD: usize = 3;

/// A loader that makes batches on a GPU, one after the other, on a high-priority stream of its own.
pub struct GpuLoader {
    stream: Stream,
    lists: Lists,
    sampler: Sampler,
    /// The CPU loader that samples in place of `sampler`; `None` where kernels sample.
    cpu: Option<CpuSampler>,
    rows: Option<RowTiers>,
    positions: Option<DeviceBuf<u32>>,
    placed: Placed,
    fanouts: Vec<u32>,
    vertices: usize,
    tiers: GpuTiers,
    options: LoaderOptions,
    /// The reservation for neighbours in pinned host memory.
    _held: Option<Reservation>,
}

impl GpuLoader {
    /// A loader for epochs over `seeds`. `positions` has each vertex's position in the user's order
    /// (`None` if both orders agree); `presample` batches are sampled to find the rows that are hot.
    ///
    /// # Errors
    /// No GPU, options that kernels do not sample by, too little device or host memory.
    pub fn new(
        graph: &Arc<Graph>,
        tiers: GpuTiers,
        options: &LoaderOptions,
        seeds: &[u32],
        positions: Option<&[u32]>,
        presample: usize,
    ) -> Result<Self> {
        check(options)?;
        let device = Device::open(tiers.ordinal)?;
        let (stream, multiprocessors_why) = tiers.stream(&device)?;
        let free = device.memory()?.free;
        let memory = tiers.device_memory.unwrap_or(free / 2).min(free);
        let fanouts = options.sample[0].fanouts.iter();
        let fanouts: Vec<u32> =
            fanouts.map(|fanout| fanout.most().min(u32::MAX.into()) as u32).collect();
        let (vertices, arcs) = (graph.vertices(), graph.manifest().arcs);
        let working = Sampler::device_bytes(vertices, options.batch_size, &fanouts, arcs)
            + 12 * vertices as u64;
        let left = memory.checked_sub(working).ok_or_else(|| tiers::too_small(working, memory))?;
        let (lists, held) = tiers::lists(graph, &stream, options.direction, left)?;
        let neighbors_on_device = held.is_none();
        let left = if neighbors_on_device { left - 4 * arcs } else { left };
        let sampler = Sampler::new(&stream, &lists, options.batch_size, &fanouts, arcs)?;
        let positions = positions.map(|p| stream.uploaded(p)).transpose()?;
        let placed = Placed {
            neighbors_on_device,
            multiprocessors: stream.multiprocessors(),
            multiprocessors_why,
            ..Placed::default()
        };
        let mut loader = Self {
            stream,
            lists,
            sampler,
            cpu: None,
            rows: None,
            positions,
            placed,
            fanouts,
            vertices,
            tiers,
            options: options.clone(),
            _held: held,
        };
        if let Some(name) = loader.options.features[0].clone() {
            loader.place_rows(graph, &name, left, seeds.into(), presample)?;
        }
        loader.count_bytes(working);
        match loader.placed.neighbors_on_device {
            true => loader.placed.device_bytes += 4 * arcs,
            false => loader.placed.host_bytes += 4 * arcs,
        }
        Ok(loader)
    }

    /// Puts the rows of the features `name` into `left` bytes of device memory, into host memory,
    /// or leaves them to storage.
    fn place_rows(
        &mut self,
        graph: &Arc<Graph>,
        name: &str,
        left: u64,
        inputs: Inputs<'_>,
        presample: usize,
    ) -> Result<()> {
        let (vertices, stride) = (graph.vertices(), graph.features().get(name)?.row_bytes() as u64);
        // Where all rows fit the device, nobody needs to know which are hot.
        let order = match vertices as u64 * stride <= left {
            true => (0..vertices as u32).collect(),
            false => self.hottest(inputs, presample, vertices)?,
        };
        let (threads, stream, sampler) = (self.options.threads, &self.stream, &self.sampler);
        // What the CPU's batches will take is not there for rows.
        let _held = self.cpu.as_ref().map(|cpu| cpu.reserve_batches(graph)).transpose()?;
        let tiers = &self.tiers;
        let rows = RowTiers::new(graph, name, tiers, stream, sampler, &order, left, threads)?;
        let (device_rows, host_rows) = (u64::from(rows.rows.device_count), rows.host_rows);
        (self.placed.device_rows, self.placed.host_rows) = (device_rows, host_rows);
        self.placed.storage_rows = vertices as u64 - device_rows - host_rows;
        self.placed.storage_reads = rows.storage.as_ref().map(RowReads::way);
        self.rows = Some(rows);
        Ok(())
    }

    /// Counts the bytes that are placed: rows, and `working` bytes of device memory beside them.
    fn count_bytes(&mut self, working: u64) {
        let stride = self.rows.as_ref().map_or(0, |rows| u64::from(rows.rows.stride));
        let placed = &mut self.placed;
        placed.device_bytes = working + placed.device_rows * stride;
        placed.host_bytes = placed.host_rows * stride;
    }

    /// All vertices, by how many of the first batches of an epoch want them, most first.
    fn hottest(&mut self, inputs: Inputs<'_>, batches: usize, vertices: usize) -> Result<Vec<u32>> {
        let uses = match &self.cpu {
            Some(cpu) => cpu.uses(inputs, batches)?,
            None => self.uses(inputs, batches, vertices)?,
        };
        let mut order = by_hotness(&uses);
        // Those that no batch wanted have rows too.
        order.extend((0..vertices as u32).filter(|&v| uses[v as usize] == 0));
        Ok(order)
    }

    /// For each vertex, the number of an epoch's first `batches` batches that want it.
    fn uses(&mut self, inputs: Inputs<'_>, batches: usize, vertices: usize) -> Result<Vec<u32>> {
        let mut uses: DeviceBuf<u32> = DeviceBuf::new(self.stream.device(), vertices)?;
        self.stream.fill_bytes(&mut uses, 0)?;
        let order = SeedOrder::new(&self.options, self.vertices, 0, inputs)?;
        for number in 0..order.batches().min(batches) {
            self.sample(0, order.seeds_of(number))?;
            self.sampler.count_uses(&self.stream, &mut uses)?;
        }
        self.stream.download(&uses, vertices)
    }

    /// Where neighbours and rows are, and how many bytes they take.
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// The handle of the stream that batches are made on.
    pub fn stream(&self) -> u64 {
        self.stream.handle()
    }

    /// The number of values in a row of features; 0 without features.
    pub fn dim(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.rows.dim as usize)
    }

    /// Begins to make the batches of an epoch over `inputs`, from the rank's batch `first` on.
    fn work(&self, epoch: u64, inputs: Inputs<'_>, first: usize) -> Result<Work> {
        Ok(match &self.cpu {
            Some(cpu) => Work::Gather(cpu.loader.epoch(epoch, inputs, first)?),
            None => {
                let order = SeedOrder::new(&self.options, self.vertices, epoch, inputs)?;
                Work::Sample { epoch, order }
            }
        })
    }

    /// The number of batches that are begun before the one before them is handed over.
    fn ahead(&self) -> usize {
        let usual = if self.placed.storage_rows > 0 { STORAGE_AHEAD } else { 1 };
        self.tiers.prefetch.filter(|&batches| batches > 0).unwrap_or(usual)
    }

    /// Samples the batch of `seeds` of an epoch, and waits for its sizes.
    fn sample(&mut self, epoch: u64, seeds: Seeds<'_>) -> Result<Sampled> {
        let key = EpochKey::new(self.options.seed, epoch, Purpose::Sample).words();
        let Seeds { number: batch, vertices: seeds, .. } = seeds;
        let request = Request { seeds, fanouts: &self.fanouts, key, batch };
        let (stream, rows) = (&self.stream, &mut self.rows);
        self.sampler.sample(stream, &self.lists, &request, |sampler| match rows {
            Some(rows) => rows.start_finding(stream, sampler),
            None => Ok(()),
        })
    }

    /// The most vertices that [`select`](Self::select) takes without more memory.
    fn most_selected(&self) -> usize {
        self.sampler.n_id().len()
    }

    /// Makes a batch of `vertices` alone, as if it had been sampled.
    fn select(&mut self, vertices: &[u32]) -> Result<Sampled> {
        let selected = self.sampler.select(&self.stream, vertices)?;
        if let Some(rows) = &mut self.rows {
            rows.start_finding(&self.stream, &self.sampler)?;
        }
        Ok(selected)
    }

    /// Writes the batch that was sampled last, and its features, in order with the stream. Returns a
    /// ticket if rows must be read from storage: `to.x` is complete, and may be freed, once
    /// [`finish`](Self::finish) returns true for it.
    fn fill(&mut self, sampled: &Sampled, to: &Outputs) -> Result<Option<u64>> {
        let (nodes, edges) = (sampled.nodes(), sampled.edges());
        let (stream, x) = (&self.stream, DeviceView::at(to.x, nodes * self.dim()));
        // First of all: the stream has nothing else to wait for yet.
        let ticket = match &mut self.rows {
            Some(rows) => rows.begin(stream, &self.sampler, x)?,
            None => None,
        };
        let outputs = BatchOutputs {
            positions: self.positions.as_ref(),
            nodes: DeviceView::at(to.nodes, nodes),
            edge_index: DeviceView::at(to.edge_index, 2 * edges),
            e_id: DeviceView::at(to.e_id, edges),
        };
        self.sampler.export(stream, sampled, &outputs)?;
        if let Some(rows) = &self.rows {
            rows.gather(stream, self.sampler.n_id(), nodes, x)?;
        }
        Ok(ticket)
    }

    /// Copies rows that have been read to their batches; returns whether the batch of `ticket` has all
    /// its rows, in order with the stream. Waits for `patience` at most.
    fn finish(&mut self, ticket: u64, patience: Duration) -> Result<bool> {
        let Some(rows) = &mut self.rows else { return Ok(true) };
        rows.finish(&self.stream, ticket, patience)
    }

    /// Forgets a batch that was filled and will not be finished.
    fn give_up(&mut self, ticket: u64) {
        let storage = self.rows.as_mut().and_then(|rows| rows.storage.as_mut());
        storage.into_iter().for_each(|storage| storage.give_up(ticket));
    }

    /// Counts of reads from storage and of submissions to the GPU so far.
    fn done(&self) -> Done {
        let given = self.stream.device().submissions();
        let storage = self.rows.as_ref().and_then(|rows| rows.storage.as_ref());
        let reads = storage.map(RowReads::reads).unwrap_or_default();
        Done { reads, submissions: given.count, seconds_submit: given.host_time.as_secs_f64() }
    }
}

/// Refuses options that kernels do not sample by.
fn check(options: &LoaderOptions) -> Result<()> {
    options.check(1, 1)?;
    let sample = &options.sample[0];
    let named = [
        (sample.disjoint, "disjoint batches"),
        (sample.weights.is_some(), "sampling by weight"),
        (sample.times.is_some(), "sampling by time"),
        (sample.features.is_some(), "features of edges"),
    ];
    match named.iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(Error::new(ErrorKind::Input, "load batches on the GPU")
            .expected("uniform sampling of nodes")
            .got(what)
            .hint("use `--device cpu`, which does that")),
        None => Ok(()),
    }
}
