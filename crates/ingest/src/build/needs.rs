//! The memory that a whole build needs, for the error that refuses a smaller budget.
//!
//! A build learns what it needs while it reads: vertices and their degrees are known when all edges were
//! seen. Where the budget does not hold them, the pass goes on but only counts ([`Seen`]), so that one
//! error says how much memory is enough for all that follows too ([`Needs::enough`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_format::tiles::STRIP_ROWS;

use super::options::{BuildOptions, Duplicates};
use super::outputs::Output;
use super::partition::ChunkPlan;
use super::plan::{self, ToSort};
use super::spool;
use super::vertices::gaps::Gaps;
use super::write::from_tiles::shares::least_bytes;
use crate::source::{EdgeBatch, Endpoints};

/// Counters that ids are hashed to: each counts a few ids beside the one with the most edges.
const COUNTERS_LOG2: u32 = 16;
/// Registers of the estimate of distinct ids, whose error is then about 1 %.
const REGISTERS_LOG2: u32 = 14;
/// The factor by which the estimate is raised, so that it is rather too large.
const ESTIMATE_SLACK: f64 = 1.06;
/// The fewest rows of a strip, whose arcs are sorted together.
const SLICE_ROWS: usize = 32;
/// The two ends of an edge, as indices.
pub(super) const SOURCE: usize = 0;
pub(super) const TARGET: usize = 1;
/// Times as many buckets as full ones would be, at most, in each family: buckets are at least half full.
const BUCKETS: u64 = 2;

/// Counts and sketches of edges that were read without memory for their vertices.
#[derive(Debug)]
pub(super) struct Seen {
    /// Edges seen.
    pub(super) edges: u64,
    /// One more than the largest id seen.
    pub(super) vertices: u64,
    /// Edges at the 32 vertices with the most, or rather more: out of them, and into them.
    slices: [u64; 2],
    counters: [Vec<u64>; 2],
    /// For each value of a hash's first bits, the most leading zeros of the rest (P. Flajolet and
    /// others, "HyperLogLog", AofA 2007).
    registers: Vec<u8>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            edges: 0,
            vertices: 0,
            slices: [0; 2],
            counters: [vec![0; 1 << COUNTERS_LOG2], vec![0; 1 << COUNTERS_LOG2]],
            registers: vec![0; 1 << REGISTERS_LOG2],
        }
    }

    /// Exact counts in place of sketches, once all edges were counted: `degrees` are those of all
    /// vertices, out and in.
    pub(super) fn counted(vertices: u64, edges: u64, degrees: [&[u32]; 2]) -> Self {
        let slices = degrees.map(|all| of_most(all.iter().map(|&degree| degree.into())));
        Self { edges, vertices, slices, counters: [Vec::new(), Vec::new()], registers: Vec::new() }
    }

    /// Adds a batch to the counts, and empties it.
    fn take(&mut self, batch: &mut EdgeBatch) {
        self.edges += batch.len() as u64;
        each_end(batch, |end, id| self.see(end, id, 1));
        batch.clear();
    }

    /// Adds `count` to the edges that have vertex `id` at their `end`, in its hashed counter.
    fn count(&mut self, end: usize, id: u64, count: u64) {
        self.counters[end][(mixed(id) >> (64 - COUNTERS_LOG2)) as usize] += count;
    }

    /// Adds vertex `id`, which is at the `end` of `count` edges, to the counts and sketches.
    pub(super) fn see(&mut self, end: usize, id: u64, count: u64) {
        self.count(end, id, count);
        let hash = mixed(id);
        self.vertices = self.vertices.max(id.saturating_add(1));
        // The counter and the register are chosen by other bits.
        let register = &mut self.registers[hash as usize & ((1 << REGISTERS_LOG2) - 1)];
        let rest = hash >> REGISTERS_LOG2 | 1 << (64 - REGISTERS_LOG2);
        *register = (*register).max(rest.trailing_zeros() as u8 + 1);
    }

    /// The most arcs of 32 rows, or rather more.
    pub(super) fn slice_arcs(&self, undirected: bool) -> u64 {
        let counted = self.counters.each_ref().map(|all| of_most(all.iter().copied()));
        let [out, into] = [SOURCE, TARGET].map(|end| self.slices[end].max(counted[end]));
        if undirected { out + into } else { out.max(into) }
    }

    /// The number of distinct ids, estimated, and rather too large than too small.
    fn distinct(&self) -> u64 {
        if self.registers.is_empty() {
            return self.vertices;
        }
        let m = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&r| (-f64::from(r)).exp2()).sum();
        let empty = self.registers.iter().filter(|&&r| r == 0).count() as f64;
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let estimate = if raw < 2.5 * m && empty > 0.0 { m * (m / empty).ln() } else { raw };
        (estimate * ESTIMATE_SLACK) as u64 + 64
    }
}

