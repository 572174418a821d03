//! Launches of `gather.cu`: rows of features from device and mapped host memory.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use super::{Sampler, Source, TYPES};
use crate::pinned::address_of;
use crate::shared::{Shared, shared};
use crate::{Copying, Device, DeviceBuf, DevicePtr, Event, Grid, Kernel, Mapped, Span, Stream};

const THREADS: u32 = 256;

/// How a row of features is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowType {
    /// float32 values.
    F32,
    /// float16 values.
    F16,
    /// A float32 scale, then int8 values.
    Int8,
}

shared! {
    struct Arguments as "Arguments" {
        device_rows: DevicePtr<u8>,
        host_rows: DevicePtr<u8>,
        place: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        to: DevicePtr<f32>,
        device_count: u32,
        count: u32,
        dim: u32,
        stride: u32,
    }
}

shared! {
    struct Finding as "Finding" {
        place: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        found: DevicePtr<MissingRow>,
        number: DevicePtr<u32>,
        count: DevicePtr<u32>,
    }
}

shared! {
    struct Spreading as "Spreading" {
        rows: DevicePtr<u8>,
        targets: DevicePtr<u32>,
        to: DevicePtr<f32>,
        count: u64,
        dim: u32,
        stride: u32,
    }
}

/// Rows of features in device memory and in host memory.
#[derive(Debug)]
pub struct Rows {
    /// Rows in device memory, `stride` bytes apart.
    pub device: DeviceBuf<u8>,
    /// Rows in host memory that kernels read.
    pub host: Option<Mapped>,
    /// Each vertex's row: those in device memory first, then those of the host, [`ELSEWHERE`] for
    /// others. Without, a vertex's row is its number.
    pub place: Option<DeviceBuf<u32>>,
    /// How many rows are in device memory.
    pub device_count: u32,
    /// Values of a row.
    pub dim: u32,
    /// Bytes from row to row.
    pub stride: u32,
}

pub(super) fn source(row: RowType) -> Source {
    let mut source = Source::new("gather", &[TYPES, include_str!("gather.cu")])
        .sharing::<MissingRow>()
        .sharing::<Arguments>()
        .sharing::<Finding>()
        .sharing::<Spreading>();
    source.options.push(format!("-DROW_TYPE={}", row as u32));
    source
}

/// The place of a row that is in neither memory.
pub const ELSEWHERE: u32 = u32::MAX;

/// A node whose row is in neither memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MissingRow {
    /// The vertex whose row it is.
    pub vertex: u32,
    /// The row's place in the batch.
    pub target: u32,
}

impl Shared for MissingRow {
    const CUDA: &'static str = "uint2";
    const FIELDS: &'static [(&'static str, usize)] =
        &[("x", offset_of!(Self, vertex)), ("y", offset_of!(Self, target))];
}

/// The nodes of a batch whose rows are in neither memory, on the device.
#[derive(Debug)]
pub struct MissingRows {
    found: DeviceBuf<MissingRow>,
    number: DeviceBuf<u32>,
}

impl MissingRows {
    /// Room for all nodes of a sampler's batches.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, sampler: &Sampler) -> Result<Self> {
        let found = DeviceBuf::new(device, sampler.n_id().len())?;
        Ok(Self { found, number: DeviceBuf::new(device, 1)? })
    }

    /// What [`Gather::start_finding`] found, in any order, after all that `stream` was given.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn get(&self, stream: &Stream) -> Result<Vec<MissingRow>> {
        let number = stream.download(&self.number, 1)?[0] as usize;
        stream.download(&self.found, number)
    }
}

/// Rows in pinned memory on their way to a batch: `targets` first, then as many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceLayout {
    /// The most rows of a piece.
    pub rows: usize,
    /// Bytes from row to row.
    pub stride: usize,
}

impl PieceLayout {
    /// Where rows begin, at a boundary that wide loads need.
    pub fn rows_at(&self) -> usize {
        (self.rows * size_of::<u32>()).next_multiple_of(128)
    }

