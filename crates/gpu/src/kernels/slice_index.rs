//! Launches of `slice_index.cu`: where the slices of packed tiles begin.

use std::mem::offset_of;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::{Error, ErrorKind, Result};

use super::{Blocks, MAX_BATCH, Source, TILES, TYPES};
use crate::shared::{Shared, shared};
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 128;
const WARP: u32 = 32;
/// An entry has 27 bits for the slice's first byte in its block, and as many for its segment's number.
const LIMIT: usize = 1 << 27;

/// An entry of `tiles.index`, as kernels read it: a tile's part in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Segment {
    /// The number of the block that holds the segment.
    pub block: u32,
    /// The first byte of the segment in its block.
    pub offset: u32,
    /// Bytes of the segment.
    pub len: u32,
    /// The first row of the segment's strip.
    pub row_base: u32,
    /// How many rows the segment's strip has.
    pub rows: u32,
    /// The first column of the segment's tile.
    pub column_base: u32,
}

impl Shared for Segment {
    const CUDA: &'static str = "Segment";
    const FIELDS: &'static [(&'static str, usize)] = &[
        ("block", offset_of!(Self, block)),
        ("offset", offset_of!(Self, offset)),
        ("len", offset_of!(Self, len)),
        ("row_base", offset_of!(Self, row_base)),
        ("rows", offset_of!(Self, rows)),
        ("column_base", offset_of!(Self, column_base)),
    ];
}

/// An entry of a slice index: the slice's segment, its first byte in the block, how many rows it has,
/// and how long they are if all are equally long. `tiles.cuh` says by which bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Slice(u64);

shared! {
    struct Arguments as "Arguments" {
        blocks: Blocks,
        segments: DevicePtr<Segment>,
        counts: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        total: DevicePtr<u32>,
        slices: DevicePtr<Slice>,
        room: u32,
        first: [u32; MAX_BATCH],
        end: [u32; MAX_BATCH],
    }
}

/// The index of a batch's slices, on the device: room for the most that there can be, and how many there
/// are.
#[derive(Debug)]
pub struct CountedSlices {
    /// The slices, the first `count` of which are there.
    entries: DeviceBuf<Slice>,
    /// One number: how many slices there are.
    count: DeviceBuf<u32>,
}

impl CountedSlices {
    /// Room for the slices of `blocks` blocks of `block_bytes` each.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, blocks: usize, block_bytes: usize) -> Result<Self> {
        let entries = DeviceBuf::new(device, blocks * SliceIndexer::max_slices(block_bytes))?;
        Ok(Self { entries, count: DeviceBuf::new(device, 1)? })
    }

    /// Bytes of device memory that the room for one block of `block_bytes` takes.
    pub fn bytes(block_bytes: usize) -> usize {
        SliceIndexer::max_slices(block_bytes) * size_of::<Slice>()
    }
}

