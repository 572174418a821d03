//! Launches of `greedy.cu`.

use tiergraph_core::Result;

use super::queue::{DeviceQueue, Ends, OverQueue, QueueArguments, TEXT};
use super::{DeviceLists, Source, resident_grid, source_with, warp_blocks};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Kernel, Stream};

shared! {
    struct GreedyArguments as "Greedy" {
        priority: DevicePtr<u64>,
        state: DevicePtr<u32>,
        waits: DevicePtr<u32>,
    }
}

/// What a greedy pass decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Whether a vertex is chosen (1) or not (0): it is where no neighbour before it was.
    Set,
    /// The least colour that no neighbour before it has.
    Color,
}

/// A greedy pass over the vertices of some lists, and what was decided so far.
#[derive(Debug)]
pub struct GreedyKernels {
    count: Kernel,
    decide: OverQueue,
    priority: DeviceBuf<u64>,
    state: DeviceBuf<u32>,
    waits: DeviceBuf<u32>,
    queue: DeviceQueue,
    done: Ends,
}

pub(super) fn source() -> Source {
    source_with("greedy", &[TEXT, include_str!("greedy.cu")])
        .sharing::<QueueArguments>()
        .sharing::<GreedyArguments>()
}

impl GreedyKernels {
    /// Compiles the kernels, and finds the vertices that wait for no other; those of greater `priority` come before.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer priorities than lists.
    pub fn new(
        device: &Device,
        stream: &Stream,
        lists: &DeviceLists,
        priority: DeviceBuf<u64>,
        choice: Choice,
    ) -> Result<Self> {
        assert_eq!(priority.len(), lists.vertices(), "a priority a list");
        let module = source().compile(device)?;
        let name = if choice == Choice::Set { "choose" } else { "color" };
        let n = priority.len();
        let mut this = Self {
            count: module.kernel("count_before")?,
            decide: OverQueue::new(&module, name)?,
            priority,
            state: DeviceBuf::new(device, n)?,
            waits: DeviceBuf::new(device, n)?,
            queue: DeviceQueue::new(device, n)?,
            done: [0, 0],
        };
        this.queue.clear(stream)?;
        let grid = resident_grid(&this.count, warp_blocks(n as u32))?;
        // SAFETY: `Lists`, `Queue` and `Greedy` of the source; all have a place for each list.
        unsafe {
            let queue = this.queue.arguments();
            this.count.launch(stream, grid, &[&lists.arguments(), &queue, &this.arguments()])?;
        }
        Ok(this)
    }

    /// Decides the vertices that wait for no other any more; returns how many those were.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn round(&mut self, stream: &Stream, lists: &DeviceLists) -> Result<u32> {
        assert_eq!(self.priority.len(), lists.vertices(), "a priority a list");
        let to = self.queue.ends(stream)?;
        let from = std::mem::replace(&mut self.done, to);
        // SAFETY: as above; each vertex is in the queue once, when all before it were decided.
        unsafe {
            self.decide.launch(stream, (lists, &self.queue), &self.arguments(), from, to)?;
        }
        Ok(to[0] - from[0] + to[1] - from[1])
    }

    /// What was decided of each vertex.
    pub fn state(&self) -> &DeviceBuf<u32> {
        &self.state
    }

    fn arguments(&self) -> GreedyArguments {
        GreedyArguments {
            priority: self.priority.ptr(),
            state: self.state.ptr(),
            waits: self.waits.ptr(),
        }
    }
}
