//! Arcs that can still lower a distance: once they fit the memory, as lists, the rest of a run needs no storage.
//!
//! What fell in a pass is all that later ones begin from, so that whatever falls later ends at the *horizon*, the least
//! distance that fell, or behind it. Of a vertex before the horizon the distance is final; of one behind it, it will
//! be the horizon or more. Therefore an arc of weight w from u to v can lower v only where `min(d(u), horizon) + w <
//! d(v)`, and an arc that cannot will never be able to: distances fall, and the horizon rises. Of random weights, a few
//! arcs in a hundred can after two passes over all. A pass gathers them, and delta-stepping along them
//! finds what is left ([`Near`]).

use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use super::Distances;
use super::buckets::BUCKETS;
use super::near::Near;
use crate::adjacency::{Adjacency, Gathering, Place};
use crate::bits::Bits;
use crate::report::Run;

/// What a pass does with arcs that can still lower a distance.
pub(super) trait Sink: Sync {
    /// Whether it does anything.
    const IS_ANY: bool;

    /// What it has of each worker.
    type Worker: Default;

    /// Takes an arc.
    fn arc(&self, worker: &mut Self::Worker, from: u32, to: u32, weight: f64);

    /// Notes that the distance of a vertex fell.
    fn fell(&self, v: u32);

    /// Ends a worker's pass.
    fn end(&self, worker: Self::Worker);
}

/// They are left alone.
impl Sink for () {
    const IS_ANY: bool = false;

    type Worker = ();

    #[inline(always)]
    fn arc(&self, (): &mut (), _from: u32, _to: u32, _weight: f64) {}

    #[inline(always)]
    fn fell(&self, _v: u32) {}

    fn end(&self, (): ()) {}
}

/// They are gathered, as far as there is room, and counted.
pub(super) struct Gathered {
    arcs: Gathering,
    count: AtomicU64,
    /// The vertices that fell in the pass.
    fell: Bits,
    of_arcs: Reservation,
    of_buckets: Reservation,
}

/// A worker's place among the arcs, and how many it came by.
#[derive(Default)]
pub(super) struct Gatherer {
    place: Place,
    count: u64,
}

impl Sink for Gathered {
    const IS_ANY: bool = true;

    type Worker = Gatherer;

    #[inline(always)]
    fn arc(&self, worker: &mut Gatherer, from: u32, to: u32, weight: f64) {
        worker.count += 1;
        self.arcs.add(&mut worker.place, from, to, weight);
    }

    #[inline(always)]
    fn fell(&self, v: u32) {
        self.fell.put(v);
    }

    fn end(&self, worker: Gatherer) {
        self.count.fetch_add(worker.count, Ordering::Relaxed);
        self.arcs.end(worker.place);
    }
}

/// The passes of a run that gather.
#[derive(Default)]
pub(super) struct Useful {
    /// Whatever falls in the next pass ends here or behind.
    pub(super) horizon: f64,
    /// Whether a pass looked at most arcs: after it, most distances are bounded.
    was_broad: bool,
    /// Useful arcs when they were last counted.
    count: Option<u64>,
    /// Passes that are not to gather, because the arcs would not have fitted by far.
    rests: u32,
}

impl Useful {
    /// What the next pass gathers in, if it is to. Whether it `is_broad` says if most arcs would be looked at anyway.
    pub(super) fn gather(
        &mut self,
        graph: &Graph,
        vertices: usize,
        is_broad: bool,
    ) -> Result<Option<Gathered>> {
        let was_broad = self.was_broad;
        self.was_broad |= is_broad;
        self.rests = self.rests.saturating_sub(1);
        if !is_broad || !was_broad || self.rests > 0 {
            return Ok(None);
        }
        let memory = graph.memory();
        let left = memory.budget().left();
        let fixed =
            Near::bytes(vertices) + Bits::bytes(vertices) + Adjacency::bytes_of_ends(vertices);
        // More than are there will not be gathered; before they were counted, half of the memory is enough for a try.
        let least =
            self.count.map_or(left.saturating_sub(fixed) / 2, |n| Gathering::bytes(graph, n));
        if least == 0 || fixed + least > left {
            self.rests = 1 + ((fixed + least) / left.max(1)).max(1).ilog2();
            return Ok(None);
        }
        let room = least.min(Gathering::bytes(graph, graph.manifest().arcs));
        let Some(of_arcs) =
            memory.reserve_if_left(room + fixed - Near::bytes(vertices), "the useful arcs")?
        else {
            return Ok(None);
        };
        let order = "the order of vertices by distance";
        let Some(of_buckets) = memory.reserve_if_left(Near::bytes(vertices), order)? else {
            return Ok(None);
        };
        Ok(Some(Gathered {
            arcs: Gathering::new(graph, room)?,
            count: AtomicU64::new(0),
            fell: Bits::none(vertices),
            of_arcs,
            of_buckets,
        }))
    }

    /// Notes a pass in which the least distance that fell was `least`.
    pub(super) fn note(&mut self, least: f64) {
        self.horizon = self.horizon.max(least);
    }

    /// Finds the final distances along the arcs that were gathered; false if there was no room for all.
    pub(super) fn finish(
        &mut self,
        graph: &Graph,
        gathered: Gathered,
        distances: &Distances,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let Gathered { arcs, count, fell, of_arcs, of_buckets } = gathered;
        let Some(lists) = arcs.into_lists(graph, distances.0.len(), of_arcs)? else {
            self.count = Some(count.into_inner());
            drop(of_buckets);
            // Blocks made room, and have it again.
            graph.memory().plan_residency();
            return Ok(false);
        };
        // One window over all that fell, in buckets so narrow that most vertices leave theirs once.
        let last = (0..distances.0.len() as u32).filter(|&v| fell.has(v)).map(|v| distances.get(v));
        let width = (last.fold(self.horizon, f64::max) - self.horizon) / BUCKETS as f64;
        Near::of_lists(lists, width, of_buckets).finish(graph, distances, |v| fell.has(v), run)?;
        Ok(true)
    }
}
