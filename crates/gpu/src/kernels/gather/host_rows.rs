//! Launches of `host_rows.cuh`: the rows of a batch that are in host memory, by parts of it.

use tiergraph_core::Result;

use super::MissingRow;
use crate::kernels::parts::{Listing, Parts};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, MappedMemory, Stream};

pub(super) const HOST_ROWS: &str = include_str!("host_rows.cuh");

shared! {
    pub(super) struct Ordering as "Ordering" {
        location: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        list: DevicePtr<MissingRow>,
        ends: DevicePtr<u32>,
        before: u32,
        count: u32,
        shift: u32,
        reserved: u32,
    }
}

/// Rows of features in pinned host memory, and a list of those that a batch wants, by parts of that memory.
#[derive(Debug)]
pub struct HostRows {
    /// The rows, one behind the other.
    memory: MappedMemory,
    /// The rows that the batch wants: each one's number, and the index in the batch.
    list: DeviceBuf<MissingRow>,
    parts: Parts,
}

impl HostRows {
    /// Rows in `memory`, of which a batch of `nodes` is gathered with the device memory that is allocated here.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, memory: MappedMemory, nodes: usize) -> Result<Self> {
        Ok(Self { memory, list: DeviceBuf::new(device, nodes)?, parts: Parts::new(device)? })
    }

    /// Bytes of device memory that lists for batches of `nodes` take.
    pub fn device_bytes(nodes: usize) -> u64 {
        (nodes * size_of::<MissingRow>() + Parts::BYTES) as u64
    }

    /// The pointer to the first row.
    pub(super) fn ptr(&self) -> DevicePtr<u8> {
        self.memory.ptr()
    }
}

/// What rows are listed of: the nodes of a batch, and where each vertex's feature row is.
pub(super) struct OrderingOf {
    /// The location of each vertex's row, as [`super::Rows`] has it, or null.
    pub location: DevicePtr<u32>,
    pub n_id: DevicePtr<u32>,
    /// How many rows are in device memory.
    pub before: u32,
    /// How many nodes.
    pub count: usize,
    /// Bytes from the start of a row to the start of the next.
    pub stride: u32,
}

/// Lists the rows in `host` that a batch wants, by `listing` of `rows`, in order with the stream and by at most
/// so many `blocks`: the pointers to the list, and to the number of rows in it.
pub(super) fn list(
    listing: &Listing,
    stream: &Stream,
    host: &mut HostRows,
    of: OrderingOf,
    blocks: u32,
) -> Result<(DevicePtr<MissingRow>, DevicePtr<u32>)> {
    let OrderingOf { location, n_id, before, count, stride } = of;
    if host.list.len() < count {
        host.list = DeviceBuf::new(stream.device(), count.next_power_of_two())?;
    }
    let (list, ends, number) = (host.list.ptr(), host.parts.ends(), host.parts.number());
    let shift = Parts::part_log2(host.memory.bytes().div_ceil(stride as usize));
    let of =
        Ordering { location, n_id, list, ends, before, count: count as u32, shift, reserved: 0 };
    listing.list(stream, &mut host.parts, count, blocks, |kernel, grid| {
        // SAFETY: `Ordering` of the source; there is room for all nodes, and no more parts than ends.
        unsafe { kernel.launch(stream, grid, &[&of]) }
    })?;
    Ok((list, number))
}
