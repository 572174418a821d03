//! What a loader on a GPU may use, where it put things, where its batches go, what it did.

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_gpu::{Device, DevicePtr, Stream};

use super::StorageReads;

/// Which GPU, and how much of it a loader may use.
#[derive(Debug, Clone, Copy, Default)]
pub struct GpuTiers {
    /// Which GPU.
    pub ordinal: usize,
    /// Bytes of device memory; half of what is free if not set, because training needs the rest.
    pub device_memory: Option<u64>,
    /// The most multiprocessors that prepare batches; all if not set.
    pub multiprocessors: Option<u32>,
    /// Batches that are begun before the one before them is handed over; if not set, 1, or 3 where
    /// rows are read from storage.
    pub prefetch: Option<usize>,
}

impl GpuTiers {
    /// A stream on no more multiprocessors than these; or on all, and why, where it cannot be.
    pub(super) fn stream(&self, device: &Device) -> Result<(Stream, Option<String>)> {
        let why = match self.multiprocessors {
            Some(most) if most < device.multiprocessors() => {
                match Stream::urgent_on(device, most)? {
                    Ok(stream) => return Ok((stream, None)),
                    Err(why) => Some(why),
                }
            }
            _ => None,
        };
        Ok((Stream::urgent(device)?, why))
    }
}

/// Where a loader's neighbours and rows are, and where its kernels run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Whether neighbours are in device memory; else they are in pinned host memory.
    pub neighbors_on_device: bool,
    /// Rows in device memory.
    pub device_rows: u64,
    /// Rows in pinned host memory.
    pub host_rows: u64,
    /// Rows that are read from storage.
    pub storage_rows: u64,
    /// Bytes of device memory.
    pub device_bytes: u64,
    /// Bytes of pinned host memory.
    pub host_bytes: u64,
    /// Multiprocessors that batches are prepared on.
    pub multiprocessors: u32,
    /// Why those are all, where fewer were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiprocessors_why: Option<String>,
}

/// The arrays in device memory that a batch is written to; each is as long as [`Sampled`] says.
#[derive(Debug, Clone, Copy)]
pub struct Outputs {
    /// Each node's position in the user's order.
    pub nodes: DevicePtr<i64>,
    /// The sources of all edges, then their destinations.
    pub edge_index: DevicePtr<i64>,
    /// The number of each edge's arc.
    pub e_id: DevicePtr<i64>,
    /// A row of features for each node; null without features.
    pub x: DevicePtr<f32>,
}

/// What a loader did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Done {
    /// What was read from storage.
    #[serde(flatten)]
    pub reads: StorageReads,
    /// Kernels, copies and fills that the GPU was given, beside PyTorch's own.
    pub submissions: u64,
    /// How long the host took to give them.
    pub seconds_submit: f64,
}

impl Done {
    /// What was done since there was `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.since(&earlier.reads),
            submissions: self.submissions - earlier.submissions,
            seconds_submit: self.seconds_submit - earlier.seconds_submit,
        }
    }
}
