//! Neighbours of selected vertices, from passes over the pages of rows that hold them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_cache::{BlockFile, BlockKey};
use tiergraph_core::Result;
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::rows::{PAGE_BYTES, RowsIndex, RowsPage, check_page};
use tiergraph_io::FileId;
use tiergraph_mem::prefetch_all;

use crate::reads::{Batches, bytes_of, is_fresh};
use crate::{Graph, RowPages};

use tiergraph_io::pipeline::{Block, NextPass, Request, SMALL_READ_BYTES};

/// Pages of a resident block that are handed out together: pages of short lists have many times the
/// vertices of others, and threads share their work.
const PIECE_PAGES: u64 = 32;
/// At least so many pages are looked at for an estimate, or all where there are fewer.
const SAMPLED_PAGES: usize = 4096;

/// The direction of a neighbour list: which end of its arcs the list's vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The vertex is the source: its out-neighbours.
    Out,
    /// The vertex is the destination: its in-neighbours.
    In,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "out",
            Self::In => "in",
        })
    }
}

impl Direction {
    /// The `*.rows` file of this direction.
    pub(crate) fn rows_file(self) -> BlockFile {
        match self {
            Self::Out => BlockFile::OutRows,
            Self::In => BlockFile::InRows,
        }
    }

    /// The `*.blocks` file of this direction, of codec `raw`.
    pub(crate) fn blocks_file(self) -> BlockFile {
        match self {
            Self::Out => BlockFile::OutBlocks,
            Self::In => BlockFile::InBlocks,
        }
    }
}

/// An opened `*.rows` file and its resident index.
#[derive(Debug)]
pub(crate) struct RowFile {
    pub(crate) direction: Direction,
    pub(crate) file: FileId,
    bytes: u64,
    pub(crate) index: RowsIndex,
    /// What runs would have saved, had the lists that they wanted been in memory.
    missed: AtomicU64,
}

impl RowFile {
    pub(crate) fn open(dir: &GraphDir, direction: Direction, file: FileId) -> Result<Self> {
        let name = format!("{direction}.rows.index");
        let words: Vec<u64> = flat::read(&dir.path().join(&name), dir.entry(&name)?)?;
        let bytes = dir.entry(&format!("{direction}.rows"))?.bytes;
        let (index, missed) = (RowsIndex::from_words(&words)?, AtomicU64::new(0));
        Ok(Self { direction, file, bytes, index, missed })
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.index.resident_bytes() as u64
    }

    /// Bytes of a list on `pages`, about: all of several pages, or an average share of one.
    pub(crate) fn list_bytes(&self, pages: &Range<u64>) -> u64 {
        let count = pages.end - pages.start;
        let vertices = self.index.vertices_on(pages.start);
        let others = vertices.end.saturating_sub(vertices.start).max(1);
        if count > 1 { count * PAGE_BYTES as u64 } else { PAGE_BYTES as u64 / others }
    }
}

/// A selection: the pages that hold the neighbours of some vertices, and the requests that read them.
#[derive(Debug)]
pub struct RowSelection {
    direction: Direction,
    requests: Vec<Request>,
    /// For each want, where its runs of pages end in `pages`.
    ends: Vec<usize>,
    pages: Vec<Range<u64>>,
    missing_bytes: u64,
    list_bytes: u64,
    kept: bool,
}

impl RowSelection {
    /// A selection of no page.
    fn of(direction: Direction) -> Self {
        Self {
            direction,
            requests: Vec::new(),
            ends: Vec::new(),
            pages: Vec::new(),
            missing_bytes: 0,
            list_bytes: 0,
            kept: false,
        }
    }

    /// Bytes of all requests, resident or not.
    pub fn bytes(&self) -> u64 {
        self.requests.iter().map(|w| w.len as u64).sum()
    }

