//! A loader on a GPU: the same batches as the CPU's, bit for bit, made where models train on them.
//!
//! Neighbour lists and feature rows share device memory by the transactions over PCIe that they save
//! (Hyperion §III-B2; [`choice`]). Other lists lie in pinned host memory that kernels read, and so do
//! the hottest of the other rows; the rest is read from storage, by the host or by the GPU itself: rows
//! batch by batch, pages of lists hop by hop. Presampling runs on the GPU itself, and says
//! how many transactions an epoch takes; kernels count them.
//!
//! Batches that kernels cannot sample come from a loader on the CPU ([`GpuLoader::of_cpus`]); kernels
//! gather their features from the same tiers.

mod arrays;
mod choice;
mod drive_rows;
mod epoch;
mod from_cpu;
mod lists;
mod making;
mod placed;
mod placing;
mod readers;
mod row_reads;
mod rows;
mod storage;
mod tiers;
mod trial;
mod uses;

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{
    BatchOutputs, HostRows, LIST_PAGE_BYTES, ListPages, ListUse, Lists, Neighbors, Request,
    Sampled, Sampler,
};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Event, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use crate::options::LoaderOptions;
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::residency::hotness::Plan;
use crate::sampling::batch::Seeds;
use crate::sampling::philox::{EpochKey, Purpose};
use arrays::RecentSizes;
use choice::Wanted;
use from_cpu::CpuSampler;
use making::Work;
use placing::OpenedLists;
use rows::{RowRoom, RowTiers};

pub use arrays::{BatchSize, Outputs};
pub use choice::Transactions;
pub use epoch::{Filled, GpuBatch, GpuEpoch, GpuEpochStats};
pub use placed::{Done, GpuTiers, Placed, Predicted};
pub use storage::StorageReads;
pub use trial::ReadRates;

/// The number of batches that are begun and not handed over, where rows are read from storage.
const STORAGE_AHEAD: usize = 3;

/// A loader that makes batches on a GPU, one after the other, on a high-priority stream of its own.
pub struct GpuLoader {
    /// Samples batches, and writes them to their arrays.
    stream: Stream,
    gathering: Gathering,
    /// Does nothing but what arrays of batches are allocated behind.
    allocating: Stream,
    /// Waits for batches in the order in which they are handed over.
    handing: Arc<Stream>,
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
    /// Counts on the device: transactions of lists in host memory, pages of lists on storage, rows in host
    /// memory, rows on storage.
    counts: DeviceBuf<u64>,
    /// Transactions of all batches so far.
    transactions: Transactions,
    /// How many batches were sampled or selected: the last of them is the one that can be filled.
    made: u64,
    /// The sizes of the last batches of seeds.
    recent: RecentSizes,
    /// The reservation for neighbours in pinned host memory.
    held: Option<Reservation>,
}

