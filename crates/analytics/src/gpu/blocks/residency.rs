//! Blocks that stay on the device: RealGraphGPU's buffer, filled once and looked at first.

use std::sync::{Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_gpu::kernels::Blocks;
use tiergraph_gpu::{Device, DeviceBuf, Stream};
use tiergraph_graph::{Graph, Stage, StagedReader, Then};
use tiergraph_mem::AlignedBuf;

use super::copies::Copies;
use super::reader::Reader;
use super::tables::Tables;
use crate::gpu::timeline::{Origin, Timeline};

/// Bytes of the largest single allocation, so that a device whose memory is in pieces gives it.
const ARENA_BYTES: u64 = 1 << 30;
/// Of packed blocks' bytes, what their list of slices takes at most; usually far less.
const SLICES_SHARE: u64 = 4;

/// The first blocks of a file, in device memory. Any set is as good as any other: a pass reads all.
pub(in crate::gpu) struct Resident {
    arenas: Vec<DeviceBuf<u8>>,
    addresses: DeviceBuf<u64>,
    slices: DeviceBuf<u64>,
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

    /// Brings the first `blocks`, the way that `reader` brings others.
    pub fn load(
        graph: &Graph,
        stream: &Stream,
        tables: &Tables,
        blocks: u32,
        (workers, reader): (usize, &mut Reader),
    ) -> Result<Self> {
        let size = tables.block_bytes;
        let per_arena = (ARENA_BYTES / size as u64).max(1) as u32;
        let counts = (0..blocks.div_ceil(per_arena)).map(|a| per_arena.min(blocks - a * per_arena));
        let device = stream.device();
        let mut arenas: Vec<DeviceBuf<u8>> = counts
            .map(|count| DeviceBuf::new(device, count as usize * size))
            .collect::<Result<_>>()?;
        let address =
            |b| arenas[(b / per_arena) as usize].address() + u64::from(b % per_arena) * size as u64;
        let addresses: Vec<u64> = (0..blocks).map(address).collect();
        let addresses = stream.uploaded(&addresses)?;
        let share = (blocks, per_arena);
        match reader {
            Reader::Staged(reader) => copy(graph, tables, &mut arenas, share, (reader, workers))?,
            Reader::Direct(direct) => direct.load(graph, &arenas, share)?,
        }
        if let Some(checks) = &tables.checks {
            let mut damaged = DeviceBuf::new(device, blocks as usize)?;
            stream.fill_bytes(&mut damaged, 0)?;
            let at = Blocks::at(&addresses);
            checks.checksum.check(stream, at, blocks, (&mut damaged, &checks.worst))?;
            tables.damage(graph, stream)?;
        }
        let slices = match &tables.tiles {
            None => DeviceBuf::new(device, 0)?,
            Some(tiles) => {
                let segments = tiles.first_segment[blocks as usize];
                tiles.survey.all(stream, Blocks::at(&addresses), &tiles.segments, segments)?
            }
        };
        Ok(Self { arenas, addresses, slices, blocks })
    }

    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let arenas: usize = self.arenas.iter().map(DeviceBuf::bytes).sum();
        (arenas + self.addresses.bytes() + self.slices.bytes()) as u64
    }

    pub fn addresses(&self) -> Blocks {
        debug_assert!(self.blocks == 0 || !self.arenas.is_empty());
        Blocks::at(&self.addresses)
    }

    pub fn slices(&self) -> &DeviceBuf<u64> {
        &self.slices
    }
}

/// Reads the first `blocks` and copies each to its place.
fn copy(
    graph: &Graph,
    tables: &Tables,
    arenas: &mut [DeviceBuf<u8>],
    (blocks, per_arena): (u32, u32),
    (reader, workers): (&mut StagedReader, usize),
) -> Result<()> {
    let Some(device) = arenas.first().map(|arena| arena.device().clone()) else { return Ok(()) };
    let places = Places { arenas: Mutex::new(arenas), per_arena, size: tables.block_bytes };
    let loading = |worker| {
        let (stream, copies) = (Stream::new(&device)?, Copies::default());
        let timeline = Timeline::new(graph.trace(), worker);
        Ok(Loading { stream, places: &places, copies, timeline })
    };
    let mut stages: Vec<Loading<'_, '_>> = (0..workers).map(loading).collect::<Result<_>>()?;
    let wanted: Vec<u32> = (0..blocks).collect();
    let origin = Origin::now(graph.trace(), &Stream::new(&device)?)?;
    reader.pass(graph, (tables.file, &wanted), Then::Stop, &mut stages)?;
    stages.iter_mut().try_for_each(|stage| {
        stage.stream.synchronize()?;
        stage.timeline.tell(origin.as_ref())
    })
}

/// Where each block goes.
struct Places<'a> {
    arenas: Mutex<&'a mut [DeviceBuf<u8>]>,
    per_arena: u32,
    size: usize,
}

/// A worker that copies blocks to their places.
struct Loading<'a, 'b> {
    stream: Stream,
    places: &'a Places<'b>,
    copies: Copies,
    timeline: Timeline,
}

impl Stage for Loading<'_, '_> {
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()> {
        let Places { arenas, per_arena, size } = self.places;
        let mut arenas = arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = &mut arenas[(block / per_arena) as usize];
        let at = (block % per_arena) as usize * size;
        self.copies.start(
            (&self.stream, &mut self.timeline),
            (arena, at),
            ([(block, buffer)], *size),
        )
    }

    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        self.copies.give_back(to, wait)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
