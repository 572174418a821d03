//! Pages of neighbour lists that the GPU reads from drives by itself (Hyperion, §III-B1: the misses of a hop
//! are read by kernels).
//!
//! ```text
//! pages that kernels want ─ submit ─ (drives) ─ complete ─ compare with checksums ─ decode
//! ```
//! A piece is as many pages as queue pairs have room for. Drives are busy with the next piece while one is
//! decoded.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use tiergraph_core::{Error, Result};
use tiergraph_format::rows::{damaged_list, page_error};
use tiergraph_format::salt::Salt;
use tiergraph_gpu::kernels::{
    DamagedRow, DamagedRows, LIST_PAGE_BYTES, ListPages, ListReads, PiecePages, RowChecksum,
    RowRequests, RowTargets,
};
use tiergraph_gpu::{DeviceBuf, DeviceView, Event, Stream};
use tiergraph_mem::Reservation;

use super::in_order::{ListsInOrder, WaitingReads};
use super::{GpuReadOptions, GpuReads, ReadStreams, RoundReads, RowLists, RowsOnDrives};
use crate::{FileId, NvmeDrives};

/// Between two looks at what has come, where nobody waits for it.
const LOOK: Duration = Duration::from_micros(20);
/// Pieces that are in flight together: one is decoded while drives are busy with the other.
const PIECES: usize = 2;
/// Bytes that a page takes on its way: as a row of a round, and as one of a piece.
const PAGE_ON_ITS_WAY: usize = 2 * LIST_PAGE_BYTES;

/// A file of pages of neighbour lists.
#[derive(Debug, Clone)]
pub struct PagedFile {
    /// The file.
    pub file: FileId,
    /// Its path, for messages.
    pub name: String,
    /// The salt that its pages' checksums are computed with.
    pub salt: Salt,
}

/// Who waits for pages on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhoWaits {
    /// The host: kernels of training have all multiprocessors meanwhile.
    Host,
    /// A kernel: no step of the host is between a read and its end.
    Kernel,
}

/// The pages of a file of neighbour lists on drives, as kernels read them.
#[derive(Debug)]
pub struct PagesByGpu {
    // Dropped first: it ends the kernels that write to what is behind it.
    reads: Box<dyn RowLists>,
    /// The most pages of a piece.
    piece: usize,
    /// The places of the pages of each piece in flight.
    pieces: Vec<DeviceBuf<u8>>,
    checksum: RowChecksum,
    damaged: DamagedRows,
    /// The stream by which the host asks whether pages were damaged, which waits for nothing else.
    checking: Stream,
    /// The path of the file, for messages.
    name: String,
    /// How many pages were brought so far.
    brought: u64,
    /// The reservation of the memory that kernels and drives share.
    _held: Option<Reservation>,
}

impl PagesByGpu {
    /// A reader of a file that lies on `drives`, whose kernels run on `streams`. It takes a part of
    /// `host_memory`, and at most `device_memory` bytes, or what the least queues need.
    ///
    /// # Errors
    /// Too little memory of either kind; any error of the driver or a drive.
    pub fn new(
        paged: PagedFile,
        drives: &NvmeDrives,
        streams: ReadStreams,
        who_waits: WhoWaits,
        host_memory: u64,
        device_memory: u64,
    ) -> Result<Self> {
        let rows = RowsOnDrives::packed(LIST_PAGE_BYTES as u32);
        let mut options = GpuReadOptions::within(host_memory, PIECES, LIST_PAGE_BYTES, |spans| {
            (PIECES * spans * PAGE_ON_ITS_WAY) as u64 <= device_memory
        });
        if who_waits == WhoWaits::Kernel {
            // Rows cross the link as kernels take them, and nothing else wants the multiprocessors.
            options.complete_blocks = GpuReadOptions::default().complete_blocks;
        }
        let taking = &streams.completing;
        let (device, checksum) =
            (taking.device().clone(), RowChecksum::of_pages(taking, paged.salt.on(0))?);
        let damaged = DamagedRows::new(taking)?;
        let reads = GpuReads::of_file(taking, drives, paged.file, &rows, options)?;
        let piece = reads.capacity();
        let place = |_| DeviceBuf::new(&device, piece * LIST_PAGE_BYTES);
        Ok(Self {
            pieces: (0..PIECES).map(place).collect::<Result<_>>()?,
            reads: match who_waits {
                WhoWaits::Host => Box::new(RoundReads::new(reads, streams)?),
                WhoWaits::Kernel => {
                    let ReadStreams { submitting, completing } = streams;
                    Box::new(ListsInOrder::new(WaitingReads { reads, submitting }, completing)?)
                }
            },
            piece,
            checksum,
            damaged,
            checking: Stream::new(&device)?,
            name: paged.name,
            brought: 0,
            _held: None,
        })
    }

