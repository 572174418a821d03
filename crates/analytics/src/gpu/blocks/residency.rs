//! Blocks that stay on the device: RealGraphGPU's buffer, filled once and looked at first.

use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Blocks, Slice};
use tiergraph_gpu::{Device, DeviceBuf, DevicePtr, DeviceSpan, Stream};
use tiergraph_graph::Graph;
use tiergraph_io::pipeline::{Block, Bytes, Consumer, NextPass, Room};

use super::copies::Copies;
use super::stream::BlockReader;
use super::tables::Tables;
use crate::gpu::timeline::{Origin, Timeline};

/// Bytes of the largest single allocation, so that a device whose memory is in pieces gives it.
const ARENA_BYTES: u64 = 1 << 30;
/// Of packed blocks' bytes, what their list of slices takes at most; usually far less.
const SLICES_SHARE: u64 = 4;

/// The first blocks of a file, in device memory. Any set is as good as any other: a pass reads all.
pub(in crate::gpu) struct Resident {
    arenas: Vec<Arc<DeviceBuf<u8>>>,
    addresses: DeviceBuf<DevicePtr<u8>>,
    slices: DeviceBuf<Slice>,
    blocks: u32,
}

impl Resident {
    pub fn none(device: &Device) -> Result<Self> {
        let (addresses, slices) = (DeviceBuf::new(device, 0)?, DeviceBuf::new(device, 0)?);
        Ok(Self { arenas: Vec::new(), addresses, slices, blocks: 0 })
    }

    /// How many blocks of a graph `bytes` hold.
    pub fn blocks_in(tables: &Tables, bytes: u64) -> u32 {
        let size = tables.block_bytes as u64;
        let slices = if tables.tiles.is_some() { bytes / (SLICES_SHARE + 1) } else { 0 };
        ((bytes - slices) / (size + 8)).min(u64::from(tables.blocks)) as u32
    }

    /// Reads the first `blocks`, the way that `reader` reads others.
    pub fn load(
        graph: &Graph,
        stream: &Stream,
        tables: &Tables,
        blocks: u32,
        (workers, reader): (usize, &mut BlockReader),
    ) -> Result<Self> {
        let size = tables.block_bytes;
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
        fill(
            graph,
            tables,
            &Places { arenas: &arenas, per_arena, size },
            blocks,
            (workers, reader),
        )?;
        if let Some(checks) = &tables.checks {
            let mut damaged = DeviceBuf::new(device, blocks as usize)?;
            stream.fill_bytes(&mut damaged, 0)?;
            let at = Blocks::at(&addresses);
            checks.checksum.check(stream, at, blocks, &mut damaged, &checks.first_damaged)?;
            tables.damage(graph, stream)?;
        }
        let slices = match &tables.tiles {
            None => DeviceBuf::new(device, 0)?,
            Some(tiles) => {
                let segments = tiles.first_segment[blocks as usize];
                let at = Blocks::at(&addresses);
                tiles.indexer.index_resident(stream, at, &tiles.segments, segments)?
            }
        };
        Ok(Self { arenas, addresses, slices, blocks })
    }

    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let arenas: usize = self.arenas.iter().map(|arena| arena.bytes()).sum();
        (arenas + self.addresses.bytes() + self.slices.bytes()) as u64
    }

    pub fn addresses(&self) -> Blocks {
        debug_assert!(self.blocks == 0 || !self.arenas.is_empty());
        Blocks::at(&self.addresses)
    }

    pub fn slices(&self) -> &DeviceBuf<Slice> {
        &self.slices
    }
}

/// Reads the first `blocks`, each to its place.
fn fill(
    graph: &Graph,
    tables: &Tables,
    places: &Places<'_>,
    blocks: u32,
    (workers, reader): (usize, &mut BlockReader),
) -> Result<()> {
    let Some(device) = places.arenas.first().map(|arena| arena.device().clone()) else {
        return Ok(());
    };
    let direct = reader.cufile().is_some();
    let loading = |worker| -> Result<Loading<'_>> {
        let (stream, copies) = (Stream::new(&device)?, Copies::default());
        let timeline = Timeline::new(graph.trace(), worker);
        Ok(Loading { stream, places, copies, timeline, direct })
    };
    let loading: Vec<_> =
        (0..workers).map(loading).map(|l| l.map(Mutex::new)).collect::<Result<_>>()?;
    let wanted: Vec<u32> = (0..blocks).collect();
    let origin = Origin::now(graph.trace(), &Stream::new(&device)?)?;
    reader.pass(graph, (tables, &wanted), (NextPass::Unknown, false), &loading)?;
    loading.into_iter().try_for_each(|loading| {
        let mut loading = loading.into_inner().unwrap_or_else(PoisonError::into_inner);
        loading.stream.synchronize()?;
        loading.timeline.tell(origin.as_ref())
    })
}

/// Where each block goes.
struct Places<'a> {
    arenas: &'a [Arc<DeviceBuf<u8>>],
    per_arena: u32,
    size: usize,
}

impl Places<'_> {
    /// The arena of a block, and its byte there.
    fn of(&self, block: usize) -> (&Arc<DeviceBuf<u8>>, usize) {
        let per_arena = self.per_arena as usize;
        (&self.arenas[block / per_arena], block % per_arena * self.size)
    }
}

/// A worker whose blocks go to their places, by copies or by reads. A request's number is its block's.
struct Loading<'a> {
    stream: Stream,
    places: &'a Places<'a>,
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
        let (arena, at) = self.places.of(number);
        Ok(Room::Device(DeviceSpan::new(arena, at..at + self.places.size)))
    }

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        if matches!(block.bytes, Bytes::Device(_)) {
            back.push(block);
            return Ok(());
        }
        let (arena, at) = self.places.of(block.number);
        let on = (&self.stream, &mut self.timeline);
        self.copies.start(on, (arena, at), (vec![block], self.places.size))
    }

    fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        self.copies.give_back(back, wait)
    }
}
