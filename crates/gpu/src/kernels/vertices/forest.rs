//! Launches of `forest.cu`: union-find's trees.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use crate::kernels::{Source, TYPES};
use crate::{Device, DeviceBuf, Grid, Kernel, Stream};

const THREADS: u32 = 256;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ForestArguments {
    parent: u64,
    vertices: u32,
    unused: u32,
}

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct ForestKernels {
    plant: Kernel,
    compress: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("forest", &[TYPES, include_str!("forest.cu")])
}

impl ForestKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { plant: module.kernel("plant")?, compress: module.kernel("compress")? })
    }

    /// Makes every vertex a tree of its own.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn plant(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::launch(&self.plant, stream, parent)
    }

    /// Points every vertex at its root.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn compress(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::launch(&self.compress, stream, parent)
    }

    fn launch(kernel: &Kernel, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        let vertices = parent.len() as u32;
        let arguments = ForestArguments { parent: parent.address(), vertices, unused: 0 };
        let grid = Grid::over(parent.len(), THREADS);
        // SAFETY: `Forest` of the source, with the buffer's own length; dropping it waits.
        unsafe { kernel.launch(stream, grid, &[bytes_of(&arguments)]) }
    }
}
