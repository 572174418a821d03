//! The workers of passes: threads that stay, each with an engine and buffers of its own.
//!
//! Reads belong to the thread that began them (io_uring says so), and those of the next pass begin
//! before a pass ends, so that the drive works while vertices are updated.

use std::ops::DerefMut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Result, ThreadPool};
use tiergraph_mem::AlignedBuf;

use super::{Buffers, Consumer, NextPass, Pass, Plan, Request, Surroundings, Worker};
use crate::engine::Traced;
use crate::{EnginePool, ReadEngine};

/// Gives the buffers of a worker, by its number.
type MakeBuffers = Box<dyn Fn(usize) -> Buffers + Send + Sync>;

/// The workers of all passes: one on each thread of a pool, with a leased engine and buffers of its own.
/// They stay from pass to pass, and with them the reads begun for the next one.
pub struct ReadWorkers {
    threads: Arc<ThreadPool>,
    engines: Arc<EnginePool>,
    buffers: MakeBuffers,
    workers: Vec<Mutex<Worker>>,
    /// What the reads in flight are for.
    ahead: Option<Plan>,
    passes: u32,
    /// What the engines tell of their reads.
    trace: Trace,
}

impl ReadWorkers {
    /// A worker for each of `threads`, which leases one of `engines` when it first reads, and gets its
    /// `buffers` then.
    pub fn new(
        threads: Arc<ThreadPool>,
        engines: Arc<EnginePool>,
        buffers: impl Fn(usize) -> Buffers + Send + Sync + 'static,
    ) -> Self {
        let buffers = Box::new(buffers);
        Self {
            threads,
            engines,
            buffers,
            workers: Vec::new(),
            ahead: None,
            passes: 0,
            trace: Trace::off(),
        }
    }

    /// Does one pass: hands the bytes of every request to a consumer, once, in any order. Each worker
    /// gets its own from `consumer`, on its thread. Returns when all blocks were taken and their buffers
    /// given back.
    ///
    /// # Errors
    /// A read that fails for good, an error of a consumer, cancellation; the system gives no threads or
    /// engines. No read is in flight then, and the next pass begins anew.
    pub fn pass<C: DerefMut<Target: Consumer + Sized>>(
        &mut self,
        requests: &[Request],
        next: NextPass,
        around: Surroundings<'_>,
        consumer: impl Fn(usize) -> C + Sync,
    ) -> Result<()> {
        self.complete(around.trace)?;
        let (resident, missing) = self.parted(requests, around);
        let begun = self
            .ahead
            .take()
            .filter(|plan| plan.requests == requests && plan.missing.as_ref() == Some(&missing));
        let is_begun = begun.is_some();
        let plan = begun.unwrap_or_else(|| self.numbered(requests.to_vec(), missing));
        // While blocks become resident, what the next pass must read is not known.
        let block_bytes = requests.iter().filter(|r| r.key.is_some()).map(|r| r.len).max();
        let is_full = around
            .residency
            .is_none_or(|cache| block_bytes.is_none_or(|bytes| cache.left() < bytes as u64));
        let is_settled =
            is_full || !self.workers.iter().any(|worker| lock(worker).buffers.may_replace());
        let again = next == NextPass::Same && is_settled;
        let next = again.then(|| {
            let missing = plan.missing.clone().unwrap_or_default();
            self.numbered(plan.requests.clone(), missing)
        });
        let workers = self.workers.len();
        let pass = Pass::new(&plan, next.as_ref(), is_begun, resident, workers, around);
        let ran = self.on_all(|number, worker| {
            if let Err(error) = worker.run(&pass, &mut *consumer(number)) {
                pass.fail(error);
            }
        });
        if around.held > 0 {
            self.workers.iter().for_each(|worker| lock(worker).trim());
        }
        if ran.is_err() || pass.has_failed() {
            // What a consumer has of this pass or the next comes back: others may read into it.
            self.on_all(|number, worker| {
                let _ = worker.begin_anew(&pass, &mut *consumer(number));
            })?;
        }
        ran.and(pass.into_failure().map_or(Ok(()), Err))?;
        self.ahead = next;
        Ok(())
    }

    /// The requests whose blocks are resident, with these, and the numbers of the others.
    fn parted(
        &self,
        requests: &[Request],
        around: Surroundings<'_>,
    ) -> (Vec<(usize, Arc<AlignedBuf>)>, Vec<usize>) {
        let (mut resident, mut missing) = (Vec::new(), Vec::new());
        for (number, request) in requests.iter().enumerate() {
            let block = request.key.and_then(|key| around.residency?.get(key));
            match block {
                Some(block) => resident.push((number, block)),
                None => missing.push(number),
            }
        }
        // Neighbours in memory go out together where that makes their copies larger.
        if self.workers.first().is_some_and(|worker| lock(worker).buffers.is_by_address()) {
            resident.sort_by_key(|(_, block)| block.as_ptr());
        }
        (resident, missing)
    }

    fn numbered(&mut self, requests: Vec<Request>, missing: Vec<usize>) -> Plan {
        self.passes = self.passes.wrapping_add(1);
        Plan::of_missing(self.passes, requests, missing, self.workers.len())
    }

    /// Gives engines to workers that have none yet, or whose engines failed; engines that tell `trace`
    /// of their reads, if it is on.
    fn complete(&mut self, trace: &Trace) -> Result<()> {
        if !trace.is(&self.trace) {
            self.drain()?;
            self.workers.clear();
            self.trace = trace.clone();
        }
        for number in 0..self.threads.size() {
            let is_sound = self.workers.get(number).is_some_and(|worker| !lock(worker).is_broken);
            if is_sound {
                continue;
            }
            let mut engine: Box<dyn ReadEngine> = Box::new(self.engines.lease()?);
            if trace.is_on() {
                engine = Box::new(Traced::new(engine, trace.clone(), number as u32));
            }
            let worker = Worker::new(number, engine, (self.buffers)(number));
            match self.workers.get_mut(number) {
                Some(broken) => *broken = Mutex::new(worker),
                None => self.workers.push(Mutex::new(worker)),
            }
        }
        Ok(())
    }

    /// Ends all reads in flight, whose bytes nobody will have.
    ///
    /// # Errors
    /// The system gives no threads.
    fn drain(&mut self) -> Result<()> {
        self.ahead = None;
        // Most passes leave nothing, and then nobody needs to be woken.
        if self.workers.iter().all(|worker| lock(worker).is_idle()) {
            return Ok(());
        }
        self.on_all(|_, worker| worker.drain(&Totals::default()))
    }

    /// Calls `work` with every worker, each on its thread.
    fn on_all(&self, work: impl Fn(usize, &mut Worker) + Sync) -> Result<()> {
        let each = |number| work(number, &mut lock(&self.workers[number]));
        self.threads.each(each).map(|_| ())
    }
}

impl Drop for ReadWorkers {
    fn drop(&mut self) {
        // An engine that is dropped on another thread leaks what it reads into.
        let _ = self.drain();
    }
}

/// A worker that panicked has ended its run; the next one drains it.
fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}