/// Calls `visit(end, id)` for both ends of all edges of a batch.
fn each_end(batch: &EdgeBatch, mut visit: impl FnMut(usize, u64)) {
    match &batch.ends {
        Endpoints::U32 { src, dst } => {
            src.iter().for_each(|&id| visit(SOURCE, id.into()));
            dst.iter().for_each(|&id| visit(TARGET, id.into()));
        }
        Endpoints::U64 { src, dst } => {
            src.iter().for_each(|&id| visit(SOURCE, id));
            dst.iter().for_each(|&id| visit(TARGET, id));
        }
    }
}

/// The sum of the [`SLICE_ROWS`] largest of `counts`.
fn of_most(counts: impl Iterator<Item = u64>) -> u64 {
    let mut largest = BinaryHeap::from(vec![Reverse(0); SLICE_ROWS]);
    for count in counts {
        if let Some(mut least) = largest.peek_mut()
            && least.0 < count
        {
            *least = Reverse(count);
        }
    }
    largest.into_iter().map(|Reverse(count)| count).sum()
}

/// The finalizer of SplitMix64.
fn mixed(id: u64) -> u64 {
    let mut z = id.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What a build knows of its needs before it reads edges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs<'a> {
    pub(super) options: &'a BuildOptions,
    pub(super) undirected: bool,
    pub(super) weighted: bool,
    /// Bytes of the build's budget.
    pub(super) memory: u64,
    /// Bytes that the source holds.
    pub(super) source: u64,
    /// Bytes that the source would hold in a build with any amount of memory.
    pub(super) source_at_most: u64,
    /// The number of vertices, where the source says it.
    pub(super) claimed: Option<u64>,
    /// Whether ids are mapped by a table of all of them; `None` until that is decided.
    pub(super) mapped: Option<bool>,
}

