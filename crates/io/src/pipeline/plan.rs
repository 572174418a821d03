//! The requests of a pass, and how its workers share them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tiergraph_cache::BlockKey;

use crate::FileId;

/// Bytes of a file that a pass wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The file to read.
    pub file: FileId,
    /// Where the bytes start: a multiple of 4 KiB.
    pub offset: u64,
    /// How many bytes: a multiple of 4 KiB.
    pub len: usize,
    /// The key of the block in the cache; `None` for bytes that cannot become resident.
    pub key: Option<BlockKey>,
}

/// The requests of a pass, in one share for each worker. A worker that has finished its own share takes
/// requests from the others'.
#[derive(Debug)]
pub struct Plan {
    /// Tells the reads of one pass from those of the next.
    number: u32,
    pub(super) requests: Vec<Request>,
    /// The numbers of those that are to be read; none for all.
    pub(super) missing: Option<Vec<usize>>,
    shares: Shares,
}

impl Plan {
    /// A plan in which `workers` read all `requests`; `number` differs from that of the plan before,
    /// which tells their reads apart.
    pub fn all(number: u32, requests: Vec<Request>, workers: usize) -> Self {
        let shares = Shares::new(requests.len(), workers);
        Self { number, requests, missing: None, shares }
    }

    /// A plan of those of `requests` that are `missing`.
    pub(super) fn of_missing(
        number: u32,
        requests: Vec<Request>,
        missing: Vec<usize>,
        workers: usize,
    ) -> Self {
        let shares = Shares::new(missing.len(), workers);
        Self { number, requests, missing: Some(missing), shares }
    }

    /// Request `number` of the plan, from 0.
    pub fn request(&self, number: usize) -> &Request {
        &self.requests[number]
    }

    /// The requests, for use in another plan.
    pub fn into_requests(self) -> Vec<Request> {
        self.requests
    }

    /// The number of the next request to read.
    pub(super) fn next(&self, worker: usize) -> Option<usize> {
        let next = self.shares.next(worker)?;
        Some(self.missing.as_ref().map_or(next, |missing| missing[next]))
    }

    pub(super) fn tag(&self, request: usize) -> u64 {
        u64::from(self.number) << 32 | request as u64
    }

    /// Whether a read with this tag is of this pass.
    pub(super) fn has(&self, tag: u64) -> bool {
        tag >> 32 == u64::from(self.number)
    }
}

/// The number of the request that a read with this tag is for.
pub(super) fn request_of(tag: u64) -> usize {
    tag as u32 as usize
}

/// Shares of a list, one a worker.
#[derive(Debug)]
pub(super) struct Shares(Vec<(AtomicUsize, usize)>);

impl Shares {
    pub(super) fn new(len: usize, workers: usize) -> Self {
        let bound = |w: usize| len * w / workers;
        Self((0..workers).map(|w| (AtomicUsize::new(bound(w)), bound(w + 1))).collect())
    }

    /// The next place in the list: of the worker's own share, or of another's.
    pub(super) fn next(&self, worker: usize) -> Option<usize> {
        let workers = self.0.len();
        (0..workers).map(|i| &self.0[(worker + i) % workers]).find_map(|(next, end)| {
            let after = |i: usize| (i < *end).then_some(i + 1);
            next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()
        })
    }

    /// Whether nothing is left in any share.
    pub(super) fn are_empty(&self) -> bool {
        self.0.iter().all(|(next, end)| next.load(Ordering::Relaxed) >= *end)
    }
}