    /// Bytes of the requests whose block was not resident.
    pub fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// Whether there is room to keep in memory all that is read.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Bytes of the selected vertices' lists, about.
    pub fn list_bytes(&self) -> u64 {
        self.list_bytes
    }

    fn pages(&self, want: usize) -> &[Range<u64>] {
        let begin = if want == 0 { 0 } else { self.ends[want - 1] };
        &self.pages[begin..self.ends[want]]
    }
}

/// The pages selected so far, as runs of adjacent ones.
#[derive(Default)]
struct Runs {
    runs: Vec<Range<u64>>,
    list_bytes: u64,
}

impl Runs {
    fn add(&mut self, pages: Range<u64>) {
        match self.runs.last_mut() {
            Some(run) if pages.start <= run.end => run.end = run.end.max(pages.end),
            _ => self.runs.push(pages),
        }
    }
}

/// A view of one direction's neighbour lists in pages, made by [`Graph::rows`]: `out.rows` or `in.rows`.
#[derive(Clone, Copy)]
pub struct Rows<'g> {
    graph: &'g Graph,
    file: Option<&'g RowFile>,
}

impl Graph {
    /// A view of the rows of this direction, of which single lists can be read. An undirected graph has
    /// one file for both directions.
    pub fn rows(&self, direction: Direction) -> Rows<'_> {
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        let file = self.row_files.iter().find(|(d, _)| *d == wanted).map(|(_, rows)| rows);
        Rows { graph: self, file }
    }
}

