//! Single pages of files, for readers that know which pages they want: samplers.
//!
//! A pass (`reads`) spreads its reads over all workers and ends; a [`PageReader`] belongs to one
//! thread that prepares mini-batches beside others, has an engine of its own, and does other work
//! while its reads are in flight.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::rows::RowsIndex;
use tiergraph_format::salt::Salt;
use tiergraph_io::{Done, FileId, FileSet, Read, ReadEngine, Wait};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::{Direction, Graph};

/// The longest read: adjacent pages up to this size come as one.
const READ_BYTES: usize = 64 << 10;

/// A `*.rows` file as pages.
#[derive(Debug, Clone)]
pub struct RowPages<'a> {
    /// The file, for a [`PageReader`].
    pub file: FileId,
    /// Its name in messages.
    pub name: String,
    /// What the checksums of its pages are salted with.
    pub salt: Salt,
    /// Which page holds which neighbours.
    pub index: &'a RowsIndex,
}

/// What a [`PageReader`] read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagesRead {
    /// Pages, each counted as often as it was read.
    pub pages: u64,
    /// Reads: adjacent pages share one.
    pub reads: u64,
    /// Bytes that the engine brought.
    pub bytes: u64,
}

impl std::ops::AddAssign for PagesRead {
    fn add_assign(&mut self, other: Self) {
        self.pages += other.pages;
        self.reads += other.reads;
        self.bytes += other.bytes;
    }
}

/// Reads pages with an engine of its own.
pub struct PageReader {
    engine: Box<dyn ReadEngine>,
    files: Arc<FileSet>,
    /// A read stays inside a block, because the next may lie on another stripe.
    pages_per_block: u64,
    spare: Vec<AlignedBuf>,
    done: Vec<Done>,
    cancel: Cancel,
    /// Ends reads as the graph's own flag does.
    stop: Cancel,
}

impl Graph {
    /// The pages of the rows in this direction; `None` without rows. An undirected graph has one
    /// file for both.
    pub fn row_pages(&self, direction: Direction) -> Option<RowPages<'_>> {
        let rows = self.rows(direction)?;
        let file = format!("{}.rows", rows.direction);
        let salt = self.manifest().salt(&file);
        Some(RowPages { file: rows.file, name: self.file_name(&file), salt, index: &rows.index })
    }

    /// A reader of pages for the calling thread, or the one that it is moved to. Its buffers take
    /// [`PageReader::resident_bytes`], which the caller reserves.
    ///
    /// # Errors
    /// When the system refuses a further engine.
    pub fn page_reader(&self) -> Result<PageReader> {
        self.page_reader_of(usize::MAX)
    }

    /// The most bytes of the buffers of a reader with at most `reads` reads in flight.
    pub(crate) fn page_reader_bytes(&self, reads: usize) -> u64 {
        (reads * READ_BYTES.min(self.block_bytes())) as u64
    }

    /// As [`page_reader`](Self::page_reader), with at most so many reads in flight, each of which has a
    /// buffer.
    pub(crate) fn page_reader_of(&self, reads: usize) -> Result<PageReader> {
        let engine = self.new_engine()?;
        let reads = engine.capacity().min(reads);
        let spare = AlignedBuf::batch(reads, READ_BYTES.min(self.block_bytes()))?;
        Ok(PageReader {
            engine,
            files: Arc::clone(self.files()),
            pages_per_block: (self.block_bytes() / PAGE_BYTES) as u64,
            spare,
            done: Vec::new(),
            cancel: self.cancel().clone(),
            stop: Cancel::default(),
        })
    }
}

impl PageReader {
    /// Bytes of the reader's buffers.
    pub fn resident_bytes(&self) -> u64 {
        self.spare.iter().map(|buffer| buffer.len() as u64).sum()
    }

    /// Ends reads by `stop` too, from now on, and no longer by the flag before.
    pub fn stop_by(&mut self, stop: Cancel) {
        self.stop = stop;
    }

    /// Whether no read is in flight: always so between calls, unless the engine failed.
    pub fn is_idle(&self) -> bool {
        self.engine.in_flight() == 0
    }

