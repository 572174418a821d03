//! Launches of `order.cu`.

use tiergraph_core::Result;

use super::{DeviceLists, Source, THREADS, resident_grid, source_of, warp_blocks};
use crate::{Device, DeviceBuf, Grid, Kernel, Stream};

/// What [`ListKernels::keep_distinct`] leaves in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Every neighbour once.
    All,
    /// Every neighbour once but the vertex itself.
    Others,
    /// The same, where targets have the side that an arc is of, too: once for each side.
    OthersBySide,
}

/// The compiled kernels that put lists in order.
#[derive(Debug, Clone)]
pub struct ListKernels {
    check: Kernel,
    collect: Kernel,
    count: Kernel,
    short: Kernel,
    long: Kernel,
    distinct: Kernel,
    join: Kernel,
    mutual: Kernel,
}

pub(super) fn source() -> Source {
    source_of("order", include_str!("order.cu"))
}

impl ListKernels {
    /// Targets of a list that a warp sorts.
    pub(super) const SHORT: u32 = 512;

    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self {
            check: module.kernel("check_filled")?,
            collect: module.kernel("collect_longer")?,
            count: module.kernel("count_neighbors")?,
            short: module.kernel("sort_short")?,
            long: module.kernel("sort_long")?,
            distinct: module.kernel("keep_distinct")?,
            join: module.kernel("join_sides")?,
            mutual: module.kernel("count_mutual")?,
        })
    }

    /// Whether every list has as many neighbours as there was room for.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn are_full(&self, stream: &Stream, lists: &DeviceLists) -> Result<bool> {
        let others = stream.uploaded(&[0u32])?;
        let (grid, room) = (Grid::over(lists.vertices(), THREADS), lists.targets.len() as u32);
        // SAFETY: `Lists` of the source; dropping a buffer waits.
        unsafe {
            self.check.launch(stream, grid, &[&lists.arguments(), &room, &others.ptr()])?;
        }
        Ok(stream.download(&others, 1)?[0] == 0)
    }

    /// The vertices of more than `few` neighbours, in any order.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    pub fn longer_than(
        &self,
        stream: &Stream,
        lists: &DeviceLists,
        few: u32,
    ) -> Result<DeviceBuf<u32>> {
        let grid = Grid::over(lists.vertices(), THREADS);
        let collect = |to: &DeviceBuf<u32>| -> Result<u32> {
            let (count, room) = (stream.uploaded(&[0u32])?, to.len() as u32);
            // SAFETY: as above; no more are written than there is room for.
            unsafe {
                let lists = lists.arguments();
                let parameters = (to.ptr(), room, count.ptr());
                let (to, room, count) = (&parameters.0, &parameters.1, &parameters.2);
                self.collect.launch(stream, grid, &[&lists, &few, to, room, count])?;
            }
            Ok(stream.download(&count, 1)?[0])
        };
        let count = collect(&DeviceBuf::new(stream.device(), 0)?)?;
        let vertices = DeviceBuf::new(stream.device(), count as usize)?;
        collect(&vertices)?;
        Ok(vertices)
    }

    /// Sorts every list.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    pub fn sort(&self, stream: &Stream, lists: &DeviceLists) -> Result<()> {
        let long = self.longer_than(stream, lists, Self::SHORT)?;
        let number = long.len() as u32;
        if number > 0 {
            let grid = resident_grid(&self.long, number)?;
            // SAFETY: as above; a block, or a warp, has a list for itself.
            unsafe {
                self.long.launch(stream, grid, &[&lists.arguments(), &long.ptr(), &number])?;
            }
        }
        let grid = resident_grid(&self.short, warp_blocks(lists.vertices() as u32))?;
        // SAFETY: as above.
        unsafe { self.short.launch(stream, grid, &[&lists.arguments()]) }
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

    /// Leaves what is `kept` in lists that ascend; returns how many targets were left out.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn keep_distinct(&self, stream: &Stream, lists: &DeviceLists, kept: Kept) -> Result<u32> {
        let left_out = stream.uploaded(&[0u32])?;
        let (sides, own) = (u32::from(kept == Kept::OthersBySide), u32::from(kept == Kept::All));
        let grid = resident_grid(&self.distinct, warp_blocks(lists.vertices() as u32))?;
        // SAFETY: as above; a warp writes to the lists that it alone reads.
        unsafe {
            let parameters = (lists.arguments(), left_out.ptr());
            let (lists, left_out) = (&parameters.0, &parameters.1);
            self.distinct.launch(stream, grid, &[lists, &sides, &own, left_out])?;
        }
        Ok(stream.download(&left_out, 1)?[0])
    }
    /// Makes one target of the two sides of a neighbour, in lists of both sides whose targets are distinct.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn join_sides(&self, stream: &Stream, lists: &DeviceLists) -> Result<()> {
        let grid = resident_grid(&self.join, warp_blocks(lists.vertices() as u32))?;
        // SAFETY: as above.
        unsafe { self.join.launch(stream, grid, &[&lists.arguments()]) }
    }

    /// Of lists of both sides whose targets are distinct, each vertex's neighbours that arcs lead to and from, and how
    /// many neighbours arcs lead to, of all vertices.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    pub fn mutual(&self, stream: &Stream, lists: &DeviceLists) -> Result<(Vec<u32>, u64)> {
        let n = lists.vertices();
        let (mutual, out) = (DeviceBuf::new(stream.device(), n)?, stream.uploaded(&[0u64])?);
        let grid = resident_grid(&self.mutual, warp_blocks(n as u32))?;
        // SAFETY: as above, and a number a list.
        unsafe {
            let lists = lists.arguments();
            self.mutual.launch(stream, grid, &[&lists, &mutual.ptr(), &out.ptr()])?;
        }
        Ok((stream.download(&mutual, n)?, stream.download(&out, 1)?[0]))
    }
}
