//! Neighbour lists of all vertices in a GPU's memory, which a pass of the program [`Put`] makes of the graph's blocks.
//!
//! They stay there for later runs ([`super::device_cache`]). The host has the degrees and where lists begin, 8 bytes a
//! vertex. Of a graph with neither tiles nor blocks, whose rows only samplers read, it makes the lists itself.

use std::time::Instant;

use tiergraph_core::{ByteSize, Progress, Result};
use tiergraph_gpu::kernels::{DeviceLists, Kept, ListKernels, Put};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, NextPass};

use super::device_cache::{Listed, ResidentLists};
use super::pass::{Arcs, Passes};
use super::{Gpu, GpuReport};
use crate::adjacency::other_degrees;
use crate::report::Run;
use crate::row_map::{ListDegrees, RowMap, Side};

/// What a run on a GPU gives, or why there was none.
pub type OnGpu<T> = std::result::Result<T, String>;

/// What an algorithm needs on the device beside the neighbour lists.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    /// The arcs that make a vertex's list.
    pub(super) side: Side,
    /// Bytes of device memory a vertex.
    pub(super) state: u64,
    /// Bytes of device memory an arc.
    pub(super) of_arcs: u64,
    /// Further bytes of device memory.
    pub(super) of_run: u64,
    /// What each neighbour list contains.
    pub(super) listed: Listed,
    /// The neighbours of more than which a vertex has many; `None` if that is not asked.
    pub(super) few: Option<u32>,
}

impl Needs {
    /// Neighbours of both sides, each once.
    pub(super) const SIMPLE: Self = Self {
        side: Side::Both,
        state: 0,
        of_arcs: 0,
        of_run: 0,
        listed: Listed::Simple,
        few: None,
    };
    /// A neighbour for each arc of both sides.
    pub(super) const EVERY_ARC: Self = Self { listed: Listed::EveryArc, ..Self::SIMPLE };

    /// Bytes of device memory beside the lists.
    fn state_bytes(&self, graph: &Graph) -> u64 {
        let of_vertices = graph.vertices() as u64 * self.state;
        of_vertices + RowMap::arcs(graph, self.side) * self.of_arcs + self.of_run
    }
}

/// A run whose lists are on the device.
pub(super) struct Loaded<'a> {
    pub(super) run: Run<'a>,
    pub(super) stream: Stream,
    pub(super) lists: DeviceLists,
    pub(super) kernels: ListKernels,
    /// The vertices of many neighbours.
    pub(super) many: DeviceBuf<u32>,
}

/// Has the lists of all vertices on the device, beside what the algorithm needs; or says why not.
pub(super) fn load<'a>(
    graph: &'a Graph,
    gpu: &Gpu,
    needs: Needs,
    name: &'static str,
    progress: &'a dyn Progress,
) -> Result<OnGpu<Loaded<'a>>> {
    let side = needs.side.of(graph);
    let needs = Needs { side, ..needs };
    let stream = Stream::new(&gpu.device)?;
    let kernels = ListKernels::new(&gpu.device)?;
    let mut run = Run::start(graph, name, 0, progress);
    let room = gpu.memory.saturating_sub(needs.state_bytes(graph));
    let (lists, report) = match gpu.cache.lists(graph, side, needs.listed, room) {
        Some(lists) => {
            let report = of_lists(gpu, &needs, graph, &lists, "an earlier run has left them there");
            (lists, report)
        }
        None => match make(graph, gpu, &needs, &stream, &kernels)? {
            Ok(made) => made,
            Err(why) => return Ok(Err(why)),
        },
    };
    let many = match needs.few {
        Some(few) => kernels.longer_than(&stream, &lists, few)?,
        None => DeviceBuf::new(&gpu.device, 0)?,
    };
    run.begin_on(report);
    Ok(Ok(Loaded { run, stream, lists, kernels, many }))
}

/// Makes the lists and leaves them in the device cache, or says why they do not fit.
fn make(
    graph: &Graph,
    gpu: &Gpu,
    needs: &Needs,
    stream: &Stream,
    kernels: &ListKernels,
) -> Result<OnGpu<(DeviceLists, GpuReport)>> {
    let begin = Instant::now();
    gpu.cache.evict_lists();
    let ways = Ways::of(graph, needs);
    if needs.listed.has_sides() && ways.is_none() {
        return Ok(Err("the graph has rows only, which do not come by directions".into()));
    }
    let (n, arcs) = (graph.vertices() as u64, RowMap::arcs(graph, needs.side));
    let of_passes = ways.as_ref().map_or(0, |_| Passes::<Put>::least_bytes(graph));
    let state = n * 8 + arcs * 4 + needs.state_bytes(graph);
    let needed = state + of_passes + (1 << 20);
    if needed > gpu.memory {
        let (needed, has) = (ByteSize(needed), ByteSize(gpu.memory));
        return Ok(Err(format!("lists of neighbours take {needed} of the GPU's memory of {has}")));
    }
    if needs.listed.has_sides() && n > 1 << 31 {
        return Ok(Err("a GPU takes directions of at most 2^31 vertices".into()));
    }
    if arcs >= u64::from(u32::MAX) {
        return Ok(Err("a GPU takes lists of fewer than 2^32 neighbours in all".into()));
    }
    let made = match ways {
        Some(ways) => ways.make(graph, gpu, needs, kernels, state)?,
        None => match on_host(graph, stream, needs)? {
            Some(lists) => {
                let why = "the host has made them, because the graph has rows only";
                let report = of_lists(gpu, needs, graph, &lists, why);
                (lists, report)
            }
            None => return Ok(Err("lists of all neighbours do not fit the host's memory".into())),
        },
    };
    let (lists, report) = made;
    let (side, listed) = (needs.side, needs.listed);
    let kept = match listed {
        Listed::EveryArc => None,
        Listed::Distinct => Some(Kept::All),
        Listed::Simple => Some(Kept::Others),
        Listed::Sides | Listed::Joined => Some(Kept::OthersBySide),
    };
    let mut left_out = 0;
    if let Some(kept) = kept {
        kernels.sort(stream, &lists)?;
        left_out = kernels.keep_distinct(stream, &lists, kept)?;
    }
    if listed == Listed::Joined {
        kernels.join_sides(stream, &lists)?;
    }
    stream.synchronize()?;
    let has_all = left_out == 0;
    let resident = ResidentLists { side, listed, has_all, lists: lists.clone() };
    gpu.cache.insert_lists(graph, resident);
    let load_seconds = begin.elapsed().as_secs_f64();
    Ok(Ok((lists, GpuReport { load_seconds, ..report })))
}

