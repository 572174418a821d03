//! Passes whose blocks go on to a device: read → hand over → take the buffer back.
//!
//! The same loop as `reads`, with one more state a buffer can be in. Each worker owns an engine,
//! its buffers and its stage, and waits for nobody else's (RealGraphGPU++'s asynchronous threads).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_io::{Done, FileId, Read, ReadEngine, Wait};
use tiergraph_mem::AlignedBuf;

use crate::{Direction, Graph};

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

    /// Gives buffers back whose bytes are not needed any more; with `wait`, at least one if the
    /// stage has any.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn give_back(&mut self, to: &mut Vec<AlignedBuf>, wait: bool) -> Result<()>;

    /// Begins whatever still waits for more blocks: the pass has no more.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn finish(&mut self) -> Result<()>;
}

/// Engines and buffers of the workers of staged passes, kept from pass to pass.
pub struct StagedReader {
    workers: Vec<Worker>,
}

struct Worker {
    engine: Box<dyn ReadEngine>,
    free: Vec<AlignedBuf>,
    done: Vec<Done>,
}

struct Pass<'a> {
    graph: &'a Graph,
    file: FileId,
    blocks: &'a [u32],
    next: AtomicUsize,
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
        let worker = |free| Ok(Worker { engine: self.new_engine()?, free, done: Vec::new() });
        Ok(StagedReader { workers: buffers.into_iter().map(worker).collect::<Result<_>>()? })
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
    /// Reads `blocks` of `file` in any order and hands each to a stage, one stage a worker.
    ///
    /// Returns when the stages took all and gave their buffers back.
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
        file: BlockFile,
        blocks: &[u32],
        stages: &mut [impl Stage],
    ) -> Result<()> {
        assert_eq!(stages.len(), self.workers.len(), "a stage a worker");
        let (file, _) = graph.block_file(file)?;
        let pass = Pass {
            graph,
            file,
            blocks,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for (number, (worker, stage)) in self.workers.iter_mut().zip(stages).enumerate() {
                let pass = &pass;
                scope.spawn(move || {
                    let worked = pass.work(number as u32, worker, stage);
                    let worked = worked.and_then(|()| stage.finish());
                    let drained = worker.drain(stage);
                    if let Err(error) = worked.and(drained) {
                        pass.stop.store(true, Ordering::Relaxed);
                        let mut first = pass.failure.lock().unwrap_or_else(PoisonError::into_inner);
                        first.get_or_insert(error);
                    }
                });
            }
        });
        match pass.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Pass<'_> {
    fn work(&self, number: u32, worker: &mut Worker, stage: &mut impl Stage) -> Result<()> {
        let totals = self.graph.totals();
        let mut next = self.take();
        while !self.stop.load(Ordering::Relaxed) {
            self.graph.cancel().check("finish the pass")?;
            self.fill(worker, &mut next);
            worker.engine.poll(&mut worker.done, Wait::No)?;
            if worker.done.is_empty() {
                let idle = worker.engine.in_flight() == 0;
                if idle && next.is_none() {
                    break;
                }
                let since = Instant::now();
                stage.give_back(&mut worker.free, idle)?;
                if !idle && (next.is_none() || worker.free.is_empty()) {
                    worker.engine.poll(&mut worker.done, Wait::One)?;
                }
                totals.waited(since);
                self.graph.trace().span("wait", "read", number, since);
            }
            // From the end: a buffer that was just filled may still be in the cache.
            while let Some(done) = worker.done.pop() {
                self.arrived(number, worker, stage, done)?;
                self.fill(worker, &mut next);
                worker.engine.poll(&mut worker.done, Wait::No)?;
            }
        }
        Ok(())
    }

    fn take(&self) -> Option<u32> {
        self.blocks.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    fn fill(&self, worker: &mut Worker, next: &mut Option<u32>) {
        let len = self.graph.block_bytes();
        while let Some(block) = *next {
            if worker.engine.in_flight() == worker.engine.capacity() {
                return;
            }
            let Some(buffer) = worker.free.pop() else { return };
            let (offset, tag) = (u64::from(block) * len as u64, u64::from(block));
            let read = Read { file: self.file, offset, len, buffer, tag };
            if let Err(refused) = worker.engine.submit(read) {
                worker.free.push(refused.buffer);
                return;
            }
            *next = self.take();
        }
    }

    fn arrived(
        &self,
        number: u32,
        worker: &mut Worker,
        stage: &mut impl Stage,
        done: Done,
    ) -> Result<()> {
        let Done { tag: block, buffer, result } = done;
        match result {
            Ok(count) => self.graph.totals().read(count as u64),
            Err(error) => {
                worker.free.push(buffer);
                return Err(error);
            }
        }
        let since = Instant::now();
        stage.take(block as u32, buffer)?;
        stage.give_back(&mut worker.free, false)?;
        self.graph.totals().computed(since);
        self.graph.trace().span("copy", "block to device", number, since);
        Ok(())
    }
}

impl Worker {
    /// Waits for every read in flight and every buffer of the stage, so that what is left of one
    /// pass does not arrive in the next.
    fn drain(&mut self, stage: &mut impl Stage) -> Result<()> {
        if self.engine.in_flight() > 0 {
            self.engine.poll(&mut self.done, Wait::All)?;
        }
        self.free.extend(self.done.drain(..).map(|done| done.buffer));
        loop {
            let before = self.free.len();
            stage.give_back(&mut self.free, true)?;
            if self.free.len() == before {
                return Ok(());
            }
        }
    }
}
