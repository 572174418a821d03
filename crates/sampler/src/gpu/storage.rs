//! Feature rows that stay on storage: read into pinned memory while models train on other batches, and
//! copied to the rows of their batch by a kernel.
//!
//! ```text
//! missing rows of a batch ─ pieces of adjacent rows ─ readers ─ spread ─ free
//! ```
//! A piece is pinned memory for a few thousand rows. There is a fixed number of them, so memory is
//! bounded however many rows are missing.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{Gather, MissingRow, MissingRows, Piece, PieceLayout};
use tiergraph_gpu::{Copying, DeviceView, Event, PinnedPool, Stream};
use tiergraph_graph::{Features, Graph};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES, Reservation};

use super::readers::{Job, RowReaders};
use crate::pipeline::stats::EpochStats;

/// Pieces for each reader: one that it fills, one that is ready to be filled, others that wait until a
/// kernel has copied them.
const PIECES: usize = 4;
/// Bytes of the rows of a piece: larger ones mean fewer kernels, and reading that goes on for longer
/// while the caller waits for no batch.
const PIECE_BYTES: RangeInclusive<u64> = 1 << 20..=8 << 20;
/// The share of the host's memory that pieces may take beyond the least.
const PIECES_SHARE: u64 = 4;
/// Bytes of a reader's buffers.
const READER_BYTES: u64 = 4 << 20;
/// The fewest bytes of the host's memory that a thread takes.
pub(super) const THREAD_BYTES: u64 = PIECES as u64 * *PIECE_BYTES.start() + READER_BYTES;
/// Parts that a file is cut into to bring adjacent rows together.
const PARTS: usize = 1 << 14;

/// Counts of reads from storage so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StorageReads {
    /// Rows that were not in device memory or host memory.
    pub missed_rows: u64,
    /// Pages of 4096 bytes that were read for them.
    pub distinct_pages: u64,
    /// Reads submitted: adjacent pages share one.
    pub reads: u64,
    /// Pages of neighbour lists that kernels read.
    pub list_pages: u64,
    /// Bytes that were read.
    pub bytes_ssd: u64,
}

impl StorageReads {
    /// Adds the reads that sampling on the CPU made.
    pub(super) fn add_sampled(&mut self, by_cpu: &EpochStats) {
        self.missed_rows += by_cpu.missed_rows;
        self.distinct_pages += by_cpu.distinct_pages;
        self.reads += by_cpu.reads;
        self.bytes_ssd += by_cpu.bytes_ssd;
    }

    /// The counts since those of `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            missed_rows: self.missed_rows - earlier.missed_rows,
            distinct_pages: self.distinct_pages - earlier.distinct_pages,
            reads: self.reads - earlier.reads,
            list_pages: self.list_pages - earlier.list_pages,
            bytes_ssd: self.bytes_ssd - earlier.bytes_ssd,
        }
    }
}

/// A batch whose rows are being read.
struct Begun {
    /// The number of pieces that are not copied yet.
    left: usize,
    /// Why a piece of it could not be read: the error of whoever waits for the batch.
    failed: Option<Error>,
    to: DeviceView<f32>,
    /// Happens when nothing else uses the memory of `to` any more; `None` once a piece waited for that.
    ready: Option<Event>,
    /// Happens when all pieces are copied; `None` as long as some have not come.
    done: Option<Event>,
}

/// The rows of one feature matrix that the host's threads read.
pub(super) struct Storage {
    /// Copies pieces: neither the sampling of the next batches nor training waits for them.
    stream: Stream,
    gather: Gather,
    graph: Arc<Graph>,
    name: String,
    readers: RowReaders,
    layout: PieceLayout,
    free: Vec<AlignedBuf>,
    waiting: VecDeque<(u64, Vec<MissingRow>)>,
    reading: usize,
    spreading: VecDeque<Copying>,
    begun: HashMap<u64, Begun>,
    tickets: u64,
    reads: StorageReads,
    /// Why what has come could not be copied: the error of whoever waits for a batch.
    failed: Option<Error>,
    _held: Reservation,
}

