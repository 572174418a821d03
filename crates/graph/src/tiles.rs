//! Passes over `tiles.blocks`, which holds the adjacency in packed tiles.

use std::ops::Range;
use std::time::Instant;

use tiergraph_cache::{BlockFile, BlockKey};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::tiles::{SLACK, Segment, TileOptions, TilesIndex};
use tiergraph_io::FileId;
use tiergraph_io::pipeline::{Block, NextPass, Request};
use tiergraph_kernels::{Isa, Kernel};
use tiergraph_mem::{PAGE_BYTES, prefetch_all};

use crate::Graph;
use crate::reads::{Batches, bytes_of, is_fresh};

/// Selected segments this close, in bytes, are read together with the bytes between them.
const MERGE_BYTES: usize = 16 << 10;
/// The first bytes of a segment, which are prefetched: the CPU notices by itself that more are read one after the other.
const FIRST_BYTES: usize = 4 << 10;

/// Segments of the same columns, which a worker goes over together, with their entries in the index.
pub type SegmentRun<'a> = [(&'a TilesIndex, Segment<'a>)];

/// The opened file `tiles.blocks` and its resident index.
#[derive(Debug)]
pub(crate) struct TileFile {
    file: FileId,
    index: Vec<TilesIndex>,
    options: TileOptions,
}

impl TileFile {
    pub(crate) fn open(dir: &GraphDir, file: FileId) -> Result<Self> {
        let path = dir.path().join("tiles.index");
        let words: Vec<u64> = flat::read(&path, dir.entry("tiles.index")?)?;
        let bad = || {
            Error::new(ErrorKind::Format, "open")
                .object(path.display())
                .expected("entries of 32 bytes in the order of blocks")
                .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
        };
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let index: Vec<TilesIndex> = bytes
            .chunks(TilesIndex::BYTES)
            .map(TilesIndex::from_bytes)
            .collect::<Option<_>>()
            .ok_or_else(bad)?;
        let blocks = dir.entry("tiles.blocks")?.blocks;
        let in_order = index.is_sorted_by_key(|e| (e.block, e.offset));
        if !in_order || index.iter().any(|e| u64::from(e.block) >= blocks) {
            return Err(bad());
        }
        let options = TileOptions::of(dir.manifest()).ok_or_else(bad)?;
        Ok(Self { file, index, options })
    }

    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        (self.index.len() * size_of::<TilesIndex>()) as u64
    }
}

/// A selection: the segments that a pass visits (a segment: a tile's part in a block), as read requests.
#[derive(Debug, Default)]
pub struct TileSelection {
    requests: Vec<Request>,
    /// For each request, where its segments end in `segments`.
    ends: Vec<usize>,
    segments: Vec<u32>,
}

impl TileSelection {
    /// Bytes of all requests, resident or not.
    pub fn bytes(&self) -> u64 {
        self.requests.iter().map(|w| w.len as u64).sum()
    }

    /// Whether no segment is selected.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The strips that each request has segments of, numbered in the order of the file.
    fn strips(&self, index: &[TilesIndex]) -> Vec<Range<u32>> {
        let (mut strip, mut row) = (0, None);
        let mut of_request = |i: usize| {
            let mut range: Option<Range<u32>> = None;
            for &segment in self.segments(i) {
                let now = index[segment as usize].row_base;
                strip += u32::from(row.replace(now).is_some_and(|before| before != now));
                range = Some(range.map_or(strip, |range| range.start)..strip + 1);
            }
            range.unwrap_or(strip..strip)
        };
        (0..self.requests.len()).map(&mut of_request).collect()
    }

    fn segments(&self, want: usize) -> &[u32] {
        let begin = if want == 0 { 0 } else { self.ends[want - 1] };
        &self.segments[begin..self.ends[want]]
    }
}

/// How many numbers lie in any of `ranges`.
fn count(mut ranges: Vec<Range<u32>>) -> usize {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut end, mut count) = (0, 0);
    for range in ranges {
        count += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    count as usize
}

/// The cache key of the block that a segment lies in.
fn tile_key(entry: &TilesIndex) -> BlockKey {
    BlockKey { file: BlockFile::Tiles, block: u64::from(entry.block) }
}

