//! Passes that run one program over all blocks of a graph, wherever they are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiergraph_core::trace::Track;
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::tiles::TilesIndex;
use tiergraph_gpu::kernels::{EdgeMap, Layout, Program, SliceIndex, Variant};
use tiergraph_gpu::{Device, DeviceBuf, Stream};
use tiergraph_graph::{BlockFile, Direction, Graph, NextPass};

use super::blocks::{
    BlockIndex, BlockReader, BlockStream, ResidentBlocks, Selection, SlotPlan, Work, file_of,
};
use super::device_cache::ResidentGraph;
use super::staging::Staging;
use super::timeline::{Origin, Timeline};
use super::{Gpu, GpuReport};

/// How many times as fast the link brings blocks from the host's memory as drives do, about.
const LINK_GAIN: u64 = 8;

/// The arcs that a program sees, and the direction in which it follows them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arcs {
    /// The direction of the arcs in raw blocks.
    pub direction: Direction,
    /// Whether the program sees the arcs' weights, if there are any.
    pub weights: bool,
    /// Whether messages go from a tile's rows to its columns.
    pub transposed: bool,
}

/// Flags of ranges of `2^columns_log2` vertices: a pass skips tiles without an active range.
#[derive(Clone, Copy)]
pub(super) struct ActiveFlags<'a> {
    /// The flags in host memory, where [`Passes::looks_at_flags`] says that they are needed.
    pub host: &'a [u8],
    /// The flags in device memory.
    pub device: &'a DeviceBuf<u8>,
}

/// Passes of one program over one graph.
pub(super) struct Passes<'a, P> {
    pub graph: &'a Graph,
    pub stream: Stream,
    /// The buffers through which values get to the device and back.
    pub staging: &'a Staging,
    gpu: &'a Gpu,
    kernel: EdgeMap<P>,
    pub on_device: ResidentGraph,
    /// Streams in the blocks that are not on the device; `None` where all are, and before loading.
    stream_in: Option<BlockStream>,
    plan: SlotPlan,
    /// The timeline of the work on `stream`.
    timeline: Timeline,
    /// Bytes of device memory that state and slots leave to blocks.
    pub left: u64,
    /// Why so many blocks are resident on the device, and not more.
    resident_why: String,
    /// The number of blocks that were loaded before the first pass.
    loaded_blocks: u32,
    load_time: Duration,
}

impl<'a, P: Program> Passes<'a, P> {
    /// Prepares passes over arcs of `direction`; the algorithm's state is `state_bytes` on the device.
    pub fn new(
        graph: &'a Graph,
        gpu: &'a Gpu,
        direction: Direction,
        state_bytes: u64,
    ) -> Result<Self> {
        let arcs = Arcs { direction, weights: P::WEIGHTED, transposed: false };
        Self::over(graph, gpu, arcs, Vec::new(), state_bytes)
    }

    /// Bytes of device memory that passes over `graph` take at least, beside an algorithm's state.
    pub fn least_bytes(graph: &Graph) -> u64 {
        let (index, slot) = BlockIndex::sizes(graph);
        index + SlotPlan::least_bytes(graph.thread_pool().size(), slot)
    }

    /// Whether the device holds all blocks that passes over arcs of `direction` read, beside an algorithm's
    /// state.
    ///
    /// # Errors
    /// The graph has no such blocks.
    pub fn fit(graph: &Graph, gpu: &Gpu, direction: Direction, state_bytes: u64) -> Result<bool> {
        let whole = Self::whole_bytes(graph, file_of(graph, direction))?;
        Ok(gpu.options.residency && state_bytes + whole <= gpu.memory)
    }

    /// Bytes of device memory that passes take if all blocks of `file` stay there.
    fn whole_bytes(graph: &Graph, file: BlockFile) -> Result<u64> {
        let blocks = u64::from(graph.blocks(file).count()?);
        Ok(ResidentBlocks::most_bytes(graph, blocks) + Self::least_bytes(graph))
    }

