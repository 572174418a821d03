//! Passes over `tiles.blocks`, which holds the adjacency in packed tiles.

use tiergraph_cache::{BlockFile, BlockKey};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::tiles::{SLACK, Segment, TileOptions, TilesIndex};
use tiergraph_io::FileId;
use tiergraph_kernels::{Isa, Kernel};
use tiergraph_mem::PAGE_BYTES;

use crate::Graph;
use tiergraph_io::pipeline::NextPass;
use tiergraph_io::pipeline::Request;

/// Selected segments this close, in bytes, are read together with the bytes between them.
const MERGE_BYTES: usize = 16 << 10;

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

    fn segments(&self, want: usize) -> &[u32] {
        let begin = if want == 0 { 0 } else { self.ends[want - 1] };
        &self.segments[begin..self.ends[want]]
    }
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
        selection: &TileSelection,
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &TilesIndex, &Segment<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some(tiles) = &self.graph.tile_file else {
            return Err(self.graph.missing_layout("pass over", "tiles"));
        };
        let salt = self.graph.manifest().salt("tiles.blocks");
        let one = |state: &mut W, i: usize, bytes: &[u8], fresh: bool| -> Result<()> {
            let want = &selection.requests[i];
            let whole = want.key.is_some();
            let is_new = fresh && !self.graph.is_unchecked();
            if is_new && let Some(key) = want.key {
                let name = self.graph.file_name("tiles.blocks");
                self.graph.check_block(bytes, &name, key.block, salt)?;
            }
            let at =
                if whole { 0 } else { (want.offset % self.graph.block_bytes() as u64) as usize };
            for &i in selection.segments(i) {
                let entry = &tiles.index[i as usize];
                let segment = entry.segment(bytes, at, tiles.options.columns_log2)?;
                if is_new && !whole && !entry.is_intact(&segment) {
                    return Err(self.damaged_segment(entry));
                }
                visit(state, entry, &segment)?;
            }
            Ok(())
        };
        self.graph.read_all(&selection.requests, next, begin, one, end)
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
