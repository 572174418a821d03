//! The division of a build's memory.
//!
//! What grows with the vertices comes first: degrees and places, 12 or 16 bytes a vertex at the worst
//! moment. Of what is left, the sort gets what its threads need for a bucket each, and the chunks
//! of buckets most of the rest: what they hold need not go to the disk and back.

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::Budget;

use super::options::BuildOptions;
use super::spool;

/// The most arcs of a strip unless chosen otherwise or memory is small. The more arcs a tile has in a strip, the
/// fewer times a pass brings its columns into the cache.
const STRIP_ARCS: u64 = 4 << 20;
/// Strips are as large only if so many threads can sort one each.
const SORTING_THREADS: u64 = 4;
/// The most arcs of a bucket unless a strip has more or there are very many: smaller ones overlap
/// better.
const BUCKET_ARCS: u64 = 2 << 20;
/// More buckets than this are made larger if memory allows: their stages would leave the cache.
const MANY_BUCKETS: u64 = 1024;
/// Bytes of a chunk of a bucket that are as good to write and read as more.
const GOOD_CHUNK_BYTES: u64 = 32 << 10;
/// Bytes of a chunk below which buckets hold more arcs than a thread can load.
const LEAST_CHUNK_BYTES: u64 = 16 << 10;
/// Bytes that an arc takes while it is sorted: its word in a run, half of which may be empty, the word
/// in its place, the sort's scratch where one part has all arcs, the encoded arc, and chunks that are
/// read ahead.
const SORT_BYTES: u64 = 40;
/// Bytes that an arc with a weight takes while it is sorted.
const WEIGHTED_SORT_BYTES: u64 = 80;
/// Bytes that stay free for parts that are larger than planned, unless memory is small.
const SPARE_BYTES: u64 = 128 << 20;
/// Bytes without which no build starts.
const LEAST_MEMORY: u64 = 4 << 20;
/// Pages of output files that are being written, which count against a control group.
const PAGE_CACHE_BYTES: u64 = 64 << 20;

/// The least bytes of a budget that a build starts with.
pub(super) fn least_memory(options: &BuildOptions) -> u64 {
    options.process_bytes + LEAST_MEMORY
}

/// The whole budget of a build, and the error of one that is too small to start with.
pub(super) fn budget(options: &BuildOptions) -> Result<(Budget, Option<Error>)> {
    let memory = Budget::of(options.memory)?.limit();
    let least = least_memory(options);
    let refused = (memory < least).then(|| {
        Error::new(ErrorKind::Budget, "build a graph within")
            .object(ByteSize(memory))
            .expected(format!("at least `{}`", ByteSize(least)))
            .enough(least)
    });
    Ok((Budget::new(memory), refused))
}

/// Bytes of a budget of `limit` bytes that are left to the page cache.
pub(super) fn page_cache_bytes(limit: u64) -> u64 {
    PAGE_CACHE_BYTES.min(limit / 8)
}

/// The number of edges in a piece of the spool.
pub(super) fn piece_edges(limit: u64) -> usize {
    let edges = limit as usize / 8 / (spool::PIECES * spool::EDGE_BYTES);
    (edges / 1024 * 1024).clamp(1024, 1 << 18)
}

/// The most arcs of the sample of adjacency.
pub(super) fn sample_arcs(budget: &Budget) -> usize {
    (budget.limit() / 256).clamp(1 << 10, 1 << 17) as usize
}

/// Bytes of the look-up table for `ids` ids.
pub(super) fn id_table_bytes(ids: u64) -> u64 {
    4 << id_table_bits(ids)
}

/// The number of leading bits of ids that index the look-up table for `ids` ids.
pub(super) fn id_table_bits(ids: u64) -> u32 {
    (u64::BITS - ids.leading_zeros()).clamp(1, 24)
}

