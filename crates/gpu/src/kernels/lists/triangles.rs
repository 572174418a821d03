//! Launches of `triangles.cu`.

use std::sync::Arc;

use tiergraph_core::Result;

use super::{DeviceLists, Source, THREADS, source_of};
use crate::{Device, DeviceBuf, Grid, Kernel, Stream};

/// The compiled kernels that count triangles.
#[derive(Debug, Clone)]
pub struct TriangleKernels {
    count: Kernel,
    end: Kernel,
    copy: Kernel,
    close: Kernel,
}

pub(super) fn source() -> Source {
    source_of("triangles", include_str!("triangles.cu"))
}

impl TriangleKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self {
            count: module.kernel("count_neighbors")?,
            end: module.kernel("end_before")?,
            copy: module.kernel("copy_higher")?,
            close: module.kernel("close_wedges")?,
        })
    }

    /// Sets `neighbors` to how many each vertex has.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer `neighbors` than lists.
    pub fn count(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        neighbors: &mut DeviceBuf<u32>,
    ) -> Result<()> {
        assert_eq!(neighbors.len(), lists.vertices(), "a number a list");
        let grid = Grid::over(lists.vertices(), THREADS);
        // SAFETY: `Lists` of the source and a number a list; dropping a buffer waits.
        unsafe { self.count.launch(stream, grid, &[&lists.arguments(), &neighbors.ptr()]) }
    }

    /// The neighbours of higher rank in each list, where those by `neighbors` are higher that have more. Where vertices
    /// are in that order (`is_ordered`), those that come first: the new lists then share the neighbours of `lists`.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer `neighbors` than lists.
    pub fn higher(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        neighbors: &DeviceBuf<u32>,
        is_ordered: bool,
    ) -> Result<DeviceLists> {
        assert_eq!(neighbors.len(), lists.vertices(), "a number a list");
        let (device, of, n) = (stream.device(), lists.arguments(), lists.vertices());
        let ends = DeviceBuf::new(device, n)?;
        let (starts, mut targets) = (Arc::clone(&lists.starts), Arc::clone(&lists.targets));
        if is_ordered {
            // SAFETY: `Lists` of the source and an end a list; dropping a buffer waits.
            unsafe { self.end.launch(stream, Grid::over(n, THREADS), &[&of, &ends.ptr()])? };
        } else {
            targets = Arc::new(DeviceBuf::new(device, targets.len())?);
            let grid = Grid { blocks: self.copy.resident_blocks(THREADS)?, threads: THREADS };
            let to = (ends.ptr(), targets.ptr());
            // SAFETY: as above; a warp writes where the list is that it copies of.
            unsafe { self.copy.launch(stream, grid, &[&of, &neighbors.ptr(), &to.0, &to.1])? };
        }
        Ok(DeviceLists { starts, ends: Arc::new(ends), targets })
    }

    /// Adds to `triangles` of each vertex those that it is in. `next` is 0.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer `triangles` than lists, or no `next`.
    pub fn close(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        triangles: &mut DeviceBuf<u64>,
        next: &mut DeviceBuf<u32>,
    ) -> Result<()> {
        assert_eq!(triangles.len(), lists.vertices(), "a number a list");
        assert!(!next.is_empty(), "a counter");
        let grid = Grid { blocks: self.close.resident_blocks(THREADS)?, threads: THREADS };
        let parameters = (lists.arguments(), triangles.ptr(), next.ptr());
        // SAFETY: as above; counts are added by atomics.
        unsafe { self.close.launch(stream, grid, &[&parameters.0, &parameters.1, &parameters.2]) }
    }
}