impl Storage {
    /// A reader of the features `name`, which `gather` copies on `stream`.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        stream: Stream,
        gather: Gather,
        threads: usize,
    ) -> Result<Self> {
        let features = graph.features().get(name)?;
        let stride = features.row_bytes();
        let pieces = PIECES * threads;
        let room = graph.memory().budget().left() / PIECES_SHARE / pieces as u64;
        let rows = room.clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end()) as usize / stride;
        let layout = PieceLayout { rows: rows.max(1), stride };
        let bytes = pieces as u64 * layout.bytes().next_multiple_of(PAGE_BYTES) as u64
            + threads as u64 * READER_BYTES;
        let held = graph.memory().reserve(bytes, "reading feature rows")?;
        let free = PinnedPool::buffers(stream.device(), pieces, layout.bytes())?;
        Ok(Self {
            stream,
            gather,
            graph: Arc::clone(graph),
            name: name.to_owned(),
            readers: RowReaders::new(graph, name, layout, threads)?,
            layout,
            free,
            waiting: VecDeque::new(),
            reading: 0,
            spreading: VecDeque::new(),
            begun: HashMap::new(),
            tickets: 0,
            reads: StorageReads::default(),
            failed: None,
            _held: held,
        })
    }

    pub fn reads(&self) -> StorageReads {
        self.reads
    }

    /// Begins to read the rows that were found missing; returns the batch's ticket.
    pub fn begin(
        &mut self,
        stream: &Stream,
        missing: &MissingRows,
        to: DeviceView<f32>,
    ) -> Result<u64> {
        let missing = missing.get(stream)?;
        let ready = Event::behind(stream)?;
        let features = self.graph.features().get(&self.name)?;
        self.reads.missed_rows += missing.len() as u64;
        self.tickets += 1;
        let pieces = adjacent(features, &missing, self.layout.rows);
        let done = if pieces.is_empty() { Some(Event::behind(&self.stream)?) } else { None };
        let (left, ready) = (pieces.len(), Some(ready));
        self.begun.insert(self.tickets, Begun { left, failed: None, to, ready, done });
        self.waiting.extend(pieces.into_iter().map(|rows| (self.tickets, rows)));
        self.send()?;
        Ok(self.tickets)
    }

    /// Whether the host's threads have rows to read.
    pub fn is_reading(&self) -> bool {
        self.reading > 0 || !self.waiting.is_empty()
    }

    /// Goes on reading, and copies what has come.
    pub fn proceed(&mut self) {
        if let Err(error) = self.try_proceed() {
            self.fail(error);
        }
    }

    /// Has whoever waits for a batch told of `error`: none that is begun gets the rest of its rows.
    pub fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.waiting.clear();
        for begun in self.begun.values_mut().filter(|begun| begun.done.is_none()) {
            begun.failed.get_or_insert_with(dropped);
        }
    }

    fn try_proceed(&mut self) -> Result<()> {
        loop {
            self.send()?;
            let Some(ended) = self.readers.ended() else { return Ok(()) };
            self.reading -= 1;
            let Some(begun) = self.begun.get_mut(&ended.ticket) else {
                self.free.push(ended.buffer);
                continue;
            };
            begun.left -= 1;
            match ended.read {
                Ok(read) => {
                    self.reads.distinct_pages += read.pages;
                    self.reads.reads += read.reads;
                    self.reads.bytes_ssd += read.bytes;
                    let piece =
                        Piece { buffer: ended.buffer, layout: self.layout, count: ended.rows };
                    if let Some(ready) = begun.ready.take() {
                        self.stream.wait_for(&ready)?;
                    }
                    let event = Event::new(self.stream.device())?;
                    let (dim, to) = (self.graph.features().get(&self.name)?.dim(), begun.to);
                    let spread = self.gather.spread(&self.stream, piece, to, dim, event)?;
                    self.spreading.push_back(spread);
                    if begun.left == 0 {
                        begun.done = Some(Event::behind(&self.stream)?);
                    }
                }
                Err(error) => {
                    begun.failed.get_or_insert(error);
                    self.free.push(ended.buffer);
                    self.waiting.retain(|(of, _)| *of != ended.ticket);
                }
            }
        }
    }

    /// An event that happens when the batch of `ticket` has all its rows, or `None` as long as some have not
    /// come.
    ///
    /// # Errors
    /// A row of this batch cannot be read: it is dropped then. A batch that was dropped before.
    pub fn look(&mut self, ticket: u64) -> Result<Option<Event>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let begun = self.begun.get_mut(&ticket).ok_or_else(dropped)?;
        if let Some(error) = begun.failed.take() {
            self.give_up(ticket);
            return Err(error);
        }
        let done = begun.done.take();
        if done.is_some() {
            self.begun.remove(&ticket);
        }
        Ok(done)
    }

    /// Drops a batch that is not waited for any more, after the kernels that write to it.
    pub fn give_up(&mut self, ticket: u64) {
        self.begun.remove(&ticket);
        self.waiting.retain(|(of, _)| *of != ticket);
        // After an error of the driver no kernel runs any more.
        let _ = self.stream.synchronize();
    }

    /// Queues pieces for the readers while there are free buffers.
    fn send(&mut self) -> Result<()> {
        while !self.waiting.is_empty() {
            while let Some(first) = self.spreading.front() {
                // Without a reader at work, nothing else gives a buffer back.
                let must_wait = self.free.is_empty() && self.reading == 0;
                if !must_wait && !first.is_done()? {
                    break;
                }
                let Some(first) = self.spreading.pop_front() else { break };
                self.free.push(first.finish()?.0);
            }
            let Some(buffer) = self.free.pop() else { return Ok(()) };
            let Some((ticket, rows)) = self.waiting.pop_front() else { return Ok(()) };
            self.readers.begin(Job { ticket, rows, buffer });
            self.reading += 1;
        }
        Ok(())
    }
}

