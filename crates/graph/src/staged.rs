//! Passes whose blocks go on to a device: read → hand over → take the buffer back.
//!
//! The same loop as `reads`, with one more state a buffer can be in. Each worker owns an engine,
//! its buffers and its stage, and waits for nobody else's (RealGraphGPU++'s asynchronous threads).
//! Where the same pass comes again, its first reads begin before this one ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rayon::ThreadPool;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_io::engine::Traced;
use tiergraph_io::{Done, FileId, Read, ReadEngine, Wait};
use tiergraph_mem::AlignedBuf;

use crate::crew::start_threads;
use crate::shelf::{Keeping, Shelf};
use crate::worker::Taken;
use crate::{Direction, Graph, Then};

/// A file of blocks that passes read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFile {
    /// `tiles.blocks`.
    Tiles,
    /// `out.blocks` or `in.blocks`; of an undirected graph, `out.blocks` either way.
    Raw(Direction),
}

/// Where a worker's blocks go: the slots of a device.
pub trait Stage: Send {
    /// Takes a block that was read, without waiting for what becomes of it.
    ///
    /// # Errors
    /// Whatever the device gives; ends the pass.
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()>;

    /// Gives buffers back whose bytes are not needed any more, each with its block; with `wait`, at
    /// least one if the stage has any.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()>;

    /// Begins whatever still waits for more blocks: the pass has no more.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn finish(&mut self) -> Result<()>;
}

/// Engines, buffers and threads of the workers of staged passes, kept from pass to pass.
pub struct StagedReader {
    /// Started by the first pass.
    threads: Option<ThreadPool>,
    workers: Vec<Mutex<Worker>>,
    /// What the reads in flight are for.
    ahead: Option<Arc<List>>,
    passes: u32,
    /// What is on the workers' shelves.
    shelved: Shelved,
}

/// Blocks of a file, ascending.
type Shelved = Option<(BlockFile, Arc<Vec<u32>>)>;

/// The blocks of a pass, which workers take one by one.
struct List {
    /// Tells the reads of one pass from those of the next.
    number: u32,
    file: BlockFile,
    blocks: Vec<u32>,
    next: AtomicUsize,
}

impl List {
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

struct Worker {
    engine: Box<dyn ReadEngine>,
    shelf: Shelf,
    free: Vec<AlignedBuf>,
    /// What the stage gave back.
    returned: Vec<(u32, AlignedBuf)>,
    done: Vec<Done>,
    now: Taken<u32>,
    /// Of the pass after this.
    later: Taken<u32>,
}

struct Pass<'a> {
    graph: &'a Graph,
    file: FileId,
    list: &'a List,
    /// Of the pass after this, where it is known.
    next: Option<&'a List>,
    /// What is wanted of shelves, among others.
    wanted: &'a [u32],
    shelved: &'a [u32],
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Graph {
    /// How many blocks a file has.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn blocks_of(&self, file: BlockFile) -> Result<u32> {
        let (_, name) = self.block_file(file)?;
        Ok(self.dir().entry(&name)?.blocks as u32)
    }

