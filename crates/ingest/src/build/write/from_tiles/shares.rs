//! How threads share memory, and ranges of vertices.

use std::ops::Range;

use super::arcs::ArcLists;
use super::segments::reader_bytes;
use super::{FromTiles, PIECE_ARCS};

/// Bytes of a vertex and of an arc while its list is in memory.
const VERTEX_BYTES: u64 = 4;
const ARC_BYTES: u64 = 4;

/// How many threads share how much memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) threads: usize,
    /// Bytes of all threads.
    pub(crate) bytes: u64,
    /// Bytes of the lists of a range.
    lists: u64,
    /// Bytes of a thread's packed lists that wait to be written.
    pub(super) waiting: u64,
}

impl Shares {
    /// Divides `left` bytes among at most `threads` threads; more than that where one thread needs more.
    pub(super) fn new(job: &FromTiles<'_>, left: u64, threads: usize) -> Self {
        let largest = (0..job.vertices).map(job.arcs_of).max().unwrap_or(0);
        let least = VERTEX_BYTES + ARC_BYTES * largest;
        let segments = job.segments;
        let fixed = segments.reader_bytes()
            + ArcLists::fixed_bytes(segments.most_rows() as u64, segments.most_arcs());
        // Half for lists. Of the rest a third for those that wait, and again for those of the range before.
        let of_one = |threads: u64| (left / threads).saturating_sub(fixed) / 2;
        let threads = (1..=threads as u64).rev().find(|&n| of_one(n) >= least).unwrap_or(1);
        let lists = of_one(threads).max(least).min(ARC_BYTES * u64::from(u32::MAX));
        let bytes = threads * (fixed + 2 * lists);
        Self { threads: threads as usize, bytes, lists, waiting: lists / 3 }
    }

    /// Ranges of vertices whose lists take about as much memory each, as many as threads share evenly.
    pub(super) fn ranges(self, job: &FromTiles<'_>) -> Vec<Range<u32>> {
        let bytes = |vertex: u32| VERTEX_BYTES + ARC_BYTES * (job.arcs_of)(vertex as usize);
        let all: u64 = (0..job.vertices as u32).map(bytes).sum();
        let count = all.div_ceil(self.lists).next_multiple_of(self.threads as u64);
        let most = all.div_ceil(count.max(1)).max(ARC_BYTES * PIECE_ARCS as u64).min(self.lists);
        let (mut ranges, mut begin, mut sum) = (Vec::new(), 0, 0);
        for vertex in 0..job.vertices as u32 {
            let more = bytes(vertex);
            if sum + more > most && vertex > begin {
                ranges.push(begin..vertex);
                (begin, sum) = (vertex, 0);
            }
            sum += more;
        }
        ranges.push(begin..job.vertices as u32);
        ranges
    }
}

/// The least bytes in which lists are made in a build with `memory` bytes, where the most arcs of a vertex are
/// `largest`, strips have at most `rows` rows, and tiles of a strip at most `arcs` arcs in `bytes` bytes.
pub(crate) fn least_bytes(memory: u64, largest: u64, rows: u64, arcs: u64, bytes: u64) -> u64 {
    let lists = 2 * (VERTEX_BYTES + ARC_BYTES * largest);
    reader_bytes(memory, bytes) + ArcLists::fixed_bytes(rows, arcs) + lists
}
