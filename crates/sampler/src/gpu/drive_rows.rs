//! Feature rows that the GPU reads from drives by itself (Hyperion, §III-A): its kernels ask for the rows
//! that a batch misses and take them, and the host only starts kernels.
//!
//! ```text
//! missing rows of a batch ─ submit ─ (drives) ─ complete ─ compare with checksums ─ widen
//! ```
//! Kernels of all batches that are begun are started as rows come. They run on streams of their own: neither
//! the sampling of the next batches nor training waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::features::RowMismatch;
use tiergraph_gpu::kernels::{
    DamagedRow, DamagedRows, Gather, MissingRows, PageCache, RowChecksum, RowTargets, Sampler,
};
use tiergraph_gpu::{Device, DeviceBuf, DeviceView, Event, Stream};
use tiergraph_graph::{Features, Graph};
use tiergraph_io::gpu_reads::{
    CoupledLists, CoupledReads, GpuReadOptions, GpuReads, ReadStreams, RoundReads, RowLists,
    RowsOnDrives,
};
use tiergraph_io::{NvmeDrives, StartedBy};
use tiergraph_mem::{PAGE_BYTES, Reservation};

use super::storage::{StorageReads, dropped};

/// Rounds of reads that are in flight together: one is taken while the drives are busy with the others.
const ROUNDS: usize = 6;
/// A batch whose rows are being read.
struct Begun {
    /// Its ticket at the reads.
    reading: u64,
    /// The rows that it misses, which kernels read until they are all there.
    missing: MissingRows,
    /// Those of its rows that differ from their checksums.
    damaged: DamagedRows,
    count: usize,
    to: DeviceView<f32>,
    /// Happens when its rows are compared with their checksums, and converted; why they were not; `None`
    /// before they have come.
    done: Option<Result<Event>>,
}

/// What compares rows with their checksums, which lie in device memory.
fn row_checksum(graph: &Graph, features: &Features, stream: &Stream) -> Result<RowChecksum> {
    let Some(crcs) = features.row_crcs(graph)? else {
        return Err(Error::new(ErrorKind::Input, "read rows by a GPU")
            .object(graph.dir().path().display())
            .expected("a checksum for each row, by which those read without their page are checked")
            .got("features of an older version")
            .hint("`tiergraph features checksum` adds them"));
    };
    RowChecksum::new(stream, features.row_bytes(), stream.uploaded(crcs.as_slice())?)
}

/// The kernels by which a GPU reads rows.
enum Kernels {
    /// One submits a round of reads, another takes what has come.
    Split(Box<RoundReads>),
    /// One whose warps wait for their rows: the baseline.
    Coupled(Box<CoupledLists>),
}

impl Kernels {
    fn lists(&self) -> &dyn RowLists {
        match self {
            Self::Split(lists) => &**lists,
            Self::Coupled(lists) => &**lists,
        }
    }

    fn lists_mut(&mut self) -> &mut dyn RowLists {
        match self {
            Self::Split(lists) => &mut **lists,
            Self::Coupled(lists) => &mut **lists,
        }
    }

    /// Ends a list: the bytes that drives were asked for so far, and the rows that a page cache had, or why
    /// some row did not come.
    fn end(&mut self, list: u64) -> Result<(u64, u64)> {
        let lists = self.lists_mut();
        lists.end(list)?;
        let bytes = lists.bytes_asked()?;
        let found = match self {
            Self::Split(_) => 0,
            Self::Coupled(lists) => lists.found()?,
        };
        Ok((bytes, found))
    }
}

/// The rows of one feature matrix that lie on drives, as kernels read them.
pub(super) struct DriveRows {
    kernels: Kernels,
    graph: Arc<Graph>,
    name: String,
    gather: Gather,
    checksum: RowChecksum,
    started_by: StartedBy,
    /// The stream by which the host asks whether rows were damaged, which waits for nothing else.
    checking: Stream,
    dim: usize,
    /// By vertex, the number of its row, where that is not the vertex's own.
    numbers: Option<Arc<DeviceBuf<u32>>>,
    /// Lists that no batch needs any more, of rows that were missing and, with none in it, that were damaged.
    spare: Vec<(MissingRows, DamagedRows)>,
    begun: HashMap<u64, Begun>,
    tickets: u64,
    /// Rows that batches missed, and those of them that a page cache had.
    missed_rows: u64,
    found_rows: u64,
    bytes: u64,
    /// Why kernels could not be started: the error of whoever waits for a batch.
    failed: Option<Error>,
    _held: Reservation,
}

