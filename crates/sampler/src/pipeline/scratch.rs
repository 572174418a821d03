//! Scratch: the sampler and the page reader that one worker of a loader has for itself.

use std::sync::{Mutex, PoisonError};

use tiergraph_core::{Cancel, Result};
use tiergraph_graph::{Graph, PageReader};
use tiergraph_mem::Reservation;

use crate::sampling::sampler::Sampler;

/// The scratch of one worker, used from epoch to epoch.
pub struct Scratch {
    pub(crate) sampler: Sampler,
    pub(crate) reader: PageReader,
    held: Vec<Reservation>,
}

impl Scratch {
    pub(crate) fn new(sampler: Sampler, reader: PageReader) -> Self {
        Self { sampler, reader, held: Vec::new() }
    }

    fn held_bytes(&self) -> u64 {
        self.held.iter().map(Reservation::bytes).sum()
    }

    /// Reserves the memory by which tables (of `table_bytes`) and kept pages have grown.
    pub(crate) fn reserve_growth(
        &mut self,
        graph: &Graph,
        table_bytes: u64,
        retained: u64,
    ) -> Result<()> {
        let held = self.held_bytes();
        let bytes = table_bytes + self.reader.resident_bytes() + retained;
        if bytes > held {
            self.held
                .push(graph.memory().reserve(bytes - held, "the tables and buffers of a sampler")?);
        }
        Ok(())
    }
}

/// A pool of the scratch that no worker uses.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// Makes scratch for `threads` threads, so that bad options and lack of memory are errors now and
    /// not in a worker; lack of memory is told for all threads together.
    pub(crate) fn fill(
        &self,
        graph: &Graph,
        threads: usize,
        make: impl Fn() -> Result<Scratch>,
    ) -> Result<()> {
        let first = make()?;
        let others = threads as u64 - 1;
        let what =
            format!("the tables and buffers of {others} more samplers (fewer threads need less)");
        drop(graph.memory().reserve(others * first.held_bytes(), &what)?);
        self.give(first);
        (0..others).try_for_each(|_| make().map(|scratch| self.give(scratch)))
    }

    /// Takes used scratch; `None` if there is none.
    pub(crate) fn take(&self) -> Option<Scratch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Gives a worker's scratch back for the next epoch.
    pub(crate) fn give(&self, mut scratch: Scratch) {
        // An epoch that was left early has stopped its reader for good.
        scratch.reader.stop_by(Cancel::default());
        // A failed engine may still bring what nobody waits for.
        if scratch.reader.is_idle() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        }
    }
}
