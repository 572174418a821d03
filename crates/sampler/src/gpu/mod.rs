//! A loader on a GPU: the same batches as the CPU's, bit for bit, made where models train on them.
//!
//! Neighbour lists and feature rows share device memory by the transactions over PCIe that they save
//! (Hyperion §III-B2; [`choice`]). Other lists lie in pinned host memory that kernels read, and so do
//! the hottest of the other rows; the rest is read from storage, batch by batch: rows by the host or
//! the GPU, pages of lists by the GPU alone, hop by hop. Presampling runs on the GPU itself, and says
//! how many transactions an epoch takes; kernels count them.
//!
//! Batches that kernels cannot sample come from a loader on the CPU ([`GpuLoader::of_cpus`]); kernels
//! gather their features from the same tiers.

mod choice;
mod drive_lists;
mod drive_rows;
mod epoch;
mod from_cpu;
mod lists;
mod placed;
mod readers;
mod rows;
mod storage;
mod tiers;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use tiergraph_cache::placement::Tier;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{
    BatchOutputs, LIST_PAGE_BYTES, ListUse, Lists, MissingRow, Neighbors, Request, Sampled,
    Sampler, StoredLists,
};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Stream};
use tiergraph_graph::{Direction, Graph};
use tiergraph_io::NvmeDrives;
use tiergraph_io::gpu_reads::ReadStreams;
use tiergraph_mem::Reservation;

use crate::options::LoaderOptions;
use crate::pipeline::order::{Inputs, SeedOrder};
use crate::residency::hotness::Plan;
use crate::sampling::batch::Seeds;
use crate::sampling::philox::{EpochKey, Purpose};
use choice::{Choice, LINES_OF_PAGE, Room, UNITS, Uses, Wanted};
use drive_lists::DriveLists;
use epoch::Work;
use from_cpu::CpuSampler;
use lists::{AllLists, Place};
use rows::{RowReading, RowReads, RowRoom, RowTiers};

pub use choice::Transactions;
pub use epoch::{Filled, GpuBatch, GpuEpoch, GpuEpochStats};
pub use placed::{Done, GpuTiers, Outputs, Placed, Predicted};
pub use storage::StorageReads;
pub use trial::ReadRates;

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
    /// Counts on the device: transactions of lists in host memory, pages of lists on storage, rows in host
    /// memory, rows on storage.
    counts: DeviceBuf<u64>,
    /// Transactions of all batches so far.
    transactions: Transactions,
    /// The reservation for neighbours in pinned host memory.
    held: Option<Reservation>,
}

