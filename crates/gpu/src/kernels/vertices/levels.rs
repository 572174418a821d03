//! Launches of `levels.cu`: which vertices a search has at a level, and which are unvisited.

use tiergraph_core::Result;

use super::SUM_BLOCK;
use crate::kernels::{LANES, Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;

shared! {
    struct LevelsArguments as "Levels" {
        depth: DevicePtr<u32>,
        degrees: DevicePtr<u32>,
        reached: DevicePtr<u8>,
        unvisited: DevicePtr<u8>,
        counts: DevicePtr<u64>,
        vertices: u32,
        level: u32,
        log2: u32,
    }
}

/// A request for the vertices of one level of a search, and the buffers that become its result.
#[derive(Debug)]
pub struct Levels<'a> {
    /// Each vertex's depth; all ones where it is unvisited.
    pub depth: &'a DeviceBuf<u32>,
    /// Each vertex's degree; `None` if arcs are not counted.
    pub degrees: Option<&'a DeviceBuf<u32>>,
    /// Becomes a flag for every `2^log2` vertices: set if one of them is at the level.
    pub reached: &'a mut DeviceBuf<u8>,
    /// Becomes a flag for every `2^log2` vertices: set if one of them is unvisited (and has arcs, where
    /// degrees are given).
    pub unvisited: &'a mut DeviceBuf<u8>,
    /// Becomes three counts: the level's vertices, their arcs, and the arcs of unvisited vertices.
    pub counts: &'a mut DeviceBuf<u64>,
    /// The number of vertices; depths behind them are padding.
    pub vertices: usize,
    /// The level whose vertices are found.
    pub level: u32,
    /// The binary logarithm of how many vertices share a flag; at least [`Levels::LEAST_LOG2`].
    pub log2: u32,
}

impl Levels<'_> {
    /// The least `log2` that is allowed: one warp looks at `2^LEAST_LOG2` vertices.
    pub const LEAST_LOG2: u32 = 10;
}

/// The compiled kernel that finds the vertices of a search's level.
#[derive(Debug, Clone)]
pub struct LevelKernel(Kernel);

pub(super) fn source() -> Source {
    Source::new("levels", &[TYPES, SUM_BLOCK, include_str!("levels.cu")])
        .sharing::<LevelsArguments>()
}

impl LevelKernel {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        module.kernel("find_level").map(Self)
    }

    /// Finds the vertices of a level: sets its flags and counts anew, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If a buffer is shorter than the vertices need, or `log2` is too small.
    pub fn find(&self, stream: &Stream, levels: Levels<'_>) -> Result<()> {
        let Levels { depth, degrees, reached, unvisited, counts, vertices, level, log2 } = levels;
        assert!(depth.len().min(degrees.map_or(vertices, DeviceBuf::len)) >= vertices);
        assert!(reached.len().min(unvisited.len()) >= vertices.div_ceil(1 << log2));
        assert!(log2 >= Levels::LEAST_LOG2 && counts.len() >= 3);
        stream.fill_bytes(reached, 0)?;
        stream.fill_bytes(unvisited, 0)?;
        stream.fill_bytes(counts, 0)?;
        let arguments = LevelsArguments {
            depth: depth.ptr(),
            degrees: degrees.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            reached: reached.ptr(),
            unvisited: unvisited.ptr(),
            counts: counts.ptr(),
            vertices: vertices as u32,
            level,
            log2,
        };
        let grid = Grid::over(vertices.div_ceil(LANES), THREADS);
        // SAFETY: `Levels` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.0.launch(stream, grid, &[&arguments]) }
    }
}
