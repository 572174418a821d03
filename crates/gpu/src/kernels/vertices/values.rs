//! Launches of `values.cu`: values are filled and moved between orders of vertices.

use bytemuck::{Pod, Zeroable, bytes_of};
use tiergraph_core::Result;

use crate::kernels::{Source, TYPES};
use crate::{Device, DeviceBuf, Grid, Kernel, Stream};

const THREADS: u32 = 256;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct FillArguments {
    to: u64,
    value: u64,
    count: u64,
    value_bytes: u32,
    unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MoveArguments {
    from: u64,
    to: u64,
    positions: u64,
    count: u32,
    places: u32,
    value_bytes: u32,
    unused: u32,
}

/// The compiled kernels.
#[derive(Debug, Clone)]
pub struct ValueKernels {
    fill: Kernel,
    place: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("values", &[TYPES, include_str!("values.cu")])
}

impl ValueKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { fill: module.kernel("fill")?, place: module.kernel("place")? })
    }

    /// Sets all values of `to`.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If values do not have 4 or 8 bytes.
    pub fn fill<T: Pod>(&self, stream: &Stream, to: &mut DeviceBuf<T>, value: T) -> Result<()> {
        let mut bits = [0; 8];
        bits[..value_bytes::<T>()].copy_from_slice(bytes_of(&value));
        let arguments = FillArguments {
            to: to.address(),
            value: u64::from_le_bytes(bits),
            count: to.len() as u64,
            value_bytes: value_bytes::<T>() as u32,
            unused: 0,
        };
        let grid = Grid::over(to.len(), THREADS);
        // SAFETY: `Fill` of the source, inside the buffer; every bit pattern that `value` has is a `T`.
        unsafe { self.fill.launch(stream, grid, &[bytes_of(&arguments)]) }
    }

    /// Moves the first `count` values of `from` to their places in `to`: value i to `positions[i]`,
    /// unless that is outside.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If values do not have 4 or 8 bytes, or there are fewer than `count` of them or of positions.
    pub fn place<T: Pod>(
        &self,
        stream: &Stream,
        positions: &DeviceBuf<u32>,
        (from, count): (&DeviceBuf<T>, usize),
        to: &mut DeviceBuf<T>,
    ) -> Result<()> {
        assert!(from.len().min(positions.len()) >= count, "{count} values");
        let arguments = MoveArguments {
            from: from.address(),
            to: to.address(),
            positions: positions.address(),
            count: count as u32,
            places: to.len() as u32,
            value_bytes: value_bytes::<T>() as u32,
            unused: 0,
        };
        let grid = Grid::over(count, THREADS);
        // SAFETY: `Move` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.place.launch(stream, grid, &[bytes_of(&arguments)]) }
    }
}

fn value_bytes<T>() -> usize {
    assert!(matches!(size_of::<T>(), 4 | 8), "values of {} bytes", size_of::<T>());
    size_of::<T>()
}
