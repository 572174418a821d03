//! A queue of vertices on the device (`queue.cuh`), and launches over parts of it.

use tiergraph_core::Result;

use super::{DeviceLists, resident_grid, warp_blocks};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Kernel, Module, Shared, Stream};

pub(super) const TEXT: &str = include_str!("queue.cuh");

shared! {
    pub(super) struct QueueArguments as "Queue" {
        items: DevicePtr<u32>,
        counts: DevicePtr<u32>,
        room: u32,
        reserved: u32,
    }
}

/// Each vertex of some lists once: those of short lists from the front, of long ones from the back.
#[derive(Debug)]
pub(super) struct DeviceQueue {
    items: DeviceBuf<u32>,
    counts: DeviceBuf<u32>,
}

/// Places in a queue: in its front, and in its back.
pub(super) type Ends = [u32; 2];

impl DeviceQueue {
    pub(super) fn new(device: &Device, room: usize) -> Result<Self> {
        Ok(Self { items: DeviceBuf::new(device, room)?, counts: DeviceBuf::new(device, 2)? })
    }

    /// Empties it.
    pub(super) fn clear(&mut self, stream: &Stream) -> Result<()> {
        stream.upload(&mut self.counts, &[0, 0])
    }

    /// Where it ends now.
    pub(super) fn ends(&self, stream: &Stream) -> Result<Ends> {
        let ends = stream.download(&self.counts, 2)?;
        Ok([ends[0], ends[1]])
    }

    pub(super) fn arguments(&self) -> QueueArguments {
        QueueArguments {
            items: self.items.ptr(),
            counts: self.counts.ptr(),
            room: self.items.len() as u32,
            reserved: 0,
        }
    }
}

/// A kernel over the vertices of a queue: for short lists a warp each, for long ones a block each.
#[derive(Debug, Clone)]
pub(super) struct OverQueue([Kernel; 2]);

impl OverQueue {
    /// The kernels `NAME_short` and `NAME_long`.
    pub(super) fn new(module: &Module, name: &str) -> Result<Self> {
        Ok(Self([
            module.kernel(&format!("{name}_short"))?,
            module.kernel(&format!("{name}_long"))?,
        ]))
    }

    /// Goes over the vertices from one place to another.
    ///
    /// # Safety
    /// `arguments` is the struct of the source that both kernels take, and holds for these lists.
    pub(super) unsafe fn launch<A: Shared>(
        &self,
        stream: &Stream,
        (lists, queue): (&DeviceLists, &DeviceQueue),
        arguments: &A,
        from: Ends,
        to: Ends,
    ) -> Result<()> {
        let (lists, queue) = (lists.arguments(), queue.arguments());
        for (part, kernel) in self.0.iter().enumerate() {
            let (from, to) = (from[part], to[part]);
            if from == to {
                continue;
            }
            let blocks = if part == 0 { warp_blocks(to - from) } else { to - from };
            let grid = resident_grid(kernel, blocks)?;
            // SAFETY: of the caller; the queue has vertices there.
            unsafe { kernel.launch(stream, grid, &[&lists, &queue, arguments, &from, &to])? };
        }
        Ok(())
    }
}