/// The index among the counts on the device of the rows in host memory; those on storage follow.
const ROW_COUNTS: usize = 2;
impl GpuLoader {
    /// A loader for epochs over `seeds`. `positions` has each vertex's position in the user's order
    /// (`None` if both orders agree); `presample` batches are sampled to find the lists and rows that are
    /// hot, and `plan` says which of them device memory holds.
    ///
    /// # Errors
    /// No GPU, options that kernels do not sample by, too little device or host memory.
    pub fn new(
        graph: &Arc<Graph>,
        tiers: GpuTiers,
        options: &LoaderOptions,
        seeds: &[u32],
        positions: Option<&[u32]>,
        plan: &Plan,
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
        let name = options.features[0].clone();
        let stride = match &name {
            Some(name) => graph.features().get(name)?.row_bytes() as u64,
            None => 0,
        };
        let LoaderOptions { direction, threads, .. } = *options;
        let opened = OpenedLists::new(graph, direction, &stream, stride, threads, left)?;
        let OpenedLists { all, lists, held, read_by, taken } = opened;
        let (mut working, left) = (working + taken, left - taken);
        let sampler = Sampler::new(&stream, &lists, options.batch_size, &fanouts, arcs)?;
        let positions = positions.map(|p| stream.uploaded(p)).transpose()?;
        let placed = Placed {
            multiprocessors: stream.multiprocessors(),
            multiprocessors_why,
            ..Placed::default()
        };
        let mut loader = Self {
            counts: no_counts(&stream)?,
            gathering: Gathering { stream: stream.another()?, before: None },
            allocating: Stream::urgent(&device)?,
            handing: Arc::new(Stream::urgent(&device)?),
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
            transactions: Transactions::default(),
            made: 0,
            recent: RecentSizes::default(),
            held,
        };
        let (list_bytes, nodes) = (all.bytes(), loader.sampler.n_id().len());
        let (on_device, on_host) = if list_bytes + vertices as u64 * stride <= left {
            // Nobody needs to know what is hot.
            loader.lists.stored = None;
            drop(all);
            if let Some(name) = name {
                let order: Vec<u32> = (0..vertices as u32).collect();
                let device = left - list_bytes;
                let room = RowRoom { device, most_on_host: u64::MAX, nodes };
                loader.place_rows(graph, &name, room, None, &order)?;
            }
            (list_bytes, 0)
        } else {
            let listing = name.as_ref().map_or(0, |_| HostRows::device_bytes(nodes));
            working += listing;
            let left =
                left.checked_sub(listing).ok_or_else(|| tiers::too_small(working, memory))?;
            let uses = loader.presampled(&all, seeds.into(), presample)?;
            let order = uses.hottest_rows();
            // Where lists and rows compete for host memory, what reads rows has its part of it before.
            let reading = match &name {
                Some(name) if read_by.is_some() => Some(loader.row_reading(graph, name)?),
                _ => None,
            };
            let finding = reading.as_ref().map(|reading| reading.device_bytes);
            let wanted = Wanted { lists: &all, uses: &uses, hottest: &order, stride };
            let choice = loader.place_lists(graph, &wanted, plan, finding, left)?;
            drop(all);
            if let Some(name) = name {
                let (device, most_on_host) = (choice.row_bytes, choice.host_rows);
                let room = RowRoom { device, most_on_host, nodes };
                loader.place_rows(graph, &name, room, reading, &order)?;
            }
            loader.placed.predicted = Some(loader.predicted(&uses, &choice, &order));
            loader.placed.list_reads_by = read_by.filter(|_| loader.lists.stored.is_some());
            (choice.list_bytes, choice.host_list_bytes)
        };
        loader.count_bytes(working);
        loader.count_lists(on_device, on_host, list_bytes);
        Ok(loader)
    }

    /// Where neighbours and rows are, and how many bytes they take.
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// The handle of a stream in whose order arrays of batches are allocated; it does nothing else.
    pub fn allocating(&self) -> u64 {
        self.allocating.handle()
    }

