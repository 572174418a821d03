//! A worker's slots on the device: reading → copying → computing → free.

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::kernels::{BATCH, Blocks, EdgeMap, Program, Slices, Survey};
use tiergraph_gpu::{CuFile, Device, DeviceBuf, Event, Stream};
use tiergraph_graph::Stage;
use tiergraph_mem::AlignedBuf;

use super::copies::Copies;
use super::shape::Shape;
use super::tables::Tables;
use crate::gpu::timeline::Timeline;

/// Slots that one worker fills in turn.
pub(in crate::gpu) struct Slots {
    /// To the slots, which therefore drop after them.
    copies: Copies,
    slots: Vec<Slot>,
    next: usize,
    /// What is to be copied to the next slot, together: on a link that gives 55 GB/s, copies of 1 MiB
    /// get 48, of 4 MiB 53 and of 8 MiB 54.
    gathered: Vec<(u32, AlignedBuf)>,
    /// The blocks that were copied to the next slot.
    batch: Vec<u32>,
    /// Blocks that are computed on together.
    batch_size: usize,
    timeline: Timeline,
    synchronous: bool,
    /// Why cuFile does not know them, where it was to.
    unregistered: Option<String>,
}

/// Room for a batch of blocks, and the stream that brings it and computes on it: what the stream is
/// given next waits for what it was given before, so a slot is free when its turn comes.
struct Slot {
    stream: Stream,
    /// The last batch was computed on; what was copied since may be under way.
    computed: Event,
    blocks: DeviceBuf<u8>,
    /// Which of them are damaged.
    damaged: DeviceBuf<u32>,
    /// The blocks' slices and their number, where blocks are packed.
    slices: Option<(DeviceBuf<u64>, DeviceBuf<u32>)>,
}

impl Slots {
    /// One lane's slots, registered with `cufile` if they are read into.
    pub fn new(
        device: &Device,
        Shape { slots: count, batch: batch_size, .. }: Shape,
        tables: &Tables,
        (cufile, synchronous): (Option<&'static CuFile>, bool),
        timeline: Timeline,
    ) -> Result<Self> {
        let mut unregistered = None;
        let slot = |_| {
            let mut blocks = DeviceBuf::new(device, batch_size * tables.block_bytes)?;
            if let Some(Err(error)) = cufile.map(|cufile| blocks.register(cufile)) {
                unregistered = Some(error.to_string());
            }
            let slices = tables.tiles.as_ref().map(|_| -> Result<_> {
                let most = batch_size * Survey::most_slices(tables.block_bytes);
                Ok((DeviceBuf::new(device, most)?, DeviceBuf::new(device, 1)?))
            });
            Ok(Slot {
                stream: Stream::new(device)?,
                computed: Event::new(device)?,
                blocks,
                damaged: DeviceBuf::new(device, BATCH)?,
                slices: slices.transpose()?,
            })
        };
        let slots = (0..count).map(slot).collect::<Result<_>>()?;
        let (gathered, batch, copies) = (Vec::new(), Vec::new(), Copies::default());
        Ok(Self {
            copies,
            slots,
            next: 0,
            gathered,
            batch,
            batch_size,
            timeline,
            synchronous,
            unregistered,
        })
    }

    /// These slots, for one pass of some programs.
    pub fn stage<'a, P: Program>(
        &'a mut self,
        tables: &'a Tables,
        kernel: &'a EdgeMap<P>,
        programs: &'a [P],
        active: Option<&'a DeviceBuf<u8>>,
    ) -> Computing<'a, P> {
        Computing { slots: self, tables, kernel, programs, active, is_over: false }
    }

    /// Whether the next slot takes another block.
    fn has_room(&self) -> bool {
        self.batch.len() + self.gathered.len() < self.batch_size
    }

    /// Why cuFile does not know them, where it was to.
    pub fn unregistered(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// When they did what.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Waits until all that programs were given is done.
    pub fn synchronize(&self) -> Result<()> {
        self.slots.iter().try_for_each(|slot| slot.computed.synchronize())
    }
}

/// Slots that programs compute in.
pub(in crate::gpu) struct Computing<'a, P> {
    slots: &'a mut Slots,
    tables: &'a Tables,
    kernel: &'a EdgeMap<P>,
    programs: &'a [P],
    active: Option<&'a DeviceBuf<u8>>,
    /// The pass is: what comes now is for the one after it, and only copied.
    is_over: bool,
}

