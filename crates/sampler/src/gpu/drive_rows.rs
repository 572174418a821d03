//! Feature rows that the GPU reads from drives by itself (Hyperion, §III-A): its kernels ask for the rows
//! that a batch misses and take them, and the host only starts kernels.
//!
//! ```text
//! missing rows of a batch ─ submit ─ (drives) ─ complete ─ compare with checksums ─ widen
//! ```
//! A thread starts the kernels of all batches that are begun, as rows come. They run on streams of their
//! own: neither the sampling of the next batches nor training waits for them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tiergraph_core::{Error, ErrorKind, Result, panics, threads};
use tiergraph_format::features::RowMismatch;
use tiergraph_gpu::kernels::{
    DamagedRow, DamagedRows, Gather, MissingRows, RowChecksum, RowTargets, Sampler,
};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Event, Stream};
use tiergraph_graph::{Features, Graph};
use tiergraph_io::NvmeDrives;
use tiergraph_io::gpu_reads::{
    CoupledLists, CoupledReads, GpuReadOptions, GpuReads, ReadStreams, RoundReads, RowLists,
    RowsOnDrives,
};
use tiergraph_mem::{PAGE_BYTES, Reservation};

use super::storage::StorageReads;

/// Entries of a queue: as many as give a drive enough to do, fewer where there is little memory.
const ENTRIES: RangeInclusive<u16> = 16..=1024;
/// Queue pairs of each drive that a round of reads has.
const PAIRS_PER_DRIVE: usize = 4;
/// Rounds of reads that are in flight together: one is taken while the drives are busy with the others.
const ROUNDS: usize = 3;
/// Blocks that take rows, which lie in device memory by then: few, beside the kernels of training.
const TAKING_BLOCKS: u32 = 4;
/// The share of the host's memory that staging memory may take, one part in so many.
const STAGING_SHARE: u64 = 4;
/// Between two looks at what has come.
pub(super) const LOOK: Duration = Duration::from_micros(20);

/// A batch whose rows are being read.
struct Begun {
    /// Its ticket at the reads.
    reading: u64,
    /// The rows that it misses, which kernels read until they are all there.
    missing: MissingRows,
    count: usize,
    to: DeviceView<f32>,
    /// Happens when its rows are compared with their checksums, and converted; `None` before they have come.
    done: Option<Event>,
}

/// What compares rows with their checksums, which lie in device memory.
struct Checksums {
    kernel: RowChecksum,
    damaged: DamagedRows,
}

impl Checksums {
    fn new(graph: &Graph, features: &Features, stream: &Stream) -> Result<Self> {
        let Some(crcs) = features.row_crcs(graph)? else {
            return Err(Error::new(ErrorKind::Input, "read rows by a GPU")
                .object(graph.dir().path().display())
                .expected(
                    "a checksum for each row, by which those read without their page are checked",
                )
                .got("features of an older version")
                .hint("`tiergraph features checksum` adds them"));
        };
        Ok(Self {
            kernel: RowChecksum::new(
                stream,
                features.row_bytes(),
                stream.uploaded(crcs.as_slice())?,
            )?,
            damaged: DamagedRows::new(stream)?,
        })
    }

    /// Compares the rows that a batch missed.
    fn compare(&self, stream: &Stream, begun: &Begun, dim: usize) -> Result<()> {
        let rows = RowTargets::in_matrix(begun.to, dim);
        let requests = begun.missing.requests();
        self.kernel.compare(stream, requests, 0..begun.count, rows, &self.damaged)
    }
}

/// The rows of one feature matrix that lie on drives, as kernels read them.
pub(super) struct DriveRows {
    reads: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    graph: Arc<Graph>,
    name: String,
    checksums: Checksums,
    /// Whether warps wait for their own rows.
    warps_wait: bool,
    /// The stream by which the host asks whether rows were damaged, which waits for nothing else.
    checking: Stream,
    dim: usize,
    /// By vertex, the number of its row, where that is not the vertex's own.
    numbers: Option<Arc<DeviceBuf<u32>>>,
    /// Lists that no batch needs any more.
    spare: Vec<MissingRows>,
    begun: HashMap<u64, Begun>,
    tickets: u64,
    missed_rows: u64,
    bytes: u64,
    _held: Reservation,
}

/// What the thread that starts kernels shares with the loader.
struct Shared {
    state: Mutex<State>,
    /// Told when there is something to read, or to stop.
    changed: Condvar,
}