impl Needs<'_> {
    /// Turns a budget error into one that says how much is enough for the whole build; keeps others.
    pub(super) fn refuse(&self, error: Error, limit: u64, seen: &Seen) -> Error {
        if error.kind() != ErrorKind::Budget {
            return error;
        }
        let decided = self.decided(seen);
        let enough = decided.enough(seen).max(error.enough_bytes().unwrap_or(0));
        let (fixed, vertices) = (self.fixed(enough), decided.of_vertices(enough, seen));
        Error::new(ErrorKind::Budget, "build a graph within")
            .object(ByteSize(limit))
            .expected(format!(
                "at least `{}` (the process, the edges that are being read and written aside, the \
                 page cache {}, {} vertices {}, {} edges being sorted {})",
                ByteSize(enough),
                ByteSize(fixed),
                decided.vertices(seen),
                ByteSize(vertices),
                seen.edges,
                ByteSize(enough.saturating_sub(fixed + vertices)),
            ))
            .enough(enough)
    }

    /// These needs with the decision whether ids are mapped: they are where many do not occur and the
    /// map takes less memory than counters of all.
    fn decided(&self, seen: &Seen) -> Self {
        let as_mapped = |mapped| Self { mapped: Some(mapped), ..*self };
        let (dense, mapped) = (as_mapped(false), as_mapped(true));
        let gaps =
            Gaps { ids: seen.vertices, unused: seen.vertices.saturating_sub(seen.distinct()) };
        match self.mapped {
            Some(_) => *self,
            None if gaps.are_large() && mapped.enough(seen) < dense.enough(seen) => mapped,
            None => dense,
        }
    }

    /// The least memory in which the whole build fits, in steps of 1 MiB.
    fn enough(&self, seen: &Seen) -> u64 {
        const STEP: u64 = 1 << 20;
        let (mut low, mut high) = (0, plan::least_memory(self.options) / STEP);
        while !self.fits(high * STEP, seen) && high < u64::MAX / STEP / 2 {
            (low, high) = (high, high * 2);
        }
        while low + 1 < high {
            let middle = low.midpoint(high);
            match self.fits(middle * STEP, seen) {
                true => high = middle,
                false => low = middle,
            }
        }
        high * STEP
    }

    /// Whether the largest need of every stage fits `limit` bytes.
    fn fits(&self, limit: u64, seen: &Seen) -> bool {
        let Some(left) = limit.checked_sub(self.fixed(limit)) else { return false };
        let kept = self.of_ids(seen) + if self.undirected { 12 } else { 16 } * self.vertices(seen);
        self.of_vertices(limit, seen) <= left
            && self.sort_fits(limit, left.saturating_sub(kept), seen)
    }

    /// The most bytes that vertices take before arcs are sorted.
    fn of_vertices(&self, limit: u64, seen: &Seen) -> u64 {
        let vertices = self.vertices(seen);
        let left = limit.saturating_sub(self.fixed(limit));
        let collecting = if self.is_mapped() { 16 * vertices + left / 4 } else { 0 };
        let (counters, scan) = match self.claimed.is_some() || self.is_mapped() {
            true => (vertices, 10 * vertices),
            // They double: those at both ends, while those before are still there.
            false => (vertices.next_power_of_two(), 15 * vertices.next_power_of_two()),
        };
        // Degrees, places, and degrees in their new order.
        let order = match self.undirected {
            true => (8 * counters).max(4 * counters + 8 * vertices),
            false => 8 * counters + 12 * vertices,
        };
        collecting.max(self.of_ids(seen) + scan.max(order))
    }

    /// Bytes of the map of ids.
    fn of_ids(&self, seen: &Seen) -> u64 {
        let vertices = self.vertices(seen);
        if self.is_mapped() { 8 * vertices + plan::id_table_bytes(vertices) } else { 0 }
    }

    /// Whether a build of `limit` bytes can partition and sort its arcs in the `left` ones.
    fn sort_fits(&self, limit: u64, left: u64, seen: &Seen) -> bool {
        let weights = if self.weighted { Weights::F64 } else { Weights::None };
        let arcs = if self.undirected { 2 * seen.edges } else { seen.edges };
        let slice = arcs.min(seen.slice_arcs(self.undirected));
        let sort = plan::sort(self.options, limit, left, ToSort { arcs, slice, weights });
        if sort.bytes > left {
            return false;
        }
        let outputs = Output::all(self.options, self.undirected);
        let families = Output::of_families(&outputs, self.undirected).len() as u64;
        let buckets = families * (BUCKETS * arcs / sort.bucket_arcs.max(1) + 1);
        let chunks = ChunkPlan::new(
            buckets as usize,
            self.options.threads,
            sort.chunks_bytes,
            sort.kept_bytes,
            2 * families * 16 * arcs,
        );
        // Where duplicates are removed, degrees are counted again.
        let again = match self.options.duplicates {
            Duplicates::Remove => 8 * self.vertices(seen),
            Duplicates::Keep => 0,
        };
        let lists = match outputs.iter().any(|output| output.is_from_tiles(&outputs)) {
            true => self.lists(limit, slice, sort.strip_arcs),
            false => 0,
        };
        let buckets = chunks.bytes().max(chunks.kept_bytes() + sort.slice_bytes);
        lists.max(sort.bytes + buckets) + again <= left
    }

    /// The least bytes in which lists are made from tiles, where the most arcs of 32 rows are `slice`.
    fn lists(&self, limit: u64, slice: u64, strip_arcs: u64) -> u64 {
        let most_arcs = slice.max(strip_arcs);
        let arc_bytes = 4 + if self.weighted { Weights::F64.bytes() as u64 } else { 0 };
        let longest = (most_arcs * arc_bytes).min(self.options.block_bytes.into());
        least_bytes(limit, slice, STRIP_ROWS as u64, most_arcs, longest)
    }

    /// Bytes that a build of `limit` bytes holds whatever the edges are.
    fn fixed(&self, limit: u64) -> u64 {
        let spool = (spool::PIECES * plan::piece_edges(limit) * spool::EDGE_BYTES) as u64;
        self.options.process_bytes + self.source(limit) + plan::page_cache_bytes(limit) + spool
    }

    /// Bytes that the source holds in a build of `limit` bytes.
    fn source(&self, limit: u64) -> u64 {
        let grown = self.source + limit.saturating_sub(self.memory) / 8;
        grown.min(self.source_at_most).max(self.source)
    }

    fn is_mapped(&self) -> bool {
        self.mapped == Some(true)
    }

    fn vertices(&self, seen: &Seen) -> u64 {
        match self.claimed {
            Some(claimed) => claimed,
            None if self.is_mapped() => seen.distinct(),
            None => seen.vertices,
        }
    }
}

