//! The engines of an opened graph, which readers lease: rings and queue pairs are scarce, and dear to
//! set up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::Result;

use crate::{Done, DrivesOfGpus, EngineReport, FileSet, Memory, Read, ReadEngine, Wait};

/// A source of engines over a set of files; any function that opens one is such a source.
pub trait EngineSource: Send + Sync {
    /// Opens an engine over `files`, and says which.
    ///
    /// # Errors
    /// The system refuses a further engine.
    fn open(&self, files: &Arc<FileSet>) -> Result<(Box<dyn ReadEngine>, EngineReport)>;

    /// The drives that hold `files` and that a GPU shall read by itself; `None` where the host's engines
    /// shall read for it.
    ///
    /// # Errors
    /// The drives cannot be used.
    fn drives_of_gpus(&self, _files: &Arc<FileSet>) -> Result<Option<DrivesOfGpus>> {
        Ok(None)
    }
}

impl<F> EngineSource for F
where
    F: Fn(&Arc<FileSet>) -> Result<(Box<dyn ReadEngine>, EngineReport)> + Send + Sync,
{
    fn open(&self, files: &Arc<FileSet>) -> Result<(Box<dyn ReadEngine>, EngineReport)> {
        self(files)
    }
}

/// A shared source of engines.
pub type EngineFactory = Arc<dyn EngineSource>;

/// A pool of engines over one set of files: leases idle ones, makes others where there is none, and keeps
/// up to a given number of those that come back.
pub struct EnginePool {
    files: Arc<FileSet>,
    factory: EngineFactory,
    idle: Mutex<Vec<Box<dyn ReadEngine>>>,
    most_idle: usize,
}

impl EnginePool {
    /// A pool of engines that `factory` opens over `files`, of which it keeps at most `most_idle` idle.
    pub fn new(files: Arc<FileSet>, factory: EngineFactory, most_idle: usize) -> Arc<Self> {
        Arc::new(Self { files, factory, idle: Mutex::default(), most_idle })
    }

    /// The files that the engines read.
    pub fn files(&self) -> &Arc<FileSet> {
        &self.files
    }

    /// The drives that a GPU shall read by itself, as [`EngineSource::drives_of_gpus`] gives them.
    ///
    /// # Errors
    /// The drives cannot be used.
    pub fn drives_of_gpus(&self) -> Result<Option<DrivesOfGpus>> {
        self.factory.drives_of_gpus(&self.files)
    }

    /// Leases an idle engine, or a new one if none is idle.
    ///
    /// # Errors
    /// The system refuses a further engine.
    pub fn lease(self: &Arc<Self>) -> Result<Lease> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = match idle {
            Some(engine) => engine,
            None => self.factory.open(&self.files)?.0,
        };
        Ok(Lease { engine: Some(engine), is_sound: true, pool: Arc::clone(self) })
    }

    /// Opens `count` engines, at least one, and keeps them idle; returns what the pool's engines are.
    ///
    /// # Errors
    /// As [`lease`](Self::lease).
    pub fn prepare(&self, count: usize) -> Result<EngineReport> {
        let made = (0..count.max(1)).map(|_| self.factory.open(&self.files));
        let (engines, mut reports): (Vec<_>, Vec<_>) =
            made.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(engines);
        Ok(reports.swap_remove(0))
    }
}

impl fmt::Debug for EnginePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "EnginePool({idle} idle)")
    }
}

/// A leased engine. Dropping it gives the engine back, unless it failed, has reads in flight, or the
/// pool has idle ones enough.
pub struct Lease {
    /// None only while it is dropped.
    engine: Option<Box<dyn ReadEngine>>,
    is_sound: bool,
    pool: Arc<EnginePool>,
}

impl ReadEngine for Lease {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        if let Some(engine) = &mut self.engine {
            engine.submit(reads);
        }
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let polled = engine.poll(done, wait);
        self.is_sound &= polled.is_ok();
        polled
    }

    fn in_flight(&self) -> usize {
        self.engine.as_ref().map_or(0, ReadEngine::in_flight)
    }

    fn capacity(&self) -> usize {
        self.engine.as_ref().map_or(0, ReadEngine::capacity)
    }

    fn writes_to(&self) -> Memory {
        self.engine.as_ref().map_or(Memory::Host, ReadEngine::writes_to)
    }

    fn reads_when_polled(&self) -> bool {
        self.engine.as_ref().is_some_and(ReadEngine::reads_when_polled)
    }

    fn name(&self) -> &'static str {
        self.engine.as_ref().map_or("none", |engine| engine.name())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(engine) = self.engine.take() else { return };
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_sound && engine.in_flight() == 0 && idle.len() < self.pool.most_idle {
            idle.push(engine);
        } else {
            // Dropping an engine may wait for its reads; others may lease meanwhile.
            drop(idle);
            drop(engine);
        }
    }
}
