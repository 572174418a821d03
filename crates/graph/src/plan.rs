//! What a pass reads, and who takes which read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tiergraph_cache::BlockKey;
use tiergraph_io::FileId;

/// Bytes of a file that a pass wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub file: FileId,
    pub offset: u64,
    pub len: usize,
    /// The block that this is, where it may be or become resident.
    pub key: Option<BlockKey>,
}

/// The reads of a pass, and who takes which: shares, one a worker, who takes from the others'
/// when it has finished its own.
pub(crate) struct Plan {
    /// Tells the reads of one pass from those of the next.
    number: u32,
    pub(crate) wants: Vec<Want>,
    /// Those that are not resident.
    pub(crate) missing: Vec<usize>,
    shares: Shares,
}

impl Plan {
    pub(crate) fn new(
        number: u32,
        wants: Vec<Want>,
        missing: Vec<usize>,
        workers: usize,
    ) -> Arc<Self> {
        let shares = Shares::new(missing.len(), workers);
        Arc::new(Self { number, wants, missing, shares })
    }

    pub(crate) fn want(&self, number: usize) -> &Want {
        &self.wants[number]
    }

    /// The number of the next want to read.
    pub(crate) fn next(&self, worker: usize) -> Option<usize> {
        self.shares.next(worker).map(|i| self.missing[i])
    }

    pub(crate) fn tag(&self, want: usize) -> u64 {
        u64::from(self.number) << 32 | want as u64
    }

    /// Whether a read with this tag is of this pass.
    pub(crate) fn has(&self, tag: u64) -> bool {
        tag >> 32 == u64::from(self.number)
    }
}

/// The want that a read with this tag is for.
pub(crate) fn want_of(tag: u64) -> usize {
    tag as u32 as usize
}

/// Shares of a list, one a worker.
pub(crate) struct Shares(Vec<(AtomicUsize, usize)>);

impl Shares {
    pub(crate) fn new(len: usize, workers: usize) -> Self {
        let bound = |w: usize| len * w / workers;
        Self((0..workers).map(|w| (AtomicUsize::new(bound(w)), bound(w + 1))).collect())
    }

    pub(crate) fn next(&self, worker: usize) -> Option<usize> {
        let workers = self.0.len();
        (0..workers).map(|i| &self.0[(worker + i) % workers]).find_map(|(next, end)| {
            if next.load(Ordering::Relaxed) >= *end {
                return None;
            }
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| i < end)
        })
    }
}
