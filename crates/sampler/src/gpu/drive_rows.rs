//! Feature rows that the GPU reads from drives by itself (Hyperion, §III-A): its kernels ask for the rows
//! that a batch misses and take them, and the host only starts kernels.
//!
//! ```text
//! missing rows of a batch ─ submit ─ (drives) ─ complete ─ widen ─ done
//! ```
//! All kernels of a batch are queued when its arrays are there, on streams of their own: those that wait for
//! drives keep neither the sampling of the next batches nor training waiting.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{Gather, MissingRows, RowTargets, Sampler};
use tiergraph_gpu::{DeviceBuf, DeviceView, Event, Stream};
use tiergraph_graph::{Features, Graph};
use tiergraph_io::NvmeDrives;
use tiergraph_io::gpu_reads::{GpuReadOptions, GpuReads, ReadStreams, RowsOnDrives};
use tiergraph_mem::{PAGE_BYTES, Reservation};

use super::storage::StorageReads;

/// Entries of a queue: as many as give a drive enough to do, fewer where there is little memory.
const ENTRIES: std::ops::RangeInclusive<u16> = 64..=1024;
/// Queue pairs of each drive that a round of reads has.
const PAIRS_PER_DRIVE: usize = 4;
/// Rounds of reads that are in flight together: one is taken while the drives are busy with the other.
const ROUNDS: usize = 2;
/// The share of the host's memory that staging memory may take, one part in so many.
const STAGING_SHARE: u64 = 4;
/// Between two looks at whether a batch is complete.
const LOOK: Duration = Duration::from_micros(20);

/// A batch whose rows are being read.
struct Begun {
    /// The rows that it misses, which kernels read until `done`.
    missing: MissingRows,
    /// Happens when all its rows are there, or never come.
    done: Event,
}

/// The rows of one feature matrix that lie on drives, as kernels read them.
pub(super) struct DriveRows {
    // Dropped first: it ends the kernels that use what is behind it.
    reads: GpuReads,
    streams: ReadStreams,
    /// The stream by which the host asks how reads ended, which waits for nothing else.
    checking: Stream,
    dim: usize,
    /// By vertex, the number of its row, where that is not the vertex's own.
    numbers: Option<Arc<DeviceBuf<u32>>>,
    /// The rows that the last batch misses.
    pub missing: MissingRows,
    /// Lists that no batch needs any more.
    spare: Vec<MissingRows>,
    begun: HashMap<u64, Begun>,
    tickets: u64,
    missed_rows: u64,
    bytes: u64,
    _held: Reservation,
}

impl DriveRows {
    /// A reader of the rows of `features` on `drives`, for batches of `sampler`. Kernels run on `streams`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for rows that kernels do not read: larger than 8 KiB, across the units of several
    /// drives, of one int8 value; too little memory of either kind; any error of the driver or a drive.
    pub fn new(
        graph: &Graph,
        features: &Features,
        drives: &NvmeDrives,
        streams: ReadStreams,
        sampler: &Sampler,
    ) -> Result<Self> {
        let (device, dim) = (streams.completing.device(), features.dim());
        if features.row_bytes() > dim * size_of::<f32>() {
            return Err(Error::new(ErrorKind::Input, "read rows by a GPU")
                .expected("rows that take no more bytes than their values as float32")
                .got(format!("`{}` bytes for `{dim}` value", features.row_bytes()))
                .hint("use another `--io`, by which the host reads"));
        }
        let rows = rows_in_file(features);
        let room = graph.memory().budget().left() / STAGING_SHARE;
        let span = (features.row_bytes() as u64 + 1).next_multiple_of(PAGE_BYTES as u64);
        let spans = room / (ROUNDS as u64 * PAIRS_PER_DRIVE as u64 * span);
        let entries = spans.clamp((*ENTRIES.start()).into(), (*ENTRIES.end()).into());
        let options = GpuReadOptions {
            batches: ROUNDS,
            pairs_per_drive: PAIRS_PER_DRIVE,
            entries: 1 << entries.ilog2(),
            ..GpuReadOptions::default()
        };
        let reads =
            GpuReads::of_file(&streams.completing, drives, features.file(), &rows, options)?;
        let held = graph.memory().reserve(reads.host_bytes(), "rows that the GPU reads")?;
        let numbers = features.row_numbers();
        let numbers = numbers.map(|rows| streams.completing.uploaded(rows)).transpose()?;
        let numbers = numbers.map(Arc::new);
        Ok(Self {
            checking: Stream::new(device)?,
            missing: MissingRows::of_rows(device, sampler, numbers.clone())?,
            reads,
            streams,
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

    pub fn reads(&self) -> StorageReads {
        StorageReads {
            missed_rows: self.missed_rows,
            distinct_pages: 0,
            reads: self.missed_rows,
            bytes_ssd: self.bytes,
        }
    }

    /// Begins to read the rows that were found missing to the batch's rows at `to`; returns its ticket.
    pub fn begin(
        &mut self,
        stream: &Stream,
        sampler: &Sampler,
        gather: &Gather,
        to: DeviceView<f32>,
    ) -> Result<u64> {
        let (device, count) = (stream.device(), self.missing.count(stream)?);
        let next = match self.spare.pop() {
            Some(spare) => spare,
            None => MissingRows::of_rows(device, sampler, self.numbers.clone())?,
        };
        let missing = std::mem::replace(&mut self.missing, next);
        // What follows comes after the list, and after all that used the memory of `to` before.
        let (ready, done) = (Event::new(device)?, Event::new(device)?);
        ready.record(stream)?;
        self.tickets += 1;
        let begun = self.begun.entry(self.tickets).or_insert(Begun { missing, done });
        let ReadStreams { submitting, completing } = &self.streams;
        submitting.wait_for(&ready)?;
        completing.wait_for(&ready)?;
        let rows = RowTargets::in_matrix(to, self.dim);
        self.reads.start_read(&self.streams, begun.missing.requests(), count, rows)?;
        gather.widen(completing, &begun.missing, to, self.dim)?;
        begun.done.record(completing)?;
        self.missed_rows += count as u64;
        Ok(self.tickets)
    }

    /// Whether the batch of `ticket` has all its rows, in order with the stream. Waits for `patience` at
    /// most.
    ///
    /// # Errors
    /// A row that could not be read, of this batch or one after it. A batch that was dropped before.
    pub fn finish(&mut self, stream: &Stream, ticket: u64, patience: Duration) -> Result<bool> {
        let begun = self.begun.get(&ticket).ok_or_else(super::storage::dropped)?;
        let since = Instant::now();
        while !begun.done.happened()? {
            if since.elapsed() >= patience {
                return Ok(false);
            }
            thread::sleep(LOOK);
        }
        stream.wait_for(&begun.done)?;
        let checked = self.reads.check(&self.checking);
        self.give_up(ticket);
        checked.map(|()| true)
    }

    /// Drops a batch that is not waited for any more, after the kernels that write to it.
    pub fn give_up(&mut self, ticket: u64) {
        let Some(begun) = self.begun.remove(&ticket) else { return };
        // After an error of the driver no kernel runs any more, and nothing is counted.
        let counted =
            begun.done.synchronize().and_then(|()| self.reads.bytes_asked(&self.checking));
        self.bytes = counted.unwrap_or(self.bytes);
        self.spare.push(begun.missing);
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
