//! Launches of `cores.cu`.

use std::ops::Range;

use tiergraph_core::Result;

use super::{DeviceLists, Source, THREADS, source_of};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

shared! {
    struct PeelingArguments as "Peeling" {
        degrees: DevicePtr<u32>,
        queue: DevicePtr<u32>,
        counts: DevicePtr<u32>,
        vertices: u32,
        level: u32,
    }
}

/// The compiled kernels that peel a graph, and what they work on.
#[derive(Debug)]
pub struct CoreKernels {
    find: Kernel,
    peel: Kernel,
    resident_blocks: u32,
    /// What is left of each vertex's degree; of those that went, their core number.
    degrees: DeviceBuf<u32>,
    queue: DeviceBuf<u32>,
    counts: DeviceBuf<u32>,
}

pub(super) fn source() -> Source {
    source_of("cores", include_str!("cores.cu")).sharing::<PeelingArguments>()
}

impl CoreKernels {
    /// Compiles the kernels, for vertices of these `degrees`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, degrees: DeviceBuf<u32>) -> Result<Self> {
        let module = source().compile(device)?;
        let peel = module.kernel("peel")?;
        Ok(Self {
            find: module.kernel("find_level")?,
            resident_blocks: peel.resident_blocks(THREADS)?,
            peel,
            queue: DeviceBuf::new(device, degrees.len())?,
            counts: DeviceBuf::new(device, 2)?,
            degrees,
        })
    }

    /// Peels off every vertex of degree `level`, and those that come down to it; returns how many went, and
    /// the least degree of those that are left, `u32::MAX` if none is.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer degrees than lists.
    pub fn peel(&mut self, stream: &Stream, lists: &DeviceLists, level: u32) -> Result<(u32, u32)> {
        assert_eq!(self.degrees.len(), lists.vertices(), "a degree a list");
        stream.upload(&mut self.counts, &[0, u32::MAX])?;
        let grid = Grid::over(self.degrees.len(), THREADS);
        // SAFETY: `Peeling` of the source; the queue has room for all vertices, each of which goes once.
        unsafe { self.find.launch(stream, grid, &[&self.arguments(level)])? };
        let mut done = 0;
        loop {
            let counts = stream.download(&self.counts, 2)?;
            if counts[0] == done {
                return Ok((done, counts[1]));
            }
            self.peel_part(stream, lists, level, done..counts[0])?;
            done = counts[0];
        }
    }

    fn peel_part(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        level: u32,
        part: Range<u32>,
    ) -> Result<()> {
        let warps = THREADS / 32;
        let blocks = (part.end - part.start).div_ceil(warps).min(self.resident_blocks);
        let grid = Grid { blocks, threads: THREADS };
        let (lists, peeling) = (lists.arguments(), self.arguments(level));
        // SAFETY: as above; what is in the queue are vertices, and neighbours are vertices.
        unsafe { self.peel.launch(stream, grid, &[&lists, &peeling, &part.start, &part.end]) }
    }

    /// What is left of the degrees: of vertices that went, their core numbers.
    pub fn degrees(&self) -> &DeviceBuf<u32> {
        &self.degrees
    }

    fn arguments(&self, level: u32) -> PeelingArguments {
        PeelingArguments {
            degrees: self.degrees.ptr(),
            queue: self.queue.ptr(),
            counts: self.counts.ptr(),
            vertices: self.degrees.len() as u32,
            level,
        }
    }
}
