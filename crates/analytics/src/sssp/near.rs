//! Paths along lists in memory: near vertices first, by delta-stepping on one thread.
//!
//! A pass over tiles looks at every arc of the tiles in which a distance fell: where few do, and in many
//! passes, as in a road network, almost all are looked at in vain. Once it is clear that this is one,
//! lists are made ([`Adjacency`]), and the rest is done here: distances only fall, and the last ones are
//! what passes would have found, bit for bit, because a sum along a path does not depend on who adds it
//! up.

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use super::Distances;
use super::buckets::{BUCKETS, Buckets};
use crate::adjacency::Adjacency;
use crate::report::Run;

/// When passes have looked at half of the arcs, a graph with a short diameter has had distances fall at
/// more than one in so many vertices.
const REACHED_SHARE: u64 = 16;
/// When passes looked so many times at all arcs, a short diameter leaves few distances to fall.
const PASSES: u64 = 6;
/// Few distances are up to one for so many that fell in the pass in which most did.
const END_SHARE: u64 = 16;
/// After so many times all arcs, over three quarters of that peak fall only if the diameter is long.
const EARLY_PASSES: u64 = 4;
/// After so many times all arcs, lists would have cost less, whatever is left to do.
const MOST_PASSES: u64 = 32;
/// Cost of a pass with almost no work, in arcs that it could have looked at in that time.
const PASS_COST: u64 = 40_000;
/// Weights that are sampled to choose the width of buckets.
const SAMPLE: usize = 1023;
/// Vertices whose arcs are relaxed together, while others of them are fetched.
const ABREAST: usize = 16;
/// Vertices between two checks of whether the run was cancelled.
const STEP: usize = 1 << 16;

/// Counts of what a run's passes did so far, which show when lists would pay.
#[derive(Debug, Default)]
pub(super) struct PassHistory {
    /// Arcs that passes looked at, with [`PASS_COST`] for each pass.
    arcs: u64,
    /// Distances that fell, in all passes.
    lowered: u64,
    /// Distances that fell in the pass in which most did.
    peak: u64,
}

impl PassHistory {
    /// Notes a pass that looked at so many arcs of `all` that are stored; returns whether lists would pay for the rest of
    /// the run.
    pub(super) fn note(
        &mut self,
        graph: &Graph,
        (looked_at, all): (u64, u64),
        lowered: u64,
    ) -> bool {
        self.arcs += looked_at + PASS_COST;
        self.lowered += lowered;
        self.peak = self.peak.max(lowered);
        let is_few = self.lowered < graph.vertices() as u64 / REACHED_SHARE;
        let goes_on = lowered > self.peak / END_SHARE;
        let is_level = lowered > self.peak / 4 * 3;
        let is_long = (is_few && self.arcs > all / 2)
            || (is_level && self.arcs > all * EARLY_PASSES)
            || (goes_on && self.arcs > all * PASSES)
            || self.arcs > all * MOST_PASSES;
        lowered > 0 && is_long
    }
}

/// All arcs as lists, and the memory for delta-stepping along them.
pub(crate) struct Near {
    lists: Adjacency,
    /// The least width of a bucket.
    width: f64,
    /// The memory of the buckets.
    _held: Reservation,
}

impl Near {
    /// Makes the lists; `None` where the memory does not hold them.
    pub(crate) fn new(graph: &Graph) -> Result<Option<Self>> {
        let bytes = Buckets::bytes(graph.vertices());
        // Heads of buckets are numbered behind the vertices.
        let fits = graph.vertices() + BUCKETS < u32::MAX as usize;
        if !fits || Self::memory(graph) > graph.memory().budget().left() {
            return Ok(None);
        }
        // Another run may have been faster.
        let what = "the order of vertices by distance";
        let Some(held) = graph.memory().reserve_if_left(bytes, what)? else {
            return Ok(None);
        };
        let lists = Adjacency::read(graph, true)?;
        Ok(lists.map(|lists| Self { width: delta(&lists), lists, _held: held }))
    }

    /// Bytes of lists and of going along them.
    fn memory(graph: &Graph) -> u64 {
        Buckets::bytes(graph.vertices()) + Adjacency::bytes(graph, true)
    }

    /// The least budget, in bytes, that would have had room for lists now.
    pub(super) fn budget(graph: &Graph) -> u64 {
        let budget = graph.memory().budget();
        budget.limit() + Self::memory(graph).saturating_sub(budget.left())
    }

    /// Bytes that going along lists takes beside them.
    pub(super) fn bytes(vertices: usize) -> u64 {
        Buckets::bytes(vertices)
    }

    /// Of lists that are made, and memory that is `held`; buckets are at least so wide.
    pub(super) fn of_lists(lists: Adjacency, width: f64, held: Reservation) -> Self {
        Self { lists, width, _held: held }
    }

    /// Finds the final distances, starting from the vertices of which `is_active` is true.
    pub(crate) fn finish(
        self,
        graph: &Graph,
        distances: &Distances,
        is_active: impl Fn(u32) -> bool,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let n = distances.0.len();
        let mut buckets =
            Buckets::new(graph.thread_pool(), n, self.width, |v| distances.get(v as u32))?;
        for v in 0..n as u32 {
            if is_active(v) && buckets.distance(v) < f64::INFINITY {
                buckets.push(v);
            }
        }
        while buckets.advance() {
            let lowered = empty_window(graph, &self.lists, &mut buckets)?;
            run.iteration("lists", lowered as f64);
        }
        for v in 0..n as u32 {
            distances.lower(v, buckets.distance(v));
        }
        Ok(())
    }
}

/// Relaxes the arcs of every vertex in the window until that is empty; returns how many distances fell.
fn empty_window(graph: &Graph, lists: &Adjacency, buckets: &mut Buckets) -> Result<u64> {
    let mut lowered = 0;
    loop {
        graph.cancel().check("find the paths")?;
        for _ in 0..STEP / ABREAST {
            // Each vertex's list, and what is in it, is somewhere else in memory.
            let mut some = [0; ABREAST];
            let mut count = 0;
            while count < ABREAST
                && let Some(v) = buckets.pop()
            {
                lists.prefetch_end(v);
                some[count] = v;
                count += 1;
            }
            let some = &some[..count];
            if some.is_empty() {
                return Ok(lowered);
            }
            some.iter().for_each(|&v| lists.prefetch_list(v));
            some.iter().for_each(|&v| lists.targets(v, |u| buckets.prefetch(u)));
            for &v in some {
                let distance = buckets.distance(v);
                lists.weighted(v, |u, weight| {
                    lowered += u64::from(buckets.lower(u, distance + weight));
                });
            }
        }
    }
}

/// The width of a bucket: half of the median weight, so that most vertices leave theirs once.
fn delta(lists: &Adjacency) -> f64 {
    let step = (lists.arcs() / SAMPLE).max(1);
    let mut sample: Vec<f64> = (0..lists.arcs()).step_by(step).map(|at| lists.weight(at)).collect();
    sample.retain(|&weight| weight > 0.0 && weight < f64::INFINITY);
    sample.sort_unstable_by(f64::total_cmp);
    sample.get(sample.len() / 2).map_or(1.0, |middle| middle / 2.0)
}
