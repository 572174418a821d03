//! Counts and times of an epoch: bytes by tier, and seconds by stage.

use serde::Serialize;

use crate::gathering::gather::GatherReads;
use crate::sampling::window::SampleReads;

/// Counts and times of an epoch so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EpochStats {
    /// Batches that were taken.
    pub batches: u64,
    /// Bytes read from storage.
    pub bytes_ssd: u64,
    /// Bytes of those that were pages of neighbours.
    pub bytes_ssd_topology: u64,
    /// Bytes of those that were weights, times and numbers of edges.
    pub bytes_ssd_values: u64,
    /// Bytes of rows and pages that were in memory.
    pub bytes_host: u64,
    /// Different pages that were read, summed over windows: 4096 bytes each are `bytes_ssd`, unless
    /// `repeated_pages` says otherwise.
    pub distinct_pages: u64,
    /// Pages that were read again in the same window, because too many were wanted to keep them.
    pub repeated_pages: u64,
    /// Reads submitted: adjacent pages share one.
    pub reads: u64,
    /// Rows of features that were not in memory: what one read a row would have read.
    pub missed_rows: u64,
    /// Nodes of all batches.
    pub nodes: u64,
    /// Edges of all batches.
    pub edges: u64,
    /// Seconds of sampling, summed over threads.
    pub seconds_sample: f64,
    /// Seconds of gathering, summed over threads.
    pub seconds_gather: f64,
    /// Seconds that the caller waited for batches.
    pub seconds_wait: f64,
}

impl EpochStats {
    /// The counts of sampling a window, which took `seconds`.
    pub(crate) fn sampled(reads: &SampleReads, seconds: f64) -> Self {
        Self {
            bytes_ssd: reads.read.bytes + reads.values.bytes,
            bytes_ssd_topology: reads.read.bytes,
            bytes_ssd_values: reads.values.bytes,
            bytes_host: reads.bytes_host,
            distinct_pages: reads.distinct_pages,
            repeated_pages: reads.read.pages + reads.values.pages - reads.distinct_pages,
            reads: reads.read.reads + reads.values.reads,
            seconds_sample: seconds,
            ..Self::default()
        }
    }

    /// The counts of gathering the rows of batches, which took `seconds`.
    pub(crate) fn gathered(reads: &GatherReads, seconds: f64) -> Self {
        Self {
            bytes_ssd: reads.read.bytes,
            bytes_host: reads.bytes_host,
            distinct_pages: reads.read.pages,
            reads: reads.read.reads,
            missed_rows: reads.missed_rows,
            seconds_gather: seconds,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes_ssd += other.bytes_ssd;
        self.bytes_ssd_topology += other.bytes_ssd_topology;
        self.bytes_ssd_values += other.bytes_ssd_values;
        self.bytes_host += other.bytes_host;
        self.distinct_pages += other.distinct_pages;
        self.repeated_pages += other.repeated_pages;
        self.reads += other.reads;
        self.missed_rows += other.missed_rows;
        self.nodes += other.nodes;
        self.edges += other.edges;
        self.seconds_sample += other.seconds_sample;
        self.seconds_gather += other.seconds_gather;
    }
}
