//! A worker's slots on the device: reading → copying → computing → free.
//!
//! A block that was read into host memory is copied to its slot, and its buffer is free when the copy has
//! ended. A block that is read into the slot itself stays there until it was computed on.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::kernels::{Blocks, CountedSlices, EdgeMap, MAX_BATCH, Program, SliceIndex};
use tiergraph_gpu::{CuFile, Device, DeviceBuf, DeviceSpan, Event, Stream};
use tiergraph_io::pipeline::{Block, Bytes, Consumer, Room};

use super::copies::Copies;
use super::shape::Shape;
use super::tables::Tables;
use crate::gpu::timeline::Timeline;

/// Slots that one worker fills in turn.
pub(in crate::gpu) struct Slots {
    /// To the slots, which therefore drop after them.
    copies: Copies,
    slots: Vec<Slot>,
    /// The slot that is being filled.
    next: usize,
    /// What is to be copied to the next slot, together: on a link that gives 55 GB/s, copies of 1 MiB
    /// get 48, of 4 MiB 53 and of 8 MiB 54.
    gathered: Vec<Block>,
    /// Blocks that are computed on together.
    batch_size: usize,
    timeline: Timeline,
    synchronous: bool,
    /// Whether blocks are read into slots, past host memory.
    direct: bool,
    /// Why cuFile does not know them, where it was to.
    unregistered: Option<String>,
}

/// Room for a batch of blocks, and the stream that brings it and computes on it: what the stream is
/// given next waits for what it was given before, so a slot is free when its turn comes.
struct Slot {
    stream: Stream,
    /// The last batch was computed on; what was copied since may be under way.
    computed: Event,
    bytes: Arc<DeviceBuf<u8>>,
    /// The requests whose blocks are here or being read here, in this order.
    batch: Vec<usize>,
    /// Blocks that were read here, and are being computed on once all of the batch are.
    arrived: Vec<Block>,
    is_computing: bool,
    /// Which of them are damaged.
    damaged: DeviceBuf<u32>,
    /// Where the blocks' slices begin, where blocks are packed.
    slices: Option<CountedSlices>,
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
            let mut bytes = DeviceBuf::new(device, batch_size * tables.block_bytes)?;
            if let Some(Err(error)) = cufile.map(|cufile| bytes.register(cufile)) {
                unregistered = Some(error.to_string());
            }
            let slices = tables
                .tiles
                .as_ref()
                .map(|_| CountedSlices::new(device, batch_size, tables.block_bytes));
            Ok(Slot {
                stream: Stream::new(device)?,
                computed: Event::new(device)?,
                bytes: Arc::new(bytes),
                batch: Vec::new(),
                arrived: Vec::new(),
                is_computing: false,
                damaged: DeviceBuf::new(device, MAX_BATCH)?,
                slices: slices.transpose()?,
            })
        };
        let slots = (0..count).map(slot).collect::<Result<_>>()?;
        let (gathered, copies, direct) = (Vec::new(), Copies::default(), cufile.is_some());
        Ok(Self {
            copies,
            slots,
            next: 0,
            gathered,
            batch_size,
            timeline,
            synchronous,
            direct,
            unregistered,
        })
    }

    /// These slots, for one pass of some programs over `wanted` blocks.
    pub fn for_pass<'a, P: Program>(
        &'a mut self,
        (tables, wanted): (&'a Tables, &'a [u32]),
        (kernel, programs, active): (&'a EdgeMap<P>, &'a [P], Option<&'a DeviceBuf<u8>>),
    ) -> Computing<'a, P> {
        Computing { slots: self, tables, wanted, kernel, programs, active, is_over: false }
    }

    /// Whether the next slot takes another block.
    fn has_room(&self) -> bool {
        self.slots[self.next].batch.len() + self.gathered.len() < self.batch_size
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
    /// The blocks of the pass's requests.
    wanted: &'a [u32],
    kernel: &'a EdgeMap<P>,
    programs: &'a [P],
    active: Option<&'a DeviceBuf<u8>>,
    /// The pass is: what comes now is for the one after it, and only copied.
    is_over: bool,
}