struct State {
    reads: Box<dyn RowLists>,
    /// Why kernels could not be started: the error of whoever waits for a batch.
    failed: Option<Error>,
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts kernels while rows are read, until it is over.
    fn run(&self) {
        let mut state = self.lock();
        while !state.is_over {
            if !state.reads.is_reading() {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if let Err(error) = panics::caught(|| state.reads.proceed()) {
                state.failed.get_or_insert(error);
            }
            drop(state);
            thread::sleep(LOOK);
            state = self.lock();
        }
    }
}

impl DriveRows {
    /// A reader of the rows of the features `name` on `drives`. Kernels run on `streams`; they are those of
    /// the baseline, whose warps wait for their rows, if `warps_wait`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for rows that kernels do not read: without checksums of their own, larger than
    /// 8 KiB, or of one int8 value; too little memory of either kind; any error of the driver or a drive.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        drives: &NvmeDrives,
        streams: ReadStreams,
        warps_wait: bool,
    ) -> Result<Self> {
        let features = graph.features().get(name)?;
        let dim = features.dim();
        if features.row_bytes() > dim * size_of::<f32>() {
            return Err(Error::new(ErrorKind::Input, "read rows by a GPU")
                .expected("rows that take no more bytes than their values as float32")
                .got(format!("`{}` bytes for `{dim}` value", features.row_bytes()))
                .hint("use another `--io`, by which the host reads"));
        }
        let rows = rows_in_file(features);
        let span = (features.row_bytes() + 1).next_multiple_of(PAGE_BYTES);
        let options = options(graph.memory().budget().left(), ROUNDS, span, |_| true);
        let taking = &streams.completing;
        let checksums = Checksums::new(graph, features, taking)?;
        let checking = Stream::new(taking.device())?;
        let numbers = features.row_numbers().map(|rows| taking.uploaded(rows)).transpose()?;
        let numbers = numbers.map(Arc::new);
        let file = features.file();
        let reads: Box<dyn RowLists> = match warps_wait {
            false => {
                let reads = GpuReads::of_file(taking, drives, file, &rows, options)?;
                Box::new(RoundReads::new(reads, streams)?)
            }
            true => {
                // As many queue pairs as the rounds would have.
                let pairs_per_drive = options.batches * options.pairs_per_drive;
                let options = GpuReadOptions { batches: 1, pairs_per_drive, ..options };
                let reads = CoupledReads::of_file(taking, drives, file, &rows, options)?;
                Box::new(CoupledLists::new(reads, streams.completing)?)
            }
        };
        let held = graph.memory().reserve(reads.host_bytes(), "rows that the GPU reads")?;
        let state = Mutex::new(State { reads, failed: None, is_over: false });
        let reads = Arc::new(Shared { state, changed: Condvar::new() });
        let shared = Arc::clone(&reads);
        let thread = threads::start("rows-gpu", move || shared.run())?;
        Ok(Self {
            reads,
            thread: Some(thread),
            graph: Arc::clone(graph),
            name: name.to_owned(),
            checksums,
            warps_wait,
            checking,
            dim,
            numbers,
            spare: Vec::new(),
            begun: HashMap::new(),
            tickets: 0,
            missed_rows: 0,
            bytes: 0,
            _held: held,
        })
    }

