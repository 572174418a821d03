//! Launches of `vertices.cu`: what algorithms do to their vertices between two passes.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use super::{Source, TYPES};
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

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct Vertices {
    next_ranks: Kernel,
    plant: Kernel,
    compress: Kernel,
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
            plant: module.kernel("plant")?,
            compress: module.kernel("compress")?,
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
            unused: 0,
        };
        let resident = self.next_ranks.resident_blocks(THREADS)?;
        let grid =
            Grid { blocks: Grid::over(vertices, THREADS).blocks.min(resident), threads: THREADS };
        // SAFETY: `Ranks` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.next_ranks.launch(stream, grid, &[bytes_of(&arguments)]) }
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
}
