//! The tiles of a graph that is being built, read again.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result, panics, threads};
use tiergraph_format::tiles::{SLACK, Segment, TileOptions, TilesIndex};
use tiergraph_kernels::{Isa, Kernel};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::build::direct::DirectFile;

/// Spans that are read ahead of the one that is decoded.
const AHEAD: usize = 2;
/// Buffers of a reader: of spans that wait, of one that is being read and of one that is decoded.
pub(super) const BUFFERS: usize = AHEAD + 2;
/// The most bytes that are read at once, unless one segment has more.
const SPAN_BYTES: usize = 1 << 20;

/// Tiles that are written, and where each of their segments is.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The file, or one for each stripe.
    files: Vec<DirectFile>,
    pub(super) kernel: Kernel,
    index: Vec<TilesIndex>,
    /// The first segment of each strip that has one, then the number of segments.
    strips: Vec<u32>,
    /// The most bytes of a segment.
    longest: usize,
}

/// Segments that lie one behind the other and are read at once.
#[derive(Debug)]
pub(super) struct Span {
    segments: Range<usize>,
    /// The first byte that is read, counted from the block's.
    first: usize,
    pages: AlignedBuf,
}

/// Reads spans ahead. Its thread ends when this is dropped.
pub(super) struct SpanReader {
    spans: Receiver<Result<Span>>,
    spare: Sender<AlignedBuf>,
}

impl Segments {
    /// The tiles in `files`, of which `index` has every segment.
    pub(crate) fn new(
        files: Vec<DirectFile>,
        options: TileOptions,
        index: Vec<TilesIndex>,
    ) -> Self {
        let first_of_strip =
            |i: &usize| *i == 0 || index[*i].row_base != index[*i - 1].row_base;
        let mut strips: Vec<u32> =
            (0..index.len()).filter(first_of_strip).map(|i| i as u32).collect();
        strips.push(index.len() as u32);
        let longest = index.iter().map(|entry| entry.len as usize).max().unwrap_or(0);
        Self { files, kernel: Kernel::new(options, Isa::detect()), index, strips, longest }
    }

    /// Bytes of the buffers of one reader.
    pub(super) fn reader_bytes(&self) -> u64 {
        (BUFFERS * self.buffer_bytes()) as u64
    }

    /// Whole pages that hold any span.
    fn buffer_bytes(&self) -> usize {
        (self.span_bytes() + SLACK).next_multiple_of(PAGE_BYTES) + PAGE_BYTES
    }

    fn span_bytes(&self) -> usize {
        self.longest.max(SPAN_BYTES.min(self.kernel.options().block_bytes))
    }

    /// Starts a thread that reads the tiles that `wanted` names, when it is given a strip's first row and number of
    /// rows: strip by strip, tile by tile.
    pub(super) fn read(
        self: &Arc<Self>,
        wanted: impl Fn(u64, u32) -> Range<u32> + Send + 'static,
    ) -> Result<SpanReader> {
        let (send, spans) = bounded(AHEAD);
        let (spare, spares) = bounded::<AlignedBuf>(BUFFERS);
        let segments = Arc::clone(self);
        let read = move |to: &Sender<Result<Span>>| -> Result<()> {
            for strip in segments.strips.windows(2) {
                let strip = strip[0] as usize..strip[1] as usize;
                let first = &segments.index[strip.start];
                let tiles = wanted(first.row_base, first.rows);
                let place = |tile: u32| {
                    let before = |entry: &TilesIndex| entry.column_tile < tile;
                    strip.start + segments.index[strip.clone()].partition_point(before)
                };
                let mut rest = place(tiles.start)..place(tiles.end);
                while !rest.is_empty() {
                    let end = segments.span_end(rest.clone());
                    let buffer = match spares.try_recv() {
                        Ok(buffer) => buffer,
                        Err(_) => AlignedBuf::zeroed(segments.buffer_bytes())?,
                    };
                    let span = segments.read_span(rest.start..end, buffer)?;
                    if to.send(Ok(span)).is_err() {
                        return Ok(());
                    }
                    rest.start = end;
                }
            }
            Ok(())
        };
        let body = move || {
            if let Err(error) = panics::caught(|| read(&send)) {
                let _ = send.send(Err(error));
            }
        };
        threads::start("read-tiles", body)?;
        Ok(SpanReader { spans, spare })
    }

    /// The end of the span that begins with the first of the segments `rest`.
    fn span_end(&self, rest: Range<usize>) -> usize {
        let (first, most) = (self.index[rest.start], self.span_bytes());
        let belongs = |entry: &TilesIndex| {
            entry.block == first.block && (entry.offset + entry.len - first.offset) as usize <= most
        };
        rest.start + self.index[rest].iter().take_while(|entry| belongs(entry)).count()
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

impl SpanReader {
    /// Calls `visit` with each segment that is read, and the number of its arcs.
    pub(super) fn for_each(
        &self,
        segments: &Segments,
        mut visit: impl FnMut(&Segment<'_>) -> Result<()>,
    ) -> Result<()> {
        let columns_log2 = segments.kernel.options().columns_log2;
        for span in &self.spans {
            let span = span?;
            for entry in &segments.index[span.segments.clone()] {
                let segment = entry.segment(&span.pages, span.first, columns_log2)?;
                if !entry.is_intact(&segment) {
                    return Err(Error::new(ErrorKind::Format, "read the tiles again")
                        .expected(format!("what was written to block {}", entry.block))
                        .got("other bytes"));
                }
                visit(&segment)?;
            }
            // A full channel means that there are spares enough.
            let _ = self.spare.try_send(span.pages);
        }
        Ok(())
    }
}
