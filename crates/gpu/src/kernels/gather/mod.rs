//! Launches of `gather.cu`: rows of features from device and mapped host memory.

mod host_rows;

use std::mem::offset_of;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use super::parts::{BY_PARTS, Listing};
use super::{ASYNC_COPIES, COPY_ROWS, LANES, RowRequests, RowTargets, Sampler, Source, TYPES};
use crate::pinned::mapped_ptr;
use crate::shared::{Shared, shared};
use crate::{Copying, Device, DeviceBuf, DevicePtr, DeviceView, Event, Grid, Kernel, Stream};
pub use host_rows::HostRows;
use host_rows::{HOST_ROWS, Ordering, OrderingOf};

const THREADS: u32 = 512;
/// Warps of a block.
const WARPS: u32 = THREADS / LANES as u32;
/// Nodes that a warp looks up together, at most.
const STEP: usize = 32;
/// Threads of a block that reads rows in host memory.
const CROSSING: u32 = 128;
/// Shared memory of such a block: of each warp, 3 times 8 pieces of 1 KiB, what they are of, and their arrivals.
const RINGS_BYTES: u32 =
    CROSSING / LANES as u32 * (24 * (1024 + 24) + 3 * 8u32).next_multiple_of(128);
/// Blocks that read rows in host memory: with more, rows come no sooner, and training takes longer. Measured, as
/// the rest: bench/runs/2026-11-27-h200-16-core-128gib/gpu_host_memory.txt.
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
        rows_here: u32,
        count: u32,
        step: u32,
        dim: u32,
        stride: u32,
        word_bytes: u32,
    }
}

shared! {
    struct CrossingArguments as "Crossing" {
        rows: DevicePtr<u8>,
        list: DevicePtr<MissingRow>,
        number: DevicePtr<u32>,
        targets: DevicePtr<u32>,
        count: u32,
        dim: u32,
        to: DevicePtr<f32>,
        stride: u32,
        row_bytes: u32,
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
    /// Rows in pinned host memory; `None` if no row is there.
    pub host: Option<HostRows>,
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
    let mut source = Source::new(
        "gather",
        &[
            TYPES,
            COPY_ROWS,
            ASYNC_COPIES,
            BY_PARTS,
            HOST_ROWS,
            include_str!("cross.cuh"),
            include_str!("gather.cu"),
        ],
    )
    .sharing::<MissingRow>()
    .sharing::<Arguments>()
    .sharing::<Finding>()
    .sharing::<TierArguments>()
    .sharing::<CrossingArguments>()
    .sharing::<Ordering>()
    .sharing::<Widening>();
    source.options.push(format!("-DROW_TYPE={}", row as u32));
    source.options.push(format!("-DRINGS_BYTES={RINGS_BYTES}"));
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
    listing: Listing,
    cross: Kernel,
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
        let missing = module.kernel("missing")?;
        let cross = module.kernel("cross_link")?.with_shared_memory(RINGS_BYTES)?;
        let widen = module.kernel("widen")?;
        Ok(Self {
            gather,
            missing,
            count_tiers: module.kernel("count_tiers")?,
            listing: Listing::new(&module, "rows")?,
            cross,
            widen,
            row,
            resident,
        })
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
        rows: &mut Rows,
        n_id: &DeviceBuf<u32>,
        count: usize,
        to: DeviceView<f32>,
    ) -> Result<()> {
        assert!(n_id.len() >= count && to.len() >= count * rows.dim as usize);
        let location = rows.location.as_ref().map_or(DevicePtr::NULL, DeviceBuf::ptr);
        if rows.device_count > 0 {
            let step = count.div_ceil((self.resident * WARPS) as usize).clamp(1, STEP);
            let arguments = Arguments {
                rows: rows.device.ptr(),
                location,
                n_id: n_id.ptr(),
                to: to.ptr(),
                rows_here: rows.device_count,
                count: count as u32,
                step: step as u32,
                dim: rows.dim,
                stride: rows.stride,
                word_bytes: word_bytes(rows.device.ptr(), rows.stride, to, rows.dim as usize),
            };
            let whole = Grid::over(count.div_ceil(step), WARPS).blocks;
            let grid = Grid { blocks: whole.min(self.resident), threads: THREADS };
            // SAFETY: `Arguments` of the source; lengths were checked; device memory is all it writes.
            unsafe { self.gather.launch(stream, grid, &[&arguments])? };
        }
        let Some(host) = &mut rows.host else { return Ok(()) };
        let (before, stride) = (rows.device_count, rows.stride);
        let of = OrderingOf { location, n_id: n_id.ptr(), before, count, stride };
        let (list, number) = host_rows::list(&self.listing, stream, host, of, self.resident)?;
        let crossing =
            CrossingArguments { list, number, ..self.crossing(host.ptr(), stride, to, rows.dim) };
        self.cross_link(stream, crossing, count)
    }

    /// What is the same of all rows at `first` in mapped host memory, `stride` bytes apart.
    fn crossing(
        &self,
        first: DevicePtr<u8>,
        stride: u32,
        to: DeviceView<f32>,
        dim: u32,
    ) -> CrossingArguments {
        let row_bytes = match self.row {
            RowType::F32 => 4 * dim,
            RowType::F16 => 2 * dim,
            RowType::Int8 => 4 + dim,
        };
        let word_bytes = match self.row {
            RowType::F32 => word_bytes(first, stride, to, dim as usize),
            // Values are converted one by one: only what is read is copied by words.
            RowType::F16 | RowType::Int8 => {
                RowTargets { start: first, stride: stride.into() }.word_bytes(row_bytes.into())
            }
        };
        CrossingArguments {
            rows: first,
            list: DevicePtr::NULL,
            number: DevicePtr::NULL,
            targets: DevicePtr::NULL,
            count: 0,
            dim,
            to: to.ptr(),
            stride,
            row_bytes,
            word_bytes,
            reserved: 0,
        }
    }

    /// Has rows written, `most` at most.
    fn cross_link(&self, stream: &Stream, crossing: CrossingArguments, most: usize) -> Result<()> {
        let whole = Grid::over(most, CROSSING).blocks;
        let grid = Grid { blocks: whole.min(LINK_BLOCKS), threads: CROSSING };
        // SAFETY: `Crossing` of the source; lengths and targets were checked; rows of the batch are all it
        // writes.
        unsafe { self.cross.launch(stream, grid, &[&crossing]) }
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
        let first = targets.field(layout.rows_at());
        let crossing = self.crossing(first, layout.stride as u32, to, dim as u32);
        // `Copying` keeps the buffer until the kernel ended.
        let crossing = CrossingArguments { targets, count: count as u32, ..crossing };
        self.cross_link(stream, crossing, count)?;
        Copying::until(event, stream, buffer)
    }
}