    /// Who starts reads, and the way rows come.
    pub fn way(&self) -> &'static str {
        match self.warps_wait {
            false => "the GPU, through pinned memory of the host",
            true => "warps of the GPU that wait for their rows, through pinned memory of the host",
        }
    }

    /// Bytes of device memory for rows on their way, and by row, beside a list of missing rows for each
    /// batch.
    pub fn device_bytes(&self) -> u64 {
        let numbers = self.numbers.as_ref().map_or(0, |numbers| numbers.bytes());
        let by_row = self.checksums.kernel.device_bytes() + numbers as u64;
        self.reads.lock().reads.device_bytes() + by_row
    }

    pub fn reads(&self) -> StorageReads {
        StorageReads {
            missed_rows: self.missed_rows,
            distinct_pages: 0,
            reads: self.missed_rows,
            list_pages: 0,
            bytes_ssd: self.bytes,
        }
    }

    /// An empty list for the rows that a batch of `sampler` misses.
    pub fn list(&self, device: &Device, sampler: &Sampler) -> Result<MissingRows> {
        MissingRows::of_rows(device, sampler, self.numbers.clone())
    }

    /// Begins to read the rows that were found `missing` to the batch's rows at `to`; returns its ticket. An
    /// empty list takes the place of `missing`.
    pub fn begin(
        &mut self,
        stream: &Stream,
        missing: &mut MissingRows,
        to: DeviceView<f32>,
    ) -> Result<u64> {
        let (device, count) = (stream.device(), missing.count(stream)?);
        let next = self.spare.pop().map_or_else(|| missing.another(device), Ok)?;
        let missing = std::mem::replace(missing, next);
        // What follows comes after the list, and after all that used the memory of `to` before.
        let ready = Event::behind(stream)?;
        let rows = RowTargets::in_matrix(to, self.dim);
        let reading = self.reads.lock().reads.begin(&ready, missing.requests(), 0..count, rows)?;
        self.reads.changed.notify_all();
        self.tickets += 1;
        self.begun.insert(self.tickets, Begun { reading, missing, count, to, done: None });
        self.missed_rows += count as u64;
        Ok(self.tickets)
    }

    /// An event that has happened when the batch of `ticket` has all its rows; `None` before.
    ///
    /// # Errors
    /// A row that could not be read, of this batch or one after it. A batch that was dropped before.
    pub fn look(&mut self, ticket: u64, gather: &Gather) -> Result<Option<Event>> {
        let begun = self.begun.get_mut(&ticket).ok_or_else(super::storage::dropped)?;
        let Some(done) = begun.done.take_if(|done| !matches!(done.happened(), Ok(false))) else {
            let mut state = self.reads.lock();
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if begun.done.is_none() && state.reads.has_ended(begun.reading) {
                state.reads.end(begun.reading)?;
                let taking = state.reads.stream();
                self.checksums.compare(taking, begun, self.dim)?;
                gather.widen(taking, &begun.missing, begun.to, self.dim)?;
                let done = Event::behind(taking)?;
                begun.done = Some(done);
            }
            return Ok(None);
        };
        if let Some(row) = self.checksums.damaged.first(&self.checking)? {
            self.checksums.damaged.forget(&self.checking)?;
            return Err(self.damage(row));
        }
        if let Some(Begun { missing, .. }) = self.begun.remove(&ticket) {
            self.spare.push(missing);
        }
        self.bytes = self.reads.lock().reads.bytes_asked()?;
        Ok(Some(done))
    }

    /// The error of a row that differs from its checksum.
    fn damage(&self, row: DamagedRow) -> Error {
        let DamagedRow { row, stored, computed, .. } = row;
        let mismatch = RowMismatch { row: row.into(), stored, computed };
        match self.graph.features().get(&self.name) {
            Ok(features) => features.row_error(&mismatch),
            Err(error) => error,
        }
    }

    /// Drops a batch that is not waited for any more, after the kernels that write to it.
    pub fn give_up(&mut self, ticket: u64) {
        let Some(Begun { reading, missing, done, .. }) = self.begun.remove(&ticket) else { return };
        let mut state = self.reads.lock();
        state.reads.give_up(reading);
        while !state.reads.has_ended(reading) && state.failed.is_none() {
            drop(state);
            thread::sleep(LOOK);
            state = self.reads.lock();
        }
        // After an error of the driver no kernel runs any more.
        let _ = done.map_or(Ok(()), |done| done.synchronize());
        // Whoever waits for a batch is told of what went wrong; nobody waits for this one.
        let _ = state.reads.end(reading);
        self.bytes = state.reads.bytes_asked().unwrap_or(self.bytes);
        self.spare.push(missing);
    }
}

impl Drop for DriveRows {
    fn drop(&mut self) {
        self.reads.lock().is_over = true;
        self.reads.changed.notify_all();
        // A thread that panicked has nothing left to end.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// How rows whose reads take spans of `span_bytes` are read in `rounds` at a time: with as many entries a
/// queue as `left` bytes of host memory and `fits`, which is asked with the spans of a round, allow.
pub(super) fn options(
    left: u64,
    rounds: usize,
    span_bytes: usize,
    fits: impl Fn(usize) -> bool,
) -> GpuReadOptions {
    let (least, most) = (*ENTRIES.start(), *ENTRIES.end());
    let sizes = (least.ilog2()..=most.ilog2()).rev().map(|log2| 1u16 << log2);
    let is_possible = |entries: &u16| {
        let spans = PAIRS_PER_DRIVE * usize::from(*entries);
        (rounds * spans * span_bytes) as u64 <= left / STAGING_SHARE && fits(spans)
    };
    GpuReadOptions {
        batches: rounds,
        pairs_per_drive: PAIRS_PER_DRIVE,
        entries: sizes.into_iter().find(is_possible).unwrap_or(least),
        complete_blocks: TAKING_BLOCKS,
        ..GpuReadOptions::default()
    }
}

/// Where rows lie in the file of `features`.
fn rows_in_file(features: &Features) -> RowsOnDrives {
    let (row_bytes, stride) = (features.row_bytes() as u32, features.stride() as u32);
    let packed = RowsOnDrives { row_bytes, ..RowsOnDrives::packed(stride) };
    match features.rows_per_page() {
        0 => packed,
        rows => {
            RowsOnDrives { rows_per_group: rows as u32, group_bytes: PAGE_BYTES as u32, ..packed }
        }
    }
}
