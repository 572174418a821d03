//! The block index: where in a graph's blocks kernels find segments, and how they decode them.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_format::tiles::{TileOptions, TilesIndex};
use tiergraph_gpu::kernels::{
    Blocks, Checksum, CountedSlices, Layout, Segment, SliceIndex, SliceIndexer, TilesPass,
};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{BlockFile, Direction, Graph};

/// The block index of one of a graph's files: what kernels need to know of its blocks.
pub(in crate::gpu) struct BlockIndex {
    pub layout: Layout,
    pub file: BlockFile,
    /// The number of blocks in the file.
    pub blocks: u32,
    pub block_bytes: usize,
    /// The segments of packed tiles; `None` for raw blocks.
    pub tiles: Option<TileIndex>,
    /// The kernels that compare blocks with their checksums; `None` if checksums are off.
    pub checks: Option<Checks>,
}

/// The kernels that compare blocks with their checksums, and what they found.
pub(in crate::gpu) struct Checks {
    pub checksum: Checksum,
    /// The least number of a damaged block.
    pub first_damaged: DeviceBuf<u32>,
}

/// The segments of a graph's tiles, on the device, and what finds the slices in them.
pub(in crate::gpu) struct TileIndex {
    pub indexer: SliceIndexer,
    pub segments: DeviceBuf<Segment>,
    /// The number of each block's first segment, then the number of all segments.
    pub first_segment: Vec<u32>,
    pub columns_log2: u32,
    pub min_gap: u32,
}

/// The file that passes over arcs in `direction` read: tiles if the graph has them, else raw blocks.
pub(in crate::gpu) fn file_of(graph: &Graph, direction: Direction) -> BlockFile {
    match (graph.tiles().is_stored(), graph.manifest().directed) {
        (true, _) => BlockFile::Tiles,
        (false, true) => BlockFile::Raw(direction),
        // The same file either way, and so one name for what is cached of it.
        (false, false) => BlockFile::Raw(Direction::Out),
    }
}

impl BlockIndex {
    /// Makes the index of `file`; kernels compare blocks with their checksums if `checked`.
    pub fn new(graph: &Graph, stream: &Stream, file: BlockFile, checked: bool) -> Result<Self> {
        let blocks = graph.blocks(file).count()?;
        let manifest = graph.manifest();
        let block_bytes = manifest.block_bytes as usize;
        let checks = || -> Result<_> {
            let checksum = Checksum::new(stream, block_bytes, graph.blocks(file).salt()?.on(0))?;
            Ok(Checks { checksum, first_damaged: stream.uploaded(&[u32::MAX])? })
        };
        let checks = checked.then(checks).transpose()?;
        let Some(options) = TileOptions::of(manifest) else {
            let layout = Layout::Raw { id_bytes: u32::from(manifest.id_width) };
            return Ok(Self { layout, file, blocks, block_bytes, tiles: None, checks });
        };
        let stored_once = manifest.tiles.is_some_and(|t| t.stored_once);
        let tiles = Some(TileIndex::new(graph, stream, &options, blocks)?);
        let layout = Layout::Tiles { stored_once };
        Ok(Self { layout, file, blocks, block_bytes, tiles, checks })
    }

    /// Bytes of device memory that the index takes, as far as they grow with the graph.
    pub fn bytes(&self) -> u64 {
        self.tiles.as_ref().map_or(0, |tiles| tiles.segments.bytes() as u64)
    }

    /// Bytes of device memory that a block takes in a slot, with the index of its slices.
    pub fn slot_bytes(&self) -> u64 {
        slot_bytes(self.block_bytes, self.tiles.is_some())
    }

    /// Bytes of device memory that an index of the blocks of `graph` takes, and one of its blocks in a slot.
    pub fn sizes(graph: &Graph) -> (u64, u64) {
        let (segments, block) = (graph.tiles().segments(), graph.manifest().block_bytes as usize);
        let index = segments.len() * size_of::<Segment>();
        (index as u64, slot_bytes(block, graph.tiles().is_stored()))
    }

    /// Fails if any block's checksum did not match so far, with the error of the first such block.
    pub fn damage(&self, graph: &Graph, stream: &Stream) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        let block = stream.download(&checks.first_damaged, 1)?[0];
        if block == u32::MAX { Ok(()) } else { Err(graph.blocks(self.file).damaged(block)) }
    }
}

fn slot_bytes(block_bytes: usize, are_tiles: bool) -> u64 {
    let slices = if are_tiles { CountedSlices::bytes(block_bytes) } else { 0 };
    (block_bytes + slices) as u64
}

impl TileIndex {
    fn new(graph: &Graph, stream: &Stream, options: &TileOptions, blocks: u32) -> Result<Self> {
        let entries = graph.tiles().segments();
        let segment = |e: &TilesIndex| Segment {
            block: e.block,
            offset: e.offset,
            len: e.len,
            row_base: e.row_base as u32,
            rows: e.rows,
            column_base: e.column_tile << options.columns_log2,
        };
        let segments: Vec<Segment> = entries.iter().map(segment).collect();
        let first = |block: u32| entries.partition_point(|e| e.block < block) as u32;
        Ok(Self {
            indexer: SliceIndexer::new(stream.device(), options.weights.bytes() as u32)?,
            segments: stream.uploaded(&segments)?,
            first_segment: (0..=blocks).map(first).collect(),
            columns_log2: options.columns_log2,
            min_gap: options.min_gap,
        })
    }

    /// The range of numbers of the segments in a block.
    pub fn segments_of(&self, block: u32) -> Range<u32> {
        self.first_segment[block as usize]..self.first_segment[block as usize + 1]
    }

    /// A pass over `slices`, which lie in `blocks`; it skips segments without a column that is `active`.
    pub fn pass<'a>(
        &'a self,
        blocks: Blocks,
        slices: SliceIndex<'a>,
        active: Option<&'a DeviceBuf<u8>>,
    ) -> TilesPass<'a> {
        let (columns_log2, min_gap) = (self.columns_log2, self.min_gap);
        TilesPass { blocks, segments: &self.segments, slices, active, columns_log2, min_gap }
    }
}
