//! Blocks that are resident on the device: RealGraphGPU's buffer, filled once and looked at first.

use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Blocks, Slice};
use tiergraph_gpu::{Device, DeviceBuf, DevicePtr, DeviceSpan, Stream};
use tiergraph_graph::Graph;
use tiergraph_io::pipeline::{Block, Bytes, Consumer, NextPass, Room};

use super::copies::{BlockCopy, Copies};
use super::index::BlockIndex;
use super::stream::{BlockReader, Selection};
use crate::gpu::timeline::{Origin, Timeline};

/// Bytes of the largest single allocation: several fit a device whose free memory is in pieces.
const ARENA_BYTES: u64 = 1 << 30;
/// The index of slices takes at most one part in so many of packed blocks' bytes; usually far less.
const SLICES_SHARE: u64 = 4;

/// The first blocks of a file, resident in device memory. Any others would do: a pass reads all.
pub(in crate::gpu) struct ResidentBlocks {
    arenas: Vec<Arc<DeviceBuf<u8>>>,
    addresses: DeviceBuf<DevicePtr<u8>>,
    slices: DeviceBuf<Slice>,
    blocks: u32,
}

impl ResidentBlocks {
    /// An empty set of resident blocks.
    pub fn none(device: &Device) -> Result<Self> {
        let (addresses, slices) = (DeviceBuf::new(device, 0)?, DeviceBuf::new(device, 0)?);
        Ok(Self { arenas: Vec::new(), addresses, slices, blocks: 0 })
    }

    /// The number of blocks of the file that fit `bytes` of device memory, with their slice index.
    pub fn blocks_in(index: &BlockIndex, bytes: u64) -> u32 {
        let size = index.block_bytes as u64;
        let slices = if index.tiles.is_some() { bytes / (SLICES_SHARE + 1) } else { 0 };
        ((bytes - slices) / (size + 8)).min(u64::from(index.blocks)) as u32
    }

    /// Bytes of device memory that so many blocks of `graph` take, with their slice index, at most.
    pub fn most_bytes(graph: &Graph, blocks: u64) -> u64 {
        let bytes = blocks * (u64::from(graph.manifest().block_bytes) + 8);
        if graph.tiles().is_stored() { bytes + bytes / SLICES_SHARE } else { bytes }
    }

    /// Reads the first `blocks` blocks of the file to the device, checks and indexes them there.
    pub fn load(
        graph: &Graph,
        stream: &Stream,
        index: &BlockIndex,
        blocks: u32,
        reader: &mut BlockReader,
    ) -> Result<Self> {
        let size = index.block_bytes;
        let per_arena = (ARENA_BYTES / size as u64).max(1) as u32;
        let counts = (0..blocks.div_ceil(per_arena)).map(|a| per_arena.min(blocks - a * per_arena));
        let device = stream.device();
        let arenas: Vec<Arc<DeviceBuf<u8>>> = counts
            .map(|count| DeviceBuf::new(device, count as usize * size).map(Arc::new))
            .collect::<Result<_>>()?;
        let address =
            |b: u32| arenas[(b / per_arena) as usize].ptr().offset((b % per_arena) as usize * size);
        let addresses: Vec<DevicePtr<u8>> = (0..blocks).map(address).collect();
        let addresses = stream.uploaded(&addresses)?;
        fill(graph, index, &Arenas { arenas: &arenas, per_arena, size }, blocks, reader)?;
        if let Some(checks) = &index.checks {
            let mut damaged = DeviceBuf::new(device, blocks as usize)?;
            stream.fill_bytes(&mut damaged, 0)?;
            let at = Blocks::at(&addresses);
            checks.checksum.check(stream, at, blocks, &mut damaged, &checks.first_damaged)?;
            index.damage(graph, stream)?;
        }
        let slices = match &index.tiles {
            None => DeviceBuf::new(device, 0)?,
            Some(tiles) => {
                let segments = tiles.first_segment[blocks as usize];
                let at = Blocks::at(&addresses);
                tiles.indexer.index_resident(stream, at, &tiles.segments, segments)?
            }
        };
        Ok(Self { arenas, addresses, slices, blocks })
    }