impl<'g> Rows<'g> {
    /// The file and its index; `None` in a graph without rows.
    pub(crate) fn file(self) -> Option<&'g RowFile> {
        self.file
    }

    /// Whether the cache has room for a whole file of rows, or had when a pass over it began.
    fn is_roomy(self, rows: &RowFile) -> bool {
        self.graph.cache().capacity() >= self.graph.cache().resident_bytes() + rows.bytes
            || self.graph.cache().contains(BlockKey { file: rows.direction.rows_file(), block: 0 })
    }

    /// Adds what a run would have `saved` if lists were in memory that it wants, where they would stay, and says
    /// whether to read them now: when all runs that missed them would have saved as much as the `reading`
    /// costs. So all together cost at most about twice what they would if it were known how many follow
    /// (ski rental).
    pub fn reading_pays(self, saved: u64, reading: u64) -> bool {
        let Some(rows) = self.file else { return false };
        let missed = rows.missed.fetch_add(saved, Ordering::Relaxed) + saved;
        if missed < reading {
            return false;
        }
        rows.missed.store(0, Ordering::Relaxed);
        true
    }

    /// Whether the graph has rows in this direction.
    pub fn is_stored(self) -> bool {
        self.file.is_some()
    }

    /// The pages of the lists, for a [`PageReader`](crate::PageReader); `None` in a graph without rows.
    pub fn pages(self) -> Option<RowPages<'g>> {
        let rows = self.file?;
        let file = format!("{}.rows", rows.direction);
        let salt = self.graph.manifest().salt(&file);
        let name = self.graph.file_name(&file);
        Some(RowPages { file: rows.file, name, salt, index: &rows.index })
    }

    /// Bytes of the lists of all vertices for which `wanted` is true, estimated by those on some thousand
    /// pages; 0 without rows.
    pub fn sampled_list_bytes(self, wanted: impl Fn(u32) -> bool) -> u64 {
        let Some(rows) = self.file else { return 0 };
        let of_page = |page| {
            let vertices = rows.index.vertices_on(page);
            let end = vertices.end.min(self.graph.manifest().vertices);
            let count = (vertices.start..end).filter(|&v| wanted(v as u32)).count() as u64;
            count * PAGE_BYTES as u64 / end.saturating_sub(vertices.start).max(1)
        };
        let every = (rows.index.len() / SAMPLED_PAGES).max(1);
        (0..rows.index.len() as u64).step_by(every).map(of_page).sum::<u64>() * every as u64
    }

    /// Selects the pages that hold the neighbours of `vertices`, which ascend; `None` without rows.
    pub fn select(self, vertices: &[u32]) -> Option<RowSelection> {
        let rows = self.file?;
        let mut wanted = Runs::default();
        let mut from = 0;
        for &vertex in vertices {
            let pages = rows.index.pages_of_after(u64::from(vertex), from);
            from = pages.start;
            wanted.list_bytes += rows.list_bytes(&pages);
            wanted.add(pages);
        }
        Some(self.want_runs(rows, wanted))
    }

    /// Selects the pages that hold the neighbours of all vertices for which `wanted` is true; `None`
    /// without rows. [`RowSelection::list_bytes`] then counts all lists of these pages. On each page,
    /// `wanted` is asked of vertex after vertex until it is true.
    pub fn select_where(self, wanted: impl Fn(u32) -> bool) -> Option<RowSelection> {
        let rows = self.file?;
        let mut runs = Runs::default();
        for page in 0..rows.index.len() as u64 {
            let vertices = rows.index.vertices_on(page);
            let end = vertices.end.min(self.graph.manifest().vertices);
            if (vertices.start..end).any(|v| wanted(v as u32)) {
                runs.add(page..page + 1);
                runs.list_bytes += PAGE_BYTES as u64;
            }
        }
        Some(self.want_runs(rows, runs))
    }

    /// Selects the pages that hold the neighbours of the vertices of a range, for passes that will come
    /// again: whole blocks are read, which stay in memory as far as there is room. `None` without rows.
    pub fn select_range(self, vertices: Range<u32>) -> Option<RowSelection> {
        let rows = self.file?;
        let pages = match vertices.is_empty() {
            true => 0..0,
            false => {
                let last = rows.index.pages_of(u64::from(vertices.end) - 1);
                rows.index.pages_of(vertices.start.into()).start..last.end
            }
        };
        Some(self.want_pages(rows, pages))
    }

    /// Selects all pages of one block of the file; `None` without rows, or after the last block.
    pub fn select_block(self, block: u64) -> Option<RowSelection> {
        let rows = self.file?;
        let per_block = (self.graph.block_bytes() / PAGE_BYTES) as u64;
        let pages =
            block * per_block..rows.index.len().min(((block + 1) * per_block) as usize) as u64;
        (!pages.is_empty()).then(|| self.want_pages(rows, pages))
    }

    fn want_pages(self, rows: &RowFile, pages: Range<u64>) -> RowSelection {
        let mut to = RowSelection::of(rows.direction);
        to.list_bytes = (pages.end - pages.start) * PAGE_BYTES as u64;
        let (len, file) = (self.graph.block_bytes(), rows.direction.rows_file());
        let per_block = (len / PAGE_BYTES) as u64;
        for block in pages.start / per_block..pages.end.div_ceil(per_block) {
            let key = BlockKey { file, block };
            let resident = self.graph.cache().contains(key);
            to.missing_bytes += if resident { 0 } else { len as u64 };
            let offset = block * len as u64;
            to.requests.push(Request { file: rows.file, offset, len, key: Some(key) });
            let (begin, end) = (block * per_block, (block + 1) * per_block);
            to.pages.push(pages.start.max(begin)..pages.end.min(end));
            to.ends.push(to.pages.len());
        }
        to
    }

    fn want_runs(self, rows: &RowFile, wanted: Runs) -> RowSelection {
        let file = rows.direction.rows_file();
        let roomy = self.is_roomy(rows);
        let mut to = RowSelection::of(rows.direction);
        (to.list_bytes, to.kept) = (wanted.list_bytes, roomy);
        let per_block = (self.graph.block_bytes() / PAGE_BYTES) as u64;
        for run in wanted.runs {
            let mut page = run.start;
            while page < run.end {
                let block = page / per_block;
                let piece_end = (page / PIECE_PAGES + 1) * PIECE_PAGES;
                let end = run.end.min((block + 1) * per_block).min(piece_end);
                self.want_rows(rows, BlockKey { file, block }, page..end, &mut to);
                page = end;
            }
        }
        to
    }

    /// Adds requests for pages of one block: the whole block if it may be resident, else small runs.
    fn want_rows(self, rows: &RowFile, key: BlockKey, pages: Range<u64>, to: &mut RowSelection) {
        let same_block = to.requests.last().is_some_and(|want| want.key == Some(key));
        let piece = |pages: &Range<u64>| pages.start / PIECE_PAGES;
        let same_piece = to.pages.last().is_some_and(|last| piece(last) == piece(&pages));
        let resident = !(same_block && same_piece) && self.graph.cache().contains(key);
        if same_block && !resident {
            to.pages.push(pages);
            to.ends.pop();
            to.ends.push(to.pages.len());
            return;
        }
        if to.kept || resident {
            // The last block ends with the file; what is read of it is filled up with zeros.
            let len = self.graph.block_bytes();
            let offset = key.block * len as u64;
            to.missing_bytes += if resident { 0 } else { len as u64 };
            to.requests.push(Request { file: rows.file, offset, len, key: Some(key) });
            to.pages.push(pages);
            to.ends.push(to.pages.len());
            return;
        }
        let most = (SMALL_READ_BYTES / PAGE_BYTES) as u64;
        for begin in pages.clone().step_by(most as usize) {
            let end = pages.end.min(begin + most);
            let offset = begin * PAGE_BYTES as u64;
            let len = (end - begin) as usize * PAGE_BYTES;
            to.missing_bytes += len as u64;
            to.requests.push(Request { file: rows.file, offset, len, key: None });
            to.pages.push(begin..end);
            to.ends.push(to.pages.len());
        }
    }

    /// Hands every selected page to `visit`, once each and in any order, on all threads. A page may have
    /// vertices that were not selected; a list may span pages. Where checksums are not compared
    /// ([`Graph::is_unchecked`]), a damaged page may have vertices and neighbours that the graph lacks.
    ///
    /// # Errors
    /// Those of [`Tiles::pass`](crate::Tiles::pass).
    pub fn pass<W>(
        self,
        selection: &RowSelection,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RowsPage<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let name = format!("{}.rows", selection.direction);
        let (salt, name) = (self.graph.manifest().salt(&name), self.graph.file_name(&name));
        let in_file = self.file.map_or(0, |rows| rows.index.len() as u64);
        let one = |state: &mut W, block: &Block| {
            let (i, bytes) = (block.number, bytes_of(block));
            let want = &selection.requests[i];
            let first = want.offset / PAGE_BYTES as u64;
            if is_fresh(block) && !self.graph.is_unchecked() {
                // All of a block that may become resident, because later passes do not check.
                for (page, number) in bytes.chunks_exact(PAGE_BYTES).zip(first..in_file) {
                    check_page(page, &name, number, salt)?;
                }
            }
            for run in selection.pages(i) {
                let (from, to) = ((run.start - first) as usize, (run.end - first) as usize);
                let pages = &bytes[from * PAGE_BYTES..to * PAGE_BYTES];
                for (number, page) in pages.chunks_exact(PAGE_BYTES).enumerate() {
                    // Pages are too short for the hardware to see that they follow each other.
                    prefetch_all(pages.get((number + 1) * PAGE_BYTES..).map_or(&[], first_page));
                    visit(state, &RowsPage::parse(page)?)?;
                }
            }
            Ok(())
        };
        let each = |state: &mut W, blocks: &[Block]| blocks.iter().try_for_each(|b| one(state, b));
        let pass = (&selection.requests[..], NextPass::Unknown);
        self.graph.read_all(pass, &Batches::NONE, begin, each, end)
    }
}

fn first_page(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(PAGE_BYTES)]
}