/// The index among the counts on the device of the rows in host memory; those on storage follow.
const ROW_COUNTS: usize = 2;
/// The share of device memory, one part in so many, that pages of lists on their way may take.
const PAGES_SHARE: u64 = 16;
/// The share of host memory, one part in so many, that is left for what is read to be placed.
const PLACING_SHARE: u64 = 8;

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
        let drives = graph.engines().drives_of_gpus()?;
        let lists_of = AllLists::open(graph, options.direction, drives.is_some())?;
        let name = options.features[0].clone();
        let stride = match &name {
            Some(name) => graph.features().get(name)?.row_bytes() as u64,
            None => 0,
        };
        let all = lists_of.bytes() + vertices as u64 * stride;
        let drives = drives.filter(|_| all > left);
        let reads_by_gpu = drives.is_some();
        let (stored, taken) = match drives {
            Some(drives) => {
                let on = (&*drives.drives, &stream);
                let (stored, taken) = stored_lists(graph, options.direction, &tiers, on, left)?;
                match taken <= left {
                    true => (Some(stored), taken),
                    // Without the memory for pages on their way, lists are where they need none.
                    false if lists_of.are_in_memory() => (None, 0),
                    false => return Err(tiers::too_small(working + taken, memory)),
                }
            }
            None => (None, 0),
        };
        let (working, left) = (working + taken, left - taken);
        let (neighbors, held) = match lists_of.bytes() <= left {
            true => (lists_of.on_device(&stream)?, None),
            false => {
                let (neighbors, held) = match lists_of.are_in_memory() {
                    true => lists_of.on_host(&stream)?,
                    false => lists_of.split(&stream, &vec![Place::Storage; vertices])?,
                };
                (neighbors, Some(held))
            }
        };
        let lists = Lists { offsets: stream.uploaded(lists_of.offsets())?, neighbors, stored };
        let sampler = Sampler::new(&stream, &lists, options.batch_size, &fanouts, arcs)?;
        let positions = positions.map(|p| stream.uploaded(p)).transpose()?;
        let placed = Placed {
            multiprocessors: stream.multiprocessors(),
            multiprocessors_why,
            ..Placed::default()
        };
        let mut loader = Self {
            counts: no_counts(&stream)?,
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
            held,
        };
        let lists = lists_of.bytes();
        let (on_device, on_host) = if all <= left {
            // Nobody needs to know what is hot.
            loader.lists.stored = None;
            drop(lists_of);
            if let Some(name) = name {
                let order: Vec<u32> = (0..vertices as u32).collect();
                let room = RowRoom { device: left - lists, most_on_host: u64::MAX };
                loader.place_rows(graph, &name, room, None, &order)?;
            }
            (lists, 0)
        } else {
            let uses = loader.presampled(&lists_of, seeds.into(), presample)?;
            let order = uses.hottest_rows();
            // Where lists and rows compete for host memory, what reads rows has its part of it before.
            let reading = match &name {
                Some(name) if reads_by_gpu => Some(loader.row_reading(graph, name)?),
                _ => None,
            };
            let taken = reading.as_ref().map(|reading| reading.device_bytes);
            let wanted = Wanted { lists: &lists_of, uses: &uses, hottest: &order, stride };
            let choice = loader.place_lists(graph, &wanted, plan, taken, left)?;
            drop(lists_of);
            if let Some(name) = name {
                let room = RowRoom { device: choice.row_bytes, most_on_host: choice.host_rows };
                loader.place_rows(graph, &name, room, reading, &order)?;
            }
            loader.placed.predicted = Some(loader.predicted(&uses, &choice, &order));
            (choice.list_bytes, choice.host_list_bytes)
        };
        loader.count_bytes(working);
        let location = match loader.lists.neighbors {
            Neighbors::Split(_) => location_bytes(vertices),
            Neighbors::Device(_) | Neighbors::Host(_) => 0,
        };
        let placed = &mut loader.placed;
        placed.neighbors_on_device = matches!(loader.lists.neighbors, Neighbors::Device(_));
        (placed.device_list_bytes, placed.host_list_bytes) = (on_device, on_host);
        placed.storage_list_bytes = lists - on_device - on_host;
        placed.device_bytes += on_device + location;
        placed.host_bytes += on_host;
        Ok(loader)
    }

    /// Places the lists in device memory, of which `left` bytes are left, and in host memory, by `plan`;
    /// rows get the room that the choice says, of which `finding` bytes are for what reads them.
    fn place_lists(
        &mut self,
        graph: &Graph,
        wanted: &Wanted<'_>,
        plan: &Plan,
        finding: Option<u64>,
        left: u64,
    ) -> Result<Choice> {
        let all = wanted.lists;
        // Rows on storage are listed for each batch, in memory that lists must leave.
        let finding = finding.unwrap_or(match wanted.stride {
            0 => 0,
            _ => (self.sampler.n_id().len() * size_of::<MissingRow>()) as u64,
        });
        let pinned = self.held.as_ref().map_or(0, Reservation::bytes);
        let (mut host, has_storage) =
            (graph.memory().budget().left() + pinned, self.lists.stored.is_some());
        if has_storage {
            host -= host / PLACING_SHARE;
        }
        let locations = location_bytes(self.vertices);
        let room = Room { device: left, finding, locations, host, has_storage };
        let too_large = || tiers::lists_too_large(all.bytes(), left, host);
        let choice = Choice::new(plan, wanted, room).ok_or_else(too_large)?;
        let (on_device, on_host) = (choice.list_bytes, choice.host_list_bytes);
        if on_device + on_host == all.bytes() {
            self.lists.stored = None;
        }
        match &self.lists.neighbors {
            Neighbors::Device(_) if on_device == all.bytes() => return Ok(choice),
            Neighbors::Host(_) if on_host == all.bytes() => return Ok(choice),
            _ => {}
        }
        // What presampling drew from goes before what batches draw from comes.
        self.lists.neighbors = Neighbors::Device(DeviceBuf::new(self.stream.device(), 0)?);
        self.held = None;
        let (neighbors, held) = match on_host == all.bytes() {
            true => all.on_host(&self.stream)?,
            false => all.split(&self.stream, &choice.places)?,
        };
        (self.lists.neighbors, self.held) = (neighbors, Some(held));
        Ok(choice)
    }

    /// What reads rows of the features `name` from storage.
    fn row_reading(&self, graph: &Arc<Graph>, name: &str) -> Result<RowReading> {
        let threads = self.options.threads;
        RowReading::new(graph, name, &self.tiers, &self.stream, &self.sampler, threads)
    }

    /// Puts the rows of the features `name`, in this order, into device memory and host memory, of which there
    /// is `room`, or leaves them to storage, from which `reading`, or what is made for that, reads them.
    fn place_rows(
        &mut self,
        graph: &Arc<Graph>,
        name: &str,
        room: RowRoom,
        reading: Option<RowReading>,
        order: &[u32],
    ) -> Result<()> {
        let vertices = graph.vertices();
        // What the CPU's batches will take is not there for rows.
        let _held = self.cpu.as_ref().map(|cpu| cpu.reserve_batches(graph)).transpose()?;
        let reading = || reading.map_or_else(|| self.row_reading(graph, name), Ok);
        let rows = RowTiers::new(graph, name, &self.stream, order, room, reading)?;
        let (device_rows, host_rows) = (u64::from(rows.rows.device_count), rows.host_rows);
        (self.placed.device_rows, self.placed.host_rows) = (device_rows, host_rows);
        self.placed.storage_rows = vertices as u64 - device_rows - host_rows;
        self.placed.storage_reads = rows.storage.as_ref().map(RowReads::way);
        self.placed.storage_rates = rows.rates;
        self.rows = Some(rows);
        Ok(())
    }

    /// The transactions of the batches that were presampled, as lists and rows (in `order`) are placed.
    fn predicted(&self, uses: &Uses, choice: &Choice, order: &[u32]) -> Predicted {
        let lists = || uses.lists.iter().zip(&choice.places);
        let lines = lists().filter(|(_, place)| **place == Place::Host).map(|(used, _)| used.lines);
        let pages =
            lists().filter(|(_, place)| **place == Place::Storage).map(|(used, _)| used.pages);
        let used = |vertices: &[u32]| {
            vertices.iter().map(|&vertex| u64::from(uses.rows[vertex as usize])).sum()
        };
        let rows = match self.rows {
            Some(_) => &order[self.placed.device_rows as usize..],
            None => &[],
        };
        let (host, storage) = rows.split_at(self.placed.host_rows as usize);
        let counts = [lines.sum(), pages.sum(), used(host), used(storage)];
        let transactions = self.transactions_of(counts);
        Predicted { batches: uses.batches as u64, transactions }
    }

    /// The transactions of such counts as kernels make: of transactions of lists, of their pages, of rows in
    /// host memory, and of rows on storage.
    fn transactions_of(&self, [host_lists, pages, host, storage]: [u64; 4]) -> Transactions {
        let stride = self.stride();
        Transactions {
            host_lists,
            storage_lists: pages * LINES_OF_PAGE,
            host_rows: host * UNITS.read(Tier::Gpu, stride),
            storage_rows: storage * UNITS.read(Tier::Host, stride),
        }
    }

    /// Bytes from a row of features to the next; 0 without features.
    fn stride(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| u64::from(rows.rows.stride))
    }

    /// Counts the bytes that are placed: rows, and `working` bytes of device memory beside them.
    fn count_bytes(&mut self, working: u64) {
        let stride = self.stride();
        let placed = &mut self.placed;
        placed.device_bytes = working + placed.device_rows * stride;
        placed.host_bytes = placed.host_rows * stride;
    }

    /// What an epoch's first `batches` batches use: every row and list once, where that is no batch.
    fn presampled(
        &mut self,
        all: &AllLists<'_>,
        inputs: Inputs<'_>,
        batches: usize,
    ) -> Result<Uses> {
        let order = SeedOrder::new(&self.options, self.vertices, 0, inputs)?;
        let batches = order.batches().min(batches);
        if batches == 0 {
            return Ok(Uses::of_all(all, self.fanouts.first().copied().unwrap_or(0)));
        }
        let device = self.stream.device();
        let mut rows: DeviceBuf<u32> = DeviceBuf::new(device, self.vertices)?;
        let mut lists: DeviceBuf<ListUse> = DeviceBuf::new(device, self.vertices)?;
        self.stream.fill_bytes(&mut rows, 0)?;
        self.stream.fill_bytes(&mut lists, 0)?;
        for number in 0..batches {
            self.draw(0, order.seeds_of(number), Some(&lists))?;
            self.sampler.count_uses(&self.stream, &mut rows)?;
        }
        self.counts = no_counts(&self.stream)?;
        let (rows, lists) = (
            self.stream.download(&rows, self.vertices)?,
            self.stream.download(&lists, self.vertices)?,
        );
        Ok(Uses { batches, rows, lists })
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
        let sampled = self.draw(epoch, seeds, None)?;
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
        by_list: Option<&DeviceBuf<ListUse>>,
    ) -> Result<Sampled> {
        let key = EpochKey::new(self.options.seed, epoch, Purpose::Sample).words();
        let Seeds { number: batch, vertices: seeds, .. } = seeds;
        // Counting rows adds to other values of the counts, and comes behind in the stream.
        let (stream, rows) = (&self.stream, &mut self.rows);
        let (from_host, row_counts) = (&self.counts, self.counts.ptr().offset(ROW_COUNTS));
        let request = Request {
            seeds,
            fanouts: &self.fanouts,
            key,
            batch,
            by_list,
            from_host: Some(from_host),
        };
        self.sampler.sample(stream, &mut self.lists, &request, |sampler| match rows {
            Some(rows) => rows.start_finding(stream, sampler, DeviceView::at(row_counts, 2)),
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
            let counts = DeviceView::at(self.counts.ptr().offset(ROW_COUNTS), 2);
            rows.start_finding(&self.stream, &self.sampler, counts)?;
        }
        self.add_transactions()?;
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
        let mut reads = storage.map(RowReads::reads).unwrap_or_default();
        let lists = self.lists.stored.as_ref().map_or(0, |lists| lists.reads().pages());
        reads.list_pages += lists;
        reads.reads += lists;
        reads.bytes_ssd += lists * LIST_PAGE_BYTES as u64;
        Done {
            reads,
            transactions: self.transactions,
            submissions: given.count,
            seconds_submit: given.host_time.as_secs_f64(),
        }
    }
}

