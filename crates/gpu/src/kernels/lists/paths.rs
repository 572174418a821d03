//! Launches of `paths.cu`.

use tiergraph_core::Result;

use super::queue::{DeviceQueue, OverQueue, QueueArguments, TEXT};
use super::{DeviceLists, Source, THREADS, source_with};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

shared! {
    struct PathsArguments as "Paths" {
        depth: DevicePtr<u32>,
        paths: DevicePtr<f64>,
        depends: DevicePtr<f64>,
        sums: DevicePtr<f64>,
        level: u32,
        source: u32,
    }
}

/// The compiled kernels that count paths, and what they work on.
#[derive(Debug)]
pub struct PathKernels {
    begin: Kernel,
    forward: OverQueue,
    back: OverQueue,
    depth: DeviceBuf<u32>,
    paths: DeviceBuf<f64>,
    depends: DeviceBuf<f64>,
    sums: DeviceBuf<f64>,
    queue: DeviceQueue,
}

pub(super) fn source() -> Source {
    source_with("paths", &[TEXT, include_str!("paths.cu")])
        .sharing::<QueueArguments>()
        .sharing::<PathsArguments>()
}

impl PathKernels {
    /// Compiles the kernels; begins with these `sums` of what depends on each vertex.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, sums: DeviceBuf<f64>) -> Result<Self> {
        let module = source().compile(device)?;
        let n = sums.len();
        Ok(Self {
            begin: module.kernel("begin_paths")?,
            forward: OverQueue::new(&module, "forward")?,
            back: OverQueue::new(&module, "back")?,
            depth: DeviceBuf::new(device, n)?,
            paths: DeviceBuf::new(device, n)?,
            depends: DeviceBuf::new(device, n)?,
            sums,
            queue: DeviceQueue::new(device, n)?,
        })
    }

    /// Adds what depends on each vertex of the shortest paths from `source`.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer sums than lists.
    pub fn add(&mut self, stream: &Stream, lists: &DeviceLists, source: u32) -> Result<()> {
        assert_eq!(self.sums.len(), lists.vertices(), "a sum a list");
        self.queue.clear(stream)?;
        let grid = Grid::over(self.sums.len(), THREADS);
        let arguments = self.arguments(0, source);
        // SAFETY: `Lists`, `Queue` and `Paths` of the source; all have a place for each list.
        unsafe {
            let queue = self.queue.arguments();
            self.begin.launch(stream, grid, &[&lists.arguments(), &queue, &arguments])?;
        }
        let mut ends = vec![[0, 0]];
        loop {
            let to = self.queue.ends(stream)?;
            let from = ends[ends.len() - 1];
            if from == to {
                break;
            }
            let arguments = self.arguments(ends.len() as u32 - 1, source);
            ends.push(to);
            // SAFETY: as above; each vertex is in the queue once.
            unsafe { self.forward.launch(stream, (lists, &self.queue), &arguments, from, to)? };
        }
        for (level, ends) in ends.windows(2).enumerate().rev().skip(1) {
            let arguments = self.arguments(level as u32, source);
            let (from, to) = (ends[0], ends[1]);
            // SAFETY: as above; what depends on the level behind is there.
            unsafe { self.back.launch(stream, (lists, &self.queue), &arguments, from, to)? };
        }
        Ok(())
    }

    /// The sums so far.
    pub fn sums(&self) -> &DeviceBuf<f64> {
        &self.sums
    }

    fn arguments(&self, level: u32, source: u32) -> PathsArguments {
        PathsArguments {
            depth: self.depth.ptr(),
            paths: self.paths.ptr(),
            depends: self.depends.ptr(),
            sums: self.sums.ptr(),
            level,
            source,
        }
    }
}
