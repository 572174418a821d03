//! What one worker of a loader has for itself.

use std::sync::{Mutex, PoisonError};

use tiergraph_core::{Cancel, Result};
use tiergraph_graph::{Graph, PageReader};
use tiergraph_mem::Reservation;

use crate::sampling::sampler::Sampler;

/// What one worker has for itself, from epoch to epoch.
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

    /// Reserves what tables of `table_bytes` and pages that are kept for a window have grown by.
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

/// The scratch that no worker has.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// Makes scratch for so many threads. What is wrong with the options, or does not fit, is said now
    /// and not by a worker; what does not fit, of all threads together.
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

    /// Used scratch, if there are any.
    pub(crate) fn take(&self) -> Option<Scratch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a worker's scratch for the next epoch.
    pub(crate) fn give(&self, mut scratch: Scratch) {
        // An epoch that was left early has stopped its reader for good.
        scratch.reader.stop_by(Cancel::default());
        // A failed engine may still bring what nobody waits for.
        if scratch.reader.is_idle() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        }
    }
}