    /// The handle of the stream that has waited for each batch when it is handed over.
    pub fn handing(&self) -> u64 {
        self.handing.handle()
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

    /// Samples the batch of `seeds` of an epoch, which are at `places` of the caller's list, and waits for its
    /// sizes.
    fn sample(&mut self, epoch: u64, seeds: Seeds<'_>, places: &[u32]) -> Result<Sampled> {
        self.made += 1;
        let sampled = self.draw(epoch, seeds, places, None)?;
        self.add_transactions()?;
        Ok(sampled)
    }

    /// Brings the counts of transactions up to date with the device's, whose stream has nothing to do.
    fn add_transactions(&mut self) -> Result<()> {
        let all_on_device = matches!(self.lists.neighbors, Neighbors::Device(_))
            && self.placed.host_rows + self.placed.storage_rows == 0;
        if !all_on_device {
            let counts = self.stream.download(&self.counts, ROW_COUNTS + 2)?;
            self.transactions = self.transactions_of([counts[0], counts[1], counts[2], counts[3]]);
        }
        Ok(())
    }

    /// Samples as [`sample`](Self::sample), and adds the transactions of each vertex's list to `by_list`.
    fn draw(
        &mut self,
        epoch: u64,
        seeds: Seeds<'_>,
        places: &[u32],
        by_list: Option<&DeviceBuf<ListUse>>,
    ) -> Result<Sampled> {
        let key = EpochKey::new(self.options.seed, epoch, Purpose::Sample).words();
        let Seeds { number: batch, vertices: seeds, .. } = seeds;
        // Counting rows adds to other values of the counts, and comes behind in the stream.
        let (stream, rows) = (&self.stream, &mut self.rows);
        let (from_host, row_counts) = (&self.counts, self.counts.ptr().offset(ROW_COUNTS));
        let request = Request {
            seeds,
            places,
            fanouts: &self.fanouts,
            key,
            batch,
            by_list,
            from_host: Some(from_host),
        };
        let sampled =
            self.sampler.sample(stream, &mut self.lists, &request, |sampler| match rows {
                Some(rows) => rows.start_finding(stream, sampler, DeviceView::at(row_counts, 2)),
                None => Ok(()),
            })?;
        self.recent.push(BatchSize::of(&sampled));
        Ok(sampled)
    }

    /// The most vertices that [`select`](Self::select) takes without more memory.
    fn most_selected(&self) -> usize {
        self.sampler.n_id().len()
    }

    /// Makes a batch of `vertices` alone, as if it had been sampled.
    fn select(&mut self, vertices: &[u32]) -> Result<Sampled> {
        self.made += 1;
        let selected = self.sampler.select(&self.stream, vertices)?;
        if let Some(rows) = &mut self.rows {
            let counts = DeviceView::at(self.counts.ptr().offset(ROW_COUNTS), 2);
            rows.start_finding(&self.stream, &self.sampler, counts)?;
        }
        self.add_transactions()?;
        Ok(selected)
    }

    /// Writes the batch that was made last, of so many `places`, to arrays that have room for it, in order with
    /// the stream, and its features behind that.
    fn fill(&mut self, sampled: &Sampled, places: usize, to: &Outputs) -> Result<Filling> {
        let (nodes, edges) = (sampled.nodes(), sampled.edges());
        let (stream, x) = (&self.stream, DeviceView::at(to.x, nodes * self.dim()));
        // After all that used the memory of the arrays before.
        stream.wait_for(&Event::behind(&self.allocating)?)?;
        // First of all: the stream has nothing else to wait for yet.
        let late_rows = match &mut self.rows {
            Some(rows) => rows.begin(stream, x)?,
            None => None,
        };
        let outputs = BatchOutputs {
            positions: self.positions.as_ref(),
            nodes: DeviceView::at(to.nodes, nodes),
            degree: to.degree.map(|at| (&self.lists.offsets, DeviceView::at(at, nodes))),
            edge_index: DeviceView::at(to.edge_index, 2 * edges),
            e_id: DeviceView::at(to.e_id, edges),
            input_id: DeviceView::at(to.input_id, places),
        };
        self.sampler.export(stream, sampled, &outputs)?;
        let exported = Event::behind(stream)?;
        let Some(rows) = &mut self.rows else { return Ok(Filling { filled: exported, late_rows }) };
        let gathering = &mut self.gathering;
        gathering.stream.wait_for(&exported)?;
        rows.gather(&gathering.stream, self.sampler.n_id(), nodes, x)?;
        // The next batch's nodes go where those of the batch before were.
        self.sampler.keep_n_id();
        let gathered = Event::behind(&gathering.stream)?;
        if let Some(before) = gathering.before.replace(gathered) {
            stream.wait_for(&before)?;
        }
        Ok(Filling { filled: Event::behind(&gathering.stream)?, late_rows })
    }

    /// Counts of reads from storage and of submissions to the GPU so far.
    fn done(&self) -> Done {
        let given = self.stream.device().submissions();
        let late = self.rows.as_ref().and_then(RowTiers::late);
        let mut reads = late.map(|late| late.reads()).unwrap_or_default();
        let lists = self.lists.stored.as_ref().map(|lists| lists.reads().brought());
        let ListPages { pages, reads: of_lists } = lists.unwrap_or_default();
        reads.list_pages += pages;
        reads.reads += of_lists;
        reads.bytes_ssd += pages * LIST_PAGE_BYTES as u64;
        Done {
            reads,
            transactions: self.transactions,
            submissions: given.count,
            seconds_submit: given.host_time.as_secs_f64(),
        }
    }
}

/// What gathers rows of a batch while the next one is sampled.
struct Gathering {
    stream: Stream,
    /// Happens when the rows of the last batch are gathered; `None` before the first one.
    before: Option<Event>,
}

/// What tells that the arrays of a batch are filled.
#[derive(Debug)]
struct Filling {
    /// Happens when all is there but the rows that are read from storage.
    filled: Event,
    /// The ticket of those rows; `None` if there are none.
    late_rows: Option<u64>,
}

/// Zeroed counts on the device.
fn no_counts(stream: &Stream) -> Result<DeviceBuf<u64>> {
    stream.uploaded(&[0; ROW_COUNTS + 2])
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
