//! Rows that were read, kept in device memory: where the warps of `coupled_reads.cu` look first.

use bytemuck::Zeroable;
use tiergraph_core::Result;

use crate::kernels::LANES;
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Stream};

/// Lines begin at multiples of the widest word that rows are copied by.
const ALIGNED: u64 = 16;

shared! {
    /// The cache as kernels have it; zeroed, none.
    pub(super) struct PageCacheOfKernels as "PageCache" {
        lines: DevicePtr<u64>,
        hands: DevicePtr<u32>,
        rows: DevicePtr<u8>,
        found: DevicePtr<u64>,
        sets: u32,
        line_bytes: u32,
    }
}

/// A page cache in device memory, whose lines have a row each: in sets of 32, of which the first line to come
/// is the first to go. Warps look rows up and put rows there by themselves.
#[derive(Debug)]
pub struct PageCache {
    lines: DeviceBuf<u64>,
    hands: DeviceBuf<u32>,
    rows: DeviceBuf<u8>,
    found: DeviceBuf<u64>,
    line_bytes: u64,
}

impl PageCache {
    /// An empty cache of rows of `row_bytes` bytes that takes at most `bytes` of device memory.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    pub fn new(stream: &Stream, row_bytes: usize, bytes: u64) -> Result<Self> {
        let device = stream.device();
        let line_bytes = (row_bytes as u64).next_multiple_of(ALIGNED);
        let set_bytes = LANES as u64 * (line_bytes + size_of::<u64>() as u64) + 4;
        let sets = (bytes / set_bytes).min(u64::from(u32::MAX) / LANES as u64) as usize;
        let (mut lines, mut hands) =
            (DeviceBuf::new(device, sets * LANES)?, DeviceBuf::new(device, sets)?);
        stream.fill_bytes(&mut lines, 0)?;
        stream.fill_bytes(&mut hands, 0)?;
        let rows = DeviceBuf::new(device, sets * LANES * line_bytes as usize)?;
        Ok(Self { lines, hands, rows, found: stream.uploaded(&[0])?, line_bytes })
    }

    /// How many rows there is room for.
    pub fn capacity(&self) -> u64 {
        self.lines.len() as u64
    }

    /// How many rows were found there so far. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of that work.
    pub fn found(&self, stream: &Stream) -> Result<u64> {
        Ok(stream.download(&self.found, 1)?[0])
    }
}

impl PageCacheOfKernels {
    /// The kernels' side of a cache; of none, where there is none.
    pub(super) fn of(cache: Option<&PageCache>) -> Self {
        cache.map_or_else(Self::zeroed, |cache| Self {
            lines: cache.lines.ptr(),
            hands: cache.hands.ptr(),
            rows: cache.rows.ptr(),
            found: cache.found.ptr(),
            sets: cache.hands.len() as u32,
            line_bytes: cache.line_bytes as u32,
        })
    }
}