/// An index of slices: where each begins.
#[derive(Debug, Clone, Copy)]
pub enum SliceIndex<'a> {
    /// The slices of blocks that are resident: all entries of the buffer.
    Resident(&'a DeviceBuf<Slice>),
    /// The slices of a batch, of which the device alone knows how many there are.
    Batch(&'a CountedSlices),
}

impl<'a> SliceIndex<'a> {
    /// The entries, and how many there are where not the whole buffer is in use.
    pub(super) fn parts(self) -> (&'a DeviceBuf<Slice>, Option<&'a DeviceBuf<u32>>) {
        match self {
            Self::Resident(entries) => (entries, None),
            Self::Batch(slices) => (&slices.entries, Some(&slices.count)),
        }
    }
}

pub(super) fn source(weight_bytes: u32) -> Source {
    let mut source = Source::new("slice_index", &[TYPES, TILES, include_str!("slice_index.cu")])
        .sharing::<Blocks>()
        .sharing::<Segment>()
        .sharing::<Arguments>();
    source.options.push(format!("-DWEIGHT_BYTES={weight_bytes}"));
    source
}

/// A grid of one warp for each of `number` segments.
fn grid(number: u32) -> Grid {
    Grid { blocks: number.div_ceil(THREADS / WARP), threads: THREADS }
}

/// The compiled kernels that find where the slices of tiles begin.
#[derive(Debug, Clone)]
pub struct SliceIndexer {
    count: Kernel,
    list: Kernel,
}

impl SliceIndexer {
    /// Compiles the kernels for tiles whose weights have `weight_bytes`: 0, 4 or 8.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device, weight_bytes: u32) -> Result<Self> {
        let module = source(weight_bytes).compile(device)?;
        Ok(Self { count: module.kernel("count")?, list: module.kernel("list")? })
    }

    /// The most slices that a block of `block_bytes` can hold. The shortest has 3 bytes of head and
    /// 32 rows, which differ, in a bit each; a single row comes with 4 bytes of its group.
    fn max_slices(block_bytes: usize) -> usize {
        block_bytes / 7 + 1
    }

    /// Finds the slices of the first `number` of `segments`, which lie in `blocks`, in the order of
    /// segments, and waits for them.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    pub fn index_resident(
        &self,
        stream: &Stream,
        blocks: Blocks,
        segments: &DeviceBuf<Segment>,
        number: u32,
    ) -> Result<DeviceBuf<Slice>> {
        if segments.len() > LIMIT {
            return Err(Error::new(ErrorKind::Device, "list the slices of a graph")
                .expected(format!("at most {LIMIT} segments"))
                .got(segments.len())
                .hint("run with `--device cpu`"));
        }
        let device = stream.device();
        let counts: DeviceBuf<u32> = DeviceBuf::new(device, number as usize)?;
        let mut arguments = Arguments {
            blocks,
            segments: segments.ptr(),
            counts: counts.ptr(),
            end: [number; MAX_BATCH],
            ..Arguments::zeroed()
        };
        let grid = grid(number);
        // SAFETY: `Arguments` of the source; `counts` has an entry for each segment.
        unsafe { self.count.launch(stream, grid, &[&arguments])? };
        let mut offsets = stream.download(&counts, number as usize)?;
        let mut total = 0u32;
        for offset in &mut offsets {
            total += std::mem::replace(offset, total);
        }
        let offsets = stream.uploaded(&offsets)?;
        let slices = DeviceBuf::new(device, total as usize)?;
        arguments.offsets = offsets.ptr();
        arguments.slices = slices.ptr();
        arguments.room = total;
        // SAFETY: as above; `slices` has as many entries as were counted.
        unsafe { self.list.launch(stream, grid, &[&arguments])? };
        stream.synchronize()?;
        Ok(slices)
    }

    /// Finds the slices of a batch of blocks, in any order, in order with the stream. `ranges` has, for
    /// each of the blocks, the numbers of its segments.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more blocks than [`MAX_BATCH`].
    pub fn index_batch(
        &self,
        stream: &Stream,
        blocks: Blocks,
        segments: &DeviceBuf<Segment>,
        ranges: impl ExactSizeIterator<Item = Range<u32>>,
        slices: &mut CountedSlices,
    ) -> Result<()> {
        stream.fill_bytes(&mut slices.count, 0)?;
        let (mut first, mut end, mut before) = ([0; MAX_BATCH], [0; MAX_BATCH], 0);
        for (i, range) in ranges.enumerate() {
            before += range.end - range.start;
            (first[i], end[i]) = (range.start, before);
        }
        let arguments = Arguments {
            blocks,
            segments: segments.ptr(),
            total: slices.count.ptr(),
            slices: slices.entries.ptr(),
            room: slices.entries.len() as u32,
            first,
            end,
            ..Arguments::zeroed()
        };
        // SAFETY: `Arguments` of the source; the kernel writes no more than `room`.
        unsafe { self.list.launch(stream, grid(before), &[&arguments]) }
    }
}
