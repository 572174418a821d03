//! Launches of `vertices.cu`: what algorithms do to their vertices between two passes.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use super::{LANES, Source, TYPES};
use crate::{Device, DeviceBuf, Grid, Kernel, Module, Stream};

const THREADS: u32 = 256;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RanksArguments {
    x: u64,
    y: u64,
    degrees: u64,
    teleport: u64,
    sums: u64,
    jump: f64,
    even: f64,
    damping: f64,
    vertices: u32,
    hubs: u32,
    by_lane: u32,
    unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct UnscaledArguments {
    x: u64,
    degrees: u64,
    vertices: u32,
    unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ForestArguments {
    parent: u64,
    vertices: u32,
    unused: u32,
}

/// The state of PageRank, and what an iteration adds to the sums of its pass.
#[derive(Debug)]
pub struct Ranks<'a> {
    /// A vertex's rank over its out-degree; its rank where that is 0.
    pub x: &'a mut DeviceBuf<f32>,
    /// Sums of the pass; set to zero.
    pub y: &'a mut DeviceBuf<f64>,
    /// So many of the first vertices have [`LANES`] sums each besides.
    pub hubs: u32,
    /// Where in y those begin.
    pub by_lane: u32,
    /// Out-degrees.
    pub degrees: &'a DeviceBuf<u32>,
    /// Where a personalised walk restarts; none: everywhere alike.
    pub teleport: Option<&'a DeviceBuf<f32>>,
    /// The ranks of sinks and the change of all ranks are added here.
    pub sums: &'a mut DeviceBuf<f64>,
    /// What lands on a vertex of probability 1.
    pub jump: f64,
    /// What lands on every vertex.
    pub even: f64,
    /// The damping factor.
    pub damping: f64,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LevelsArguments {
    depth: u64,
    degrees: u64,
    reached: u64,
    unvisited: u64,
    counts: u64,
    vertices: u32,
    level: u32,
    log2: u32,
    unused: u32,
}

/// Where the vertices of a level are.
#[derive(Debug)]
pub struct Levels<'a> {
    /// Depths; all ones where unvisited.
    pub depth: &'a DeviceBuf<u32>,
    /// Of as many vertices, their degrees; none: arcs are not counted.
    pub degrees: Option<&'a DeviceBuf<u32>>,
    /// A flag for every `2^log2` vertices: whether one is of the level.
    pub reached: &'a mut DeviceBuf<u8>,
    /// As many: whether one is unvisited, and has arcs if those are known.
    pub unvisited: &'a mut DeviceBuf<u8>,
    /// The level's vertices, their arcs, and those of unvisited vertices.
    pub counts: &'a mut DeviceBuf<u64>,
    /// How many of the depths are of vertices.
    pub vertices: usize,
    /// The level.
    pub level: u32,
    /// Of the flags; at least [`Levels::LEAST_LOG2`].
    pub log2: u32,
}

impl Levels<'_> {
    /// What one warp looks at.
    pub const LEAST_LOG2: u32 = 10;
}

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct Vertices {
    next_ranks: Kernel,
    unscale: Kernel,
    plant: Kernel,
    compress: Kernel,
    find_level: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("vertices", &[TYPES, include_str!("vertices.cu")])
}

impl Vertices {
    /// Compiles them.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        let Source { name, text, options } = source();
        let module = Module::compile(device, &name, &text, &options)?;
        Ok(Self {
            next_ranks: module.kernel("next_ranks")?,
            unscale: module.kernel("unscale")?,
            plant: module.kernel("plant")?,
            compress: module.kernel("compress")?,
            find_level: module.kernel("find_level")?,
        })
    }

    /// Makes the next ranks.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If the vectors are shorter than the degrees.
    pub fn next_ranks(&self, stream: &Stream, ranks: &Ranks<'_>) -> Result<()> {
        let vertices = ranks.degrees.len();
        assert!(ranks.x.len().min(ranks.y.len()) >= vertices && ranks.sums.len() >= 2);
        assert!(ranks.hubs as usize <= vertices);
        assert!(ranks.by_lane as usize + ranks.hubs as usize * LANES <= ranks.y.len());
        assert!(ranks.teleport.is_none_or(|t| t.len() >= vertices));
        let arguments = RanksArguments {
            x: ranks.x.address(),
            y: ranks.y.address(),
            degrees: ranks.degrees.address(),
            teleport: ranks.teleport.map_or(0, DeviceBuf::address),
            sums: ranks.sums.address(),
            jump: ranks.jump,
            even: ranks.even,
            damping: ranks.damping,
            vertices: vertices as u32,
            hubs: ranks.hubs,
            by_lane: ranks.by_lane,
            unused: 0,
        };
        let resident = self.next_ranks.resident_blocks(THREADS)?;
        let grid =
            Grid { blocks: Grid::over(vertices, THREADS).blocks.min(resident), threads: THREADS };
        // SAFETY: `Ranks` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.next_ranks.launch(stream, grid, &[bytes_of(&arguments)]) }
    }

    /// Multiplies `x`, ranks over out-degrees, by `degrees` where they are not 0.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If `x` is shorter than the degrees.
    pub fn unscale(
        &self,
        stream: &Stream,
        x: &mut DeviceBuf<f32>,
        degrees: &DeviceBuf<u32>,
    ) -> Result<()> {
        assert!(x.len() >= degrees.len());
        let (x, vertices) = (x.address(), degrees.len() as u32);
        let arguments = UnscaledArguments { x, degrees: degrees.address(), vertices, unused: 0 };
        let grid = Grid::over(degrees.len(), THREADS);
        // SAFETY: `Unscaled` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.unscale.launch(stream, grid, &[bytes_of(&arguments)]) }
    }

    /// Makes every vertex a tree of its own.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn plant(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::forest(&self.plant, stream, parent)
    }

    /// Points every vertex at its root.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn compress(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::forest(&self.compress, stream, parent)
    }

    fn forest(kernel: &Kernel, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        let vertices = parent.len() as u32;
        let arguments = ForestArguments { parent: parent.address(), vertices, unused: 0 };
        let grid = Grid::over(parent.len(), THREADS);
        // SAFETY: `Forest` of the source, with the buffer's own length; dropping it waits.
        unsafe { kernel.launch(stream, grid, &[bytes_of(&arguments)]) }
    }

    /// Finds a level: sets its flags and counts anew.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If a vector is shorter than the vertices need, or flags are for too few of them.
    pub fn find_level(&self, stream: &Stream, levels: Levels<'_>) -> Result<()> {
        let Levels { depth, degrees, reached, unvisited, counts, vertices, level, log2 } = levels;
        assert!(depth.len().min(degrees.map_or(vertices, DeviceBuf::len)) >= vertices);
        assert!(reached.len().min(unvisited.len()) >= vertices.div_ceil(1 << log2));
        assert!(log2 >= Levels::LEAST_LOG2 && counts.len() >= 3);
        stream.fill_bytes(reached, 0)?;
        stream.fill_bytes(unvisited, 0)?;
        stream.fill_bytes(counts, 0)?;
        let arguments = LevelsArguments {
            depth: depth.address(),
            degrees: degrees.map_or(0, DeviceBuf::address),
            reached: reached.address(),
            unvisited: unvisited.address(),
            counts: counts.address(),
            vertices: vertices as u32,
            level,
            log2,
            unused: 0,
        };
        let grid = Grid::over(vertices.div_ceil(LANES), THREADS);
        // SAFETY: `Levels` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.find_level.launch(stream, grid, &[bytes_of(&arguments)]) }
    }
}