    /// Bytes of a piece.
    pub fn bytes(&self) -> usize {
        self.rows_at() + self.rows * self.stride
    }
}

/// The compiled kernels for one type of rows.
#[derive(Debug, Clone)]
pub struct Gather {
    gather: Kernel,
    missing: Kernel,
    spread: Kernel,
    resident: u32,
}

impl Gather {
    /// Compiles it.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device, row: RowType) -> Result<Self> {
        let module = source(row).compile(device)?;
        let gather = module.kernel("gather")?;
        let resident = gather.resident_blocks(THREADS)?;
        let (missing, spread) = (module.kernel("missing")?, module.kernel("spread")?);
        Ok(Self { gather, missing, spread, resident })
    }

    /// Writes the rows of the first `count` vertices of `n_id` to `to`, float32, one behind the
    /// other. Every vertex has a row; the places of those that are elsewhere are left as they are.
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
            device_rows: rows.device.ptr(),
            host_rows: rows.host.as_ref().map_or(DevicePtr::NULL, Mapped::ptr),
            place: rows.place.as_ref().map_or(DevicePtr::NULL, DeviceBuf::ptr),
            n_id: n_id.ptr(),
            to: to.ptr(),
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
        unsafe { self.gather.launch(stream, grid, &[&arguments]) }
    }

    /// Starts finding the nodes of a sampler's last batch whose rows are in neither memory.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If there is no room for as many as the batch may have.
    pub fn start_finding(
        &self,
        stream: &Stream,
        rows: &Rows,
        sampler: &Sampler,
        missing: &mut MissingRows,
    ) -> Result<()> {
        let n_id = sampler.n_id();
        assert!(missing.found.len() >= n_id.len(), "room for all");
        stream.fill_bytes(&mut missing.number, 0)?;
        let Some(place) = &rows.place else { return Ok(()) };
        let finding = Finding {
            place: place.ptr(),
            n_id: n_id.ptr(),
            found: missing.found.ptr(),
            number: missing.number.ptr(),
            count: sampler.nodes_ptr(),
        };
        let blocks = Grid::over(n_id.len(), THREADS).blocks.min(self.resident);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Finding` of the source; there is room for all nodes, and vertices have places.
        unsafe { self.missing.launch(stream, grid, &[&finding]) }
    }

    /// Starts writing the first `count` rows of `piece` to their targets among the rows of `to`,
    /// float32; `event` is to tell when that is done.
    ///
    /// # Errors
    /// Memory that is not pinned, whatever the driver gives; the piece is lost then.
    ///
    /// # Panics
    /// If the piece is shorter, or a target is no row of `to`.
    pub fn spread(
        &self,
        stream: &Stream,
        (piece, layout, count): (AlignedBuf, PieceLayout, usize),
        (to, dim): (Span<f32>, usize),
        event: Event,
    ) -> Result<Copying> {
        assert!(piece.len() >= layout.bytes() && count <= layout.rows);
        let places: &[u32] = bytemuck::cast_slice(&piece[..count * size_of::<u32>()]);
        assert!(places.iter().all(|&target| (target as usize + 1) * dim <= to.len()));
        let targets = DevicePtr::at(address_of(stream.device(), &piece)?);
        let spreading = Spreading {
            rows: targets.field(layout.rows_at()),
            targets,
            to: to.ptr(),
            count: count as u64,
            dim: dim as u32,
            stride: layout.stride as u32,
        };
        let most = (stream.device().multiprocessors() / 2).max(1);
        let blocks = Grid::over(count, THREADS / 32).blocks.min(most);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Spreading` of the source; lengths and targets were checked, and `Copying`
        // keeps the piece until the kernel ended.
        unsafe { self.spread.launch(stream, grid, &[&spreading])? };
        Copying::until(event, stream, piece)
    }
}
