//! Launches of `host_rows.cuh`: the rows of a batch that are in host memory, by parts of it.

use tiergraph_core::Result;

use super::MissingRow;
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, MappedMemory, Module, Stream};

pub(super) const HOST_ROWS: &str = include_str!("host_rows.cuh");
const THREADS: u32 = 512;
/// Parts of host memory at most, of which a batch's rows are read one after the other.
/// Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_host_memory.txt.
const PARTS: usize = 1024;

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
    /// Bytes of the memory.
    bytes: usize,
    /// The rows that the batch wants: each one's number, and the index in the batch.
    list: DeviceBuf<MissingRow>,
    /// Where each part of the list ends, and the number of rows.
    ends: DeviceBuf<u32>,
}

impl HostRows {
    /// Rows in `memory`, of which a batch of `nodes` is gathered with the device memory that is allocated here.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, mut memory: MappedMemory, nodes: usize) -> Result<Self> {
        let bytes = memory.bytes_mut().len();
        let (list, ends) = (DeviceBuf::new(device, nodes)?, DeviceBuf::new(device, PARTS + 1)?);
        Ok(Self { memory, bytes, list, ends })
    }

    /// Bytes of device memory that lists for batches of `nodes` take.
    pub fn device_bytes(nodes: usize) -> u64 {
        (nodes * size_of::<MissingRow>() + (PARTS + 1) * size_of::<u32>()) as u64
    }

    /// The pointer to the first row.
    pub(super) fn ptr(&self) -> DevicePtr<u8> {
        self.memory.ptr()
    }

    /// The binary logarithm of the number of rows of a part.
    fn part_log2(&self, stride: u32) -> u32 {
        let rows = self.bytes.div_ceil(stride as usize);
        rows.div_ceil(PARTS).next_power_of_two().ilog2()
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

/// The compiled kernels that list rows.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    count: Kernel,
    begin: Kernel,
    list: Kernel,
}

impl Listing {
    /// The kernels in `module`.
    pub fn new(module: &Module) -> Result<Self> {
        let kernel = |name: &str| module.kernel(&format!("{name}_parts"));
        Ok(Self { count: kernel("count")?, begin: kernel("begin")?, list: kernel("list")? })
    }

    /// Lists the rows in `host` that a batch wants, in order with the stream and by at most so many `blocks`:
    /// the pointers to the list, and to the number of rows in it.
    pub fn list(
        &self,
        stream: &Stream,
        host: &mut HostRows,
        of: OrderingOf,
        blocks: u32,
    ) -> Result<(DevicePtr<MissingRow>, DevicePtr<u32>)> {
        let OrderingOf { location, n_id, before, count, stride } = of;
        if host.list.len() < count {
            host.list = DeviceBuf::new(stream.device(), count.next_power_of_two())?;
        }
        stream.fill_bytes(&mut host.ends, 0)?;
        let (list, ends) = (host.list.ptr(), host.ends.ptr());
        let (shift, reserved, nodes) = (host.part_log2(stride), 0, count as u32);
        let of = Ordering { location, n_id, list, ends, before, count: nodes, shift, reserved };
        let all = Grid { blocks: Grid::over(count, THREADS).blocks.min(blocks), threads: THREADS };
        let one = Grid { blocks: 1, threads: PARTS as u32 };
        for (kernel, grid) in [(&self.count, all), (&self.begin, one), (&self.list, all)] {
            // SAFETY: `Ordering` of the source; there is room for all nodes, and no more parts than ends.
            unsafe { kernel.launch(stream, grid, &[&of])? };
        }
        Ok((list, ends.field(PARTS * size_of::<u32>())))
    }
}