/// A plan of the sort: sizes of strips and buckets, threads, and the bytes that they take.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortPlan {
    /// The most arcs of a strip. Depends on the memory and on the number of vertices alone, so that
    /// any number of threads writes the same bytes.
    pub(super) strip_arcs: u64,
    /// The most arcs of a bucket, unless a strip has more.
    pub(super) bucket_arcs: u64,
    /// The number of threads that sort.
    pub(super) workers: usize,
    /// The most arcs that one thread loads at once.
    pub(super) capacity: u64,
    /// Bytes that an arc takes while it is sorted.
    pub(super) arc_bytes: u64,
    /// Bytes that all threads take to sort.
    pub(super) bytes: u64,
    /// Bytes that the chunks of buckets take in memory while they are filled.
    pub(super) chunks_bytes: u64,
    /// Bytes of chunks that may stay when all are full: the others make room for what exceeds a thread's capacity.
    pub(super) kept_bytes: u64,
    /// Bytes more than a thread's that rows sorted together take if they exceed its capacity.
    pub(super) slice_bytes: u64,
}

/// The arcs that a build sorts, counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToSort {
    pub(super) arcs: u64,
    /// The most arcs of rows that must be sorted together.
    pub(super) slice: u64,
    pub(super) weights: Weights,
}

/// Divides the `left` bytes of a budget of `limit` among the threads that sort and the chunks of
/// buckets. Where `bytes` of the plan is more than is left, the arcs do not fit.
pub(super) fn sort(options: &BuildOptions, limit: u64, left: u64, to_sort: ToSort) -> SortPlan {
    let ToSort { arcs, slice, weights } = to_sort;
    let most = left / 2;
    let arc_bytes = if weights == Weights::None { SORT_BYTES } else { WEIGHTED_SORT_BYTES };
    let sorted_by = |threads: u64| 1u64 << (most / (threads * arc_bytes)).max(1).ilog2();
    let default = sorted_by(SORTING_THREADS).max(sorted_by(2).min(STRIP_ARCS / 2));
    let default = default.clamp(1 << 12, STRIP_ARCS);
    let strip_arcs = options.strip_arcs.unwrap_or(default);
    let workers = (most / (arc_bytes * strip_arcs)).clamp(1, options.threads as u64);
    let capacity = (most / (arc_bytes * workers)).max(1 << 12);
    // So many buckets that their chunks fit as well: of a good size, unless a thread could not load what then is
    // in a bucket.
    let most_buckets =
        |chunk: u64| (left / 8 / (2 * options.threads as u64 * chunk)).clamp(16, 1 << 15);
    let wanted = strip_arcs.max(BUCKET_ARCS).max(arcs / MANY_BUCKETS);
    let bucket_arcs = wanted.max(arcs / most_buckets(GOOD_CHUNK_BYTES)).min(capacity);
    let bucket_arcs = bucket_arcs.max(arcs / most_buckets(LEAST_CHUNK_BYTES));
    let bytes = workers * capacity.min(bucket_arcs.max(1 << 12)) * arc_bytes;
    let rest = left.saturating_sub(bytes);
    let slice_bytes = slice.saturating_sub(capacity) * arc_bytes;
    let spare = SPARE_BYTES.min(rest / 2).max(slice_bytes).min(rest);
    let chunks_bytes = (rest - SPARE_BYTES.min(rest / 2)).min(limit / 2);
    let kept_bytes = (rest - spare).min(chunks_bytes);
    let workers = workers as usize;
    SortPlan {
        strip_arcs,
        bucket_arcs,
        workers,
        capacity,
        arc_bytes,
        bytes,
        chunks_bytes,
        kept_bytes,
        slice_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_load_every_bucket_unless_its_chunks_would_be_tiny() {
        let options = BuildOptions { threads: 2, ..BuildOptions::default() };
        let sorted = |arcs: u64, left: u64| {
            sort(&options, 2 * left, left, ToSort { arcs, slice: 0, weights: Weights::None })
        };
        // An undirected graph of two billion edges in what vertices leave of 2 GiB: chunks of a good size would
        // make buckets of more than a thread can load.
        let plan = sorted(4_300_000_000, 790 << 20);
        assert_eq!(plan.bucket_arcs, plan.capacity);
        // With as many buckets as that takes of ten times the arcs, their chunks would be tiny.
        let plan = sorted(43_000_000_000, 790 << 20);
        assert!(plan.bucket_arcs > plan.capacity, "{plan:?}");
        // With memory enough, buckets are as small as overlaps well.
        let plan = sorted(1 << 28, 8 << 30);
        assert!(plan.bucket_arcs < plan.capacity, "{plan:?}");
    }
}
