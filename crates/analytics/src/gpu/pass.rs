//! One program over all blocks of a graph, wherever they are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiergraph_core::trace::Track;
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::tiles::TilesIndex;
use tiergraph_gpu::kernels::{EdgeMap, Layout, Program, SliceIndex, Variant};
use tiergraph_gpu::{Device, DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, NextPass};

use super::blocks::{BlockReader, BlockStream, Resident, Shape, Tables, file_of};
use super::kept::OnDevice;
use super::staging::Staging;
use super::timeline::{Origin, Timeline};
use super::{Gpu, GpuReport};

/// Which arcs a program sees, and what of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arcs {
    /// Of raw blocks.
    pub direction: Direction,
    /// Whether their weights, if they have any.
    pub weights: bool,
    /// Whether they are gone along from a tile's rows to its columns.
    pub transposed: bool,
}

/// Passes of one program over one graph.
pub(super) struct Passes<'a, P> {
    pub graph: &'a Graph,
    pub stream: Stream,
    /// By which values get to the device and back.
    pub staging: &'a Staging,
    gpu: &'a Gpu,
    kernel: EdgeMap<P>,
    pub on_device: OnDevice,
    /// None where all blocks are on the device, and before any are.
    stream_in: Option<BlockStream>,
    shape: Shape,
    /// Of `stream`.
    timeline: Timeline,
    /// Bytes of device memory that state and slots leave to blocks.
    pub left: u64,
    resident_why: String,
    /// How many blocks `load` brought, and how long that took.
    loaded: (u32, Duration),
}

impl<'a, P: Program> Passes<'a, P> {
    /// Prepares passes; `state_bytes` of device memory are the algorithm's.
    pub fn new(
        graph: &'a Graph,
        gpu: &'a Gpu,
        direction: Direction,
        state_bytes: u64,
    ) -> Result<Self> {
        let arcs = Arcs { direction, weights: P::WEIGHTED, transposed: false };
        Self::over(graph, gpu, arcs, Vec::new(), state_bytes)
    }

