//! Passes whose blocks reach a device without passing through this process's memory.
//!
//! A *lane* is a thread with room of its own on the device. It takes the next block, reads it by a
//! call that waits, starts what is to be done with it, and takes the next: it never waits for
//! another lane (RealGraphGPU++, "asynchronous CPU threads"), and as many reads are in flight as
//! there are lanes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tiergraph_core::trace::Track;
use tiergraph_core::{Error, Result};

use crate::Graph;
use crate::team::Team;

/// What one thread of a pass does with blocks.
pub trait Lane: Send {
    /// Reads a block to where it belongs, and starts what is to be done with it.
    ///
    /// # Errors
    /// Whatever the read or the device gives; ends the pass.
    fn bring(&mut self, block: u32) -> Result<()>;

    /// Starts whatever still waits for more blocks: the pass has no more.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn finish(&mut self) -> Result<()>;
}

/// The threads of lanes, kept from pass to pass.
#[derive(Debug)]
pub struct DirectReader {
    team: Team,
}

impl Graph {
    /// Counts a read to a device: of `bytes`, by `lane`, from `begin` until now.
    pub fn brought(&self, lane: usize, bytes: usize, begin: Instant) {
        self.totals().waited(begin);
        self.totals().read(bytes as u64);
        self.trace().record(Track::Direct, "read", lane as u32, (begin, Instant::now()));
    }
}

impl DirectReader {
    /// For `lanes`.
    pub fn new(lanes: usize) -> Self {
        Self { team: Team::new(lanes) }
    }

    /// How many.
    pub fn lanes(&self) -> usize {
        self.team.size()
    }

    /// Hands each of `blocks` to one of `lanes`, in any order; returns when all were taken.
    ///
    /// # Errors
    /// The first that a lane gives; the system gives no more threads.
    ///
    /// # Panics
    /// If there are not as many lanes as threads.
    pub fn pass(&self, graph: &Graph, blocks: &[u32], lanes: &mut [impl Lane]) -> Result<()> {
        assert_eq!(lanes.len(), self.lanes(), "a thread a lane");
        if blocks.is_empty() {
            return Ok(());
        }
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let take = || blocks.get(next.fetch_add(1, Ordering::Relaxed)).copied();
        let work = |lane: &mut dyn Lane| -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                graph.cancel().check("finish the pass")?;
                let Some(block) = take() else { break };
                lane.bring(block)?;
            }
            lane.finish()
        };
        let lanes: Vec<_> = lanes.iter_mut().map(Mutex::new).collect();
        self.team.each(|lane| {
            let mut lane = lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = work(&mut **lane) {
                stop.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        })?;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