/// The neighbour lists on `drives`, from which the GPU reads by itself, and the bytes of device memory that
/// they take.
fn stored_lists(
    graph: &Graph,
    direction: Direction,
    tiers: &GpuTiers,
    (drives, stream): (&NvmeDrives, &Stream),
    left: u64,
) -> Result<(StoredLists, u64)> {
    let Some(pages) = graph.rows(direction).pages() else {
        let needs = format!("the layout `{direction}.rows`");
        return Err(graph.missing_layout("sample neighbours", &needs));
    };
    let another = || Ok(tiers.stream(stream.device())?.0);
    let streams = ReadStreams { submitting: another()?, completing: another()? };
    let reads = DriveLists::new(graph, &pages, drives, streams, left / PAGES_SHARE)?;
    let taken = reads.device_bytes() + StoredLists::device_bytes(pages.index.len());
    let index = pages.index.to_words();
    let stored = StoredLists::new(stream, &index, graph.vertices(), Box::new(reads))?;
    Ok((stored, taken))
}

/// Zeroed counts on the device.
fn no_counts(stream: &Stream) -> Result<DeviceBuf<u64>> {
    stream.uploaded(&[0; ROW_COUNTS + 2])
}

/// Bytes of device memory that the locations of split lists take.
fn location_bytes(vertices: usize) -> u64 {
    (vertices * size_of::<u64>()) as u64
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