/// A view of a graph's tiles, made by [`Graph::tiles`]: `tiles.blocks`, which whole-graph passes read.
#[derive(Clone, Copy)]
pub struct Tiles<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the tiles of the adjacency; it is empty in a graph of codec `raw`.
    pub fn tiles(&self) -> Tiles<'_> {
        Tiles { graph: self }
    }

    /// The path of the file `name` of the graph, for messages.
    pub(crate) fn file_name(&self, name: &str) -> String {
        self.dir().path().join(name).display().to_string()
    }
}

impl<'g> Tiles<'g> {
    /// Whether the graph has tiles.
    pub fn is_stored(self) -> bool {
        self.graph.tile_file.is_some()
    }

    /// The index entries of all segments, in the order of blocks; empty in a graph without tiles.
    pub fn segments(self) -> &'g [TilesIndex] {
        self.graph.tile_file.as_ref().map_or(&[], |tiles| &tiles.index)
    }

    /// The CPU kernel that decodes these tiles, for this CPU's vectors; `None` in a graph without tiles.
    pub fn kernel(self) -> Option<Kernel> {
        TileOptions::of(self.graph.manifest()).map(|options| Kernel::new(options, Isa::detect()))
    }

    /// Bytes of `tiles.blocks`; 0 in a graph without tiles.
    pub fn bytes(self) -> u64 {
        self.graph.manifest().files.get("tiles.blocks").map_or(0, |f| f.bytes)
    }

    /// Bytes of `tiles.blocks` that are not resident.
    pub fn missing_bytes(self) -> u64 {
        let size = self.graph.block_bytes() as u64;
        let blocks = self.bytes().div_ceil(size);
        let missing =
            |&block: &u64| !self.graph.cache().contains(BlockKey { file: BlockFile::Tiles, block });
        (0..blocks).filter(missing).count() as u64 * size
    }

    /// One more than the last vertex that is in a tile; all vertices in a graph without tiles.
    pub fn vertices(self) -> usize {
        let Some(tiles) = &self.graph.tile_file else { return self.graph.vertices() };
        let columns = tiles.options.columns() as u64;
        let row_end = |e: &TilesIndex| e.row_base + u64::from(e.rows);
        let column_end = |e: &TilesIndex| (u64::from(e.column_tile) + 1) * columns;
        let end = tiles.index.iter().map(|e| row_end(e).max(column_end(e))).max().unwrap_or(0);
        (end as usize).min(self.graph.vertices())
    }

    /// Selects the segments for which `wanted` is true.
    ///
    /// A block of which at least half is selected, or that is or can become resident, is read whole; of
    /// others only the pages of the selected segments are.
    pub fn select(self, wanted: impl Fn(&TilesIndex) -> bool) -> TileSelection {
        let mut selection = TileSelection::default();
        let Some(tiles) = &self.graph.tile_file else { return selection };
        let roomy =
            self.graph.cache().capacity() >= self.graph.cache().resident_bytes() + self.bytes();
        let mut begin = 0;
        for of_block in tiles.index.chunk_by(|a, b| a.block == b.block) {
            let first = begin;
            begin += of_block.len();
            let picked: Vec<u32> =
                (first..begin).filter(|&i| wanted(&tiles.index[i])).map(|i| i as u32).collect();
            if picked.is_empty() {
                continue;
            }
            let bytes = |i: &u32| tiles.index[*i as usize].len as usize;
            let wanted_bytes: usize = picked.iter().map(bytes).sum();
            let key = tile_key(&of_block[0]);
            let whole = 2 * wanted_bytes >= self.graph.block_bytes()
                || picked.len() == of_block.len()
                || roomy
                || self.graph.cache().contains(key);
            if whole {
                self.want_block(tiles, key, &picked, &mut selection);
            } else {
                self.want_pages(tiles, &picked, &mut selection);
            }
        }
        selection
    }

    /// Bytes of a selection's requests whose block is not resident.
    pub fn missing_bytes_of(self, selection: &TileSelection) -> u64 {
        let is_missing =
            |request: &&Request| request.key.is_none_or(|key| !self.graph.cache().contains(key));
        selection.requests.iter().filter(is_missing).map(|request| request.len as u64).sum()
    }

    /// The number of arcs in the selected segments.
    pub fn arcs_of(self, selection: &TileSelection) -> u64 {
        let arcs = |&segment: &u32| u64::from(self.segments()[segment as usize].arcs);
        selection.segments.iter().map(arcs).sum()
    }

    fn want_block(self, tiles: &TileFile, key: BlockKey, picked: &[u32], to: &mut TileSelection) {
        let len = self.graph.block_bytes();
        let offset = key.block * len as u64;
        to.requests.push(Request { file: tiles.file, offset, len, key: Some(key) });
        to.segments.extend_from_slice(picked);
        to.ends.push(to.segments.len());
    }

    fn want_pages(self, tiles: &TileFile, picked: &[u32], to: &mut TileSelection) {
        let entry = |i: u32| &tiles.index[i as usize];
        let end_of = |i: u32| (entry(i).offset + entry(i).len) as usize;
        let near = |a: &u32, b: &u32| entry(*b).offset as usize <= end_of(*a) + MERGE_BYTES;
        for run in picked.chunk_by(near) {
            let begin = entry(run[0]).offset as usize / PAGE_BYTES * PAGE_BYTES;
            let end = (end_of(run[run.len() - 1]) + SLACK).next_multiple_of(PAGE_BYTES);
            let len = end.min(self.graph.block_bytes()) - begin;
            let block = u64::from(entry(run[0]).block) * self.graph.block_bytes() as u64;
            to.requests.push(Request {
                file: tiles.file,
                offset: block + begin as u64,
                len,
                key: None,
            });
            to.segments.extend_from_slice(run);
            to.ends.push(to.segments.len());
        }
    }

    /// Hands a segment to `visit`; `None` where its block is not resident.
    pub fn resident_segment<R>(
        self,
        entry: &TilesIndex,
        visit: impl FnOnce(&Segment<'_>) -> Result<R>,
    ) -> Option<Result<R>> {
        let columns_log2 = self.graph.tile_file.as_ref()?.options.columns_log2;
        let block = self.graph.cache().get(tile_key(entry))?;
        Some(entry.segment(&block, 0, columns_log2).and_then(|segment| visit(&segment)))
    }

    /// Whether the block that a segment lies in is resident.
    pub fn is_resident(self, entry: &TilesIndex) -> bool {
        self.graph.cache().contains(tile_key(entry))
    }

    /// Hands every selected segment to `visit`, once each. Segments of one request come in order.
    ///
    /// `begin` makes each worker's state, `end` takes it when the worker is done.
    ///
    /// # Errors
    /// A read that fails after its retries, a checksum that does not match, an error of `visit`.
    pub fn pass<W>(
        self,
        (selection, next): (&TileSelection, NextPass),
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &TilesIndex, &Segment<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let each = |state: &mut W, run: &SegmentRun<'_>| {
            run.iter().try_for_each(|(entry, segment)| visit(state, entry, segment))
        };
        self.pass_by_tile((selection, next), 1, begin, each, end)
    }

    /// As [`pass`](Self::pass), but each worker goes over several blocks together, tile by tile, so that it brings a
    /// tile's columns into its cache once for the rows of all of these blocks: those of at most `strips` strips.
    /// `visit` gets the segments of the same columns together.
    ///
    /// # Errors
    /// A read that fails after its retries, a checksum that does not match, an error of `visit`.
    pub fn pass_by_tile<W>(
        self,
        (selection, next): (&TileSelection, NextPass),
        strips: usize,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &SegmentRun<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some(tiles) = &self.graph.tile_file else {
            return Err(self.graph.missing_layout("pass over", "tiles"));
        };
        let held = if strips > 1 { self.graph.memory().hold_blocks()? } else { None };
        let blocks = held.as_ref().map_or(1, |(held, _)| *held);
        let strips_of = if blocks > 1 { selection.strips(&tiles.index) } else { Vec::new() };
        let may_join = |held: &[Block], number: usize| {
            let held = held.iter().map(|block| strips_of[block.number].clone());
            count(held.chain([strips_of[number].clone()]).collect()) <= strips
        };
        let each = |state: &mut W, blocks: &[Block]| -> Result<()> {
            let by_segment = |block| Ok((block, self.is_checked_by_segment(selection, block)?));
            let blocks: Vec<(&Block, bool)> =
                blocks.iter().map(by_segment).collect::<Result<_>>()?;
            let of_block = |(at, &(block, _)): (usize, &(&Block, bool))| {
                selection.segments(block.number).iter().map(move |&segment| (segment, at))
            };
            let mut segments: Vec<_> = blocks.iter().enumerate().flat_map(of_block).collect();
            if blocks.len() > 1 {
                segments.sort_unstable_by_key(|&(i, _)| (tiles.index[i as usize].column_tile, i));
            }
            let column = |&(i, _): &(u32, usize)| tiles.index[i as usize].column_tile;
            let mut run = Vec::new();
            for of_column in segments.chunk_by(|a, b| column(a) == column(b)) {
                run.clear();
                for &(i, at) in of_column {
                    let (entry, (block, _)) = (&tiles.index[i as usize], blocks[at]);
                    let begin = self.begin_of(&selection.requests[block.number]);
                    let segment =
                        entry.segment(bytes_of(block), begin, tiles.options.columns_log2)?;
                    prefetch_all(&segment.bytes[..segment.len.min(FIRST_BYTES)]);
                    run.push((entry, segment));
                }
                let placed = of_column.iter().zip(&run);
                let unchecked = placed.filter(|&(&(_, at), _)| blocks[at].1);
                self.check_segments(unchecked.map(|(_, segment)| segment))?;
                visit(state, &run)?;
            }
            Ok(())
        };
        let batches = Batches { blocks, may_join: &may_join };
        self.graph.read_all((&selection.requests, next), &batches, begin, each, end)
    }

    /// The offset, in its block, of the bytes of a request.
    fn begin_of(self, request: &Request) -> usize {
        let whole = request.key.is_some();
        if whole { 0 } else { (request.offset % self.graph.block_bytes() as u64) as usize }
    }

    /// Whether the segments of a request that was just read are to be compared with their checksums before they are
    /// used, which brings their bytes into the cache that they are used from. They are where all segments of
    /// a block are selected, or pages of one; a block that may stay with others is compared here, as a whole.
    ///
    /// # Errors
    /// Such a block that is not what was written.
    fn is_checked_by_segment(self, selection: &TileSelection, block: &Block) -> Result<bool> {
        if !is_fresh(block) || self.graph.is_unchecked() {
            return Ok(false);
        }
        let by_segment = match selection.requests[block.number].key {
            Some(key) if !self.is_all_of_block(selection.segments(block.number)) => {
                let name = self.graph.file_name("tiles.blocks");
                let salt = self.graph.manifest().salt("tiles.blocks");
                self.graph.check_block(bytes_of(block), &name, key.block, salt)?;
                false
            }
            _ => true,
        };
        Ok(by_segment)
    }

    /// Whether these segments of a block, which are in order, are all that it has.
    fn is_all_of_block(self, segments: &[u32]) -> bool {
        let (Some(&first), Some(&last)) = (segments.first(), segments.last()) else { return false };
        let block_of = |i: usize| self.segments().get(i).map(|entry| entry.block);
        let (first, last, block) = (first as usize, last as usize, block_of(first as usize));
        last - first + 1 == segments.len()
            && block_of(last + 1) != block
            && (first == 0 || block_of(first - 1) != block)
    }

    /// Compares segments with their checksums, and counts the time.
    fn check_segments<'a>(
        self,
        segments: impl Iterator<Item = &'a (&'a TilesIndex, Segment<'a>)>,
    ) -> Result<()> {
        let mut segments = segments.peekable();
        if segments.peek().is_none() {
            return Ok(());
        }
        let since = Instant::now();
        let damaged = segments.find(|(entry, segment)| !entry.is_intact(segment));
        self.graph.totals().checked(since);
        damaged.map_or(Ok(()), |(entry, _)| Err(self.damaged_segment(entry)))
    }

    fn damaged_segment(self, entry: &TilesIndex) -> Error {
        let offset =
            u64::from(entry.block) * self.graph.block_bytes() as u64 + u64::from(entry.offset);
        Error::new(ErrorKind::Format, format!("use block {} (offset {offset}) of", entry.block))
            .object(self.graph.file_name("tiles.blocks"))
            .expected(format!("a segment with CRC-32C {:08x}", entry.crc32c))
            .got("other bytes")
            .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
    }
}
