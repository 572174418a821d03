//! The workers of a graph's passes: threads that stay, each with an engine and buffers of its own.
//!
//! Reads belong to the thread that began them (io_uring says so), and those of the next pass begin
//! before a pass ends, so that the drive works while vertices are updated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::Result;
use tiergraph_io::ReadEngine;

use crate::Totals;
use crate::plan::{Plan, Want};
use crate::team::Team;
use crate::worker::Worker;

/// The workers, and what they have begun to read.
pub(crate) struct Crew {
    team: Arc<Team>,
    block_bytes: usize,
    workers: Vec<Mutex<Worker>>,
    /// What the reads in flight are for.
    ahead: Option<Arc<Plan>>,
    passes: u32,
}

impl Crew {
    /// A worker for each of the team, of which some have their engines.
    pub(crate) fn new(
        team: Arc<Team>,
        block_bytes: usize,
        engines: Vec<Box<dyn ReadEngine>>,
    ) -> Self {
        let worker = |engine| Mutex::new(Worker::new(engine, block_bytes));
        let workers = engines.into_iter().map(worker).collect();
        Self { team, block_bytes, workers, ahead: None, passes: 0 }
    }

    /// Gives engines to workers that have none yet, or whose engines failed.
    pub(crate) fn complete(
        &mut self,
        engine: impl Fn() -> Result<Box<dyn ReadEngine>>,
    ) -> Result<()> {
        let worker = || Ok(Worker::new(engine()?, self.block_bytes));
        for own in &mut self.workers {
            let own = own.get_mut().unwrap_or_else(PoisonError::into_inner);
            if own.broken {
                *own = worker()?;
            }
        }
        while self.workers.len() < self.team.size() {
            self.workers.push(Mutex::new(worker()?));
        }
        Ok(())
    }

    /// The plan of a pass over `wants`, of which `missing` must be read: the one that is begun, if
    /// it is the same.
    pub(crate) fn plan(
        &mut self,
        wants: &[Want],
        missing: Vec<usize>,
        totals: &Totals,
    ) -> Result<Arc<Plan>> {
        match self.ahead.take() {
            Some(plan) if plan.wants == wants && plan.missing == missing => Ok(plan),
            _ => {
                self.drain(totals)?;
                Ok(self.numbered(wants.to_vec(), missing))
            }
        }
    }

    /// The plan of another pass like `plan`'s.
    pub(crate) fn again(&mut self, plan: &Plan) -> Arc<Plan> {
        self.numbered(plan.wants.clone(), plan.missing.clone())
    }

    fn numbered(&mut self, wants: Vec<Want>, missing: Vec<usize>) -> Arc<Plan> {
        self.passes = self.passes.wrapping_add(1);
        Plan::new(self.passes, wants, missing, self.workers.len())
    }

    /// Keeps the reads that were begun for `plan`; without one, there must be none.
    pub(crate) fn keep(&mut self, plan: Option<Arc<Plan>>) {
        self.ahead = plan;
    }

    /// Ends all reads in flight.
    pub(crate) fn drain(&mut self, totals: &Totals) -> Result<()> {
        self.ahead = None;
        if self.workers.iter().all(|w| lock(w).is_idle()) {
            return Ok(());
        }
        self.on_all(|_, worker| worker.drain(totals))
    }

    /// Calls `work` with every worker, each on its thread.
    pub(crate) fn on_all(&mut self, work: impl Fn(usize, &mut Worker) + Sync) -> Result<()> {
        let each = |number| work(number, &mut lock(&self.workers[number]));
        self.team.each(each).map(|_| ())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // An engine that is dropped on another thread leaks what it reads into.
        let _ = self.drain(&Totals::default());
    }
}

/// A worker that panicked has ended its run; the next one drains it.
fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}