/// The lists as the host makes them for the CPU, copied to the device; `None` if they do not fit.
fn on_host(graph: &Graph, stream: &Stream, needs: &Needs) -> Result<Option<DeviceLists>> {
    if !RowMap::fits(graph, needs.side)? {
        return Ok(None);
    }
    let _state = graph.memory().reserve_all(&RowMap::memory(graph, needs.side)?)?;
    let degrees = ListDegrees::read(graph, needs.side)?;
    let mut rows = RowMap::new(graph, &degrees)?;
    let Some(made) = rows.whole()? else { return Ok(None) };
    let (starts, ends, targets) = made.arrays();
    DeviceLists::upload(stream, starts, ends, targets).map(Some)
}

/// The report of a run over lists that no pass has made.
fn of_lists(gpu: &Gpu, needs: &Needs, graph: &Graph, lists: &DeviceLists, why: &str) -> GpuReport {
    GpuReport {
        name: gpu.device.name().to_owned(),
        transfers: gpu.options.transfers,
        direct: None,
        device_blocks_planned_bytes: gpu.memory.saturating_sub(needs.state_bytes(graph)),
        device_resident_bytes: lists.bytes(),
        device_resident_why: format!("lists of all neighbours are on the device: {why}"),
        host_resident_bytes: 0,
        host_resident_why: "all lists are on the device".into(),
        pinned: None,
        frontier: None,
        loaded_bytes: 0,
        load_seconds: 0.0,
        busy: None,
    }
}

/// The blocks that lists are made of, and which of their arcs' ends are in which lists.
struct Ways {
    direction: Direction,
    put: u32,
}

impl Ways {
    /// `None` where there are no blocks.
    fn of(graph: &Graph, needs: &Needs) -> Option<Self> {
        let (manifest, side) = (graph.manifest(), needs.side);
        let sides = if needs.listed.has_sides() { Put::SIDES } else { 0 };
        let (rows, columns) = (Put::ROWS, Put::COLUMNS | Put::LOOPS);
        if graph.tiles().is_stored() {
            let put = match (manifest.directed, side) {
                (false, _) if manifest.tiles.is_some_and(|tiles| tiles.stored_once) => {
                    Put::ROWS | Put::COLUMNS
                }
                (false, _) | (true, Side::In) => rows,
                (true, Side::Out) => columns,
                (true, Side::Both) => rows | columns | sides,
            };
            return Some(Self { direction: Direction::In, put });
        }
        let first = if side == Side::Out { Direction::Out } else { Direction::In };
        let stored = |&direction: &Direction| graph.raw(direction).is_stored();
        let direction = [first, Direction::In, Direction::Out].into_iter().find(stored)?;
        let put = match (manifest.directed, side, direction) {
            (true, Side::Both, Direction::In) => rows | columns | sides,
            (true, Side::Both, Direction::Out) => rows | columns | sides | Put::FROM_ROWS,
            (true, Side::Out, Direction::In) | (true, Side::In, Direction::Out) => columns,
            _ => rows,
        };
        Some(Self { direction, put })
    }

    fn make(
        &self,
        graph: &Graph,
        gpu: &Gpu,
        needs: &Needs,
        kernels: &ListKernels,
        state: u64,
    ) -> Result<(DeviceLists, GpuReport)> {
        let arcs = Arcs { direction: self.direction, weights: false, transposed: false };
        let mut passes: Passes<'_, Put> = Passes::over(graph, gpu, arcs, Vec::new(), state)?;
        let lists = with_room(graph, &passes.stream, needs.side)?;
        passes.stream.synchronize()?;
        passes.load_whole()?;
        passes.run(&[lists.put(self.put)], None, NextPass::Unknown)?;
        if !kernels.are_full(&passes.stream, &lists)? {
            return Err(other_degrees(graph));
        }
        let report = GpuReport {
            device_resident_bytes: lists.bytes(),
            device_resident_why: "lists of all neighbours are on the device, made of the blocks"
                .into(),
            ..passes.report()
        };
        Ok((lists, report))
    }
}

/// Lists of all vertices, with room for as many neighbours as they have arcs on `side`.
fn with_room(graph: &Graph, stream: &Stream, side: Side) -> Result<DeviceLists> {
    let bytes = graph.vertices() as u64 * 4 * (1 + side.count(graph) as u64);
    let _host = graph.memory().reserve(bytes, "the degrees")?;
    let degrees = ListDegrees::read(graph, side)?;
    let mut end = 0u32;
    let starts: Vec<u32> = (0..graph.vertices() as u32)
        .map(|v| {
            let start = end;
            end = end.wrapping_add(degrees.all(v) as u32);
            start
        })
        .collect();
    DeviceLists::with_room(stream, &starts, end)
}
