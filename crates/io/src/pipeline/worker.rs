//! One worker of a pass: an engine, buffers, the reads that it has taken, and the loop.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tiergraph_core::metrics::Totals;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::AlignedBuf;

use super::plan::{Shares, request_of};
use super::{Block, Buffers, Bytes, Consumer, Plan, Room, SMALL_READ_BYTES, Surroundings};
use crate::{Destination, Done, Read, ReadEngine, Wait};

/// One pass, as its workers share it: the plan, its resident blocks, the plan of the next pass, the
/// counters and trace of the run, a stop flag and the first error.
pub struct Pass<'a> {
    plan: &'a Plan,
    /// The plan of the pass after this, where it is known.
    next: Option<&'a Plan>,
    /// Whether this pass's reads have begun at the end of the one before.
    is_begun: bool,
    /// Numbers of requests, with their blocks: these stay until the pass ends, whatever another run
    /// makes the cache give up.
    resident: Vec<(usize, Arc<AlignedBuf>)>,
    resident_shares: Shares,
    around: Surroundings<'a>,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl<'a> Pass<'a> {
    /// A pass of one worker over a plan of which nothing is resident; no pass is known to follow.
    pub fn of_one(plan: &'a Plan, around: Surroundings<'a>) -> Self {
        Self::new(plan, None, false, Vec::new(), 1, around)
    }

    pub(super) fn new(
        plan: &'a Plan,
        next: Option<&'a Plan>,
        is_begun: bool,
        resident: Vec<(usize, Arc<AlignedBuf>)>,
        workers: usize,
        around: Surroundings<'a>,
    ) -> Self {
        let resident_shares = Shares::new(resident.len(), workers);
        let (stop, failure) = (AtomicBool::new(false), Mutex::new(None));
        Self { plan, next, is_begun, resident, resident_shares, around, stop, failure }
    }

    /// Ends the pass with an error; the first one counts.
    pub(super) fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn into_failure(self) -> Option<Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reads of one pass that a worker has taken.
#[derive(Default)]
struct Taken {
    /// The request that there was no room to read yet.
    waiting: Option<usize>,
    in_flight: usize,
    /// Those into large buffers that the consumer has not been handed yet.
    large: usize,
    /// What arrived, in the order of completion.
    arrived: VecDeque<Done>,
}

/// A worker of passes: an engine, buffers, and the reads and blocks that are under way.
pub struct Worker {
    number: usize,
    engine: Box<dyn ReadEngine>,
    pub(super) buffers: Buffers,
    /// Reads on their way to the engine.
    queue: VecDeque<Read>,
    done: Vec<Done>,
    now: Taken,
    /// The reads of the pass after this.
    later: Taken,
    /// Blocks that the consumer has, and resident ones among them.
    held: usize,
    held_resident: usize,
    /// Bytes of each block that the consumer has of the pass after this.
    ahead: Vec<u64>,
    /// Blocks on their way back from the consumer.
    back: Vec<Block>,
    /// The engine failed with reads in flight, which may still complete.
    pub(super) is_broken: bool,
}

impl Worker {
    /// Worker `number` of its passes, which reads by `engine` into `buffers`.
    pub fn new(number: usize, engine: Box<dyn ReadEngine>, buffers: Buffers) -> Self {
        Self {
            number,
            engine,
            buffers,
            queue: VecDeque::new(),
            done: Vec::new(),
            now: Taken::default(),
            later: Taken::default(),
            held: 0,
            held_resident: 0,
            ahead: Vec::new(),
            back: Vec::new(),
            is_broken: false,
        }
    }

    /// The buffers that the worker reads into.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Does this worker's part of a pass: returns when `consumer` took all blocks that no other worker
    /// takes, and gave its buffers back. After an error, reads may be in flight: [`drain`](Self::drain)
    /// ends them.
    ///
    /// # Errors
    /// A read that fails for good, an error of the consumer, cancellation.
    pub fn run(&mut self, pass: &Pass<'_>, consumer: &mut impl Consumer) -> Result<()> {
        if pass.is_begun {
            self.now = std::mem::take(&mut self.later);
            self.ahead.drain(..).for_each(|bytes| pass.around.totals.read(bytes));
        } else {
            self.begin_anew(pass, consumer)?;
        }
        // Whatever happened: a consumer gives no block back that waits for more of them.
        let worked = self.work(pass, consumer);
        let since = Instant::now();
        let worked = worked.and(consumer.finish());
        pass.around.totals.computed(since);
        let emptied = self.empty(pass, consumer, worked.is_ok());
        worked.and(emptied)
    }

