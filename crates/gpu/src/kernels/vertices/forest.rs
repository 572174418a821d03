//! Launches of `forest.cu`: the trees of union-find.

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
    struct LabelsArguments as "Labels" {
        parent: DevicePtr<u32>,
        least: DevicePtr<u32>,
        positions: DevicePtr<u32>,
        vertices: u32,
    }
}

/// The compiled kernels for the trees of union-find, which are an array of every vertex's parent.
#[derive(Debug, Clone)]
pub struct ForestKernels {
    plant: Kernel,
    compress: Kernel,
    find_least: Kernel,
    label: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("forest", &[TYPES, include_str!("forest.cu")])
        .sharing::<ForestArguments>()
        .sharing::<LabelsArguments>()
}

impl ForestKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self {
            plant: module.kernel("plant")?,
            compress: module.kernel("compress")?,
            find_least: module.kernel("find_least")?,
            label: module.kernel("label_by_least")?,
        })
    }

    /// Makes every vertex a tree of its own.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn plant(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::launch(&self.plant, stream, parent)
    }

    /// Points every vertex at its root.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn compress(&self, stream: &Stream, parent: &mut DeviceBuf<u32>) -> Result<()> {
        Self::launch(&self.compress, stream, parent)
    }

    /// Replaces every vertex's root in `parent` by a label: the least of `positions` in its tree. All
    /// trees are compressed; `least` is scratch that holds [`u32::MAX`] for every vertex.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `least` or `parent` is shorter than `positions`.
    pub fn label(
        &self,
        stream: &Stream,
        parent: &mut DeviceBuf<u32>,
        positions: &DeviceBuf<u32>,
        least: &mut DeviceBuf<u32>,
    ) -> Result<()> {
        let vertices = positions.len();
        assert!(parent.len().min(least.len()) >= vertices, "{vertices} positions");
        let arguments = LabelsArguments {
            parent: parent.ptr(),
            least: least.ptr(),
            positions: positions.ptr(),
            vertices: vertices as u32,
        };
        for kernel in [&self.find_least, &self.label] {
            // SAFETY: `Labels` of the source; lengths were checked; dropping a buffer waits.
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