    /// The reader, which keeps the reservation of its [`host_bytes`](Self::host_bytes).
    pub fn holding(self, held: Reservation) -> Self {
        Self { _held: Some(held), ..self }
    }

    /// Bytes of host memory that kernels and drives share.
    pub fn host_bytes(&self) -> u64 {
        self.reads.host_bytes()
    }

    /// Bytes of device memory for pages on their way.
    pub fn device_bytes(&self) -> u64 {
        let pieces = self.pieces.iter().map(|piece| piece.bytes() as u64);
        self.reads.device_bytes() + pieces.sum::<u64>()
    }

    /// The place of the pages that are numbers `of` among those that are wanted: whole pieces but the last.
    fn place(&self, of: &Range<usize>) -> DeviceView<u8> {
        let piece = &self.pieces[of.start / self.piece % PIECES];
        DeviceView::at(piece.ptr(), of.len() * LIST_PAGE_BYTES)
    }

    /// Begins to read the pages that are numbers `of` among those that are wanted, when what was submitted
    /// to the stream is done; returns their ticket.
    fn begin(&mut self, stream: &Stream, wanted: RowRequests, of: &Range<usize>) -> Result<u64> {
        let ready = Event::behind(stream)?;
        self.reads.begin(&ready, wanted, of.clone(), targets(self.place(of)))
    }

    /// Waits for pages that were begun, and has the stream wait until their checksums were compared.
    fn wait_for(
        &mut self,
        stream: &Stream,
        ticket: u64,
        wanted: RowRequests,
        of: &Range<usize>,
    ) -> Result<()> {
        // Kernels wait for these: a thread that sleeps between looks would sleep for longer than reads take.
        while !self.reads.has_ended(ticket) {
            self.reads.proceed()?;
            thread::yield_now();
        }
        self.reads.end(ticket)?;
        let (taking, rows) = (self.reads.stream(), targets(self.place(of)));
        self.checksum.compare(taking, wanted, of.clone(), rows, &self.damaged)?;
        let done = Event::behind(taking)?;
        stream.wait_for(&done)
    }

    /// Reads pieces and has them taken; `reading` keeps the tickets of those in flight.
    fn bring_pieces(
        &mut self,
        stream: &Stream,
        wanted: RowRequests,
        count: usize,
        take: &mut dyn FnMut(PiecePages) -> Result<()>,
        reading: &mut VecDeque<(u64, Range<usize>)>,
    ) -> Result<()> {
        let piece = self.piece;
        let mut waiting = (0..count).step_by(piece).map(|first| first..count.min(first + piece));
        for of in waiting.by_ref().take(PIECES) {
            reading.push_back((self.begin(stream, wanted, &of)?, of));
        }
        while let Some((ticket, of)) = reading.front().cloned() {
            self.wait_for(stream, ticket, wanted, &of)?;
            take(PiecePages { pages: self.place(&of), first: of.start as u32 })?;
            reading.pop_front();
            self.brought += of.len() as u64;
            if let Some(of) = waiting.next() {
                // To the place of the pages that were just taken, behind what the stream does with them.
                reading.push_back((self.begin(stream, wanted, &of)?, of));
            }
        }
        Ok(())
    }
}

impl ListReads for PagesByGpu {
    fn piece(&self) -> usize {
        self.piece
    }

    fn bring(
        &mut self,
        stream: &Stream,
        wanted: RowRequests,
        count: usize,
        take: &mut dyn FnMut(PiecePages) -> Result<()>,
    ) -> Result<()> {
        let mut reading = VecDeque::new();
        let brought = self.bring_pieces(stream, wanted, count, take, &mut reading);
        if brought.is_err() {
            // Nothing is on its way to places that others will be read to.
            reading.iter().for_each(|(ticket, _)| self.reads.give_up(*ticket));
            while reading.iter().any(|(ticket, _)| !self.reads.has_ended(*ticket)) {
                if self.reads.proceed().is_ok() {
                    thread::sleep(LOOK);
                }
            }
        }
        brought
    }

    fn check(&mut self) -> Result<()> {
        let Some(DamagedRow { row, stored, computed, .. }) = self.damaged.first(&self.checking)?
        else {
            return Ok(());
        };
        self.damaged.forget(&self.checking)?;
        Err(page_error(&self.name, row.into(), stored, computed))
    }

    fn impossible(&self, vertex: u32) -> Error {
        damaged_list(vertex)
    }

    fn brought(&self) -> ListPages {
        ListPages { pages: self.brought, reads: self.brought }
    }
}

/// Pages side by side, as targets.
fn targets(place: DeviceView<u8>) -> RowTargets {
    RowTargets { start: place.ptr(), stride: LIST_PAGE_BYTES as u64 }
}