impl<P: Program> Computing<'_, P> {
    /// Has `read` bring a block to the next slot, whose bytes are all there when it returns; once
    /// a batch is there, starts computing.
    pub fn fill(
        &mut self,
        block: u32,
        read: impl FnOnce(&DeviceBuf<u8>, usize) -> Result<()>,
    ) -> Result<()> {
        let slots = &mut *self.slots;
        let Slot { stream, blocks, .. } = &slots.slots[slots.next];
        if slots.batch.is_empty() {
            // A read is in no stream's order: it would overwrite what kernels still look at.
            stream.synchronize()?;
        }
        read(blocks, slots.batch.len() * self.tables.block_bytes)?;
        slots.batch.push(block);
        self.compute_full()
    }

    /// Starts copying what was gathered; once a batch is there, starts computing.
    fn copy(&mut self) -> Result<()> {
        let slots = &mut *self.slots;
        if slots.gathered.is_empty() {
            return Ok(());
        }
        let (size, at) = (self.tables.block_bytes, slots.batch.len() * self.tables.block_bytes);
        slots.gathered.sort_unstable_by_key(|(_, buffer)| buffer.as_ptr());
        slots.batch.extend(slots.gathered.iter().map(|(block, _)| *block));
        let Slot { stream, blocks, .. } = &mut slots.slots[slots.next];
        let on = (&*stream, &mut slots.timeline);
        slots.copies.start(on, (blocks, at), (slots.gathered.drain(..), size))?;
        self.compute_full()
    }

    /// Starts computing if the next slot is full.
    fn compute_full(&mut self) -> Result<()> {
        let is_full = self.slots.batch.len() == self.slots.batch_size;
        if is_full && !self.is_over { self.compute() } else { Ok(()) }
    }

    /// Starts computing on what the next slot has.
    pub fn compute(&mut self) -> Result<()> {
        let slots = &mut *self.slots;
        if slots.batch.is_empty() {
            return Ok(());
        }
        let numbers = std::mem::take(&mut slots.batch);
        let following = (slots.next + 1) % slots.slots.len();
        let number = std::mem::replace(&mut slots.next, following);
        let Slot { stream, computed, blocks, damaged, slices } = &mut slots.slots[number];
        let (stream, timeline) = (&*stream, &mut slots.timeline);
        let (size, tables) = (self.tables.block_bytes, self.tables);
        let mut batch = Blocks::batch(blocks, size, &numbers);
        if let Some(checks) = &tables.checks {
            let count = numbers.len() as u32;
            timeline.span((Track::Device, "checksum"), stream, || {
                stream.fill_bytes(damaged, 0)?;
                checks.checksum.check(stream, batch, count, (damaged, &checks.worst))
            })?;
            batch = batch.unless(damaged);
        }
        let edge_map = (Track::Device, "edge_map");
        match (&tables.tiles, slices) {
            (Some(tiles), Some((slices, count))) => {
                timeline.span((Track::Device, "survey"), stream, || {
                    stream.fill_bytes(count, 0)?;
                    let of_block = numbers.iter().map(|&block| tiles.segments_of(block));
                    let into = (&*slices, &*count);
                    tiles.survey.batch(stream, batch, &tiles.segments, of_block, into)
                })?;
                let pass = tiles.pass(batch, Slices::Counted(slices, count), self.active);
                let run = |program| self.kernel.tiles(stream, &pass, program);
                timeline.span(edge_map, stream, || self.programs.iter().try_for_each(run))?;
            }
            _ => {
                let run = |program| self.kernel.raw(stream, batch, size, program);
                timeline.span(edge_map, stream, || self.programs.iter().try_for_each(run))?;
            }
        }
        computed.record(stream)?;
        if slots.synchronous { stream.synchronize() } else { Ok(()) }
    }
}

impl<P: Program> Stage for Computing<'_, P> {
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()> {
        let slots = &mut *self.slots;
        slots.gathered.push((block, buffer));
        if slots.has_room() { Ok(()) } else { self.copy() }
    }

    fn pause(&mut self) -> Result<()> {
        // All of it may have been copied before this pass.
        self.compute_full()?;
        // While earlier copies are under way, more may join these.
        if self.slots.copies.are_done()? { self.copy() } else { Ok(()) }
    }

    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        self.slots.copies.give_back(to, wait)
    }

    fn finish(&mut self) -> Result<()> {
        self.copy()?;
        self.compute()?;
        self.is_over = true;
        Ok(())
    }

    fn has_room_ahead(&self) -> bool {
        self.slots.has_room()
    }

    fn forget(&mut self, to: &mut Vec<(u32, AlignedBuf)>) -> Result<()> {
        self.slots.batch.clear();
        to.append(&mut self.slots.gathered);
        self.slots.copies.finish(to)
    }
}
