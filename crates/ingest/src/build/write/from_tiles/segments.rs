//! The tiles of a graph that is being built, read again.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::tiles::{SLACK, Segment, TileOptions, TilesIndex};
use tiergraph_kernels::{Isa, Kernel};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::arcs::Ends;
use crate::build::ahead::{Ahead, Spares};
use tiergraph_io::temporary::PagesFile;

/// Spans that are read ahead of the one that is decoded.
const AHEAD: usize = 6;
/// Buffers of a reader: of spans that wait, of one that is being read and of one that is decoded.
const BUFFERS: usize = AHEAD + 2;
/// The most bytes that are read at once, unless one segment has more.
const SPAN_BYTES: usize = 1 << 20;

/// Tiles that are written, and where each of their segments is.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The file, or one for each stripe.
    files: Vec<PagesFile>,
    pub(super) kernel: Kernel,
    index: Vec<TilesIndex>,
    /// The first segment of each strip that has one, then the number of segments.
    strips: Vec<u32>,
    /// The most bytes that are read at once.
    span_bytes: usize,
}

/// The segments that have arcs of some vertices.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) vertices: Range<u32>,
    pub(super) ends: Ends,
}

/// Reads spans ahead, until it is dropped.
pub(super) struct SpanReader {
    spans: Ahead<Span>,
    spares: Spares<AlignedBuf>,
}

/// Segments that lie one behind the other and are read at once.
struct Span {
    segments: Range<usize>,
    /// The first byte that is read, counted from the block's.
    first: usize,
    pages: AlignedBuf,
}

/// The most bytes that a reader of a build with `memory` bytes reads at once, unless one segment has more.
fn span_bytes(memory: u64) -> usize {
    (memory as usize / 512).clamp(PAGE_BYTES, SPAN_BYTES)
}

/// Whole pages that hold any span of some bytes.
fn buffer_bytes(span_bytes: usize) -> usize {
    (span_bytes + SLACK).next_multiple_of(PAGE_BYTES) + PAGE_BYTES
}

/// Bytes of the buffers of one reader, where segments have at most `longest` bytes.
pub(super) fn reader_bytes(memory: u64, longest: u64) -> u64 {
    (BUFFERS * buffer_bytes(span_bytes(memory).max(longest as usize))) as u64
}

impl Wanted {
    /// The tiles that are wanted of the strip of `rows` rows from `row_base`.
    fn tiles(&self, row_base: u64, rows: u32, columns_log2: u32) -> Range<u32> {
        let Range { start, end } = self.vertices;
        let has_rows = row_base < u64::from(end) && row_base + u64::from(rows) > u64::from(start);
        match (self.ends.rows && has_rows, self.ends.columns) {
            (true, _) => 0..u32::MAX,
            (false, true) => start >> columns_log2..(end.saturating_sub(1) >> columns_log2) + 1,
            (false, false) => 0..0,
        }
    }
}

impl Segments {
    /// The tiles in `files`, of which `index` has every segment, for readers that have `memory` bytes.
    pub(crate) fn new(
        files: Vec<PagesFile>,
        options: TileOptions,
        index: Vec<TilesIndex>,
        memory: u64,
    ) -> Self {
        let first_of_strip = |i: &usize| *i == 0 || index[*i].row_base != index[*i - 1].row_base;
        let mut strips: Vec<u32> =
            (0..index.len()).filter(first_of_strip).map(|i| i as u32).collect();
        strips.push(index.len() as u32);
        let longest = index.iter().map(|entry| entry.len as usize).max().unwrap_or(0);
        let span_bytes = span_bytes(memory).max(longest);
        Self { files, kernel: Kernel::new(options, Isa::detect()), index, strips, span_bytes }
    }

    pub(super) fn columns_log2(&self) -> u32 {
        self.kernel.options().columns_log2
    }

    /// The most arcs of a tile of a strip, or more: it may be in several segments.
    pub(super) fn most_arcs(&self) -> u64 {
        let same = |a: &TilesIndex, b: &TilesIndex| {
            (a.row_base, a.column_tile) == (b.row_base, b.column_tile)
        };
        let tiles = self.index.chunk_by(same);
        tiles.map(|tile| tile.iter().map(|entry| u64::from(entry.arcs)).sum()).max().unwrap_or(0)
    }

