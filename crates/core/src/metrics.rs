//! Counters of passes: bytes by tier, and where the workers' time went.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::Serialize;

/// The counts of one pass, or the sums over all passes of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PassStats {
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// Bytes that were resident in memory, and so were not read.
    pub bytes_resident: u64,
    /// The number of reads from storage.
    pub reads: u64,
    /// Seconds that workers waited for reads, summed over workers.
    pub wait_seconds: f64,
    /// Seconds that workers processed blocks, summed over workers.
    pub compute_seconds: f64,
    /// Seconds of these in which they compared checksums of blocks that had been read.
    pub check_seconds: f64,
}

/// Running counts that all workers add to; [`get`](Self::get) takes a copy.
#[derive(Debug, Default)]
pub struct Totals {
    bytes_read: AtomicU64,
    bytes_resident: AtomicU64,
    reads: AtomicU64,
    wait_nanos: AtomicU64,
    compute_nanos: AtomicU64,
    check_nanos: AtomicU64,
}

impl Totals {
    /// Counts one read that has completed, with the `bytes` that it brought.
    pub fn read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `reads` reads that have completed, with the `bytes` that they brought together.
    pub fn read_pages(&self, bytes: u64, reads: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.reads.fetch_add(reads, Ordering::Relaxed);
    }

    /// Counts `bytes` that were resident in memory, and so were not read.
    pub fn resident(&self, bytes: u64) {
        self.bytes_resident.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the time from `since` until now to the time that workers waited for reads.
    pub fn waited(&self, since: Instant) {
        self.wait_nanos.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Adds the time from `since` until now to the time that workers processed blocks.
    pub fn computed(&self, since: Instant) {
        self.compute_nanos.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Adds the time from `since` until now to the time that workers compared checksums of blocks.
    pub fn checked(&self, since: Instant) {
        self.check_nanos.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// A copy of the counts so far.
    pub fn get(&self) -> PassStats {
        PassStats {
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_resident: self.bytes_resident.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            wait_seconds: self.wait_nanos.load(Ordering::Relaxed) as f64 * 1e-9,
            compute_seconds: self.compute_nanos.load(Ordering::Relaxed) as f64 * 1e-9,
            check_seconds: self.check_nanos.load(Ordering::Relaxed) as f64 * 1e-9,
        }
    }
}

impl PassStats {
    /// The counts since `earlier`, a copy taken before of the same [`Totals`].
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_resident: self.bytes_resident - earlier.bytes_resident,
            reads: self.reads - earlier.reads,
            wait_seconds: self.wait_seconds - earlier.wait_seconds,
            compute_seconds: self.compute_seconds - earlier.compute_seconds,
            check_seconds: self.check_seconds - earlier.check_seconds,
        }
    }
}
