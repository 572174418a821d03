//! Launches of `survey.cu`: where the slices of packed tiles begin.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::{Error, ErrorKind, Result};

use super::{BATCH, Blocks, Source, TILES, TYPES};
use crate::shared::{Shared, shared};
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 128;
const WARP: u32 = 32;
/// A slice's place in its block has 27 bits, its segment's number too.
const LIMIT: usize = 1 << 27;

/// A segment of `tiles.index`, as kernels read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Segment {
    /// Number of the block that holds the segment.
    pub block: u32,
    /// First byte of the segment in its block.
    pub offset: u32,
    /// Bytes of the segment.
    pub len: u32,
    /// First row of the segment's strip.
    pub row_base: u32,
    /// Rows of the segment's strip.
    pub rows: u32,
    /// First column of the segment's tile.
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

shared! {
    struct Arguments as "Arguments" {
        blocks: Blocks,
        segments: DevicePtr<Segment>,
        counts: DevicePtr<u32>,
        places: DevicePtr<u32>,
        total: DevicePtr<u32>,
        slices: DevicePtr<u64>,
        room: u32,
        first: [u32; BATCH],
        end: [u32; BATCH],
    }
}

/// Slices that were listed.
#[derive(Debug, Clone, Copy)]
pub enum Slices<'a> {
    /// A list that is full.
    All(&'a DeviceBuf<u64>),
    /// A list, and a counter on the device of how many of its first entries are slices.
    Counted(&'a DeviceBuf<u64>, &'a DeviceBuf<u32>),
}

impl<'a> Slices<'a> {
    pub(super) fn parts(self) -> (&'a DeviceBuf<u64>, Option<&'a DeviceBuf<u32>>, u32) {
        match self {
            Self::All(slices) => (slices, None, slices.len() as u32),
            Self::Counted(slices, count) => (slices, Some(count), slices.len() as u32),
        }
    }
}

pub(super) fn source(weight_bytes: u32) -> Source {
    let mut source = Source::new("survey", &[TYPES, TILES, include_str!("survey.cu")])
        .sharing::<Blocks>()
        .sharing::<Segment>()
        .sharing::<Arguments>();
    source.options.push(format!("-DWEIGHT_BYTES={weight_bytes}"));
    source
}

/// A warp a segment.
fn grid(number: u32) -> Grid {
    Grid { blocks: number.div_ceil(THREADS / WARP), threads: THREADS }
}

/// The compiled survey.
#[derive(Debug, Clone)]
pub struct Survey {
    count: Kernel,
    list: Kernel,
}

impl Survey {
    /// Compiles it for tiles whose weights have `weight_bytes`.
    ///
    /// # Errors
    /// No compiler, its log, whatever the driver gives.
    pub fn new(device: &Device, weight_bytes: u32) -> Result<Self> {
        let module = source(weight_bytes).compile(device)?;
        Ok(Self { count: module.kernel("count")?, list: module.kernel("list")? })
    }

    /// The most slices that a block of `block_bytes` can hold. The shortest has 3 bytes of head and
    /// 32 rows, which differ, in a bit each; a single row comes with 4 bytes of its group.
    pub fn most_slices(block_bytes: usize) -> usize {
        block_bytes / 7 + 1
    }

    /// Lists all slices of the first `number` segments, whose blocks `blocks` holds, in their order,
    /// and waits.
    ///
    /// # Errors
    /// Not enough device memory, whatever the driver gives.
    pub fn all(
        &self,
        stream: &Stream,
        blocks: Blocks,
        segments: &DeviceBuf<Segment>,
        number: u32,
    ) -> Result<DeviceBuf<u64>> {
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
            end: [number; BATCH],
            ..Arguments::zeroed()
        };
        let grid = grid(number);
        // SAFETY: `Arguments` of the source; `counts` has a place a segment.
        unsafe { self.count.launch(stream, grid, &[&arguments])? };
        let mut places = stream.download(&counts, number as usize)?;
        let mut total = 0u32;
        for place in &mut places {
            total += std::mem::replace(place, total);
        }
        let places = stream.uploaded(&places)?;
        let slices = DeviceBuf::new(device, total as usize)?;
        arguments.places = places.ptr();
        arguments.slices = slices.ptr();
        arguments.room = total;
        // SAFETY: as above; `slices` has as many places as were counted.
        unsafe { self.list.launch(stream, grid, &[&arguments])? };
        stream.synchronize()?;
        Ok(slices)
    }

    /// Lists the slices of a batch of blocks, in any order, into `slices`, and adds their number to
    /// `total`. Returns before it is done. `segments_of`: the first and the number of each block's.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If there are more blocks than [`BATCH`].
    pub fn batch(
        &self,
        stream: &Stream,
        blocks: Blocks,
        segments: &DeviceBuf<Segment>,
        segments_of: impl ExactSizeIterator<Item = (u32, u32)>,
        (slices, total): (&DeviceBuf<u64>, &DeviceBuf<u32>),
    ) -> Result<()> {
        let (mut first, mut end, mut before) = ([0; BATCH], [0; BATCH], 0);
        for (i, (begin, number)) in segments_of.enumerate() {
            before += number;
            (first[i], end[i]) = (begin, before);
        }
        let arguments = Arguments {
            blocks,
            segments: segments.ptr(),
            total: total.ptr(),
            slices: slices.ptr(),
            room: slices.len() as u32,
            first,
            end,
            ..Arguments::zeroed()
        };
        // SAFETY: `Arguments` of the source; the kernel writes no more than `room`.
        unsafe { self.list.launch(stream, grid(before), &[&arguments]) }
    }
}
