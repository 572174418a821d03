//! Reading single pages of files, for samplers and others that know which pages they need.
//!
//! A pass (`reads`) spreads its reads over all workers and ends; a [`PageReader`] reads for one thread,
//! say one that prepares mini-batches beside others and does other work while its reads are in flight.

use std::sync::Arc;

use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::rows::RowsIndex;
use tiergraph_format::salt::Salt;
use tiergraph_io::pipeline::{Block, Buffers, Consumer, Pass, Plan, Request, Surroundings, Worker};
use tiergraph_io::{FileId, FileSet, ReadEngine};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::Graph;

/// Bytes of the longest read: adjacent pages up to this size share one.
const READ_BYTES: usize = 64 << 10;

/// A view of a `*.rows` file as pages: its file, checksum salt and index.
#[derive(Debug, Clone)]
pub struct RowPages<'a> {
    /// The file, for a [`PageReader`] to read.
    pub file: FileId,
    /// The path that messages show.
    pub name: String,
    /// The salt that the checksums of pages are computed with.
    pub salt: Salt,
    /// The index that tells which page holds which neighbours.
    pub index: &'a RowsIndex,
}

/// Counts of what a [`PageReader`] read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagesRead {
    /// Pages read, each counted as often as it was read.
    pub pages: u64,
    /// Reads submitted: adjacent pages share one.
    pub reads: u64,
    /// Bytes that the engine read.
    pub bytes: u64,
}

impl std::ops::AddAssign for PagesRead {
    fn add_assign(&mut self, other: Self) {
        self.pages += other.pages;
        self.reads += other.reads;
        self.bytes += other.bytes;
    }
}

/// A reader of pages for one thread, with an engine and buffers of its own.
pub struct PageReader {
    worker: Worker,
    files: Arc<FileSet>,
    /// Pages in a block: a read stays inside one, because the next block may lie on another stripe.
    pages_per_block: u64,
    /// The list that each call fills with its requests, kept for its memory.
    requests: Vec<Request>,
    calls: u32,
    cancel: Cancel,
    /// A flag that ends reads as the graph's own does.
    stop: Cancel,
    trace: Trace,
}

impl PageReader {
    /// Makes a reader of a graph's pages for one thread. Its buffers take
    /// [`resident_bytes`](Self::resident_bytes), which the caller reserves.
    ///
    /// # Errors
    /// When the system refuses a further engine.
    pub fn new(graph: &Graph) -> Result<Self> {
        Self::with_reads(graph, usize::MAX)
    }

    /// The most bytes of the buffers of a reader with at most `reads` reads in flight.
    pub fn most_bytes(graph: &Graph, reads: usize) -> u64 {
        (reads * READ_BYTES.min(graph.block_bytes())) as u64
    }

