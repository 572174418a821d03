//! Launches of `parts.cuh`: what is wanted of host memory, listed by parts of that memory.

use tiergraph_core::Result;

use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Module, Stream};

pub(super) const BY_PARTS: &str = include_str!("parts.cuh");
const THREADS: u32 = 512;
/// Parts of host memory at most, whose items are read one part after the other.
/// Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_host_memory.txt.
pub(super) const PARTS: usize = 1024;

/// A list of what is wanted of host memory, by parts of that memory: where each part of the list ends.
#[derive(Debug)]
pub(super) struct Parts {
    /// The end of each part, and then the number of items.
    ends: DeviceBuf<u32>,
}

impl Parts {
    /// Bytes of device memory.
    pub const BYTES: usize = (PARTS + 1) * size_of::<u32>();

    /// Parts of a list that is not there yet.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { ends: DeviceBuf::new(device, PARTS + 1)? })
    }

    /// The pointer to the end of each part.
    pub fn ends(&self) -> DevicePtr<u32> {
        self.ends.ptr()
    }

    /// The pointer to the number of items of all parts.
    pub fn number(&self) -> DevicePtr<u32> {
        self.ends.ptr().field(PARTS * size_of::<u32>())
    }

    /// The binary logarithm of how many of `all` places a part has.
    pub fn part_log2(all: usize) -> u32 {
        all.div_ceil(PARTS).next_power_of_two().ilog2()
    }
}

/// The compiled kernels that list items.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    count: Kernel,
    begin: Kernel,
    list: Kernel,
}

impl Listing {
    /// The kernels in `module` that list `items`.
    pub fn new(module: &Module, items: &str) -> Result<Self> {
        Ok(Self {
            count: module.kernel(&format!("count_{items}"))?,
            begin: module.kernel("begin_parts")?,
            list: module.kernel(&format!("list_{items}"))?,
        })
    }

    /// Lists at most `most` items by `parts`, in order with the stream and by at most so many `blocks`; `launch`
    /// launches a kernel of the source with the list's arguments.
    pub fn list(
        &self,
        stream: &Stream,
        parts: &mut Parts,
        most: usize,
        blocks: u32,
        launch: impl Fn(&Kernel, Grid) -> Result<()>,
    ) -> Result<()> {
        stream.fill_bytes(&mut parts.ends, 0)?;
        let all = Grid { blocks: Grid::over(most, THREADS).blocks.min(blocks), threads: THREADS };
        let (one, ends) = (Grid { blocks: 1, threads: PARTS as u32 }, parts.ends());
        launch(&self.count, all)?;
        // SAFETY: the parameter of `begin_parts`: an end a part, and one more.
        unsafe { self.begin.launch(stream, one, &[&ends])? };
        launch(&self.list, all)
    }
}