impl<P: Program> Computing<'_, P> {
    /// Starts copying what was gathered; once a batch is there, starts computing.
    fn copy(&mut self) -> Result<()> {
        let (slots, size) = (&mut *self.slots, self.tables.block_bytes);
        if slots.gathered.is_empty() {
            return Ok(());
        }
        slots.gathered.sort_unstable_by_key(|block| block.as_ref().as_ptr());
        let Slot { stream, bytes, batch, .. } = &mut slots.slots[slots.next];
        let at = batch.len() * size;
        batch.extend(slots.gathered.iter().map(|block| block.number));
        let on = (&*stream, &mut slots.timeline);
        slots.copies.start(on, (bytes, at), (std::mem::take(&mut slots.gathered), size))?;
        self.compute_full()
    }

    /// Starts computing if the next slot was filled by copies.
    fn compute_full(&mut self) -> Result<()> {
        let slots = &*self.slots;
        let is_full = slots.slots[slots.next].batch.len() == slots.batch_size;
        if is_full && !slots.direct && !self.is_over { self.compute(slots.next) } else { Ok(()) }
    }

    /// Starts computing on what a slot has.
    fn compute(&mut self, number: usize) -> Result<()> {
        let slots = &mut *self.slots;
        if slots.slots[number].batch.is_empty() {
            return Ok(());
        }
        if number == slots.next {
            slots.next = (slots.next + 1) % slots.slots.len();
        }
        let Slot { stream, computed, bytes, batch, is_computing, damaged, slices, .. } =
            &mut slots.slots[number];
        let numbers: Vec<u32> = batch.drain(..).map(|request| self.wanted[request]).collect();
        *is_computing = true;
        let (stream, timeline) = (&*stream, &mut slots.timeline);
        let (size, tables) = (self.tables.block_bytes, self.tables);
        let mut batch = Blocks::batch(bytes, size, &numbers);
        if let Some(checks) = &tables.checks {
            let count = numbers.len() as u32;
            timeline.span((Track::Device, "checksum"), stream, || {
                stream.fill_bytes(damaged, 0)?;
                checks.checksum.check(stream, batch, count, damaged, &checks.first_damaged)
            })?;
            batch = batch.without(damaged);
        }
        let edge_map = (Track::Device, "edge_map");
        match (&tables.tiles, slices) {
            (Some(tiles), Some(slices)) => {
                timeline.span((Track::Device, "index slices"), stream, || {
                    let ranges = numbers.iter().map(|&block| tiles.segments_of(block));
                    tiles.indexer.index_batch(stream, batch, &tiles.segments, ranges, slices)
                })?;
                let pass = tiles.pass(batch, SliceIndex::Batch(slices), self.active);
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

    /// Takes a block that was read into its slot; once all of the batch are there, starts computing.
    fn arrive(&mut self, block: Block) -> Result<()> {
        let slots = &mut *self.slots;
        let place = slots.slots.iter().position(|slot| slot.batch.contains(&block.number));
        let Some(slot) = place else { return Ok(()) };
        slots.slots[slot].arrived.push(block);
        let is_full = slots.slots[slot].arrived.len() == slots.batch_size;
        if is_full { self.compute(slot) } else { Ok(()) }
    }
}

impl<P: Program> Consumer for Computing<'_, P> {
    const ACTIVITY: &'static str = "copy";

    fn room(&mut self, number: usize) -> Result<Room> {
        let slots = &mut *self.slots;
        if !slots.direct {
            return Ok(Room::Buffer);
        }
        if slots.slots[slots.next].batch.len() == slots.batch_size {
            slots.next = (slots.next + 1) % slots.slots.len();
        }
        let Slot { bytes, batch, is_computing, .. } = &mut slots.slots[slots.next];
        if *is_computing || batch.len() == slots.batch_size {
            return Ok(Room::None);
        }
        let (at, size) = (batch.len() * self.tables.block_bytes, self.tables.block_bytes);
        batch.push(number);
        Ok(Room::Device(DeviceSpan::new(bytes, at..at + size)))
    }

    fn take(&mut self, block: Block, _back: &mut Vec<Block>) -> Result<()> {
        if matches!(block.bytes, Bytes::Device(_)) {
            return self.arrive(block);
        }
        // All of the slot may have been copied before this pass.
        self.compute_full()?;
        self.slots.gathered.push(block);
        if self.slots.has_room() { Ok(()) } else { self.copy() }
    }

    fn idle(&mut self) -> Result<bool> {
        self.compute_full()?;
        // While earlier copies are under way, more may join these.
        if self.slots.copies.are_done()? {
            self.copy()?;
        }
        Ok(false)
    }

    fn give_back(&mut self, back: &mut Vec<Block>, mut wait: bool) -> Result<()> {
        let slots = &mut *self.slots;
        let count = slots.slots.len();
        for i in 1..=count {
            // The one after the next was begun first.
            let slot = &mut slots.slots[(slots.next + i) % count];
            if !slot.is_computing || slot.arrived.is_empty() {
                slot.is_computing = false;
                continue;
            }
            if wait {
                slot.computed.synchronize()?;
            }
            if wait || slot.computed.happened()? {
                (slot.is_computing, wait) = (false, false);
                back.append(&mut slot.arrived);
            }
        }
        if slots.direct { Ok(()) } else { slots.copies.give_back(back, wait) }
    }

    fn finish(&mut self) -> Result<()> {
        self.copy()?;
        for number in 0..self.slots.slots.len() {
            let Slot { batch, arrived, .. } = &self.slots.slots[number];
            // Where reads failed, a batch has holes.
            if !self.slots.direct || arrived.len() == batch.len() {
                self.compute(number)?;
            }
        }
        self.is_over = true;
        Ok(())
    }

    fn has_room_ahead(&self) -> bool {
        !self.slots.direct && self.slots.has_room()
    }

    fn forget(&mut self, back: &mut Vec<Block>) -> Result<()> {
        let slots = &mut *self.slots;
        for slot in &mut slots.slots {
            // A read is in no stream's order: after a failure, kernels may still look at what it would
            // overwrite.
            if slot.is_computing {
                slot.computed.synchronize()?;
            }
            slot.batch.clear();
            back.append(&mut slot.arrived);
            slot.is_computing = false;
        }
        back.append(&mut slots.gathered);
        slots.copies.finish(back)
    }
}
