//! Launches of `triangles.cu`.

use std::sync::Arc;

use tiergraph_core::Result;

use super::{DeviceLists, Source, THREADS, source_of};
use crate::{Device, DeviceBuf, Grid, Kernel, Stream};

/// What [`TriangleKernels`] count where two neighbours of a vertex are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The edge: triangles.
    Edges,
    /// Its arcs, of lists that have joined sides.
    Arcs,
}

/// The compiled kernels that count what closes wedges.
#[derive(Debug, Clone)]
pub struct TriangleKernels {
    end: Kernel,
    copy: Kernel,
    close: Kernel,
}

pub(super) fn source() -> Source {
    source_of("triangles", include_str!("triangles.cu"))
}

impl TriangleKernels {
    /// Compiles the kernels that count `what`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, what: Closed) -> Result<Self> {
        let module = source().compile(device)?;
        let of = if what == Closed::Arcs { "arcs" } else { "edges" };
        Ok(Self {
            end: module.kernel(&format!("end_before_of_{of}"))?,
            copy: module.kernel(&format!("copy_higher_of_{of}"))?,
            close: module.kernel(&format!("close_wedges_of_{of}"))?,
        })
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

    /// Adds to `closed` of each vertex what closes its wedges: the triangles that it is in, or the arcs between its
    /// neighbours. `next` is 0.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer of `closed` than lists, or no `next`.
    pub fn close(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        closed: &mut DeviceBuf<u64>,
        next: &mut DeviceBuf<u32>,
    ) -> Result<()> {
        assert_eq!(closed.len(), lists.vertices(), "a number a list");
        assert!(!next.is_empty(), "a counter");
        let grid = Grid { blocks: self.close.resident_blocks(THREADS)?, threads: THREADS };
        let parameters = (lists.arguments(), closed.ptr(), next.ptr());
        // SAFETY: as above; counts are added by atomics.
        unsafe { self.close.launch(stream, grid, &[&parameters.0, &parameters.1, &parameters.2]) }
    }
}
