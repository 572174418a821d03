//! A worker's slots on the device: reading → copying → computing → free.
//!
//! A block that was read into host memory is copied to its slot, and its buffer is free when the copy
//! has ended. A block that is read into the slot itself stays there until it was computed on.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_core::trace::Track;
use tiergraph_gpu::kernels::{Blocks, CountedSlices, MAX_BATCH, Program, SliceIndex};
use tiergraph_gpu::{CuFile, Device, DeviceBuf, DeviceSpan, Event, Stream};
use tiergraph_io::pipeline::{Block, Bytes, Consumer, Room};

use super::copies::{BlockCopy, Copies};
use super::index::BlockIndex;
use super::slot_plan::SlotPlan;
use super::stream::{Selection, Work};
use crate::gpu::timeline::Timeline;

/// The slots that one worker fills in turn.
pub(in crate::gpu) struct Slots {
    /// Copies to the slots, which are declared, and so dropped, after them.
    copies: Copies,
    slots: Vec<Slot>,
    /// The index of the slot that is being filled.
    next: usize,
    /// Blocks that will be copied to the next slot together: on a link that gives 55 GB/s, copies of
    /// 1 MiB get 48, of 4 MiB 53 and of 8 MiB 54.
    gathered: Vec<Block>,
    /// The number of blocks in a slot, which are computed on together.
    batch_size: usize,
    timeline: Timeline,
    /// Whether the worker finishes one block before it reads the next, so that nothing overlaps.
    synchronous: bool,
    /// Whether blocks are read into slots, past host memory.
    direct: bool,
    /// Why the slots could not be registered with cuFile; `None` where they were, or need not be.
    unregistered: Option<String>,
}

/// Room for a batch of blocks, and the stream that copies it there and computes on it: work on a stream
/// waits for the work before it, so a slot is free when its turn comes.
struct Slot {
    stream: Stream,
    /// An event that happens when the last batch was computed on; copies since then may be under way.
    computed: Event,
    bytes: Arc<DeviceBuf<u8>>,
    /// Numbers of the requests whose blocks are in the slot or being read into it, in their order there.
    batch: Vec<usize>,
    /// Blocks that were read into the slot; once all of the batch are, they are computed on.
    arrived: Vec<Block>,
    is_computing: bool,
    /// For each block of the batch, 1 if it is damaged.
    damaged: DeviceBuf<u32>,
    /// Where the blocks' slices begin, where blocks are packed.
    slices: Option<CountedSlices>,
}

impl Slots {
    /// One worker's slots, registered with `cufile` if that reads into them.
    pub fn new(
        device: &Device,
        plan: SlotPlan,
        index: &BlockIndex,
        cufile: Option<&'static CuFile>,
        timeline: Timeline,
    ) -> Result<Self> {
        let SlotPlan { slots: count, batch: batch_size, .. } = plan;
        let mut unregistered = None;
        let slot = |_| {
            let mut bytes = DeviceBuf::new(device, batch_size * index.block_bytes)?;
            if let Some(Err(error)) = cufile.map(|cufile| bytes.register(cufile)) {
                unregistered = Some(error.to_string());
            }
            let slices = index
                .tiles
                .as_ref()
                .map(|_| CountedSlices::new(device, batch_size, index.block_bytes));
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
            synchronous: plan.is_synchronous(),
            direct,
            unregistered,
        })
    }

    /// The consumer of one pass's blocks, which does `work` in these slots.
    pub fn for_pass<'a, P: Program>(
        &'a mut self,
        selection: Selection<'a>,
        work: Work<'a, P>,
    ) -> Computing<'a, P> {
        Computing { slots: self, selection, work, is_over: false }
    }

    /// Whether the slot that is being filled takes another block.
    fn has_room(&self) -> bool {
        self.slots[self.next].batch.len() + self.gathered.len() < self.batch_size
    }

    /// Why the slots could not be registered with cuFile; `None` where they were, or need not be.
    pub fn unregistered(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// The timeline of the work in these slots.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// Waits until all batches were computed on.
    pub fn synchronize(&self) -> Result<()> {
        self.slots.iter().try_for_each(|slot| slot.computed.synchronize())
    }
}