    /// Ends what was begun for a pass that does not come, or that failed, and takes its buffers back.
    ///
    /// # Errors
    /// An error of the consumer.
    pub(super) fn begin_anew(
        &mut self,
        pass: &Pass<'_>,
        consumer: &mut impl Consumer,
    ) -> Result<()> {
        self.drain(pass.around.totals);
        let forgotten = consumer.forget(&mut self.back);
        self.ahead.clear();
        self.recycle(pass, false);
        (self.held, self.held_resident) = (0, 0);
        forgotten
    }

    fn work(&mut self, pass: &Pass<'_>, consumer: &mut impl Consumer) -> Result<()> {
        while !pass.stop.load(Ordering::Relaxed) {
            pass.around.cancels.iter().try_for_each(|cancel| cancel.check(pass.around.op))?;
            let all_begun = self.fill(pass, consumer)?;
            self.poll(pass, Wait::No)?;
            if self.now.arrived.is_empty() {
                if self.hand_over_resident(pass, consumer)? {
                    continue;
                }
                let is_reading = self.now.in_flight > 0;
                // What has not gone out yet, because the consumer has enough for now.
                let waiting = !pass.resident_shares.are_empty();
                if !is_reading && all_begun && !waiting {
                    return Ok(());
                }
                if consumer.idle()? {
                    continue;
                }
                self.wait(pass, consumer, is_reading, waiting)?;
            }
            // From the end: a buffer that was just filled may still be in the processor's cache.
            while let Some(done) = self.now.arrived.pop_back() {
                let is_large = done.to.len() > SMALL_READ_BYTES;
                self.arrived(pass, consumer, done)?;
                self.fill(pass, consumer)?;
                // Reads start at a poll: the drive would idle while the rest of a burst is
                // processed, and then answer in bursts for ever. Small reads are worth one call
                // for many.
                if is_large {
                    self.poll(pass, Wait::No)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for a read, or for the consumer to give something back.
    fn wait(
        &mut self,
        pass: &Pass<'_>,
        consumer: &mut impl Consumer,
        is_reading: bool,
        is_resident_waiting: bool,
    ) -> Result<()> {
        let since = Instant::now();
        let given = self.take_back(pass, consumer, (!is_reading || is_resident_waiting, false))?;
        match (given, is_reading) {
            (0, true) => self.poll(pass, Wait::One)?,
            (0, false) => return Err(stuck()),
            _ => {}
        }
        pass.around.totals.waited(since);
        pass.around.trace.span("wait", "read", self.number as u32, since);
        Ok(())
    }

    /// Begins reads while there is room: of this pass, and once those are all begun, of the pass after
    /// it. Whether all of this one are begun.
    fn fill(&mut self, pass: &Pass<'_>, consumer: &mut impl Consumer) -> Result<bool> {
        let mut now = std::mem::take(&mut self.now);
        let all_begun = self.begin_reads(pass.plan, &mut now, consumer, pass.around.held);
        self.now = now;
        let all_begun = all_begun?;
        if let (true, Some(next)) = (all_begun, pass.next) {
            let mut later = std::mem::take(&mut self.later);
            let begun = self.begin_reads(next, &mut later, consumer, 0);
            self.later = later;
            begun?;
        }
        self.engine.submit(&mut self.queue);
        Ok(all_begun)
    }

    fn begin_reads(
        &mut self,
        plan: &Plan,
        taken: &mut Taken,
        consumer: &mut impl Consumer,
        held: usize,
    ) -> Result<bool> {
        while let Some(number) = taken.waiting.take().or_else(|| plan.next(self.number)) {
            let super::Request { file, offset, len, .. } = plan.requests[number];
            // What is taken for the pass after this, or what is for this one.
            let large = taken.large + self.now.large + self.later.large;
            let is_room = len <= SMALL_READ_BYTES || large < self.buffers.large_at_once(held);
            let Some(to) = self.destination(number, len, consumer, is_room)? else {
                taken.waiting = Some(number);
                return Ok(false);
            };
            taken.large += usize::from(is_large(&to));
            self.queue.push_back(Read { file, offset, len, to, at: 0, tag: plan.tag(number) });
            taken.in_flight += 1;
        }
        Ok(true)
    }

    /// Where a request's bytes go; none while there is no room, for a buffer's where not `is_room`.
    fn destination(
        &mut self,
        number: usize,
        len: usize,
        consumer: &mut impl Consumer,
        is_room: bool,
    ) -> Result<Option<Destination>> {
        let in_flight = self.engine.in_flight() + self.queue.len();
        if in_flight >= self.engine.capacity() {
            return Ok(None);
        }
        Ok(match consumer.room(number)? {
            Room::Buffer if !is_room => None,
            Room::Buffer => self.buffers.take(len, in_flight == 0)?.map(Destination::Host),
            Room::Device(span) => Some(Destination::Device(span)),
            Room::None => None,
        })
    }

    /// Looks for completions.
    fn poll(&mut self, pass: &Pass<'_>, wait: Wait) -> Result<()> {
        let polled = self.engine.poll(&mut self.done, wait);
        for done in self.done.drain(..) {
            let taken = if pass.plan.has(done.tag) { &mut self.now } else { &mut self.later };
            taken.in_flight -= 1;
            taken.arrived.push_back(done);
        }
        polled
    }

    /// Hands over what a read of this pass brought.
    fn arrived(&mut self, pass: &Pass<'_>, consumer: &mut impl Consumer, done: Done) -> Result<()> {
        self.now.large -= usize::from(is_large(&done.to));
        let bytes = match done.result {
            Ok(0) => Err(past_the_end()),
            result => result,
        };
        match bytes {
            Ok(bytes) => pass.around.totals.read(bytes as u64),
            Err(error) => {
                self.put(done.to);
                return Err(error);
            }
        }
        let number = request_of(done.tag);
        let bytes = match done.to {
            Destination::Host(buffer) => Bytes::Host(buffer),
            Destination::Device(span) => Bytes::Device(span),
        };
        self.hand_over(pass, consumer, number, bytes, "block")
    }

    /// Hands over resident blocks, while reads are on their way: one that comes back at once, or as many
    /// as the consumer may have at a time. Whether there was one.
    fn hand_over_resident<C: Consumer>(
        &mut self,
        pass: &Pass<'_>,
        consumer: &mut C,
    ) -> Result<bool> {
        let mut any = false;
        while self.held_resident < C::RESIDENT_AT_ONCE
            && let Some(i) = pass.resident_shares.next(self.number)
        {
            let (number, block) = &pass.resident[i];
            let (before, block) = (self.held_resident, Bytes::Resident(Arc::clone(block)));
            pass.around.totals.resident(block.as_slice().len() as u64);
            self.held_resident += 1;
            self.hand_over(pass, consumer, *number, block, "resident block")?;
            any = true;
            if self.held_resident <= before {
                break;
            }
        }
        Ok(any)
    }

    fn hand_over<C: Consumer>(
        &mut self,
        pass: &Pass<'_>,
        consumer: &mut C,
        number: usize,
        bytes: Bytes,
        what: &'static str,
    ) -> Result<()> {
        let since = Instant::now();
        self.held += 1;
        let block = Block { number, len: pass.plan.requests[number].len, bytes };
        let taken = consumer.take(block, &mut self.back);
        if taken.is_err() {
            // It may be damaged: nobody shall find it in memory.
            self.recycle(pass, false);
        }
        let given = self.take_back(pass, consumer, (false, taken.is_err()));
        pass.around.totals.computed(since);
        pass.around.trace.span(C::ACTIVITY, what, self.number as u32, since);
        taken.and(given).map(|_| ())
    }

    /// Takes blocks back from the consumer; with `wait`, at least one if it has any. How many came. They may stay in
    /// memory unless the consumer `failed`, now or before: who visits blocks later finds damage later.
    fn take_back(
        &mut self,
        pass: &Pass<'_>,
        consumer: &mut impl Consumer,
        (wait, failed): (bool, bool),
    ) -> Result<usize> {
        let wait = wait && self.back.is_empty();
        let given = consumer.give_back(&mut self.back, wait);
        let count = self.back.len();
        self.recycle(pass, !failed && given.is_ok());
        given.map(|()| count)
    }

    /// Makes blocks that came back resident, where they may be, or their buffers free.
    fn recycle(&mut self, pass: &Pass<'_>, may_stay: bool) {
        let count = self.back.len();
        self.held = self.held.saturating_sub(count);
        while let Some(Block { number, bytes, .. }) = self.back.pop() {
            match bytes {
                Bytes::Host(buffer) if may_stay => self.keep_or_put(pass, number, buffer),
                Bytes::Host(buffer) => self.buffers.put(buffer),
                Bytes::Resident(_) => self.held_resident = self.held_resident.saturating_sub(1),
                Bytes::Device(_) => {}
            }
        }
        if count > 0 {
            self.buffers.sort();
        }
    }

    fn keep_or_put(&mut self, pass: &Pass<'_>, number: usize, mut buffer: AlignedBuf) {
        let len = buffer.len();
        let request = pass.plan.requests.get(number).filter(|request| request.len == len);
        let key = request.and_then(|request| request.key);
        let cache = pass.around.residency.filter(|cache| cache.left() >= len as u64);
        let offered = match (key, cache) {
            (Some(key), Some(cache)) if self.buffers.can_replace() => {
                // A drive that has read into it does not again.
                buffer.detach();
                cache.offer(key, buffer)
            }
            _ => Err(buffer),
        };
        match offered {
            Ok(_) => self.buffers.replace(len),
            Err(buffer) => self.buffers.put(buffer),
        }
    }

    fn put(&mut self, to: Destination) {
        if let Destination::Host(buffer) = to {
            self.buffers.put(buffer);
        }
    }

    /// Takes all blocks of this pass back, whatever happened; the next one begins meanwhile.
    fn empty(&mut self, pass: &Pass<'_>, consumer: &mut impl Consumer, worked: bool) -> Result<()> {
        // A consumer gives them back in the order in which it took them.
        let mut missing = self.held;
        loop {
            if worked && pass.next.is_some() {
                self.fill(pass, consumer)?;
                self.poll(pass, Wait::No)?;
                self.go_ahead(consumer)?;
            }
            if missing == 0 {
                return Ok(());
            }
            match self.take_back(pass, consumer, (true, !worked))? {
                0 => return Ok(()),
                given => missing = missing.saturating_sub(given),
            }
        }
    }

    /// Hands over what has arrived of the next pass, as far as the consumer has room.
    fn go_ahead(&mut self, consumer: &mut impl Consumer) -> Result<()> {
        while consumer.has_room_ahead() {
            let Some(done) = self.later.arrived.pop_front() else { break };
            match (done.result, done.to) {
                (Ok(bytes), Destination::Host(buffer)) if bytes > 0 => {
                    self.later.large -= usize::from(buffer.len() > SMALL_READ_BYTES);
                    self.ahead.push(bytes as u64);
                    self.held += 1;
                    let (number, len) = (request_of(done.tag), buffer.len());
                    let block = Block { number, len, bytes: Bytes::Host(buffer) };
                    consumer.take(block, &mut self.back)?;
                }
                (result, to) => {
                    // The next pass's to report, if there is one.
                    self.later.arrived.push_front(Done { tag: done.tag, to, result });
                    break;
                }
            }
        }
        consumer.idle().map(|_| ())
    }

    /// Frees the memory of blocks that consumers held.
    pub(super) fn trim(&mut self) {
        self.buffers.trim(self.now.large + self.later.large);
    }

    /// Whether no read of any pass is in flight.
    pub fn is_idle(&self) -> bool {
        self.engine.in_flight() == 0
    }

    /// Waits for every read in flight and takes all buffers back: what is left of one pass must not
    /// arrive in another.
    pub fn drain(&mut self, totals: &Totals) {
        let mut left: Vec<Done> = self.done.drain(..).collect();
        for taken in [&mut self.now, &mut self.later] {
            left.extend(std::mem::take(taken).arrived);
        }
        while let Some(read) = self.queue.pop_front() {
            self.put(read.to);
        }
        while self.engine.in_flight() > 0 && !self.is_broken {
            self.is_broken = self.engine.poll(&mut left, Wait::All).is_err();
        }
        for done in left {
            totals.read(done.result.unwrap_or(0) as u64);
            self.put(done.to);
        }
        self.buffers.sort();
    }
}

/// Whether the destination of a read is one of the worker's large buffers.
fn is_large(to: &Destination) -> bool {
    matches!(to, Destination::Host(buffer) if buffer.len() > SMALL_READ_BYTES)
}

/// A block of a file that ends before it.
fn past_the_end() -> Error {
    Error::new(ErrorKind::Format, "read a block").expected("bytes").got("the file's end")
}

/// A worker that can neither read nor end would leave a part of the pass out.
fn stuck() -> Error {
    Error::new(ErrorKind::Io, "finish the pass")
        .expected("a buffer and an engine that takes a read")
        .got("neither, with nothing in flight")
}
