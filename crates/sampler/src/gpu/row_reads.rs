//! Reads of the feature rows that are on storage: the host's threads start them, or the GPU's kernels.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Gather, MissingRows, Sampler};
use tiergraph_gpu::{Device, DeviceView, Event, Stream};

use super::drive_rows::{DriveRows, LOOK};
use super::storage::{Storage, StorageReads};

/// Who reads rows that are on storage.
pub(super) enum RowReads {
    /// The host's threads.
    Host(Storage),
    /// The GPU's kernels.
    Gpu(DriveRows),
}

impl RowReads {
    /// Who starts reads, and the way rows come.
    pub fn way(&self) -> &'static str {
        match self {
            Self::Host(_) => "the host, through pinned memory",
            Self::Gpu(drives) => drives.way(),
        }
    }

    /// Counts of reads so far.
    pub fn reads(&self) -> StorageReads {
        match self {
            Self::Host(storage) => storage.reads(),
            Self::Gpu(drives) => drives.reads(),
        }
    }

    /// An empty list for the rows that a batch of `sampler` misses.
    pub fn list(&self, device: &Device, sampler: &Sampler) -> Result<MissingRows> {
        match self {
            Self::Host(_) => MissingRows::new(device, sampler),
            Self::Gpu(drives) => drives.list(device, sampler),
        }
    }

    /// Drops a batch that is not waited for any more, and whose memory may be gone afterwards.
    pub fn give_up(&mut self, ticket: u64) {
        match self {
            Self::Host(storage) => storage.give_up(ticket),
            Self::Gpu(drives) => drives.give_up(ticket),
        }
    }

    /// Begins to read the rows that were found `missing` to rows at `x`, once `stream` gets there; returns
    /// their ticket. Another list may take the place of `missing`.
    pub fn begin(
        &mut self,
        stream: &Stream,
        missing: &mut MissingRows,
        x: DeviceView<f32>,
    ) -> Result<u64> {
        match self {
            Self::Host(storage) => storage.begin(stream, missing, x),
            Self::Gpu(drives) => drives.begin(stream, missing, x),
        }
    }

    /// Goes on with what has come; an event that happens when the rows of `ticket` are all where they are
    /// wanted, or `None` as long as some have not come.
    pub fn look(&mut self, ticket: u64, gather: &Gather, dim: usize) -> Result<Option<Event>> {
        match self {
            Self::Host(storage) => storage
                .look(ticket, |stream, piece, to, e| gather.spread(stream, piece, to, dim, e)),
            Self::Gpu(drives) => drives.look(ticket, gather),
        }
    }
}

/// The rows that are on storage: whoever makes batches begins to read them, and whoever hands batches over
/// waits for them meanwhile.
pub(super) struct LateRows {
    reads: Mutex<RowReads>,
    gather: Gather,
    dim: usize,
}

impl LateRows {
    /// Rows of `dim` values, which `gather` brings to their batches.
    pub fn new(reads: RowReads, gather: Gather, dim: usize) -> Self {
        Self { reads: Mutex::new(reads), gather, dim }
    }

    /// The reads; a call that panicked left counts behind, and no batch half begun.
    pub fn lock(&self) -> MutexGuard<'_, RowReads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`RowReads::look`], until they have come, `patience` is over, or `is_called` says so.
    pub fn wait(
        &self,
        ticket: u64,
        patience: Duration,
        mut is_called: impl FnMut() -> bool,
    ) -> Result<Option<Event>> {
        let since = Instant::now();
        loop {
            let event = self.lock().look(ticket, &self.gather, self.dim)?;
            if event.is_some() || is_called() || since.elapsed() >= patience {
                return Ok(event);
            }
            thread::sleep(LOOK);
        }
    }
}