    /// As [`new`](Self::new), for a program that says by `options` what it is compiled for.
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
        // Others may have taken memory since the graph came here.
        let is_room = state_bytes <= device.memory()?.free;
        let room = if is_room { gpu.memory.saturating_sub(state_bytes) } else { 0 };
        let kept = gpu.kept.get(graph, file, room);
        let resident_why = match kept {
            Some(_) => "all blocks are there from an earlier run",
            None => "there are no blocks",
        };
        let on_device = match kept {
            Some(kept) => kept,
            None => OnDevice {
                tables: Arc::new(Tables::new(graph, &stream, file, gpu.options.checksums)?),
                resident: Arc::new(Resident::none(device)?),
                direct: None,
                vertices: Arc::default(),
            },
        };
        let tables = &*on_device.tables;
        let weight_bytes = if arcs.weights { graph.manifest().weighted.bytes() as u32 } else { 0 };
        let (layout, transposed) = (tables.layout, arcs.transposed);
        let kernel = EdgeMap::new(device, &Variant { layout, weight_bytes, transposed, options })?;
        let room = gpu.memory.saturating_sub(state_bytes + tables.bytes());
        let shape = Shape::of(gpu.options.transfers, graph.threads(), tables, room);
        let buffers = tables.bytes()
            + if on_device.is_whole() { 0 } else { BlockStream::device_bytes(shape, tables) };
        let left = gpu.memory.checked_sub(state_bytes + buffers).ok_or_else(|| {
            Error::new(ErrorKind::Device, "run on the GPU")
                .expected(format!(
                    "{} of GPU memory for the vertices and {} for buffers",
                    ByteSize(state_bytes),
                    ByteSize(buffers)
                ))
                .got(ByteSize(gpu.memory))
                .hint("run with a larger `--device-memory`, or `--device cpu`")
        })?;
        let timeline = Timeline::new(graph.trace(), shape.lanes);
        Ok(Self {
            graph,
            stream,
            staging,
            gpu,
            kernel,
            on_device,
            stream_in: None,
            shape,
            timeline,
            left,
            resident_why: resident_why.into(),
            loaded: (0, Duration::ZERO),
        })
    }

    /// Fills the device's memory that is left with blocks, which every later pass finds there; if it
    /// holds all of them, later runs too.
    ///
    /// Others may have taken memory since the GPU was opened: then fewer blocks stay.
    pub fn load(&mut self) -> Result<()> {
        self.fill(true)
    }

    /// As [`load`](Self::load) if all blocks fit; else leaves them to the one pass that comes.
    pub fn load_whole(&mut self) -> Result<()> {
        self.fill(false)
    }

    fn fill(&mut self, in_part: bool) -> Result<()> {
        if self.on_device.is_whole() {
            return Ok(());
        }
        let (graph, device, shape) = (self.graph, self.stream.device(), self.shape);
        let (tables, options) = (&*self.on_device.tables, &self.gpu.options);
        let slots = BlockStream::device_bytes(shape, tables);
        let free = device.memory()?.free.saturating_sub(slots) / 10 * 9;
        let fit = Resident::blocks_in(tables, self.left.min(free));
        let is_whole = options.residency && fit == tables.blocks;
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
        let others = (tables.blocks - blocks) as usize;
        let keeps = if options.residency && in_part { others } else { 0 };
        let (by, how) = ((options.transfers, shape.lanes), (is_whole, keeps));
        let mut reader = BlockReader::new(graph, device, tables, by, how)?;
        if blocks > 0 {
            let by = (shape.lanes, &mut reader);
            let resident = Resident::load(graph, &self.stream, tables, blocks, by)?;
            self.on_device.resident = Arc::new(resident);
        }
        self.loaded = (blocks, begin.elapsed());
        if is_whole {
            self.on_device.direct = reader.direct();
            self.gpu.kept.keep(graph, &self.on_device);
            return Ok(());
        }
        let how = (options.transfers, shape, tables);
        self.stream_in = Some(BlockStream::new(graph, device, how, reader)?);
        Ok(())
    }

    /// What the run's report says of the device.
    pub fn report(&self) -> GpuReport {
        let OnDevice { tables, resident, direct: kept, .. } = &self.on_device;
        let bytes_of = |blocks| u64::from(blocks) * tables.block_bytes as u64;
        let direct = match &self.stream_in {
            Some(stream_in) => stream_in.direct(),
            None => kept.clone(),
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
            locked: self.stream_in.as_ref().and_then(BlockStream::locked).cloned(),
            loaded_bytes: bytes_of(self.loaded.0),
            load_seconds: self.loaded.1.as_secs_f64(),
            busy: None,
        }
    }

    /// Runs each of `programs` over every block, or over those with a tile for which `active` has a
    /// flag. A block is brought once for all.
    ///
    /// Where none is brought, nobody waits: what `stream` is given next finds it done.
    ///
    /// `active`: a flag for every `2^columns_log2` vertices, here (see [`looks_at_flags`]) and on the
    /// device.
    ///
    /// [`looks_at_flags`]: Self::looks_at_flags
    pub fn run(
        &mut self,
        programs: &[P],
        active: Option<(&[u8], &DeviceBuf<u8>)>,
        next: NextPass,
    ) -> Result<()> {
        if self.stream_in.is_some() {
            // Slots have streams of their own, which begin when the state is what it should be.
            self.stream.synchronize()?;
        }
        let flags = active.map(|(_, device)| device);
        let origin = Origin::now(self.graph.trace(), &self.stream)?;
        programs.iter().try_for_each(|program| self.over_resident(program, flags))?;
        let wanted = self.wanted(active.map(|(host, _)| host));
        let (tables, origin) = (&*self.on_device.tables, origin.as_ref());
        let stream_in = self.stream_in.as_mut().filter(|_| !wanted.is_empty());
        if let Some(stream_in) = stream_in {
            let of = (tables, &*wanted);
            stream_in.run(self.graph, of, (&self.kernel, programs, flags), next)?;
            self.stream.synchronize()?;
            stream_in.tell(origin)?;
            self.timeline.tell(origin)?;
            return tables.damage(self.graph, &self.stream);
        }
        if origin.is_some() {
            self.stream.synchronize()?;
        }
        self.timeline.tell(origin)
    }

    /// Whether [`run`](Self::run) looks at the flags that it is given here.
    pub fn looks_at_flags(&self) -> bool {
        self.stream_in.is_some() && self.on_device.tables.tiles.is_some()
    }

    fn over_resident(&mut self, program: &P, flags: Option<&DeviceBuf<u8>>) -> Result<()> {
        let Self { on_device: OnDevice { tables, resident, .. }, stream, kernel, .. } = self;
        if resident.blocks() == 0 {
            return Ok(());
        }
        let blocks = resident.addresses();
        self.timeline.span((Track::Device, "edge_map, resident"), stream, || match &tables.tiles {
            None => kernel.raw(stream, blocks, tables.block_bytes, program),
            Some(tiles) => {
                let pass = tiles.pass(blocks, SliceIndex::Resident(resident.slices()), flags);
                kernel.tiles(stream, &pass, program)
            }
        })
    }

    /// The blocks that are not on the device and hold something wanted.
    fn wanted(&self, flags: Option<&[u8]>) -> Vec<u32> {
        let OnDevice { tables, resident, .. } = &self.on_device;
        let missing = resident.blocks()..tables.blocks;
        let (Some(tiles), Some(flags)) = (&tables.tiles, flags) else {
            return missing.collect();
        };
        let stored_once = matches!(tables.layout, Layout::Tiles { stored_once: true });
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
