//! Launches of `gather.cu`: rows of features from device and mapped host memory.

use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use super::{COPY_ROWS, LANES, RowRequests, RowTargets, Sampler, Source, TYPES};
use crate::pinned::mapped_ptr;
use crate::shared::{Shared, shared};
use crate::{
    Copying, Device, DeviceBuf, DevicePtr, DeviceView, Event, Grid, Kernel, MappedMemory, Stream,
};

const THREADS: u32 = 512;
/// Warps of a block.
const WARPS: u32 = THREADS / LANES as u32;
/// Nodes that a warp looks up together, at most.
const STEP: usize = 32;
/// Blocks that read rows in host memory: with half as many, batches of rows of up to 1 KiB take longer. More
/// would wait there, and keep the kernels of training, which run meanwhile, off their multiprocessors: a
/// matrix product has one more turn of blocks where there is a little less room than it needs.
/// Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_gather_blocks.txt.
const LINK_BLOCKS: u32 = 4;

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
        rows: DevicePtr<u8>,
        location: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        to: DevicePtr<f32>,
        begin: u32,
        end: u32,
        count: u32,
        step: u32,
        dim: u32,
        stride: u32,
        word_bytes: u32,
        reserved: u32,
    }
}

shared! {
    struct Finding as "Finding" {
        location: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        found: DevicePtr<MissingRow>,
        number: DevicePtr<u32>,
        count: DevicePtr<u32>,
        rows: DevicePtr<u32>,
    }
}

shared! {
    struct TierArguments as "Tiers" {
        location: DevicePtr<u32>,
        n_id: DevicePtr<u32>,
        count: DevicePtr<u32>,
        rows: DevicePtr<u64>,
        device_count: u32,
        reserved: u32,
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
        word_bytes: u32,
        reserved: u32,
    }
}

shared! {
    struct Widening as "Widening" {
        found: DevicePtr<MissingRow>,
        count: DevicePtr<u32>,
        to: DevicePtr<f32>,
        dim: u32,
        reserved: u32,
    }
}

/// Rows of features that kernels read, in device memory and in pinned host memory.
#[derive(Debug)]
pub struct Rows {
    /// Rows in device memory, `stride` bytes apart.
    pub device: DeviceBuf<u8>,
    /// Rows in pinned host memory, `stride` bytes apart; `None` if no row is there.
    pub host: Option<MappedMemory>,
    /// The location of each vertex's row: its index among the rows in device memory, or their number
    /// plus its index among the rows in host memory, or [`NOT_RESIDENT`]. `None` if the index of a
    /// vertex's row is the vertex's number.
    pub location: Option<DeviceBuf<u32>>,
    /// How many rows are in device memory.
    pub device_count: u32,
    /// How many values a row has.
    pub dim: u32,
    /// Bytes from the start of a row to the start of the next.
    pub stride: u32,
}

pub(super) fn source(row: RowType) -> Source {
    let mut source = Source::new("gather", &[TYPES, COPY_ROWS, include_str!("gather.cu")])
        .sharing::<MissingRow>()
        .sharing::<Arguments>()
        .sharing::<Finding>()
        .sharing::<TierArguments>()
        .sharing::<Spreading>()
        .sharing::<Widening>();
    source.options.push(format!("-DROW_TYPE={}", row as u32));
    source
}

/// The location of a row that is in neither memory.
pub const NOT_RESIDENT: u32 = u32::MAX;

/// A node whose row is in neither memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MissingRow {
    /// The vertex whose row it is, or the row's number in its file, whichever was asked for.
    pub vertex: u32,
    /// The index of the row's node in the batch.
    pub target: u32,
}

impl Shared for MissingRow {
    const CUDA: &'static str = "uint2";
    const FIELDS: &'static [(&'static str, usize)] =
        &[("x", offset_of!(Self, vertex)), ("y", offset_of!(Self, target))];
}

