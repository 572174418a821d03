//! Launches of `ranks.cu`: how PageRank makes the next ranks of the sums of a pass.

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

/// The state of PageRank's vertices after a pass, and what makes the next ranks of it.
#[derive(Debug)]
pub struct Ranks<'a> {
    /// How many vertices have ranks.
    pub vertices: usize,
    /// Each vertex's rank over its out-degree; its rank where that is 0.
    pub x: &'a mut DeviceBuf<f32>,
    /// The pass's sum of each vertex's in-neighbours, then the hubs' sums by lane; all become 0.
    pub y: &'a mut DeviceBuf<f64>,
    /// How many of the first vertices, the hubs, have [`LANES`] further sums each.
    pub hubs: u32,
    /// The index in `y` at which the hubs' sums by lane begin.
    pub by_lane: u32,
    /// Each vertex's out-degree.
    pub degrees: &'a DeviceBuf<u32>,
    /// The probability of each vertex that a personalised walk restarts there; `None` if walks restart
    /// everywhere alike.
    pub teleport: Option<&'a DeviceBuf<f32>>,
    /// Two sums that are added to: the ranks of sinks, and the change of all ranks.
    pub sums: &'a mut DeviceBuf<f64>,
    /// The rank that restarts would give to a vertex of probability 1.
    pub jump: f64,
    /// The rank that restarts give to every vertex, where they are everywhere alike.
    pub even: f64,
    /// The damping factor.
    pub damping: f64,
}

/// The compiled kernels that update PageRank's vertices.
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
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { next: module.kernel("next_ranks")?, unscale: module.kernel("unscale")? })
    }

    /// Replaces the ranks by the next ones, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If a buffer is shorter than the vertices need.
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

    /// Makes ranks of the first `vertices` values of `x`, which are ranks over out-degrees: multiplies
    /// them by `degrees` where those are not 0.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If either buffer is shorter.
    pub fn unscale(
        &self,
        stream: &Stream,
        x: &mut DeviceBuf<f32>,
        degrees: &DeviceBuf<u32>,
        vertices: usize,
    ) -> Result<()> {
        assert!(x.len().min(degrees.len()) >= vertices, "{vertices} vertices");
        let arguments =
            UnscaledArguments { x: x.ptr(), degrees: degrees.ptr(), vertices: vertices as u32 };
        let grid = Grid::over(vertices, THREADS);
        // SAFETY: `Unscaled` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.unscale.launch(stream, grid, &[&arguments]) }
    }
}
