//! The loop of every worker: fill the engine → process what is resident → process what arrived.
//!
//! Thread-per-core (RealGraphGPU++'s asynchronous CPU threads): each worker takes reads from its
//! own share of the pass and then from the others', and never waits for another worker's reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_io::Wait;
use tiergraph_mem::AlignedBuf;

use crate::Graph;
use crate::plan::{Plan, Shares, Want};
use crate::worker::{SMALL_READ, Worker};

/// What follows a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing that is known yet.
    Stop,
    /// Another pass over the same: its first reads begin before this one ends, once it is settled
    /// which blocks are resident.
    Again,
}

/// What the workers of a pass share.
struct Pass<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    /// Of the pass after this, where it is known.
    next: Option<&'a Plan>,
    /// Held until the pass ends, whatever another run makes the cache give up.
    resident: Vec<(usize, Arc<AlignedBuf>)>,
    resident_shares: Shares,
    stop: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Pass<'_> {
    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl Graph {
    /// Hands the bytes of every want to `visit`, once each: `visit(state, number of the want,
    /// bytes, whether they were just read and so must be checked)`.
    ///
    /// Each worker makes its state by `begin` and ends it by `end`. Passes of one graph wait for
    /// each other.
    pub(crate) fn read_all<W>(
        &self,
        wants: &[Want],
        then: Then,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, usize, &[u8], bool) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut crew = self.crew();
        crew.complete(|| self.new_engine())?;
        let (mut resident, mut missing) = (Vec::new(), Vec::new());
        for (i, want) in wants.iter().enumerate() {
            match want.key.and_then(|key| self.cache().get(key)) {
                Some(block) => resident.push((i, block)),
                None => missing.push(i),
            }
        }
        let plan = crew.plan(wants, missing, self.totals())?;
        // While blocks become resident, what the next pass must read is not known.
        let is_settled = self.cache().left() < self.block_bytes() as u64;
        let next = (then == Then::Again && is_settled).then(|| crew.again(&plan));
        let pass = Pass {
            graph: self,
            plan: &plan,
            next: next.as_deref(),
            resident_shares: Shares::new(resident.len(), self.threads()),
            resident,
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        crew.on_all(|number, worker| {
            worker.begin();
            let mut state = begin(number);
            let worked = pass.work(number, worker, &mut state, &visit);
            if let Err(error) = worked.and_then(|()| end(state)) {
                pass.fail(error);
            }
        })?;
        match pass.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => {
                crew.drain(self.totals())?;
                Err(error)
            }
            None => {
                crew.keep(next);
                Ok(())
            }
        }
    }
}

impl Pass<'_> {
    fn work<W>(
        &self,
        number: usize,
        worker: &mut Worker,
        state: &mut W,
        visit: &impl Fn(&mut W, usize, &[u8], bool) -> Result<()>,
    ) -> Result<()> {
        let (graph, plan) = (self.graph, self.plan);
        loop {
            graph.cancel().check("finish the pass")?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begun = worker.fill(number, plan, self.next)?;
            worker.poll(plan, Wait::No)?;
            let mut is_idle = true;
            while let Some((want, buffer, read)) = worker.arrived() {
                is_idle = false;
                let is_large = buffer.len() > SMALL_READ;
                let visited = self.process(number, state, want, &buffer, read, visit);
                match visited {
                    Ok(()) => self.recycle(want, buffer, worker),
                    Err(error) => {
                        worker.give_back(buffer);
                        return Err(error);
                    }
                }
                worker.fill(number, plan, self.next)?;
                // Reads start at a poll: the drive would idle while the rest of a burst is
                // processed, and then answer in bursts for ever. Small reads are worth one call
                // for many.
                if is_large {
                    worker.poll(plan, Wait::No)?;
                }
            }
            if !is_idle {
                continue;
            }
            if let Some(i) = self.resident_shares.next(number) {
                let (i, block) = &self.resident[i];
                let since = Instant::now();
                visit(state, *i, block, false)?;
                graph.totals().computed(since);
                graph.totals().resident(block.len() as u64);
                graph.trace().span("compute", "resident block", number as u32, since);
            } else if worker.is_reading() {
                let since = Instant::now();
                worker.poll(plan, Wait::One)?;
                graph.totals().waited(since);
                graph.trace().span("wait", "read", number as u32, since);
            } else {
                return if begun { Ok(()) } else { Err(stuck()) };
            }
        }
    }

    /// Hands a block that arrived to `visit`.
    fn process<W>(
        &self,
        number: usize,
        state: &mut W,
        want: usize,
        buffer: &AlignedBuf,
        read: Result<usize>,
        visit: &impl Fn(&mut W, usize, &[u8], bool) -> Result<()>,
    ) -> Result<()> {
        let bytes = read?;
        let totals = self.graph.totals();
        totals.read(bytes as u64);
        if bytes == 0 {
            let error = Error::new(ErrorKind::Format, "read a block");
            return Err(error.expected("bytes").got("the file's end"));
        }
        let since = Instant::now();
        visit(state, want, &buffer[..self.plan.want(want).len], true)?;
        totals.computed(since);
        self.graph.trace().span("compute", "block", number as u32, since);
        Ok(())
    }

    /// Hands a block that was processed to the cache, or its buffer back to the worker.
    fn recycle(&self, want: usize, buffer: AlignedBuf, worker: &mut Worker) {
        let want = self.plan.want(want);
        let offered = match want.key {
            Some(key) if buffer.len() == want.len => self.graph.cache().offer(key, buffer),
            _ => Err(buffer),
        };
        match offered {
            Ok(_) => worker.gave_away(want.len),
            Err(buffer) => worker.give_back(buffer),
        }
    }
}

/// A worker that can neither read nor end would leave a part of the pass out.
fn stuck() -> Error {
    Error::new(ErrorKind::Io, "finish the pass")
        .expected("a buffer and an engine that takes a read")
        .got("neither, with nothing in flight")
}