/// A list, on the device, of a batch's nodes whose rows are in neither memory.
#[derive(Debug)]
pub struct MissingRows {
    found: DeviceBuf<MissingRow>,
    number: DeviceBuf<u32>,
    /// By vertex, the number of its row, where that is listed in place of the vertex.
    rows: Option<Arc<DeviceBuf<u32>>>,
}

impl MissingRows {
    /// An empty list with room for all nodes of any batch of `sampler`.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, sampler: &Sampler) -> Result<Self> {
        let found = DeviceBuf::new(device, sampler.n_id().len())?;
        Ok(Self { found, number: DeviceBuf::new(device, 1)?, rows: None })
    }

    /// As [`new`](Self::new), of the numbers of rows in their file: `rows` has each vertex's, where it is
    /// not the vertex's own.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn of_rows(
        device: &Device,
        sampler: &Sampler,
        rows: Option<Arc<DeviceBuf<u32>>>,
    ) -> Result<Self> {
        Ok(Self { rows, ..Self::new(device, sampler)? })
    }

    /// An empty list of the same size, of the same numbers.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn another(&self, device: &Device) -> Result<Self> {
        let found = DeviceBuf::new(device, self.found.len())?;
        Ok(Self { found, number: DeviceBuf::new(device, 1)?, rows: self.rows.clone() })
    }

    /// How many nodes [`Gather::start_finding`] found. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn count(&self, stream: &Stream) -> Result<usize> {
        Ok(stream.download(&self.number, 1)?[0] as usize)
    }

    /// The list as requests for rows, each to the node's index.
    pub fn requests(&self) -> RowRequests {
        RowRequests { list: self.found.ptr().field(0), count: self.number.ptr() }
    }

    /// Lists these nodes, as if [`Gather::start_finding`] had found them, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more than any batch has.
    pub fn list(&mut self, stream: &Stream, nodes: &[MissingRow]) -> Result<()> {
        stream.upload(&mut self.found, nodes)?;
        stream.upload(&mut self.number, &[nodes.len() as u32])
    }

    /// The nodes that [`Gather::start_finding`] found, in any order. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn get(&self, stream: &Stream) -> Result<Vec<MissingRow>> {
        stream.download(&self.found, self.count(stream)?)
    }
}

/// The layout of a [`Piece`]: the target of each row, a u32, and then the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceLayout {
    /// How many rows a piece has room for.
    pub rows: usize,
    /// Bytes from the start of a row to the start of the next.
    pub stride: usize,
}

impl PieceLayout {
    /// The byte at which the rows begin, at a boundary that wide loads need.
    pub fn rows_at(&self) -> usize {
        (self.rows * size_of::<u32>()).next_multiple_of(128)
    }

    /// Bytes of a whole piece.
    pub fn bytes(&self) -> usize {
        self.rows_at() + self.rows * self.stride
    }
}

/// Rows in pinned memory on their way to a batch: each has a target, its index in the batch.
#[derive(Debug)]
pub struct Piece {
    /// The pinned memory.
    pub buffer: AlignedBuf,
    /// How targets and rows lie in the buffer.
    pub layout: PieceLayout,
    /// How many rows, from the first on, are to be written.
    pub count: usize,
}

/// The rows of one memory.
struct Tier {
    rows: DevicePtr<u8>,
    locations: Range<u32>,
    /// The most that gather them.
    blocks: u32,
}

/// Bytes of the words that float32 rows at `first`, `stride` bytes apart, are copied by.
fn word_bytes(first: DevicePtr<u8>, stride: u32, to: DeviceView<f32>, dim: usize) -> u32 {
    RowTargets::in_matrix(to, dim).word_bytes(u64::from(stride) | first.address())
}

/// The compiled kernels that gather rows of one type.
#[derive(Debug, Clone)]
pub struct Gather {
    gather: Kernel,
    missing: Kernel,
    count_tiers: Kernel,
    spread: Kernel,
    widen: Kernel,
    row: RowType,
    resident: u32,
}

