//! One program over all blocks of a graph, wherever they are.

use tiergraph_core::trace::Track;
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::tiles::TilesIndex;
use tiergraph_gpu::kernels::{EdgeMap, Layout, Program, Slices, Variant};
use tiergraph_gpu::{Device, DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, Then};

use super::host::HostBlocks;
use super::reader::Reader;
use super::residency::Resident;
use super::shape::Shape;
use super::slots::Slots;
use super::tables::Tables;
use super::timeline::{Origin, Timeline};
use super::{Gpu, GpuOptions, GpuReport, Transfers};

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
    tables: Tables,
    kernel: EdgeMap<P>,
    reader: Reader,
    slots: Vec<Slots>,
    /// Of `stream`.
    timeline: Timeline,
    resident: Resident,
    options: GpuOptions,
    /// Bytes of device memory that state and slots leave to blocks.
    left: u64,
    resident_why: String,
    host: HostBlocks,
}

impl<'a, P: Program> Passes<'a, P> {
    /// Prepares passes; `state_bytes` of device memory are the algorithm's.
    pub fn new(
        graph: &'a Graph,
        gpu: &Gpu,
        direction: Direction,
        state_bytes: u64,
    ) -> Result<Self> {
        let arcs = Arcs { direction, weights: P::WEIGHTED, transposed: false };
        Self::over(graph, gpu, arcs, Vec::new(), state_bytes)
    }

    /// As [`new`](Self::new), for a program that says by `options` what it is compiled for.
    pub fn over(
        graph: &'a Graph,
        gpu: &Gpu,
        arcs: Arcs,
        options: Vec<String>,
        state_bytes: u64,
    ) -> Result<Self> {
        let device = &gpu.device;
        let stream = Stream::new(device)?;
        let tables = Tables::new(graph, &stream, arcs.direction, gpu.options.checksums)?;
        let (layout, transposed) = (tables.layout, arcs.transposed);
        let weight_bytes = if arcs.weights { graph.manifest().weighted.bytes() as u32 } else { 0 };
        let kernel = EdgeMap::new(device, &Variant { layout, weight_bytes, transposed, options })?;
        let transfers = gpu.options.transfers;
        let shape = Shape::of(transfers, graph.threads(), tables.blocks);
        let slot_bytes =
            (shape.lanes * shape.slots) as u64 * Slots::slot_bytes(shape.batch, &tables);
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
        let reader = Reader::new(graph, device, &tables, (transfers, shape.lanes))?;
        let timeline = |lane| Timeline::new(graph.trace(), lane);
        let how = (reader.cufile(), transfers == Transfers::Synchronous);
        let slots = |lane| Slots::new(device, shape, &tables, how, timeline(lane));
        let slots = (0..shape.lanes).map(slots).collect::<Result<_>>()?;
        let timeline = timeline(shape.lanes);
        let resident = Resident::none(device)?;
        let (options, resident_why) = (gpu.options.clone(), "they are read once".to_owned());
        Ok(Self {
            graph,
            stream,
            tables,
            kernel,
            reader,
            slots,
            timeline,
            resident,
            options,
            left,
            resident_why,
            host: HostBlocks::none("they are read once"),
        })
    }

    /// Fills the device's memory that is left with blocks; every later pass finds them there.
    ///
    /// Others may have taken memory since the GPU was opened: then fewer blocks stay.
    pub fn load(&mut self) -> Result<()> {
        if !self.options.residency {
            "residency is off".clone_into(&mut self.resident_why);
            self.host = HostBlocks::none("residency is off");
            return Ok(());
        }
        let free = self.stream.device().memory()?.0 / 10 * 9;
        self.resident = Resident::load(
            self.graph,
            &self.stream,
            &self.tables,
            self.left.min(free),
            (&mut self.reader, self.slots.len()),
        )?;
        self.resident_why = match self.resident.blocks() == self.tables.blocks {
            true => "all blocks fit".into(),
            false if free < self.left => format!(
                "{} were planned for blocks, and others have left {} of GPU memory",
                ByteSize(self.left),
                ByteSize(free)
            ),
            false => format!("{} of GPU memory are left to blocks", ByteSize(self.left)),
        };
        let kept = (self.graph, self.stream.device(), &self.tables);
        self.host = HostBlocks::load(kept, self.resident.blocks(), &mut self.reader)?;
        Ok(())
    }

    /// What the run's report says of the device.
    pub fn report(&self) -> GpuReport {
        GpuReport {
            name: self.stream.device().name().to_owned(),
            transfers: self.options.transfers,
            direct: self.direct(),
            device_blocks_planned_bytes: self.left,
            device_resident_bytes: u64::from(self.resident.blocks())
                * self.tables.block_bytes as u64,
            device_resident_why: self.resident_why.clone(),
            host_resident_bytes: u64::from(self.host.blocks()) * self.tables.block_bytes as u64,
            host_resident_why: self.host.why().to_owned(),
            busy: None,
        }
    }

    /// Which way direct reads go.
    fn direct(&self) -> Option<String> {
        let Reader::Direct(direct) = &self.reader else { return None };
        let unregistered = self.slots.iter().find_map(Slots::unregistered);
        let slots = unregistered.map_or_else(String::new, |why| format!("; {why}"));
        Some(format!("{}{slots}", direct.how()))
    }

    /// Runs each of `programs` over every block, or over those with a tile for which `active` has a
    /// flag. A block is brought once for all.
    ///
    /// `active`: a flag for every `2^columns_log2` vertices, here and on the device.
    pub fn run(
        &mut self,
        programs: &[P],
        active: Option<(&[u8], &DeviceBuf<u8>)>,
        then: Then,
    ) -> Result<()> {
        let flags = active.map(|(_, device)| device);
        let origin = Origin::now(self.graph.trace(), &self.stream)?;
        programs.iter().try_for_each(|program| self.over_resident(program, flags))?;
        let wanted = self.wanted(active.map(|(host, _)| host));
        let (tables, kernel) = (&self.tables, &self.kernel);
        // One block after the other means that nothing is read ahead.
        let is_ahead = self.options.transfers != Transfers::Synchronous;
        let then = if is_ahead { then } else { Then::Stop };
        if !wanted.is_empty() {
            let slots = self.slots.iter_mut().map(|s| s.stage(tables, kernel, programs, flags));
            self.reader.pass(self.graph, (tables, &wanted), then, slots)?;
            self.slots.iter().try_for_each(Slots::synchronize)?;
        }
        self.stream.synchronize()?;
        self.slots.iter_mut().try_for_each(|slots| slots.timeline().tell(origin.as_ref()))?;
        self.timeline.tell(origin.as_ref())?;
        if wanted.is_empty() { Ok(()) } else { tables.damage(self.graph, &self.stream) }
    }

    fn over_resident(&mut self, program: &P, flags: Option<&DeviceBuf<u8>>) -> Result<()> {
        let count = self.resident.blocks();
        if count == 0 {
            return Ok(());
        }
        let blocks = self.resident.addresses();
        let Self { tables, stream, kernel, resident, .. } = self;
        self.timeline.span((Track::Device, "edge_map, resident"), stream, || match &tables.tiles {
            None => kernel.raw(stream, blocks, tables.block_bytes, program),
            Some(tiles) => {
                let pass = tiles.pass(blocks, Slices::All(resident.slices()), flags);
                kernel.tiles(stream, &pass, program)
            }
        })
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
