//! One worker's part of a staged pass: fill → poll → hand over.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use tiergraph_core::{Error, Result};
use tiergraph_io::{Done, FileId, Read, ReadEngine, Wait};
use tiergraph_mem::AlignedBuf;

use super::Stage;
use super::shelf::Shelf;
use crate::worker::Taken;
use crate::{BlockFile, Graph};

/// The blocks of a pass, which workers take one by one.
pub(super) struct List {
    /// Tells the reads of one pass from those of the next.
    pub(super) number: u32,
    pub(super) file: BlockFile,
    pub(super) blocks: Vec<u32>,
    pub(super) next: AtomicUsize,
}

impl List {
    pub(super) fn new(number: u32, file: BlockFile, blocks: Vec<u32>) -> Self {
        Self { number, file, blocks, next: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<u32> {
        self.blocks.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    fn tag(&self, block: u32) -> u64 {
        u64::from(self.number) << 32 | u64::from(block)
    }

    fn has(&self, tag: u64) -> bool {
        tag >> 32 == u64::from(self.number)
    }
}

pub(super) struct Worker {
    engine: Box<dyn ReadEngine>,
    pub(super) shelf: Shelf,
    pub(super) free: Vec<AlignedBuf>,
    /// What the stage gave back.
    returned: Vec<(u32, AlignedBuf)>,
    done: Vec<Done>,
    now: Taken<u32>,
    /// Of the pass after this.
    later: Taken<u32>,
    /// Buffers that the stage has.
    staged: usize,
    /// Bytes of each block that the stage has of the pass after this.
    ahead: Vec<u64>,
}

pub(super) struct Pass<'a> {
    pub(super) graph: &'a Graph,
    pub(super) file: FileId,
    pub(super) list: &'a List,
    /// Of the pass after this, where it is known.
    pub(super) next: Option<&'a List>,
    /// What is wanted of shelves, among others.
    pub(super) wanted: &'a [u32],
    pub(super) shelved: &'a [u32],
    pub(super) stop: AtomicBool,
    pub(super) failure: Mutex<Option<Error>>,
}

impl Pass<'_> {
    pub(super) fn run(
        &self,
        number: u32,
        worker: &mut Worker,
        stage: &mut impl Stage,
    ) -> Result<()> {
        worker.now = std::mem::take(&mut worker.later);
        worker.ahead.drain(..).for_each(|bytes| self.graph.totals().read(bytes));
        worker.shelf.begin(self.wanted);
        let worked = stage.pause().and_then(|()| self.work(number, worker, stage));
        // Whatever happened: a stage gives no buffer back that waits for more of them.
        let worked = worked.and(stage.finish());
        let emptied = self.empty(worker, stage, worked.is_ok());
        worker.shelf.end();
        worked.and(emptied)
    }

    /// Takes all buffers of this pass back, whatever happened; the next one begins meanwhile.
    fn empty(&self, worker: &mut Worker, stage: &mut impl Stage, worked: bool) -> Result<()> {
        // A stage gives them back in the order in which it took them.
        let mut missing = worker.staged;
        loop {
            if worked {
                self.fill(worker);
                self.poll(worker, Wait::No)?;
                self.go_ahead(worker, stage)?;
            }
            if missing == 0 {
                return Ok(());
            }
            match self.take_back(worker, stage, true)? {
                0 => return Ok(()),
                given => missing = missing.saturating_sub(given),
            }
        }
    }

    /// Hands over what has arrived of the next pass, as far as the stage has room.
    fn go_ahead(&self, worker: &mut Worker, stage: &mut impl Stage) -> Result<()> {
        while stage.has_room_ahead() {
            let Some(done) = worker.later.arrived.pop_front() else { break };
            let Ok(bytes) = done.result else {
                // The next pass's to report, if there is one.
                worker.later.arrived.push_front(done);
                break;
            };
            worker.ahead.push(bytes as u64);
            worker.staged += 1;
            stage.take(done.tag as u32, done.buffer)?;
        }
        stage.pause()
    }

    /// Takes buffers back from the stage; with `wait`, at least one if it has any. How many it gave.
    fn take_back(&self, worker: &mut Worker, stage: &mut impl Stage, wait: bool) -> Result<usize> {
        stage.give_back(&mut worker.returned, wait)?;
        let given = worker.returned.len();
        if given == 0 {
            return Ok(0);
        }
        worker.staged -= given;
        for (block, buffer) in worker.returned.drain(..) {
            match self.shelved.binary_search(&block) {
                Ok(_) => worker.shelf.put_back(block, buffer),
                Err(_) => worker.free.push(buffer),
            }
        }
        // The first ones are taken first: neighbours are read into together, and copied together.
        worker.free.sort_unstable_by_key(|buffer| Reverse(buffer.as_ptr()));
        Ok(given)
    }

    fn work(&self, number: u32, worker: &mut Worker, stage: &mut impl Stage) -> Result<()> {
        let totals = self.graph.totals();
        while !self.stop.load(Ordering::Relaxed) {
            self.graph.cancel().check("finish the pass")?;
            let all_begun = self.fill(worker);
            self.poll(worker, Wait::No)?;
            if worker.now.arrived.is_empty() {
                // While reads are on their way, the link has what is kept here.
                while let Some((block, buffer)) = worker.shelf.next() {
                    self.hand_over(number, worker, stage, (block, buffer))?;
                }
                stage.pause()?;
                let (idle, shelf) = (worker.now.in_flight == 0, worker.shelf.is_waiting());
                if idle && all_begun && !shelf {
                    break;
                }
                let since = Instant::now();
                self.take_back(worker, stage, idle || shelf)?;
                if !idle && !shelf && (all_begun || worker.free.is_empty()) {
                    self.poll(worker, Wait::One)?;
                }
                totals.waited(since);
                self.graph.trace().span("wait", "read", number, since);
            }
            // From the end: a buffer that was just filled may still be in the cache.
            while let Some(done) = worker.now.arrived.pop_back() {
                self.arrived(number, worker, stage, done)?;
                self.fill(worker);
                self.poll(worker, Wait::No)?;
            }
        }
        Ok(())
    }

    /// Begins reads while there are buffers and room; whether all of this pass are begun.
    fn fill(&self, worker: &mut Worker) -> bool {
        let all_begun =
            self.begin_reads(self.list, &mut worker.now, &mut worker.free, &mut *worker.engine);
        if let (true, Some(next)) = (all_begun, self.next) {
            self.begin_reads(next, &mut worker.later, &mut worker.free, &mut *worker.engine);
        }
        all_begun
    }

    fn begin_reads(
        &self,
        list: &List,
        taken: &mut Taken<u32>,
        free: &mut Vec<AlignedBuf>,
        engine: &mut dyn ReadEngine,
    ) -> bool {
        let len = self.graph.block_bytes();
        while let Some(block) = taken.waiting.take().or_else(|| list.take()) {
            let is_full = engine.in_flight() == engine.capacity();
            let Some(buffer) = (if is_full { None } else { free.pop() }) else {
                taken.waiting = Some(block);
                return false;
            };
            let (offset, tag) = (u64::from(block) * len as u64, list.tag(block));
            let read = Read { file: self.file, offset, len, buffer, tag };
            if let Err(refused) = engine.submit(read) {
                free.push(refused.buffer);
                taken.waiting = Some(block);
                return false;
            }
            taken.in_flight += 1;
        }
        true
    }

    fn poll(&self, worker: &mut Worker, wait: Wait) -> Result<()> {
        let polled = worker.engine.poll(&mut worker.done, wait);
        for done in worker.done.drain(..) {
            let taken = if self.list.has(done.tag) { &mut worker.now } else { &mut worker.later };
            taken.in_flight -= 1;
            taken.arrived.push_back(done);
        }
        polled
    }

    fn arrived(
        &self,
        number: u32,
        worker: &mut Worker,
        stage: &mut impl Stage,
        done: Done,
    ) -> Result<()> {
        let Done { tag, buffer, result } = done;
        match result {
            Ok(count) => self.graph.totals().read(count as u64),
            Err(error) => {
                worker.free.push(buffer);
                return Err(error);
            }
        }
        self.hand_over(number, worker, stage, (tag as u32, buffer))
    }

    fn hand_over(
        &self,
        number: u32,
        worker: &mut Worker,
        stage: &mut impl Stage,
        (block, buffer): (u32, AlignedBuf),
    ) -> Result<()> {
        let since = Instant::now();
        worker.staged += 1;
        stage.take(block, buffer)?;
        self.take_back(worker, stage, false)?;
        self.graph.totals().computed(since);
        self.graph.trace().span("copy", "hand over a block", number, since);
        Ok(())
    }
}

impl Worker {
    /// Reads into the buffers `free`.
    pub(super) fn new(engine: Box<dyn ReadEngine>, free: Vec<AlignedBuf>) -> Self {
        Self {
            engine,
            shelf: Shelf::default(),
            free,
            returned: Vec::new(),
            done: Vec::new(),
            now: Taken::default(),
            later: Taken::default(),
            staged: 0,
            ahead: Vec::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let is_empty = |taken: &Taken<u32>| taken.waiting.is_none() && taken.arrived.is_empty();
        self.engine.in_flight() == 0 && is_empty(&self.now) && is_empty(&self.later)
    }

    /// Waits for every read in flight, so that what is left of one pass does not arrive in another.
    pub(super) fn drain(&mut self) {
        for taken in [&mut self.now, &mut self.later] {
            self.done.extend(std::mem::take(taken).arrived);
        }
        while self.engine.in_flight() > 0 && self.engine.poll(&mut self.done, Wait::All).is_ok() {}
        self.free.extend(self.done.drain(..).map(|done| done.buffer));
    }

    /// Has `stage` forget what it took ahead of a pass that does not come.
    pub(super) fn forget(&mut self, stage: &mut impl Stage) -> Result<()> {
        stage.forget(&mut self.returned)?;
        self.free.extend(self.returned.drain(..).map(|(_, buffer)| buffer));
        self.staged = 0;
        self.ahead.clear();
        Ok(())
    }
}