    /// Reads each of `pages` (ascending) of `file` as often as it is there, and calls
    /// `visit(first page, bytes)` for every read, in the order of completion. `bytes` are whole
    /// pages, unchecked. Pages side by side come in one read, up to 64 KiB. While reads are in
    /// flight, `meanwhile` is called for a small piece of other work until it says that there is
    /// no more; it may not be called at all.
    ///
    /// # Errors
    /// A failed read, a page past the file's end, what `visit` and `meanwhile` give, cancellation.
    /// No read is in flight then and the reader can be used again, unless its engine failed.
    pub fn read(
        &mut self,
        file: FileId,
        pages: &[u64],
        mut meanwhile: impl FnMut() -> Result<bool>,
        mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<PagesRead> {
        let mut count = PagesRead::default();
        let read = self.read_all(file, pages, &mut meanwhile, &mut visit, &mut count);
        let drained = self.drain();
        read.and(drained).map(|()| count)
    }

    fn read_all(
        &mut self,
        file: FileId,
        mut pages: &[u64],
        meanwhile: &mut impl FnMut() -> Result<bool>,
        visit: &mut impl FnMut(u64, &[u8]) -> Result<()>,
        count: &mut PagesRead,
    ) -> Result<()> {
        let mut more_work = true;
        while !pages.is_empty() || self.engine.in_flight() > 0 {
            self.cancel.check("read pages")?;
            self.stop.check("read pages")?;
            self.fill(file, &mut pages)?;
            self.engine.poll(&mut self.done, Wait::No)?;
            if self.done.is_empty() {
                if more_work {
                    more_work = meanwhile()?;
                    continue;
                }
                self.engine.poll(&mut self.done, Wait::One)?;
            }
            while let Some(Done { tag, buffer, result }) = self.done.pop() {
                let visited = result.and_then(|bytes| arrived(tag, &buffer, bytes, visit, count));
                self.spare.push(buffer);
                visited?;
            }
        }
        Ok(())
    }

    /// Submits reads while there are pages, buffers and room.
    fn fill(&mut self, file: FileId, pages: &mut &[u64]) -> Result<()> {
        while !pages.is_empty() && self.engine.in_flight() < self.engine.capacity() {
            let Some(buffer) = self.spare.pop() else { break };
            let run = self.run(pages, buffer.len());
            let (offset, len) = (run.start * PAGE_BYTES as u64, pages_bytes(&run));
            if offset + len as u64 > self.files.len(file).next_multiple_of(PAGE_BYTES as u64) {
                self.spare.push(buffer);
                return Err(past_the_end(&run));
            }
            if let Err(refused) =
                self.engine.submit(Read { file, offset, len, buffer, tag: run.start })
            {
                self.spare.push(refused.buffer);
                break;
            }
            *pages = &pages[(run.end - run.start) as usize..];
        }
        Ok(())
    }

    /// The first pages that lie side by side in one block and fit a buffer.
    fn run(&self, pages: &[u64], buffer_bytes: usize) -> Range<u64> {
        let first = pages[0];
        let block_end = (first / self.pages_per_block + 1) * self.pages_per_block;
        let most = (buffer_bytes / PAGE_BYTES).min((block_end - first) as usize);
        let side_by_side = pages.iter().take(most).zip(first..).take_while(|(p, q)| **p == *q);
        first..first + side_by_side.count() as u64
    }

    /// Waits for what is in flight and takes the buffers back: nothing of one call may arrive in
    /// the next.
    fn drain(&mut self) -> Result<()> {
        if self.engine.in_flight() > 0 {
            self.engine.poll(&mut self.done, Wait::All)?;
        }
        self.spare.extend(self.done.drain(..).map(|done| done.buffer));
        Ok(())
    }
}

fn arrived(
    first: u64,
    buffer: &AlignedBuf,
    bytes: usize,
    visit: &mut impl FnMut(u64, &[u8]) -> Result<()>,
    count: &mut PagesRead,
) -> Result<()> {
    let bytes = bytes.next_multiple_of(PAGE_BYTES);
    if bytes == 0 {
        return Err(past_the_end(&(first..first + 1)));
    }
    count.reads += 1;
    count.bytes += bytes as u64;
    count.pages += (bytes / PAGE_BYTES) as u64;
    visit(first, &buffer[..bytes])
}

fn pages_bytes(run: &Range<u64>) -> usize {
    (run.end - run.start) as usize * PAGE_BYTES
}

fn past_the_end(run: &Range<u64>) -> Error {
    Error::new(ErrorKind::Format, "read pages")
        .expected("pages of the file")
        .got(format!("page {} past its end", run.end - 1))
}