/// The consumer of a pass's blocks: fills a worker's slots and computes in them.
pub(in crate::gpu) struct Computing<'a, P> {
    slots: &'a mut Slots,
    /// The blocks of the pass: request number i is for block `blocks[i]`.
    selection: Selection<'a>,
    work: Work<'a, P>,
    /// Whether the pass is over: blocks that arrive now are for the next one, and only copied.
    is_over: bool,
}

impl<P: Program> Computing<'_, P> {
    /// Starts copying the gathered blocks; once the slot has a whole batch, starts computing.
    fn copy(&mut self) -> Result<()> {
        let (slots, block_bytes) = (&mut *self.slots, self.selection.index.block_bytes);
        if slots.gathered.is_empty() {
            return Ok(());
        }
        slots.gathered.sort_unstable_by_key(|block| block.as_ref().as_ptr());
        let Slot { stream, bytes: to, batch, .. } = &mut slots.slots[slots.next];
        let at = batch.len() * block_bytes;
        batch.extend(slots.gathered.iter().map(|block| block.number));
        let blocks = std::mem::take(&mut slots.gathered);
        let copy = BlockCopy { blocks, block_bytes, to, at };
        slots.copies.start(copy, stream, &mut slots.timeline)?;
        self.compute_full()
    }

    /// Starts computing if the next slot was filled by copies.
    fn compute_full(&mut self) -> Result<()> {
        let slots = &*self.slots;
        let is_full = slots.slots[slots.next].batch.len() == slots.batch_size;
        if is_full && !slots.direct && !self.is_over { self.compute(slots.next) } else { Ok(()) }
    }

    /// Starts computing on the blocks in slot `number`.
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
        let Selection { index, blocks } = self.selection;
        let Work { kernel, programs, active } = self.work;
        let numbers: Vec<u32> = batch.drain(..).map(|request| blocks[request]).collect();
        *is_computing = true;
        let (stream, timeline) = (&*stream, &mut slots.timeline);
        let size = index.block_bytes;
        let mut batch = Blocks::batch(bytes, size, &numbers);
        if let Some(checks) = &index.checks {
            let count = numbers.len() as u32;
            timeline.span(Track::Device, "checksum", stream, || {
                stream.fill_bytes(damaged, 0)?;
                checks.checksum.check(stream, batch, count, damaged, &checks.first_damaged)
            })?;
            batch = batch.without(damaged);
        }
        match (&index.tiles, slices) {
            (Some(tiles), Some(slices)) => {
                timeline.span(Track::Device, "index slices", stream, || {
                    let ranges = numbers.iter().map(|&block| tiles.segments_of(block));
                    tiles.indexer.index_batch(stream, batch, &tiles.segments, ranges, slices)
                })?;
                let pass = tiles.pass(batch, SliceIndex::Batch(slices), active);
                let run = |program| kernel.tiles(stream, &pass, program);
                let run_all = || programs.iter().try_for_each(run);
                timeline.span(Track::Device, "edge_map", stream, run_all)?;
            }
            _ => {
                let run = |program| kernel.raw(stream, batch, size, program);
                let run_all = || programs.iter().try_for_each(run);
                timeline.span(Track::Device, "edge_map", stream, run_all)?;
            }
        }
        computed.record(stream)?;
        if slots.synchronous { stream.synchronize() } else { Ok(()) }
    }

    /// Takes a block that was read into its slot; once all of the batch are there, starts computing.
    fn arrive(&mut self, block: Block) -> Result<()> {
        let slots = &mut *self.slots;
        let slot = slots.slots.iter().position(|slot| slot.batch.contains(&block.number));
        let Some(slot) = slot else { return Ok(()) };
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
        let size = self.selection.index.block_bytes;
        let at = batch.len() * size;
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