    /// The most rows of a strip.
    pub(super) fn most_rows(&self) -> usize {
        self.index.iter().map(|entry| entry.rows as usize).max().unwrap_or(0)
    }

    /// Bytes that the index takes in memory.
    pub(crate) fn index_bytes(&self) -> u64 {
        size_of_val(&self.index[..]) as u64
    }

    /// Bytes of the buffers of one reader.
    pub(super) fn reader_bytes(&self) -> u64 {
        (BUFFERS * buffer_bytes(self.span_bytes)) as u64
    }

    /// The segments that are wanted, a range of each strip's.
    fn of_strips(&self, wanted: &Wanted) -> impl Iterator<Item = Range<usize>> {
        self.strips.windows(2).map(|strip| {
            let strip = strip[0] as usize..strip[1] as usize;
            let first = &self.index[strip.start];
            let tiles = wanted.tiles(first.row_base, first.rows, self.columns_log2());
            let place = |tile: u32| {
                let before = |entry: &TilesIndex| entry.column_tile < tile;
                strip.start + self.index[strip.clone()].partition_point(before)
            };
            place(tiles.start)..place(tiles.end)
        })
    }

    /// Starts to read the segments that are `wanted`, strip by strip, tile by tile.
    pub(super) fn read(self: &Arc<Self>, wanted: &Wanted) -> Result<SpanReader> {
        let mut spans = Vec::new();
        for mut rest in self.of_strips(wanted) {
            while !rest.is_empty() {
                let end = self.span_end(rest.clone());
                spans.push(rest.start..end);
                rest.start = end;
            }
        }
        let spares = Spares::new(BUFFERS);
        let (segments, buffers, count) = (Arc::clone(self), spares.clone(), spans.len());
        let read = move |number: usize| {
            let buffer = buffers.buffer(buffer_bytes(segments.span_bytes))?;
            segments.read_span(spans[number].clone(), buffer)
        };
        let spans = Ahead::start("read-tiles", AHEAD, count, read)?;
        Ok(SpanReader { spans, spares })
    }

    /// The end of the span that begins with the first of the segments `rest`.
    fn span_end(&self, rest: Range<usize>) -> usize {
        let first = self.index[rest.start];
        let belongs = |entry: &&TilesIndex| {
            let end = entry.offset + entry.len;
            entry.block == first.block && (end - first.offset) as usize <= self.span_bytes
        };
        rest.start + self.index[rest].iter().take_while(belongs).count()
    }

    fn read_span(&self, segments: Range<usize>, mut pages: AlignedBuf) -> Result<Span> {
        let (begin, last) = (self.index[segments.start], self.index[segments.end - 1]);
        let first = begin.offset as usize / PAGE_BYTES * PAGE_BYTES;
        let end = (last.offset as usize + last.len as usize + SLACK).next_multiple_of(PAGE_BYTES);
        let stripes = self.files.len() as u64;
        let block = u64::from(begin.block);
        let at = block / stripes * self.kernel.options().block_bytes as u64;
        let file = &self.files[(block % stripes) as usize];
        file.read(&mut pages[..end - first], at + first as u64)?;
        Ok(Span { segments, first, pages })
    }
}

impl Span {
    /// Calls `visit` with each segment, which is as it was written.
    fn for_each(
        &self,
        segments: &Segments,
        mut visit: impl FnMut(&Segment<'_>) -> Result<()>,
    ) -> Result<()> {
        segments.index[self.segments.clone()].iter().try_for_each(|entry| {
            let segment = entry.segment(&self.pages, self.first, segments.columns_log2())?;
            if !entry.is_intact(&segment) {
                return Err(Error::new(ErrorKind::Format, "read the tiles again")
                    .expected(format!("what was written to block {}", entry.block))
                    .got("other bytes"));
            }
            visit(&segment)
        })
    }
}

impl SpanReader {
    /// Calls `visit` with each segment that is read.
    pub(super) fn for_each(
        self,
        segments: &Segments,
        mut visit: impl FnMut(&Segment<'_>) -> Result<()>,
    ) -> Result<()> {
        for span in self.spans {
            let span = span?;
            span.for_each(segments, &mut visit)?;
            self.spares.give(span.pages);
        }
        Ok(())
    }
}
