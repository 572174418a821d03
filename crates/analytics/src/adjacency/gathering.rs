//! Arcs that all threads gather in any order, and that lists are then made of, where they are.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, Reservation};

use super::{Adjacency, Stored};

/// Places that a worker takes at a time.
const PLACES: usize = 1 << 10;

/// The binary logarithm of how many vertices' lists are made together, whose arcs a cache holds.
const BLOCK_LOG2: u32 = 16;

/// The source of no arc.
const NOWHERE: u32 = u32::MAX;

/// A buffer of arcs, of as many as there is room for.
pub(crate) struct Gathering {
    /// The source of each arc; [`NOWHERE`] where a place was not used.
    sources: Array<AtomicU32>,
    arcs: Stored,
    /// Places that were given out.
    taken: AtomicUsize,
}

/// The places that a worker may fill.
#[derive(Default)]
pub(crate) struct Place(Range<usize>);

impl Gathering {
    /// Bytes of so many arcs.
    pub(crate) fn bytes(graph: &Graph, arcs: u64) -> u64 {
        let workers = graph.thread_pool().size() as u64;
        (arcs + (workers + 1) * PLACES as u64) * Self::arc_bytes(graph)
    }

    fn arc_bytes(graph: &Graph) -> u64 {
        4 + Stored::arc_bytes(graph.manifest().weighted)
    }

    /// Room for as many arcs as so many bytes hold.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn new(graph: &Graph, bytes: u64) -> Result<Self> {
        let arcs = (bytes / Self::arc_bytes(graph)).min(u64::from(u32::MAX)) as usize;
        let arcs = arcs / PLACES * PLACES;
        let stored = Stored::new(arcs, graph.manifest().weighted)?;
        Ok(Self { sources: Array::zeroed(arcs)?, arcs: stored, taken: AtomicUsize::new(0) })
    }

    /// Adds an arc, if there is room.
    #[inline(always)]
    pub(crate) fn add(&self, place: &mut Place, from: u32, to: u32, weight: f64) {
        if place.0.is_empty() {
            let first = self.taken.fetch_add(PLACES, Ordering::Relaxed);
            place.0 = first..first + PLACES;
        }
        let at = place.0.start;
        place.0.start += 1;
        if self.arcs.set(at, to, weight) {
            self.sources[at].store(from, Ordering::Relaxed);
        }
    }

    /// Ends a worker's part.
    pub(crate) fn end(&self, place: Place) {
        for at in place.0 {
            if let Some(source) = self.sources.get(at) {
                source.store(NOWHERE, Ordering::Relaxed);
            }
        }
    }

    /// The lists of the arcs, put in order where they are: first by blocks of vertices, then block by block. `None` if
    /// there was no room for all.
    ///
    /// # Errors
    /// The system has no memory for where lists end.
    pub(crate) fn into_lists(
        mut self,
        graph: &Graph,
        vertices: usize,
        held: Reservation,
    ) -> Result<Option<Adjacency>> {
        let taken = self.taken.into_inner();
        if taken > self.sources.len() {
            return Ok(None);
        }
        let mut ends = Array::<AtomicU32>::zeroed(vertices)?;
        let sources = &mut self.sources[..taken];
        let mut arcs = self.arcs.as_part().split_at(taken).0;
        // Places that were not used go behind the last block.
        let blocks = vertices.div_ceil(1 << BLOCK_LOG2);
        let block_of = |source: u32| ((source >> BLOCK_LOG2) as usize).min(blocks);
        let ends_of_blocks = order(sources, &mut arcs, blocks + 1, block_of);
        let (mut rest, mut rest_of_arcs, mut begin) = (sources, arcs, 0);
        let ends_in_blocks = ends.chunks_mut(1 << BLOCK_LOG2);
        let parts: Vec<_> = ends_in_blocks
            .zip(ends_of_blocks)
            .map(|(ends, end)| {
                let len = (end - begin) as usize;
                let (sources, after) = std::mem::take(&mut rest).split_at_mut(len);
                let (arcs, arcs_after) = std::mem::take(&mut rest_of_arcs).split_at(len);
                let first = std::mem::replace(&mut begin, end);
                (rest, rest_of_arcs) = (after, arcs_after);
                (ends, sources, arcs, first)
            })
            .collect();
        graph.thread_pool().share(parts.into_iter(), |_, parts| {
            for (ends, sources, mut arcs, first) in parts {
                let list_of = |source: u32| (source & ((1 << BLOCK_LOG2) - 1)) as usize;
                let found = order(sources, &mut arcs, ends.len(), list_of);
                ends.iter_mut().zip(found).for_each(|(to, end)| *to.get_mut() = first + end);
            }
        })?;
        Ok(Some(Adjacency { ends, arcs: self.arcs, _held: held }))
    }
}

/// Puts arcs in the order of the list that their source is in, of so many `lists`; returns where each list ends. Each arc
/// moves once, to the next place of its list that has another's (McIlroy, Bostic and McIlroy, 1993).
fn order(
    sources: &mut [AtomicU32],
    arcs: &mut Part<'_>,
    lists: usize,
    list_of: impl Fn(u32) -> usize,
) -> Vec<u32> {
    let mut next = vec![0u32; lists];
    sources.iter_mut().for_each(|source| next[list_of(*source.get_mut())] += 1);
    let mut end = 0;
    let begin_and_end = |next: &mut u32| {
        let begin = end;
        end += std::mem::replace(next, begin);
        end
    };
    let ends: Vec<u32> = next.iter_mut().map(begin_and_end).collect();
    for (list, &end) in ends.iter().enumerate() {
        while next[list] < end {
            let at = next[list] as usize;
            let own = list_of(*sources[at].get_mut());
            let to = next[own] as usize;
            next[own] += 1;
            if own != list {
                sources.swap(at, to);
                arcs.swap(at, to);
            }
        }
    }
    ends
}

/// Arcs that are put in another order.
pub(super) enum Part<'a> {
    Plain(&'a mut [AtomicU32]),
    F32(&'a mut [AtomicU64]),
    F64(&'a mut [AtomicU32], &'a mut [AtomicU64]),
}

impl Default for Part<'_> {
    fn default() -> Self {
        Self::Plain(&mut [])
    }
}

impl Part<'_> {
    fn swap(&mut self, a: usize, b: usize) {
        match self {
            Self::Plain(targets) => targets.swap(a, b),
            Self::F32(arcs) => arcs.swap(a, b),
            Self::F64(targets, weights) => {
                targets.swap(a, b);
                weights.swap(a, b);
            }
        }
    }

    /// The first `len` arcs, and the others.
    fn split_at(self, len: usize) -> (Self, Self) {
        match self {
            Self::Plain(targets) => {
                let (some, others) = targets.split_at_mut(len);
                (Self::Plain(some), Self::Plain(others))
            }
            Self::F32(arcs) => {
                let (some, others) = arcs.split_at_mut(len);
                (Self::F32(some), Self::F32(others))
            }
            Self::F64(targets, weights) => {
                let (some, others) = targets.split_at_mut(len);
                let (their, weights) = weights.split_at_mut(len);
                (Self::F64(some, their), Self::F64(others, weights))
            }
        }
    }
}
