//! Launches of `forest.cu`: union-find's trees.

use tiergraph_core::Result;

use crate::kernels::{Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;

shared! {
    struct ForestArguments as "Forest" {
        parent: DevicePtr<u32>,
        vertices: u32,
    }
}

shared! {
    struct NamesArguments as "Names" {
        parent: DevicePtr<u32>,
        least: DevicePtr<u32>,
        positions: DevicePtr<u32>,
        vertices: u32,
    }
}

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct ForestKernels {
    plant: Kernel,
    compress: Kernel,
    find_least: Kernel,
    name: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("forest", &[TYPES, include_str!("forest.cu")])
        .sharing::<ForestArguments>()
        .sharing::<NamesArguments>()
}

impl ForestKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self {
            plant: module.kernel("plant")?,
            compress: module.kernel("compress")?,
            find_least: module.kernel("find_least")?,
            name: module.kernel("name_by_least")?,
        })
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

    /// Gives every vertex the least of `positions` in its tree instead of its root. All trees are
    /// compressed; `least` holds [`u32::MAX`] for every vertex.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If `least` or `parent` is shorter than `positions`.
    pub fn name(
        &self,
        stream: &Stream,
        parent: &mut DeviceBuf<u32>,
        positions: &DeviceBuf<u32>,
        least: &mut DeviceBuf<u32>,
    ) -> Result<()> {
        let vertices = positions.len();
        assert!(parent.len().min(least.len()) >= vertices, "{vertices} positions");
        let arguments = NamesArguments {
            parent: parent.ptr(),
            least: least.ptr(),
            positions: positions.ptr(),
            vertices: vertices as u32,
        };
        for kernel in [&self.find_least, &self.name] {
            // SAFETY: `Names` of the source; lengths were checked; dropping a buffer waits.
            unsafe {
                kernel.launch(stream, Grid::over(vertices, THREADS), &[&arguments])?;
            }
        }
        Ok(())
    }

    fn launch(kernel: &Kernel, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        let vertices = parent.len() as u32;
        let arguments = ForestArguments { parent: parent.ptr(), vertices };
        let grid = Grid::over(parent.len(), THREADS);
        // SAFETY: `Forest` of the source, with the buffer's own length; dropping it waits.
        unsafe { kernel.launch(stream, grid, &[&arguments]) }
    }
}