    /// Makes a reader with at most `reads` reads in flight, each of which has a buffer.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_reads(graph: &Graph, reads: usize) -> Result<Self> {
        let engine = graph.engines().lease()?;
        let (reads, bytes) = (engine.capacity().min(reads), READ_BYTES.min(graph.block_bytes()));
        let buffers = Buffers::of_pages(AlignedBuf::batch(reads, bytes)?, bytes);
        Ok(Self {
            worker: Worker::new(0, Box::new(engine), buffers),
            files: Arc::clone(graph.engines().files()),
            pages_per_block: (graph.block_bytes() / PAGE_BYTES) as u64,
            requests: Vec::new(),
            calls: 0,
            cancel: graph.cancel().clone(),
            stop: Cancel::default(),
            trace: Trace::off(),
        })
    }

    /// Bytes that the reader's buffers take.
    pub fn resident_bytes(&self) -> u64 {
        self.worker.buffers().free_bytes()
    }

    /// Sets `stop` as a flag that ends reads beside the graph's own; it replaces the one set before.
    pub fn stop_by(&mut self, stop: Cancel) {
        self.stop = stop;
    }

    /// Whether no read is in flight: always so between calls, unless the engine failed.
    pub fn is_idle(&self) -> bool {
        self.worker.is_idle()
    }

    /// Reads each of `pages` (ascending; repeated ones again) of `file` and calls `visit(page, bytes)`
    /// for it, in the order of completion; the bytes are unchecked. Adjacent pages share a read, up to
    /// 64 KiB. While reads are in flight, `meanwhile` is called to do a small piece of other work, until
    /// it returns false; it may not be called at all.
    ///
    /// # Errors
    /// A failed read, a page past the file's end, an error of `visit` or `meanwhile`, cancellation. No
    /// read is in flight then and the reader can be used again, unless its engine failed.
    pub fn read(
        &mut self,
        file: FileId,
        pages: &[u64],
        meanwhile: impl FnMut() -> Result<bool>,
        visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<PagesRead> {
        let mut requests = std::mem::take(&mut self.requests);
        self.cut(file, pages, &mut requests)?;
        self.calls = self.calls.wrapping_add(1);
        let plan = Plan::all(self.calls, requests, 1);
        let totals = Totals::default();
        let around = Surroundings {
            cancels: [&self.cancel, &self.stop],
            totals: &totals,
            trace: &self.trace,
            residency: None,
            held: 0,
            op: "read pages",
        };
        let mut visitor = Visitor { plan: &plan, meanwhile, visit, has_work: true };
        let ran = self.worker.run(&Pass::of_one(&plan, around), &mut visitor);
        if ran.is_err() {
            self.worker.drain(&totals);
        }
        self.requests = plan.into_requests();
        let read = totals.get();
        let pages = read.bytes_read.div_ceil(PAGE_BYTES as u64);
        ran.map(|()| PagesRead { pages, reads: read.reads, bytes: pages * PAGE_BYTES as u64 })
    }

    /// Makes one request of each run of `pages` that are adjacent, in one block, and fit a buffer.
    fn cut(&self, file: FileId, mut pages: &[u64], requests: &mut Vec<Request>) -> Result<()> {
        requests.clear();
        let most = (READ_BYTES / PAGE_BYTES).min(self.pages_per_block as usize);
        let end = self.files.len(file).div_ceil(PAGE_BYTES as u64);
        while let Some(&first) = pages.first() {
            let block_end = (first / self.pages_per_block + 1) * self.pages_per_block;
            let most = most.min((block_end - first) as usize);
            let side_by_side = pages.iter().take(most).zip(first..).take_while(|(p, q)| **p == *q);
            let count = side_by_side.count();
            if first + count as u64 > end {
                return Err(past_the_end(first + count as u64 - 1));
            }
            let (offset, len) = (first * PAGE_BYTES as u64, count * PAGE_BYTES);
            requests.push(Request { file, offset, len, key: None });
            pages = &pages[count..];
        }
        Ok(())
    }
}

/// The consumer of one call's pages: hands them to `visit`, and does other work meanwhile.
struct Visitor<'a, M, V> {
    plan: &'a Plan,
    meanwhile: M,
    visit: V,
    /// Whether the other work, `meanwhile`, may not have ended yet.
    has_work: bool,
}

impl<M, V> Consumer for Visitor<'_, M, V>
where
    M: FnMut() -> Result<bool>,
    V: FnMut(u64, &[u8]) -> Result<()>,
{
    const ACTIVITY: &'static str = "pages";

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        let first = self.plan.request(block.number).offset / PAGE_BYTES as u64;
        let mut pages = block.bytes.as_slice()[..block.len].chunks_exact(PAGE_BYTES).zip(first..);
        let visited = pages.try_for_each(|(page, number)| (self.visit)(number, page));
        back.push(block);
        visited
    }

    fn idle(&mut self) -> Result<bool> {
        self.has_work = self.has_work && (self.meanwhile)()?;
        Ok(self.has_work)
    }
}

fn past_the_end(page: u64) -> Error {
    Error::new(ErrorKind::Format, "read pages")
        .expected("pages of the file")
        .got(format!("page {page} past its end"))
}
