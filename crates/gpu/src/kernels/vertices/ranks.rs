//! Launches of `ranks.cu`: what PageRank does to its vertices after a pass.

use tiergraph_core::Result;

use super::SUM_BLOCK;
use crate::kernels::{LANES, Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;

shared! {
    struct RanksArguments as "Ranks" {
        x: DevicePtr<f32>,
        y: DevicePtr<f64>,
        degrees: DevicePtr<u32>,
        teleport: DevicePtr<f32>,
        sums: DevicePtr<f64>,
        jump: f64,
        even: f64,
        damping: f64,
        vertices: u32,
        hubs: u32,
        by_lane: u32,
    }
}

shared! {
    struct UnscaledArguments as "Unscaled" {
        x: DevicePtr<f32>,
        degrees: DevicePtr<u32>,
        vertices: u32,
    }
}

/// The state of PageRank, and what an iteration adds to the sums of its pass.
#[derive(Debug)]
pub struct Ranks<'a> {
    /// How many vertices have ranks.
    pub vertices: usize,
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

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct RankKernels {
    next: Kernel,
    unscale: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("ranks", &[TYPES, SUM_BLOCK, include_str!("ranks.cu")])
        .sharing::<RanksArguments>()
        .sharing::<UnscaledArguments>()
}

impl RankKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { next: module.kernel("next_ranks")?, unscale: module.kernel("unscale")? })
    }

    /// Makes the next ranks.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If the vectors are shorter than there are vertices.
    pub fn next(&self, stream: &Stream, ranks: &Ranks<'_>) -> Result<()> {
        let vertices = ranks.vertices;
        assert!(ranks.x.len().min(ranks.y.len()).min(ranks.degrees.len()) >= vertices);
        assert!(ranks.sums.len() >= 2);
        assert!(ranks.hubs as usize <= vertices);
        assert!(ranks.by_lane as usize + ranks.hubs as usize * LANES <= ranks.y.len());
        assert!(ranks.teleport.is_none_or(|t| t.len() >= vertices));
        let arguments = RanksArguments {
            x: ranks.x.ptr(),
            y: ranks.y.ptr(),
            degrees: ranks.degrees.ptr(),
            teleport: ranks.teleport.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            sums: ranks.sums.ptr(),
            jump: ranks.jump,
            even: ranks.even,
            damping: ranks.damping,
            vertices: vertices as u32,
            hubs: ranks.hubs,
            by_lane: ranks.by_lane,
        };
        let resident = self.next.resident_blocks(THREADS)?;
        let grid =
            Grid { blocks: Grid::over(vertices, THREADS).blocks.min(resident), threads: THREADS };
        // SAFETY: `Ranks` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.next.launch(stream, grid, &[&arguments]) }
    }

    /// Multiplies the first `vertices` of `x`, ranks over out-degrees, by `degrees` where they are
    /// not 0.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If there are fewer of either.
    pub fn unscale(
        &self,
        stream: &Stream,
        (x, vertices): (&mut DeviceBuf<f32>, usize),
        degrees: &DeviceBuf<u32>,
    ) -> Result<()> {
        assert!(x.len().min(degrees.len()) >= vertices, "{vertices} vertices");
        let arguments =
            UnscaledArguments { x: x.ptr(), degrees: degrees.ptr(), vertices: vertices as u32 };
        let grid = Grid::over(vertices, THREADS);
        // SAFETY: `Unscaled` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.unscale.launch(stream, grid, &[&arguments]) }
    }
}