    /// The stripes of a file: block i of n stripes is at `i / n` of stripe `i mod n`.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn block_paths(&self, file: BlockFile) -> Result<Vec<PathBuf>> {
        let (_, name) = self.block_file(file)?;
        self.dir().paths(&name)
    }

    fn block_file(&self, file: BlockFile) -> Result<(FileId, String)> {
        let found = match file {
            BlockFile::Tiles => self.tiles.as_ref().map(|t| (t.file(), "tiles.blocks".to_owned())),
            BlockFile::Raw(direction) => {
                self.raw_file(direction).map(|(d, file)| (file, format!("{d}.blocks")))
            }
        };
        found.ok_or_else(|| self.missing_layout("pass over the blocks of", "tiles or raw blocks"))
    }

    /// A reader for staged passes: a worker for each of `buffers`, which it reads into.
    ///
    /// Buffers hold a block each. Checksums are the stages' to check, where the bytes go.
    ///
    /// # Errors
    /// An engine that cannot be opened.
    pub fn staged_reader(&self, buffers: Vec<Vec<AlignedBuf>>) -> Result<StagedReader> {
        let worker = |(number, free)| -> Result<Mutex<Worker>> {
            let (now, later) = (Taken::default(), Taken::default());
            let mut engine = self.new_engine()?;
            if self.trace().is_on() {
                engine = Box::new(Traced::new(engine, self.trace().clone(), number as u32));
            }
            let (shelf, done, returned) = (Shelf::default(), Vec::new(), Vec::new());
            Ok(Mutex::new(Worker { engine, shelf, free, returned, done, now, later }))
        };
        let workers = buffers.into_iter().enumerate().map(worker).collect::<Result<_>>()?;
        Ok(StagedReader { threads: None, workers, ahead: None, passes: 0, shelved: None })
    }

    /// The error of a block that arrived damaged, from reading it again.
    pub fn damaged_block(&self, file: BlockFile, block: u32) -> Error {
        let read = || -> Result<Error> {
            let (_, name) = self.block_file(file)?;
            let paths = self.dir().paths(&name)?;
            let size = self.block_bytes() as u64;
            let (stripe, unit) =
                (block as usize % paths.len(), u64::from(block) / paths.len() as u64);
            let mut bytes = vec![0; size as usize];
            let opened = File::open(&paths[stripe]).and_then(|file| {
                let left = file.metadata()?.len().saturating_sub(unit * size).min(size);
                file.read_exact_at(&mut bytes[..left as usize], unit * size)
            });
            opened.map_err(|e| Error::io("read", paths[stripe].display(), e))?;
            let name = self.file_name(&name);
            Ok(match block::check(&bytes, &name, block.into()) {
                Err(error) => error,
                Ok(_) => Error::new(ErrorKind::Device, format!("compute on block {block} of"))
                    .object(name)
                    .expected("the bytes that are in the file")
                    .got("others on the device")
                    .hint("run again; if it happens again, check the GPU's memory and its slot"),
            })
        };
        read().unwrap_or_else(|error| error)
    }
}

impl StagedReader {
    /// Keeps `blocks` of `file` in `buffers`, one a block: passes over that file find them there.
    ///
    /// # Errors
    /// As [`StagedReader::pass`].
    ///
    /// # Panics
    /// If blocks of another file are kept.
    pub fn keep(
        &mut self,
        graph: &Graph,
        (file, blocks): (BlockFile, &[u32]),
        buffers: Vec<AlignedBuf>,
    ) -> Result<()> {
        assert!(self.shelved.as_ref().is_none_or(|(of, _)| *of == file), "one file's blocks");
        let spare = Mutex::new(buffers);
        let mut stages: Vec<_> = self.workers.iter().map(|_| Keeping::new(&spare)).collect();
        self.pass(graph, (file, blocks), Then::Stop, &mut stages)?;
        for (worker, stage) in self.workers.iter_mut().zip(stages) {
            let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
            stage.taken.into_iter().for_each(|(block, buffer)| worker.shelf.add(block, buffer));
        }
        let (_, shelved) = self.shelved.get_or_insert_with(|| (file, Arc::default()));
        let shelved = Arc::make_mut(shelved);
        shelved.extend(blocks);
        shelved.sort_unstable();
        Ok(())
    }

    /// Hands `blocks` of `file`, ascending, in any order to stages, one stage a worker: reads them,
    /// or takes them from where they are kept.
    ///
    /// Returns when the stages took all and gave their buffers back. If the same pass comes again,
    /// its first reads have begun by then.
    ///
    /// # Errors
    /// A read that fails for good, a checksum that does not match, whatever a stage gives. The
    /// reader can be used again.
    ///
    /// # Panics
    /// If there are not as many stages as workers.
    pub fn pass(
        &mut self,
        graph: &Graph,
        (file, blocks): (BlockFile, &[u32]),
        then: Then,
        stages: &mut [impl Stage],
    ) -> Result<()> {
        assert_eq!(stages.len(), self.workers.len(), "a stage a worker");
        let (id, _) = graph.block_file(file)?;
        let shelved = match &self.shelved {
            Some((of, shelved)) if *of == file => Arc::clone(shelved),
            _ => Arc::default(),
        };
        let is_missing = |block: &u32| shelved.binary_search(block).is_err();
        let missing: Vec<u32> = blocks.iter().copied().filter(is_missing).collect();
        let list = match self.ahead.take() {
            Some(list) if list.file == file && list.blocks == missing => list,
            _ => {
                self.drain()?;
                self.list(file, &missing)
            }
        };
        let next = (then == Then::Again).then(|| self.list(file, &missing));
        let pass = Pass {
            graph,
            file: id,
            list: &list,
            next: next.as_deref(),
            wanted: if shelved.is_empty() { &[] } else { blocks },
            shelved: &shelved,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        let stages: Vec<_> = stages.iter_mut().map(Mutex::new).collect();
        self.on_all(|number, worker| {
            let mut stage = stages[number].lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = pass.run(number as u32, worker, &mut **stage) {
                pass.stop.store(true, Ordering::Relaxed);
                let mut first = pass.failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(error);
            }
        })?;
        match pass.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => {
                self.drain()?;
                Err(error)
            }
            None => {
                self.ahead = next;
                Ok(())
            }
        }
    }