    /// Prepares passes over `arcs`, of a program that is compiled with `options`.
    pub fn over(
        graph: &'a Graph,
        gpu: &'a Gpu,
        arcs: Arcs,
        options: Vec<String>,
        state_bytes: u64,
    ) -> Result<Self> {
        let device = &gpu.device;
        let staging = gpu.staging(graph)?;
        let stream = Stream::new(device)?;
        let file = file_of(graph, arcs.direction);
        // Lists of an earlier run stay if the whole graph fits beside them.
        let whole = Self::whole_bytes(graph, file)?;
        let memory = gpu.memory - gpu.cache.lists_beside(graph, state_bytes + whole, gpu.memory);
        // Others may have taken memory since the graph came here.
        let is_room = state_bytes <= device.memory()?.free;
        let room = if is_room { memory.saturating_sub(state_bytes) } else { 0 };
        let cached = gpu.cache.get(graph, file, room);
        let resident_why = match cached {
            Some(_) => "all blocks are there from an earlier run",
            None => "there are no blocks",
        };
        let on_device = match cached {
            Some(cached) => cached,
            None => ResidentGraph {
                index: Arc::new(BlockIndex::new(graph, &stream, file, gpu.options.checksums)?),
                resident: Arc::new(ResidentBlocks::none(device)?),
                direct: None,
                vertices: Arc::default(),
            },
        };
        let index = &*on_device.index;
        let weight_bytes = if arcs.weights { graph.manifest().weighted.bytes() as u32 } else { 0 };
        let (layout, transposed) = (index.layout, arcs.transposed);
        let kernel = EdgeMap::new(device, &Variant { layout, weight_bytes, transposed, options })?;
        let room = memory.saturating_sub(state_bytes + index.bytes());
        let plan = SlotPlan::of(gpu.options.transfers, graph.thread_pool().size(), index, room);
        let buffers =
            index.bytes() + if on_device.is_whole() { 0 } else { plan.device_bytes(index) };
        let left = memory.checked_sub(state_bytes + buffers).ok_or_else(|| {
            Error::new(ErrorKind::Device, "run on the GPU")
                .expected(format!(
                    "{} of GPU memory for the vertices and {} for buffers",
                    ByteSize(state_bytes),
                    ByteSize(buffers)
                ))
                .got(ByteSize(gpu.memory))
                .hint("run with a larger `--device-memory`, or `--device cpu`")
        })?;
        let timeline = Timeline::new(graph.trace(), plan.workers);
        Ok(Self {
            graph,
            stream,
            staging,
            gpu,
            kernel,
            on_device,
            stream_in: None,
            plan,
            timeline,
            left,
            resident_why: resident_why.into(),
            loaded_blocks: 0,
            load_time: Duration::ZERO,
        })
    }

    /// Fills the device memory that is left with blocks, for every later pass; if it holds all of them,
    /// for later runs too.
    ///
    /// Other processes may have taken memory since the GPU was opened: then fewer blocks stay.
    pub fn load(&mut self) -> Result<()> {
        self.fill(true)
    }

    /// Fills the device memory that is left with blocks if it holds all of them; else leaves them to the
    /// one pass that comes.
    pub fn load_whole(&mut self) -> Result<()> {
        self.fill(false)
    }

    fn fill(&mut self, in_part: bool) -> Result<()> {
        if self.on_device.is_whole() {
            return Ok(());
        }
        let (graph, device, plan) = (self.graph, self.stream.device(), self.plan);
        let (index, options) = (&*self.on_device.index, &self.gpu.options);
        let slots = plan.device_bytes(index);
        let free = device.memory()?.free.saturating_sub(slots) / 10 * 9;
        let fit = ResidentBlocks::blocks_in(index, self.left.min(free));
        let is_whole = options.residency && fit == index.blocks;
        let blocks = if is_whole || options.residency && in_part { fit } else { 0 };
        self.resident_why = match options.residency {
            false => "residency is off".into(),
            true if is_whole => "all blocks fit".into(),
            true if !in_part => "they are read once".into(),
            true if free < self.left => format!(
                "{} were planned for blocks, and others have left {} of GPU memory",
                ByteSize(self.left),
                ByteSize(free)
            ),
            true => format!("{} of GPU memory are left to blocks", ByteSize(self.left)),
        };
        let begin = Instant::now();
        let others = (index.blocks - blocks) as usize;
        let pinned_blocks = if options.residency && in_part { others } else { 0 };
        let mut reader = BlockReader::new(graph, device, index, plan, is_whole, pinned_blocks)?;
        if blocks > 0 {
            let resident = ResidentBlocks::load(graph, &self.stream, index, blocks, &mut reader)?;
            self.on_device.resident = Arc::new(resident);
        }
        (self.loaded_blocks, self.load_time) = (blocks, begin.elapsed());
        if is_whole {
            self.on_device.direct = reader.direct();
            self.gpu.cache.insert(graph, &self.on_device);
            return Ok(());
        }
        self.stream_in = Some(BlockStream::new(graph, device, index, plan, reader)?);
        Ok(())
    }

    /// The GPU's part of the run's report.
    pub fn report(&self) -> GpuReport {
        let ResidentGraph { index, resident, direct: of_resident, .. } = &self.on_device;
        let bytes_of = |blocks| u64::from(blocks) * index.block_bytes as u64;
        let direct = match &self.stream_in {
            Some(stream_in) => stream_in.direct(),
            None => of_resident.clone(),
        };
        let host_why = match &self.stream_in {
            None => "all blocks are on the device",
            Some(_) if direct.is_some() => "blocks do not pass through host memory",
            Some(_) => &self.resident_why,
        };
        GpuReport {
            name: self.stream.device().name().to_owned(),
            transfers: self.gpu.options.transfers,
            direct,
            device_blocks_planned_bytes: self.left,
            device_resident_bytes: bytes_of(resident.blocks()),
            device_resident_why: self.resident_why.clone(),
            host_resident_bytes: 0,
            host_resident_why: host_why.into(),
            pinned: self.stream_in.as_ref().and_then(BlockStream::pinned).cloned(),
            loaded_bytes: bytes_of(self.loaded_blocks),
            frontier: None,
            load_seconds: self.load_time.as_secs_f64(),
            busy: None,
        }
    }

