//! One program over all blocks of a graph, wherever they are.

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::tiles::{TileOptions, TilesIndex};
use tiergraph_gpu::kernels::{
    BATCH, Blocks, Checksum, EdgeMap, Layout, Program, Segment, Slices, Survey, TilesPass,
};
use tiergraph_gpu::{Device, DeviceBuf, PinnedPool, Stream};
use tiergraph_graph::{BlockFile, Direction, Graph, StagedReader, Then};

use super::residency::Resident;
use super::slots::Slots;
use super::{Gpu, GpuOptions, Transfers};

/// Slots a worker: one is being filled while the others are computed on.
const SLOTS: usize = 3;
/// Host buffers a worker: some are being read into, some copied from.
const BUFFERS: usize = 16;

/// What kernels need of a graph's blocks.
pub(super) struct Tables {
    pub layout: Layout,
    pub file: BlockFile,
    pub blocks: u32,
    pub block_bytes: usize,
    /// The packed layout's; none for raw blocks.
    pub tiles: Option<TileTables>,
    /// What checks blocks on the device; none if they are not checked.
    pub checks: Option<Checks>,
}

pub(super) struct Checks {
    pub checksum: Checksum,
    /// The least number of a damaged block.
    pub worst: DeviceBuf<u32>,
}

pub(super) struct TileTables {
    pub survey: Survey,
    pub segments: DeviceBuf<Segment>,
    /// The first segment of each block, and their number at the end.
    pub first_segment: Vec<u32>,
    pub columns_log2: u32,
    pub min_gap: u32,
}

/// Passes of one program over one graph.
pub(super) struct Passes<'a, P> {
    pub graph: &'a Graph,
    pub stream: Stream,
    tables: Tables,
    kernel: EdgeMap<P>,
    reader: StagedReader,
    slots: Vec<Slots>,
    resident: Resident,
    options: GpuOptions,
    left: u64,
}

impl<'a, P: Program> Passes<'a, P> {
    /// Prepares passes; `state_bytes` of device memory are the algorithm's.
    pub fn new(
        graph: &'a Graph,
        gpu: &Gpu,
        direction: Direction,
        state_bytes: u64,
    ) -> Result<Self> {
        let device = &gpu.device;
        let stream = Stream::new(device)?;
        let tables = Tables::new(graph, &stream, direction, gpu.options.checksums)?;
        let kernel = EdgeMap::new(device, tables.layout, weight_bytes(graph))?;
        let workers = graph.threads();
        let synchronous = gpu.options.transfers == Transfers::Synchronous;
        let batch = match synchronous {
            true => 1,
            // Of a small graph, every worker has something.
            false => (tables.blocks as usize / (2 * workers)).clamp(1, BATCH),
        };
        let slot_bytes = (workers * SLOTS) as u64 * Slots::slot_bytes(batch, &tables);
        let index = tables.tiles.as_ref().map_or(0, |t| t.segments.bytes() as u64);
        let left = gpu.memory.checked_sub(state_bytes + slot_bytes + index).ok_or_else(|| {
            Error::new(ErrorKind::Device, "run on the GPU")
                .expected(format!(
                    "{} of GPU memory for the vertices and {} for buffers",
                    ByteSize(state_bytes),
                    ByteSize(slot_bytes + index)
                ))
                .got(ByteSize(gpu.memory))
                .hint("run with a larger `--device-memory`, or `--device cpu`")
        })?;
        let mut buffers = PinnedPool::buffers(device, workers * BUFFERS, tables.block_bytes)?;
        let shares = (0..workers).map(|_| buffers.split_off(buffers.len() - BUFFERS)).collect();
        let reader = graph.staged_reader(shares)?;
        let slots = |_| Slots::new(device, (SLOTS, batch), &tables, synchronous);
        let slots = (0..workers).map(slots).collect::<Result<_>>()?;
        let resident = Resident::none(device)?;
        let options = gpu.options.clone();
        Ok(Self { graph, stream, tables, kernel, reader, slots, resident, options, left })
    }

    /// Fills the device's memory that is left with blocks; every later pass finds them there.
    pub fn load(&mut self) -> Result<()> {
        if self.options.residency {
            self.resident = Resident::load(
                self.graph,
                &self.stream,
                &self.tables,
                self.left,
                (&mut self.reader, self.slots.len()),
            )?;
        }
        Ok(())
    }

    /// Runs `program` over every block, or over those with a tile for which `active` has a flag.
    ///
    /// `active`: a flag for every `2^columns_log2` vertices, here and on the device.
    pub fn run(
        &mut self,
        program: &P,
        active: Option<(&[u8], &DeviceBuf<u8>)>,
        then: Then,
    ) -> Result<()> {
        let flags = active.map(|(_, device)| device);
        self.over_resident(program, flags)?;
        let wanted = self.wanted(active.map(|(host, _)| host));
        let (tables, kernel) = (&self.tables, &self.kernel);
        let mut stages: Vec<_> =
            self.slots.iter_mut().map(|s| s.stage(tables, kernel, program, flags)).collect();
        // One block after the other means that nothing is read ahead.
        let is_ahead = self.options.transfers != Transfers::Synchronous;
        let then = if is_ahead { then } else { Then::Stop };
        self.reader.pass(self.graph, (tables.file, &wanted), then, &mut stages)?;
        drop(stages);
        self.slots.iter().try_for_each(Slots::synchronize)?;
        self.stream.synchronize()?;
        tables.damage(self.graph, &self.stream)
    }

