//! What passes did: bytes by tier, and where the workers' time went.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::Serialize;

/// Counts of one pass or of all passes of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PassStats {
    /// Bytes read from storage.
    pub bytes_read: u64,
    /// Bytes that were resident and so not read.
    pub bytes_resident: u64,
    /// Number of reads.
    pub reads: u64,
    /// Seconds that workers waited for reads, summed over workers.
    pub wait_seconds: f64,
    /// Seconds that workers processed blocks, summed over workers.
    pub compute_seconds: f64,
}

/// Counts that all workers add to.
#[derive(Debug, Default)]
pub struct Totals {
    bytes_read: AtomicU64,
    bytes_resident: AtomicU64,
    reads: AtomicU64,
    wait_nanos: AtomicU64,
    compute_nanos: AtomicU64,
}

impl Totals {
    /// Counts one read of `bytes`.
    pub fn read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `reads` reads of `bytes` together.
    pub fn read_pages(&self, bytes: u64, reads: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.reads.fetch_add(reads, Ordering::Relaxed);
    }

    /// Counts bytes that were resident.
    pub fn resident(&self, bytes: u64) {
        self.bytes_resident.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the time since then as a worker's waiting for reads.
    pub fn waited(&self, since: Instant) {
        self.wait_nanos.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Counts the time since then as a worker's processing.
    pub fn computed(&self, since: Instant) {
        self.compute_nanos.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn get(&self) -> PassStats {
        PassStats {
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_resident: self.bytes_resident.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            wait_seconds: self.wait_nanos.load(Ordering::Relaxed) as f64 * 1e-9,
            compute_seconds: self.compute_nanos.load(Ordering::Relaxed) as f64 * 1e-9,
        }
    }
}

impl PassStats {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_resident: self.bytes_resident - earlier.bytes_resident,
            reads: self.reads - earlier.reads,
            wait_seconds: self.wait_seconds - earlier.wait_seconds,
            compute_seconds: self.compute_seconds - earlier.compute_seconds,
        }
    }
}