impl DriveRows {
    /// A reader of the rows of the features `name` on `drives`, which `gather` converts. Kernels run on
    /// `streams`; `started_by` says which.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for rows that kernels do not read: without checksums of their own, larger than
    /// 8 KiB, or of one int8 value; too little memory of either kind; any error of the driver or a drive.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        drives: &NvmeDrives,
        streams: ReadStreams,
        gather: Gather,
        started_by: StartedBy,
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
        let options =
            GpuReadOptions::within(graph.memory().budget().left(), ROUNDS, span, |_| true);
        let taking = &streams.completing;
        let checksum = row_checksum(graph, features, taking)?;
        let checking = Stream::new(taking.device())?;
        let numbers = features.row_numbers().map(|rows| taking.uploaded(rows)).transpose()?;
        let numbers = numbers.map(Arc::new);
        let file = features.file();
        let kernels = match started_by {
            StartedBy::Gpu | StartedBy::Faster => {
                let reads = GpuReads::of_file(taking, drives, file, &rows, options)?;
                Kernels::Split(Box::new(RoundReads::new(reads, streams)?))
            }
            StartedBy::WaitingWarps | StartedBy::CachingWarps => {
                // As many queue pairs as the rounds would have.
                let pairs_per_drive = options.batches * options.pairs_per_drive;
                let options = GpuReadOptions { batches: 1, pairs_per_drive, ..options };
                let reads = CoupledReads::of_file(taking, drives, file, &rows, options)?;
                Kernels::Coupled(Box::new(CoupledLists::new(reads, streams.completing)?))
            }
        };
        let held =
            graph.memory().reserve(kernels.lists().host_bytes(), "rows that the GPU reads")?;
        Ok(Self {
            kernels,
            graph: Arc::clone(graph),
            name: name.to_owned(),
            gather,
            checksum,
            started_by,
            checking,
            dim,
            numbers,
            spare: Vec::new(),
            begun: HashMap::new(),
            tickets: 0,
            missed_rows: 0,
            found_rows: 0,
            bytes: 0,
            failed: None,
            _held: held,
        })
    }

    /// Who starts reads, and the way rows come.
    pub fn way(&self) -> &'static str {
        match self.started_by {
            StartedBy::Gpu | StartedBy::Faster => "the GPU, through pinned memory of the host",
            StartedBy::WaitingWarps => {
                "warps of the GPU that wait for their rows, through pinned memory of the host"
            }
            StartedBy::CachingWarps => {
                "warps of the GPU that look rows up in a page cache and wait for the others, through \
                 pinned memory of the host"
            }
        }
    }

    /// Keeps rows that come in a page cache of at most `bytes` of device memory, where warps look them up: how
    /// many it has room for; `None` for warps that do not.
    pub fn cache(&mut self, bytes: u64) -> Result<Option<u64>> {
        let row_bytes = self.graph.features().get(&self.name)?.row_bytes();
        let stream = &self.checking;
        match (&mut self.kernels, self.started_by) {
            (Kernels::Coupled(lists), StartedBy::CachingWarps) => {
                let cache = PageCache::new(stream, row_bytes, bytes)?;
                stream.synchronize()?;
                let rows = cache.capacity();
                lists.keep_in(cache);
                Ok(Some(rows))
            }
            _ => Ok(None),
        }
    }

    /// Bytes of device memory for rows on their way, and by row, beside a list of missing rows for each
    /// batch.
    pub fn device_bytes(&self) -> u64 {
        let numbers = self.numbers.as_ref().map_or(0, |numbers| numbers.bytes());
        let by_row = self.checksum.device_bytes() + numbers as u64;
        self.kernels.lists().device_bytes() + by_row
    }

    pub fn reads(&self) -> StorageReads {
        let missed_rows = self.missed_rows - self.found_rows;
        StorageReads {
            missed_rows,
            distinct_pages: 0,
            reads: missed_rows,
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
        let (next, damaged) = match self.spare.pop() {
            Some(lists) => lists,
            None => (missing.another(device)?, DamagedRows::new(stream)?),
        };
        let missing = std::mem::replace(missing, next);
        // What follows comes after the list, and after all that used the memory of `to` before.
        let ready = Event::behind(stream)?;
        let rows = RowTargets::in_matrix(to, self.dim);
        let lists = self.kernels.lists_mut();
        let reading = match lists.begin(&ready, missing.requests(), 0..count, rows) {
            Ok(reading) => reading,
            Err(error) => {
                // Nothing is read any more.
                self.drop_unread();
                return Err(error);
            }
        };
        self.tickets += 1;
        let begun = Begun { reading, missing, damaged, count, to, done: None };
        self.begun.insert(self.tickets, begun);
        self.missed_rows += count as u64;
        Ok(self.tickets)
    }

    /// Whether rows are being read, or are not compared yet.
    pub fn is_reading(&self) -> bool {
        self.begun.values().any(|begun| begun.done.is_none())
    }

    /// Goes on with what has come.
    pub fn proceed(&mut self) {
        if let Err(error) = self.kernels.lists_mut().proceed() {
            return self.fail(error);
        }
        for begun in self.begun.values_mut() {
            if begun.done.is_none() && self.kernels.lists().has_ended(begun.reading) {
                let ended = self.kernels.end(begun.reading);
                let (stream, Begun { missing, damaged, to, count, .. }) =
                    (self.kernels.lists().stream(), &*begun);
                let rows = RowTargets::in_matrix(*to, self.dim);
                begun.done = Some(ended.and_then(|(bytes, found)| {
                    (self.bytes, self.found_rows) = (bytes, found);
                    let requests = missing.requests();
                    self.checksum.compare(stream, requests, 0..*count, rows, damaged)?;
                    self.gather.widen(stream, missing, *to, self.dim)?;
                    Event::behind(stream)
                }));
            }
        }
    }

    /// Has whoever waits for a batch told of `error`: none that is begun has its rows.
    pub fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.drop_unread();
    }

    /// Has no batch wait for rows that did not come.
    fn drop_unread(&mut self) {
        for begun in self.begun.values_mut() {
            begun.done.get_or_insert_with(|| Err(dropped()));
        }
    }

    /// An event that has happened when the batch of `ticket` has all its rows; `None` before.
    ///
    /// # Errors
    /// A row that could not be read, of this batch or one after it; a damaged one of this batch. A batch that
    /// was dropped before.
    pub fn look(&mut self, ticket: u64) -> Result<Option<Event>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let begun = self.begun.get_mut(&ticket).ok_or_else(dropped)?;
        let has_happened = |done: &mut Result<Event>| match done {
            Ok(done) => !matches!(done.happened(), Ok(false)),
            Err(_) => true,
        };
        let Some(done) = begun.done.take_if(has_happened) else { return Ok(None) };
        // What is wrong with it is told once, and nothing of it is compared again.
        begun.done = Some(Err(dropped()));
        let done = done?;
        if let Some(row) = begun.damaged.first(&self.checking)? {
            return Err(self.damage(row));
        }
        if let Some(Begun { missing, damaged, .. }) = self.begun.remove(&ticket) {
            self.spare.push((missing, damaged));
        }
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

    /// Drops a batch that is not waited for any more, if nothing writes to it; whether it is dropped.
    pub fn give_up(&mut self, ticket: u64) -> bool {
        let Some(begun) = self.begun.get_mut(&ticket) else { return true };
        // Some of its rows will not come, and none is compared.
        begun.done.get_or_insert_with(|| Err(dropped()));
        let lists = self.kernels.lists_mut();
        lists.give_up(begun.reading);
        if !lists.has_ended(begun.reading) {
            // After an error nothing is read any more.
            let _ = lists.proceed();
            return false;
        }
        if let Some(Begun { reading, done, .. }) = self.begun.remove(&ticket) {
            // After an error of the driver no kernel runs any more.
            let _ = done.map(|done| done.and_then(|done| done.synchronize()));
            // Whoever waits for a batch is told of what went wrong; nobody waits for this one.
            if let Ok(counts) = self.kernels.end(reading) {
                (self.bytes, self.found_rows) = counts;
            }
        }
        true
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