    /// The number of blocks that are resident in device memory.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of device memory that the blocks and the index of their slices take.
    pub fn bytes(&self) -> u64 {
        let arenas: usize = self.arenas.iter().map(|arena| arena.bytes()).sum();
        (arenas + self.addresses.bytes() + self.slices.bytes()) as u64
    }

    /// The addresses of the blocks, as kernels take them.
    pub fn for_kernels(&self) -> Blocks {
        debug_assert!(self.blocks == 0 || !self.arenas.is_empty());
        Blocks::at(&self.addresses)
    }

    /// The index of where the blocks' slices begin; empty for raw blocks.
    pub fn slices(&self) -> &DeviceBuf<Slice> {
        &self.slices
    }
}

/// Reads the first `blocks` blocks of the file into `arenas`.
fn fill(
    graph: &Graph,
    index: &BlockIndex,
    arenas: &Arenas<'_>,
    blocks: u32,
    reader: &mut BlockReader,
) -> Result<()> {
    let Some(device) = arenas.arenas.first().map(|arena| arena.device().clone()) else {
        return Ok(());
    };
    let direct = reader.cufile().is_some();
    let loading = |worker| -> Result<Loading<'_>> {
        let (stream, copies) = (Stream::new(&device)?, Copies::default());
        let timeline = Timeline::new(graph.trace(), worker);
        Ok(Loading { stream, arenas, copies, timeline, direct })
    };
    let loading: Vec<_> =
        (0..reader.workers()).map(loading).map(|l| l.map(Mutex::new)).collect::<Result<_>>()?;
    let wanted: Vec<u32> = (0..blocks).collect();
    let origin = Origin::now(graph.trace(), &Stream::new(&device)?)?;
    let selection = Selection { index, blocks: &wanted };
    reader.pass(graph, selection, NextPass::Unknown, false, &loading)?;
    loading.into_iter().try_for_each(|loading| {
        let mut loading = loading.into_inner().unwrap_or_else(PoisonError::into_inner);
        loading.stream.synchronize()?;
        loading.timeline.record(origin.as_ref())
    })
}

/// The device memory that blocks are read into, in a few large allocations.
struct Arenas<'a> {
    arenas: &'a [Arc<DeviceBuf<u8>>],
    per_arena: u32,
    size: usize,
}

impl Arenas<'_> {
    /// The arena of a block, and the block's first byte there.
    fn of(&self, block: usize) -> (&Arc<DeviceBuf<u8>>, usize) {
        let per_arena = self.per_arena as usize;
        (&self.arenas[block / per_arena], block % per_arena * self.size)
    }
}

/// A worker whose blocks get into their arenas by copies or by reads. A request's number is its block's.
struct Loading<'a> {
    stream: Stream,
    arenas: &'a Arenas<'a>,
    copies: Copies,
    timeline: Timeline,
    direct: bool,
}

impl Consumer for Loading<'_> {
    const ACTIVITY: &'static str = "copy";

    fn room(&mut self, number: usize) -> Result<Room> {
        if !self.direct {
            return Ok(Room::Buffer);
        }
        // The memory is not registered with cuFile: that costs more than one read of each block gains.
        let (arena, at) = self.arenas.of(number);
        Ok(Room::Device(DeviceSpan::new(arena, at..at + self.arenas.size)))
    }

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        if matches!(block.bytes, Bytes::Device(_)) {
            back.push(block);
            return Ok(());
        }
        let (to, at) = self.arenas.of(block.number);
        let copy = BlockCopy { blocks: vec![block], block_bytes: self.arenas.size, to, at };
        self.copies.start(copy, &self.stream, &mut self.timeline)
    }

    fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        self.copies.give_back(back, wait)
    }
}