/// The error of who waits for a batch that was dropped.
pub(super) fn dropped() -> Error {
    Error::new(ErrorKind::Internal, "finish a batch").expected("one that is begun").got("none")
}

/// Cuts `missing` into pieces of at most `most` rows that lie near each other, so that those on one
/// page are in one piece (but where a part of the file has more than a piece's).
fn adjacent(features: &Features, missing: &[MissingRow], most: usize) -> Vec<Vec<MissingRow>> {
    let part_pages = features.pages().div_ceil(PARTS as u64).max(1);
    let part = |row: &MissingRow| (features.page_span(row.vertex).start / part_pages) as u16;
    let parts: Vec<u16> = missing.iter().map(part).collect();
    let mut begin = vec![0u32; PARTS + 1];
    parts.iter().for_each(|&part| begin[part as usize + 1] += 1);
    for i in 0..PARTS {
        begin[i + 1] += begin[i];
    }
    let ends = begin[1..].to_vec();
    let mut sorted = vec![MissingRow { vertex: 0, target: 0 }; missing.len()];
    for (row, &part) in missing.iter().zip(&parts) {
        let at = &mut begin[part as usize];
        sorted[*at as usize] = *row;
        *at += 1;
    }
    let (mut pieces, mut from, mut to) = (Vec::new(), 0, 0);
    let mut cut = |from: usize, to: usize| {
        pieces.extend(sorted[from..to].chunks(most).map(<[MissingRow]>::to_vec));
    };
    for end in ends {
        let end = end as usize;
        if end - from > most && to > from {
            cut(from, to);
            from = to;
        }
        to = end;
    }
    cut(from, to);
    pieces
}