impl Gather {
    /// Compiles the kernels for rows of type `row`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, row: RowType) -> Result<Self> {
        let module = source(row).compile(device)?;
        let gather = module.kernel("gather")?;
        let resident = gather.resident_blocks(THREADS)?;
        let (missing, spread) = (module.kernel("missing")?, module.kernel("spread")?);
        let widen = module.kernel("widen")?;
        let count_tiers = module.kernel("count_tiers")?;
        Ok(Self { gather, missing, count_tiers, spread, widen, row, resident })
    }

    /// Writes the rows of the first `count` vertices of `n_id` to `to`, float32, one behind the other,
    /// in order with the stream. What `to` has for rows that are in neither memory stays as it is.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `n_id` or `to` is shorter.
    pub fn gather(
        &self,
        stream: &Stream,
        rows: &Rows,
        n_id: &DeviceBuf<u32>,
        count: usize,
        to: DeviceView<f32>,
    ) -> Result<()> {
        assert!(n_id.len() >= count && to.len() >= count * rows.dim as usize);
        let on_device = Tier {
            rows: rows.device.ptr(),
            locations: 0..rows.device_count,
            blocks: self.resident,
        };
        self.gather_tier(stream, rows, &on_device, n_id, count, to)?;
        let Some(host) = &rows.host else { return Ok(()) };
        let on_host = Tier {
            rows: host.ptr(),
            locations: rows.device_count..NOT_RESIDENT,
            blocks: LINK_BLOCKS,
        };
        self.gather_tier(stream, rows, &on_host, n_id, count, to)
    }

    fn gather_tier(
        &self,
        stream: &Stream,
        rows: &Rows,
        tier: &Tier,
        n_id: &DeviceBuf<u32>,
        count: usize,
        to: DeviceView<f32>,
    ) -> Result<()> {
        if tier.locations.is_empty() {
            return Ok(());
        }
        let warps = (tier.blocks * WARPS) as usize;
        let step = count.div_ceil(warps).clamp(1, STEP);
        let arguments = Arguments {
            rows: tier.rows,
            location: rows.location.as_ref().map_or(DevicePtr::NULL, DeviceBuf::ptr),
            n_id: n_id.ptr(),
            to: to.ptr(),
            begin: tier.locations.start,
            end: tier.locations.end,
            count: count as u32,
            step: step as u32,
            dim: rows.dim,
            stride: rows.stride,
            word_bytes: word_bytes(tier.rows, rows.stride, to, rows.dim as usize),
            reserved: 0,
        };
        let whole = Grid::over(count.div_ceil(step), WARPS).blocks;
        let grid = Grid { blocks: whole.min(tier.blocks), threads: THREADS };
        // SAFETY: `Arguments` of the source; lengths were checked; device memory is all it writes.
        unsafe { self.gather.launch(stream, grid, &[&arguments]) }
    }

    /// Starts listing the nodes of the sampler's last batch whose rows are in neither memory; `missing`
    /// gets room for all nodes that a batch may have.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn start_finding(
        &self,
        stream: &Stream,
        rows: &Rows,
        sampler: &Sampler,
        missing: &mut MissingRows,
    ) -> Result<()> {
        let n_id = sampler.n_id();
        if missing.found.len() < n_id.len() {
            missing.found = DeviceBuf::new(stream.device(), n_id.len())?;
        }
        stream.fill_bytes(&mut missing.number, 0)?;
        let Some(location) = &rows.location else { return Ok(()) };
        let finding = Finding {
            location: location.ptr(),
            n_id: n_id.ptr(),
            found: missing.found.ptr(),
            number: missing.number.ptr(),
            count: sampler.nodes_ptr(),
            rows: missing.rows.as_ref().map_or(DevicePtr::NULL, |rows| rows.ptr()),
        };
        let blocks = Grid::over(n_id.len(), THREADS).blocks.min(self.resident);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Finding` of the source; there is room for all nodes, and vertices have locations.
        unsafe { self.missing.launch(stream, grid, &[&finding]) }
    }

    /// Adds the numbers of nodes of the sampler's last batch whose rows are in host memory, and in neither
    /// memory, to the two `counts`, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are not two counts.
    pub fn count_tiers(
        &self,
        stream: &Stream,
        rows: &Rows,
        sampler: &Sampler,
        counts: DeviceView<u64>,
    ) -> Result<()> {
        assert_eq!(counts.len(), 2, "a count for each of two tiers");
        let Some(location) = &rows.location else { return Ok(()) };
        let arguments = TierArguments {
            location: location.ptr(),
            n_id: sampler.n_id().ptr(),
            count: sampler.nodes_ptr(),
            rows: counts.ptr(),
            device_count: rows.device_count,
            reserved: 0,
        };
        let blocks = Grid::over(sampler.n_id().len(), THREADS).blocks.min(self.resident);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Tiers` of the source; vertices have locations, and there are two counts.
        unsafe { self.count_tiers.launch(stream, grid, &[&arguments]) }
    }

    /// Converts the rows of the listed nodes, which lie in `to` as they are stored, each from the first byte
    /// of its `dim` float32 values on, to these values, in order with the stream. Those that are stored
    /// as float32 stay as they are.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If a row is stored in more bytes than its values take (int8 rows of one value).
    pub fn widen(
        &self,
        stream: &Stream,
        rows: &MissingRows,
        to: DeviceView<f32>,
        dim: usize,
    ) -> Result<()> {
        match self.row {
            RowType::F32 => return Ok(()),
            RowType::F16 => {}
            RowType::Int8 => assert!(dim > 1, "a scale and a value take 5 bytes"),
        }
        let widening = Widening {
            found: rows.found.ptr(),
            count: rows.number.ptr(),
            to: to.ptr(),
            dim: dim as u32,
            reserved: 0,
        };
        let blocks = Grid::over(rows.found.len(), WARPS).blocks.min(self.resident);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Widening` of the source; listed nodes are rows of `to`, whose floats the kernel writes.
        unsafe { self.widen.launch(stream, grid, &[&widening]) }
    }

    /// Starts writing the rows of `piece` to their targets among the rows of `to`, float32, of `dim`
    /// values each; `event` happens when they are written.
    ///
    /// # Errors
    /// Memory that is not pinned, any error of the driver; the piece is lost then.
    ///
    /// # Panics
    /// If the piece's buffer is shorter than its layout says, or a target is no row of `to`.
    pub fn spread(
        &self,
        stream: &Stream,
        piece: Piece,
        to: DeviceView<f32>,
        dim: usize,
        event: Event,
    ) -> Result<Copying> {
        let Piece { buffer, layout, count } = piece;
        assert!(buffer.len() >= layout.bytes() && count <= layout.rows);
        let rows: &[u32] = bytemuck::cast_slice(&buffer[..count * size_of::<u32>()]);
        assert!(rows.iter().all(|&target| (target as usize + 1) * dim <= to.len()));
        let targets = mapped_ptr(stream.device(), &buffer)?;
        let spreading = Spreading {
            rows: targets.field(layout.rows_at()),
            targets,
            to: to.ptr(),
            count: count as u64,
            dim: dim as u32,
            stride: layout.stride as u32,
            word_bytes: word_bytes(targets.field(layout.rows_at()), layout.stride as u32, to, dim),
            reserved: 0,
        };
        let blocks = Grid::over(count, WARPS).blocks.min(LINK_BLOCKS);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Spreading` of the source; lengths and targets were checked, and `Copying`
        // keeps the buffer until the kernel ended.
        unsafe { self.spread.launch(stream, grid, &[&spreading])? };
        Copying::until(event, stream, buffer)
    }
}