    fn list(&mut self, file: BlockFile, blocks: &[u32]) -> Arc<List> {
        self.passes = self.passes.wrapping_add(1);
        let (number, blocks) = (self.passes, blocks.to_vec());
        Arc::new(List { number, file, blocks, next: AtomicUsize::new(0) })
    }

    /// Calls `work` with every worker, each on its thread.
    fn on_all(&mut self, work: impl Fn(usize, &mut Worker) + Sync) -> Result<()> {
        let threads = match self.threads.take() {
            Some(threads) => threads,
            None => start_threads(self.workers.len())?,
        };
        let workers = &self.workers;
        self.threads.insert(threads).broadcast(|thread| {
            let worker = &workers[thread.index()];
            work(thread.index(), &mut worker.lock().unwrap_or_else(PoisonError::into_inner));
        });
        Ok(())
    }

    /// Ends all reads in flight.
    fn drain(&mut self) -> Result<()> {
        self.ahead = None;
        // Most passes leave nothing, and then nobody needs to be woken.
        let idle = |worker: &mut Mutex<Worker>| {
            worker.get_mut().unwrap_or_else(PoisonError::into_inner).is_idle()
        };
        if self.workers.iter_mut().all(idle) {
            return Ok(());
        }
        self.on_all(|_, worker| worker.drain())
    }
}

impl Drop for StagedReader {
    fn drop(&mut self) {
        // An engine that is dropped on another thread leaks what it reads into.
        let _ = self.drain();
    }
}

impl Pass<'_> {
    fn run(&self, number: u32, worker: &mut Worker, stage: &mut impl Stage) -> Result<()> {
        worker.now = std::mem::take(&mut worker.later);
        worker.shelf.begin(self.wanted);
        let worked = self.work(number, worker, stage).and_then(|()| stage.finish());
        // All buffers come back, whatever happened; the next pass reads into them meanwhile.
        while self.take_back(worker, stage, true)? {
            if worked.is_ok() {
                self.fill(worker);
                self.poll(worker, Wait::No)?;
            }
        }
        worker.shelf.end();
        worked
    }

    /// Takes buffers back from the stage; with `wait`, at least one if it has any. Whether it gave
    /// some.
    fn take_back(&self, worker: &mut Worker, stage: &mut impl Stage, wait: bool) -> Result<bool> {
        stage.give_back(&mut worker.returned, wait)?;
        let gave = !worker.returned.is_empty();
        for (block, buffer) in worker.returned.drain(..) {
            match self.shelved.binary_search(&block) {
                Ok(_) => worker.shelf.put_back(block, buffer),
                Err(_) => worker.free.push(buffer),
            }
        }
        Ok(gave)
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
        stage.take(block, buffer)?;
        self.take_back(worker, stage, false)?;
        self.graph.totals().computed(since);
        self.graph.trace().span("copy", "hand over a block", number, since);
        Ok(())
    }
}

impl Worker {
    fn is_idle(&self) -> bool {
        let is_empty = |taken: &Taken<u32>| taken.waiting.is_none() && taken.arrived.is_empty();
        self.engine.in_flight() == 0 && is_empty(&self.now) && is_empty(&self.later)
    }

    /// Waits for every read in flight, so that what is left of one pass does not arrive in another.
    fn drain(&mut self) {
        for taken in [&mut self.now, &mut self.later] {
            self.done.extend(std::mem::take(taken).arrived);
        }
        while self.engine.in_flight() > 0 && self.engine.poll(&mut self.done, Wait::All).is_ok() {}
        self.free.extend(self.done.drain(..).map(|done| done.buffer));
    }
}
