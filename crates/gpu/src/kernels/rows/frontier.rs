//! Launches of `frontier.cu`: a level of a search along pages of rows.

use tiergraph_core::Result;

use super::{StoredArguments, StoredLists, of_stored};
use crate::kernels::{LANES, Source};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;

shared! {
    struct FrontierArguments as "Frontier" {
        depth: DevicePtr<u32>,
        stored: StoredArguments,
        vertices: u32,
        level: u32,
    }
}

pub(super) fn source() -> Source {
    of_stored("frontier", &[include_str!("frontier.cu")]).sharing::<FrontierArguments>()
}

/// The frontier of a search: the vertices whose depth is its level.
#[derive(Debug, Clone, Copy)]
pub struct Frontier<'a> {
    /// Each vertex's depth; all ones where it was not reached.
    pub depth: &'a DeviceBuf<u32>,
    /// The number of vertices; depths behind them are padding.
    pub vertices: usize,
    /// The depth of the frontier's vertices.
    pub level: u32,
}

/// The compiled kernels of a level along pages of rows.
#[derive(Debug, Clone)]
pub struct FrontierKernels {
    want: Kernel,
    push: Kernel,
}

impl FrontierKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { want: module.kernel("want_frontier")?, push: module.kernel("push_frontier")? })
    }

    /// Wants the pages that have the lists of a frontier; returns how many they are.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are fewer depths than vertices.
    pub fn want(
        &self,
        stream: &Stream,
        stored: &StoredLists<'_>,
        frontier: Frontier<'_>,
    ) -> Result<usize> {
        let arguments = arguments(stored, frontier);
        let grid = Grid::over(frontier.vertices, THREADS);
        // SAFETY: `Frontier` of the source; there is a depth for each vertex.
        unsafe { self.want.launch(stream, grid, &[&arguments])? };
        stored.wanted(stream)
    }

    /// Gives the next depth to the neighbours of a frontier that were not reached, as the `count` pages that
    /// were wanted are brought; they are wanted no more then. [`StoredLists::check`] says whether all were as
    /// they should be.
    ///
    /// # Errors
    /// A page that cannot be read, any error of the driver.
    pub fn push(
        &self,
        stream: &Stream,
        stored: &mut StoredLists<'_>,
        frontier: Frontier<'_>,
        count: usize,
    ) -> Result<()> {
        let arguments = arguments(stored, frontier);
        stored.bring(stream, count, |decoding| {
            let grid = Grid::over(decoding.count as usize * LANES, THREADS);
            // SAFETY: the parameters of `push_frontier`; there is a depth for each vertex.
            unsafe { self.push.launch(stream, grid, &[&arguments, decoding]) }
        })?;
        stored.forget(stream, count)
    }
}

fn arguments(stored: &StoredLists<'_>, frontier: Frontier<'_>) -> FrontierArguments {
    assert!(frontier.depth.len() >= frontier.vertices, "a depth for each vertex");
    FrontierArguments {
        depth: frontier.depth.ptr(),
        stored: stored.arguments(),
        vertices: frontier.vertices as u32,
        level: frontier.level,
    }
}