/// A pass's fallback where memory ends: the pass goes on, but only counts what it reads.
pub(super) struct Watch<'a> {
    needs: Needs<'a>,
    limit: u64,
    seen: Seen,
    /// The error with which memory ended; `None` while it has not.
    refused: Option<Error>,
}

impl<'a> Watch<'a> {
    /// Counts from the beginning if the memory of `limit` bytes has ended already, with `refused`.
    pub(super) fn new(needs: Needs<'a>, limit: u64, refused: Option<Error>) -> Self {
        Self { needs, limit, seen: Seen::new(), refused }
    }

    /// Counts from now on because memory has ended with `error`, unless it had before.
    pub(super) fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }

    pub(super) fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Whether memory has ended: then the batch was counted and emptied, and is not for the pass.
    pub(super) fn looked_at(&mut self, batch: &mut EdgeBatch) -> bool {
        if self.has_refused() {
            self.seen.take(batch);
        }
        self.has_refused()
    }

    /// Counts the edges of a batch that the pass itself does not count by vertex.
    pub(super) fn count(&mut self, batch: &EdgeBatch) {
        each_end(batch, |end, id| self.seen.count(end, id, 1));
    }

    /// If `result` says that memory ended with `batch`, counts that batch, and all that follow.
    pub(super) fn end(&mut self, result: Result<()>, batch: &mut EdgeBatch) -> Result<()> {
        match result {
            Err(error) if error.kind() == ErrorKind::Budget => {
                self.refuse(error);
                self.looked_at(batch);
                Ok(())
            }
            result => result,
        }
    }

    /// One more than the largest id that was counted.
    pub(super) fn vertices(&self) -> u64 {
        self.seen.vertices
    }

    /// Fails if memory ended, with how much is enough; `tell` adds what the pass had counted before.
    pub(super) fn finish(mut self, tell: impl FnOnce(&mut Seen)) -> Result<()> {
        let Some(error) = self.refused else { return Ok(()) };
        tell(&mut self.seen);
        Err(self.needs.refuse(error, self.limit, &self.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ids: impl Iterator<Item = u64>) -> Seen {
        let mut seen = Seen::new();
        ids.for_each(|id| seen.see(SOURCE, id, 1));
        seen
    }

    #[test]
    fn distinct_ids_are_rather_too_many_than_too_few() {
        for n in [0u64, 10, 1000, 30_000, 50_000, 200_000, 1_000_000] {
            let estimate = seen((0..2 * n).map(|i| i % n.max(1) * 977 + 5)).distinct();
            assert!((n..=n + n / 8 + 128).contains(&estimate), "{n}: {estimate}");
        }
    }

    #[test]
    fn a_hub_is_seen_among_many_others() {
        let all = seen((0..500_000).map(|i| if i % 4 == 0 { 7 } else { i * 3 }));
        let most = all.slice_arcs(false);
        assert!((125_000..126_500).contains(&most), "{most}");
        assert_eq!(all.vertices, 1_499_998);
    }

    #[test]
    fn more_edges_need_more_and_what_is_enough_fits() {
        let options = BuildOptions::default();
        let needs = Needs {
            options: &options,
            undirected: true,
            weighted: false,
            memory: 1 << 20,
            source: 1 << 20,
            source_at_most: 8 << 20,
            claimed: None,
            mapped: Some(false),
        };
        let mut last = 0;
        for edges in [1, 1000, 1 << 20, 1 << 26] {
            let seen = Seen::counted(edges, edges, [&[], &[edges.min(1 << 20) as u32, 7]]);
            let enough = needs.enough(&seen);
            assert!(
                enough >= last
                    && needs.fits(enough, &seen)
                    && !needs.fits(enough - (1 << 20), &seen)
            );
            last = enough;
        }
    }
}
