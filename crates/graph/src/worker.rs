//! One worker of a pass: an engine, buffers, and the reads that it has taken.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_io::{Done, Read, ReadEngine, Wait};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::Totals;
use crate::plan::{Plan, Want, want_of};

/// Reads up to this size use small buffers.
pub(crate) const SMALL_READ: usize = 64 << 10;

/// Blocks in flight a worker.
pub(crate) const BLOCKS_IN_FLIGHT: usize = 8;

/// Large buffers are made this many at a time.
const LARGE_BATCH: usize = 2;

/// The reads of one pass that a worker has taken.
pub(crate) struct Taken<W> {
    /// What there was no room to read yet.
    pub(crate) waiting: Option<W>,
    pub(crate) in_flight: usize,
    /// What arrived, in the order of completion.
    pub(crate) arrived: VecDeque<Done>,
}

impl<W> Default for Taken<W> {
    fn default() -> Self {
        Self { waiting: None, in_flight: 0, arrived: VecDeque::new() }
    }
}

/// A worker's engine and buffers.
pub(crate) struct Worker {
    engine: Box<dyn ReadEngine>,
    block_bytes: usize,
    small: Vec<AlignedBuf>,
    large: Vec<AlignedBuf>,
    /// Large buffers that may exist; small ones are as many as the engine takes.
    large_left: usize,
    done: Vec<Done>,
    now: Taken<usize>,
    /// Of the pass after this.
    later: Taken<usize>,
    /// The engine failed with reads in flight, which may still complete.
    pub(crate) broken: bool,
}

impl Worker {
    pub(crate) fn new(engine: Box<dyn ReadEngine>, block_bytes: usize) -> Self {
        Self {
            engine,
            block_bytes,
            small: Vec::new(),
            large: Vec::new(),
            large_left: BLOCKS_IN_FLIGHT,
            done: Vec::new(),
            now: Taken::default(),
            later: Taken::default(),
            broken: false,
        }
    }

    /// What was begun for the next pass is this pass's.
    pub(crate) fn begin(&mut self) {
        self.now = std::mem::take(&mut self.later);
    }

    /// Begins reads while there are buffers and room: of `plan`, and once those are all begun, of
    /// the pass after it. Whether all of `plan` are begun.
    pub(crate) fn fill(&mut self, number: usize, plan: &Plan, next: Option<&Plan>) -> Result<bool> {
        let mut now = std::mem::take(&mut self.now);
        let begun = self.begin_reads(number, plan, &mut now);
        self.now = now;
        if !begun? {
            return Ok(false);
        }
        if let Some(next) = next {
            let mut later = std::mem::take(&mut self.later);
            let begun = self.begin_reads(number, next, &mut later);
            self.later = later;
            begun?;
        }
        Ok(true)
    }

    fn begin_reads(
        &mut self,
        number: usize,
        plan: &Plan,
        taken: &mut Taken<usize>,
    ) -> Result<bool> {
        while let Some(want) = taken.waiting.take().or_else(|| plan.next(number)) {
            if !self.read(plan, want)? {
                taken.waiting = Some(want);
                return Ok(false);
            }
            taken.in_flight += 1;
        }
        Ok(true)
    }

    /// Begins a read; false where there is no buffer or no room for it.
    fn read(&mut self, plan: &Plan, want: usize) -> Result<bool> {
        let Want { file, offset, len, .. } = *plan.want(want);
        if self.engine.in_flight() == self.engine.capacity() {
            return Ok(false);
        }
        let Some(buffer) = self.buffer(len)? else { return Ok(false) };
        let read = Read { file, offset, len, buffer, tag: plan.tag(want) };
        let refused = self.engine.submit(read).err();
        let begun = refused.is_none();
        refused.into_iter().for_each(|read| self.give_back(read.buffer));
        Ok(begun)
    }

    /// Looks for completions.
    pub(crate) fn poll(&mut self, plan: &Plan, wait: Wait) -> Result<()> {
        let polled = self.engine.poll(&mut self.done, wait);
        for done in self.done.drain(..) {
            let taken = if plan.has(done.tag) { &mut self.now } else { &mut self.later };
            taken.in_flight -= 1;
            taken.arrived.push_back(done);
        }
        polled
    }

    /// What arrived next of this pass: its want, its buffer, how many bytes were read.
    pub(crate) fn arrived(&mut self) -> Option<(usize, AlignedBuf, Result<usize>)> {
        let Done { tag, buffer, result } = self.now.arrived.pop_front()?;
        Some((want_of(tag), buffer, result))
    }

    /// Whether reads of this pass are in flight.
    pub(crate) fn is_reading(&self) -> bool {
        self.now.in_flight > 0
    }

    /// A buffer for `len` bytes; `None` while all are in flight.
    fn buffer(&mut self, len: usize) -> Result<Option<AlignedBuf>> {
        if len <= SMALL_READ {
            return match self.small.pop() {
                Some(buffer) => Ok(Some(buffer)),
                // A block's own size where that is smaller, so that it can become resident.
                None => AlignedBuf::zeroed(SMALL_READ.min(self.block_bytes)).map(Some),
            };
        }
        if let Some(buffer) = self.large.pop() {
            return Ok(Some(buffer));
        }
        // Several at a time, because they then lie on huge pages, which reads are faster into.
        if self.large_left < LARGE_BATCH && self.engine.in_flight() > 0 || self.large_left == 0 {
            return Ok(None);
        }
        let count = self.large_left.min(LARGE_BATCH);
        self.large = AlignedBuf::batch(count, self.block_bytes.next_multiple_of(PAGE_BYTES))?;
        self.large_left -= count;
        Ok(self.large.pop())
    }

    pub(crate) fn give_back(&mut self, buffer: AlignedBuf) {
        if buffer.len() <= SMALL_READ { self.small.push(buffer) } else { self.large.push(buffer) }
    }

    /// A buffer of `len` bytes stays with the cache: another may be made.
    pub(crate) fn gave_away(&mut self, len: usize) {
        self.large_left += usize::from(len > SMALL_READ);
    }

    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = |taken: &Taken<usize>| taken.waiting.is_none() && taken.arrived.is_empty();
        self.engine.in_flight() == 0 && is_empty(&self.now) && is_empty(&self.later)
    }

    /// Waits for every read in flight and takes all buffers back: what is left of one pass must
    /// not arrive in another.
    pub(crate) fn drain(&mut self, totals: &Totals) {
        let mut left: Vec<Done> = self.done.drain(..).collect();
        for taken in [&mut self.now, &mut self.later] {
            left.extend(std::mem::take(taken).arrived);
        }
        while self.engine.in_flight() > 0 && !self.broken {
            self.broken = self.engine.poll(&mut left, Wait::All).is_err();
        }
        for done in left {
            totals.read(done.result.unwrap_or(0) as u64);
            self.give_back(done.buffer);
        }
    }
}
