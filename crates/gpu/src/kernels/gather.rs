//! Launches of `gather.cu`: rows of features from device and mapped host memory.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use super::{Source, TYPES};
use crate::{Device, DeviceBuf, Grid, Kernel, Mapped, Module, Span, Stream};

const THREADS: u32 = 256;

/// What a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowType {
    /// float32.
    F32,
    /// float16.
    F16,
    /// A float32 scale, then int8.
    Int8,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Arguments {
    device_rows: u64,
    host_rows: u64,
    place: u64,
    n_id: u64,
    to: u64,
    device_count: u32,
    count: u32,
    dim: u32,
    stride: u32,
}

/// Rows in two tiers.
#[derive(Debug)]
pub struct Rows {
    /// Rows in device memory, `stride` bytes apart.
    pub device: DeviceBuf<u8>,
    /// Rows in host memory that kernels read.
    pub host: Option<Mapped>,
    /// Each vertex's row: those in device memory first, then those of the host. Without, a
    /// vertex's row is its number.
    pub place: Option<DeviceBuf<u32>>,
    /// Rows in device memory.
    pub device_count: u32,
    /// Values of a row.
    pub dim: u32,
    /// Bytes from row to row.
    pub stride: u32,
}

pub(super) fn source(row: RowType) -> Source {
    let mut source = Source::new("gather", &[TYPES, include_str!("gather.cu")]);
    source.options.push(format!("-DROW_TYPE={}", row as u32));
    source
}

/// The compiled kernel for one type of rows.
#[derive(Debug, Clone)]
pub struct Gather {
    kernel: Kernel,
    resident: u32,
}

impl Gather {
    /// Compiles it.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device, row: RowType) -> Result<Self> {
        let Source { name, text, options } = source(row);
        let kernel = Module::compile(device, &name, &text, &options)?.kernel("gather")?;
        let resident = kernel.resident_blocks(THREADS)?;
        Ok(Self { kernel, resident })
    }

    /// Writes the rows of the first `count` vertices of `n_id` to `to`, float32, one behind the
    /// other. Every vertex has a row.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If `n_id` or `to` is shorter.
    pub fn gather(
        &self,
        stream: &Stream,
        rows: &Rows,
        n_id: &DeviceBuf<u32>,
        count: usize,
        to: Span<f32>,
    ) -> Result<()> {
        assert!(n_id.len() >= count && to.len() >= count * rows.dim as usize);
        let arguments = Arguments {
            device_rows: rows.device.address(),
            host_rows: rows.host.as_ref().map_or(0, Mapped::address),
            place: rows.place.as_ref().map_or(0, DeviceBuf::address),
            n_id: n_id.address(),
            to: to.address(),
            device_count: rows.device_count,
            count: count as u32,
            dim: rows.dim,
            stride: rows.stride,
        };
        let whole = Grid::over(count, THREADS / 32).blocks;
        // Few blocks saturate the link to the host. More would wait there, and keep the kernels of
        // training, which run meanwhile, off the multiprocessors.
        let most = match rows.host {
            Some(_) => (stream.device().multiprocessors() / 2).max(1),
            None => self.resident,
        };
        let grid = Grid { blocks: whole.min(most), threads: THREADS };
        // SAFETY: `Arguments` of the source; lengths were checked; device memory is all it writes.
        unsafe { self.kernel.launch(stream, grid, &[bytes_of(&arguments)]) }
    }
}