    /// Runs each of `programs` over every block, or over the blocks with a tile that is `active`. A
    /// block is read once for all programs.
    ///
    /// Where no block streams in, this returns before the end: work that `stream` is given next comes
    /// after it.
    pub fn run(
        &mut self,
        programs: &[P],
        active: Option<ActiveFlags<'_>>,
        next: NextPass,
    ) -> Result<()> {
        if self.stream_in.is_some() {
            // Slots have streams of their own, which begin when the state is what it should be.
            self.stream.synchronize()?;
        }
        let flags = active.map(|active| active.device);
        let origin = Origin::now(self.graph.trace(), &self.stream)?;
        programs.iter().try_for_each(|program| self.over_resident(program, flags))?;
        let wanted = self.wanted(active.map(|active| active.host));
        let (index, origin) = (&*self.on_device.index, origin.as_ref());
        let stream_in = self.stream_in.as_mut().filter(|_| !wanted.is_empty());
        if let Some(stream_in) = stream_in {
            let selection = Selection { index, blocks: &wanted };
            let work = Work { kernel: &self.kernel, programs, active: flags };
            stream_in.run(self.graph, selection, work, next)?;
            self.stream.synchronize()?;
            stream_in.record(origin)?;
            self.timeline.record(origin)?;
            return index.damage(self.graph, &self.stream);
        }
        if origin.is_some() {
            self.stream.synchronize()?;
        }
        self.timeline.record(origin)
    }

    /// Whether [`run`](Self::run) looks at the flags in host memory, to choose the blocks that it reads.
    pub fn looks_at_flags(&self) -> bool {
        self.stream_in.is_some() && self.on_device.index.tiles.is_some()
    }

    /// What a pass over the blocks with a tile that is active would read and copy, as bytes that a drive
    /// reads in that time.
    pub fn missing_bytes(&self, active: &[u8]) -> Result<u64> {
        let (index, wanted) = (&self.on_device.index, self.wanted(Some(active)));
        let missing = self.graph.blocks(index.file).missing(&wanted)? as u64;
        let bytes = missing + (wanted.len() as u64 - missing) / LINK_GAIN;
        Ok(bytes * index.block_bytes as u64)
    }

    fn over_resident(&mut self, program: &P, flags: Option<&DeviceBuf<u8>>) -> Result<()> {
        let Self { on_device: ResidentGraph { index, resident, .. }, stream, kernel, .. } = self;
        if resident.blocks() == 0 {
            return Ok(());
        }
        let blocks = resident.for_kernels();
        self.timeline.span(Track::Device, "edge_map, resident", stream, || match &index.tiles {
            None => kernel.raw(stream, blocks, index.block_bytes, program),
            Some(tiles) => {
                let pass = tiles.pass(blocks, SliceIndex::Resident(resident.slices()), flags);
                kernel.tiles(stream, &pass, program)
            }
        })
    }

    /// The numbers of the blocks that are not on the device and have an active tile.
    fn wanted(&self, flags: Option<&[u8]>) -> Vec<u32> {
        let ResidentGraph { index, resident, .. } = &self.on_device;
        let missing = resident.blocks()..index.blocks;
        let (Some(tiles), Some(flags)) = (&index.tiles, flags) else {
            return missing.collect();
        };
        let stored_once = matches!(index.layout, Layout::Tiles { stored_once: true });
        let log2 = tiles.columns_log2;
        let active = |entry: &TilesIndex| {
            let last = entry.row_base + u64::from(entry.rows.max(1)) - 1;
            let rows = (entry.row_base >> log2) as usize..=(last >> log2) as usize;
            flags[entry.column_tile as usize] != 0
                || stored_once && flags[rows].iter().any(|&f| f != 0)
        };
        let segments = self.graph.tiles().segments();
        let of_block = |b: u32| {
            &segments[tiles.first_segment[b as usize] as usize
                ..tiles.first_segment[b as usize + 1] as usize]
        };
        missing.filter(|&block| of_block(block).iter().any(active)).collect()
    }
}

/// A new buffer of `len` zeros on `device`; work given to `stream` afterwards finds them.
pub(super) fn zeroed<T: bytemuck::Pod>(
    device: &Device,
    stream: &Stream,
    len: usize,
) -> Result<DeviceBuf<T>> {
    let mut state = DeviceBuf::new(device, len)?;
    stream.fill_bytes(&mut state, 0)?;
    Ok(state)
}
