//! Passes whose blocks go on to a device: read → hand over → take the buffer back.
//!
//! The same loop as `reads`, with one more state a buffer can be in. Each worker owns an engine,
//! its buffers and its stage, and waits for nobody else's (RealGraphGPU++'s asynchronous threads).
//! Where the same pass comes again, its first reads begin before this one ends, and what they bring
//! goes on to the device, which only waits with computing. Blocks that are kept on a worker's shelf
//! are handed over while it reads others.

mod pass;
mod shelf;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_io::engine::Traced;
use tiergraph_mem::AlignedBuf;

use crate::team::Team;
use crate::{BlockFile, Graph, Then};
use pass::{List, Pass, Worker};
use shelf::Keeping;

/// Where a worker's blocks go: the slots of a device.
pub trait Stage: Send {
    /// Takes a block that was read, without waiting for what becomes of it. After
    /// [`finish`](Self::finish), it is of the pass after this.
    ///
    /// # Errors
    /// Whatever the device gives; ends the pass.
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()>;

    /// Nothing more has arrived: begins what waits for more blocks, if the device would idle meanwhile.
    ///
    /// # Errors
    /// Whatever the device gives; ends the pass.
    fn pause(&mut self) -> Result<()> {
        Ok(())
    }

    /// Gives buffers back whose bytes are not needed any more, each with its block; with `wait`, at
    /// least one if the stage has any.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()>;

    /// Begins whatever still waits for more blocks: the pass has no more, or failed.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn finish(&mut self) -> Result<()>;

    /// Whether it takes a block of the pass after this, now that this one is finished. The next
    /// pass's stage, in the same place, gives the buffer back.
    fn has_room_ahead(&self) -> bool {
        false
    }

    /// Forgets what was taken ahead, because another pass comes, and gives the buffers back.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn forget(&mut self, _to: &mut Vec<(u32, AlignedBuf)>) -> Result<()> {
        Ok(())
    }
}

/// Engines, buffers and threads of the workers of staged passes, kept from pass to pass.
pub struct StagedReader {
    team: Team,
    workers: Vec<Mutex<Worker>>,
    /// What the reads in flight are for.
    ahead: Option<Arc<List>>,
    passes: u32,
    /// What is on the workers' shelves.
    shelved: Shelved,
}

/// Blocks of a file, ascending.
type Shelved = Option<(BlockFile, Arc<Vec<u32>>)>;

impl Graph {
    /// A reader for staged passes: a worker for each of `buffers`, which it reads into.
    ///
    /// Buffers hold a block each. Checksums are the stages' to check, where the bytes go.
    ///
    /// # Errors
    /// An engine that cannot be opened.
    pub fn staged_reader(&self, buffers: Vec<Vec<AlignedBuf>>) -> Result<StagedReader> {
        let worker = |(number, free)| -> Result<Mutex<Worker>> {
            let mut engine = self.new_engine()?;
            if self.trace().is_on() {
                engine = Box::new(Traced::new(engine, self.trace().clone(), number as u32));
            }
            Ok(Mutex::new(Worker::new(engine, free)))
        };
        let workers: Vec<_> = buffers.into_iter().enumerate().map(worker).collect::<Result<_>>()?;
        let team = Team::new(workers.len());
        Ok(StagedReader { team, workers, ahead: None, passes: 0, shelved: None })
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
        self.shelved.get_or_insert_with(|| (file, Arc::default()));
        self.count_shelves();
        Ok(())
    }

    /// Hands `blocks` of `file`, ascending, in any order to stages, one stage a worker: reads them,
    /// or takes them from where they are kept.
    ///
    /// Returns when the stages took all and gave their buffers back. If the same pass comes again,
    /// its first reads have begun by then, and stages have as many of its blocks as they have room
    /// for: whatever comes, it comes to stages that know of those.
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
                for (worker, stage) in self.workers.iter_mut().zip(&mut *stages) {
                    worker.get_mut().unwrap_or_else(PoisonError::into_inner).forget(stage)?;
                }
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
                self.count_shelves();
                self.drain()?;
                Err(error)
            }
            None => {
                self.ahead = next;
                Ok(())
            }
        }
    }

    /// Notes what is on the shelves.
    fn count_shelves(&mut self) {
        let Some((_, shelved)) = &mut self.shelved else { return };
        let of = |worker: &mut Mutex<Worker>| {
            let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
            worker.shelf.blocks().collect::<Vec<_>>()
        };
        let mut blocks: Vec<u32> = self.workers.iter_mut().flat_map(of).collect();
        blocks.sort_unstable();
        *shelved = Arc::new(blocks);
    }

    fn list(&mut self, file: BlockFile, blocks: &[u32]) -> Arc<List> {
        self.passes = self.passes.wrapping_add(1);
        Arc::new(List::new(self.passes, file, blocks.to_vec()))
    }

    /// Calls `work` with every worker, each on its thread.
    fn on_all(&self, work: impl Fn(usize, &mut Worker) + Sync) -> Result<()> {
        let each = |number| {
            let worker = &self.workers[number];
            work(number, &mut worker.lock().unwrap_or_else(PoisonError::into_inner));
        };
        self.team.each(each).map(|_| ())
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