    fn over_resident(&self, program: &P, flags: Option<&DeviceBuf<u8>>) -> Result<()> {
        let count = self.resident.blocks();
        if count == 0 {
            return Ok(());
        }
        let blocks = self.resident.addresses();
        match &self.tables.tiles {
            None => self.kernel.raw(&self.stream, blocks, self.tables.block_bytes, program),
            Some(tiles) => {
                let pass = tiles.pass(blocks, Slices::All(self.resident.slices()), flags);
                self.kernel.tiles(&self.stream, &pass, program)
            }
        }
    }

    /// The blocks that are not on the device and hold something wanted.
    fn wanted(&self, flags: Option<&[u8]>) -> Vec<u32> {
        let missing = self.resident.blocks()..self.tables.blocks;
        let (Some(tiles), Some(flags)) = (&self.tables.tiles, flags) else {
            return missing.collect();
        };
        let stored_once = matches!(self.tables.layout, Layout::Tiles { stored_once: true });
        let log2 = tiles.columns_log2;
        let active = |entry: &TilesIndex| {
            let last = entry.row_base + u64::from(entry.rows.max(1)) - 1;
            let rows = (entry.row_base >> log2) as usize..=(last >> log2) as usize;
            flags[entry.column_tile as usize] != 0
                || stored_once && flags[rows].iter().any(|&f| f != 0)
        };
        let segments = self.graph.segments();
        let of_block = |b: u32| {
            &segments[tiles.first_segment[b as usize] as usize
                ..tiles.first_segment[b as usize + 1] as usize]
        };
        missing.filter(|&block| of_block(block).iter().any(active)).collect()
    }
}

impl Tables {
    fn new(graph: &Graph, stream: &Stream, direction: Direction, checked: bool) -> Result<Self> {
        let file = if graph.has_tiles() { BlockFile::Tiles } else { BlockFile::Raw(direction) };
        let blocks = graph.blocks_of(file)?;
        let manifest = graph.manifest();
        let block_bytes = manifest.block_bytes as usize;
        let checks = || -> Result<_> {
            let checksum = Checksum::new(stream, block_bytes)?;
            Ok(Checks { checksum, worst: stream.uploaded(&[u32::MAX])? })
        };
        let checks = checked.then(checks).transpose()?;
        let Some(options) = TileOptions::of(manifest) else {
            let layout = Layout::Raw { id_bytes: u32::from(manifest.id_width) };
            return Ok(Self { layout, file, blocks, block_bytes, tiles: None, checks });
        };
        let stored_once = manifest.tiles.is_some_and(|t| t.stored_once);
        let tiles = Some(TileTables::new(graph, stream, &options, blocks)?);
        let layout = Layout::Tiles { stored_once };
        Ok(Self { layout, file, blocks, block_bytes, tiles, checks })
    }

    /// The error of a block whose checksum failed since the last call, if there is one.
    pub fn damage(&self, graph: &Graph, stream: &Stream) -> Result<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        let worst = stream.download(&checks.worst, 1)?[0];
        if worst == u32::MAX { Ok(()) } else { Err(graph.damaged_block(self.file, worst)) }
    }
}

impl TileTables {
    fn new(graph: &Graph, stream: &Stream, options: &TileOptions, blocks: u32) -> Result<Self> {
        let entries = graph.segments();
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
            survey: Survey::new(stream.device(), options.weights.bytes() as u32)?,
            segments: stream.uploaded(&segments)?,
            first_segment: (0..=blocks).map(first).collect(),
            columns_log2: options.columns_log2,
            min_gap: options.min_gap,
        })
    }

    /// The first and the number of a block's segments.
    pub fn segments_of(&self, block: u32) -> (u32, u32) {
        let first = self.first_segment[block as usize];
        (first, self.first_segment[block as usize + 1] - first)
    }

    pub fn pass<'a>(
        &'a self,
        blocks: Blocks,
        slices: Slices<'a>,
        active: Option<&'a DeviceBuf<u8>>,
    ) -> TilesPass<'a> {
        let (columns_log2, min_gap) = (self.columns_log2, self.min_gap);
        TilesPass { blocks, segments: &self.segments, slices, active, columns_log2, min_gap }
    }
}

/// Bytes of a weight in the graph's blocks.
fn weight_bytes(graph: &Graph) -> u32 {
    graph.manifest().weighted.bytes() as u32
}

/// Zeroed state of `len` values.
pub(super) fn zeroed<T: bytemuck::Pod>(
    device: &Device,
    stream: &Stream,
    len: usize,
) -> Result<DeviceBuf<T>> {
    let mut state = DeviceBuf::new(device, len)?;
    stream.fill_bytes(&mut state, 0)?;
    Ok(state)
}
