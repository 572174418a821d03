//! Single-source shortest paths: Bellman-Ford over active tiles, in place, and delta-stepping along
//! lists in memory (`near`) where those passes look at most arcs in vain.
//!
//! A vertex's distance is the least sum of weights (float64, non-negative) of a path from the source,
//! or infinity. Distances are lowered in place while a pass goes on, so that a path advances by
//! several arcs a pass where its tiles come in a good order; a pass reads only tiles with a column
//! whose distance fell since the pass before. Ends when none fell. 8 bytes of state a vertex, and
//! as many of the result. Results are identical from run to run: the fixed point does not depend on
//! the order.

mod buckets;
pub(crate) mod near;

use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use crate::active::ActiveTiles;
use crate::arcs::{Arcs, for_each_arc, stored_once};
use crate::pull::chunk_log2;
use crate::report::{Run, RunReport};
use crate::source::check_source;
use near::PassHistory;

/// The distance of each vertex, in the user's order, from `source`, a vertex by its internal id;
/// infinity where there is no path. Without weights, every arc weighs 1.
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, any error of a pass.
pub fn sssp(graph: &Graph, source: u32, progress: &dyn Progress) -> Result<(Vec<f64>, RunReport)> {
    let n = graph.vertices();
    check_source(graph, "find paths from vertex", source)?;
    // Those in the graph's order, and the result.
    let _state = graph.memory().reserve(n as u64 * 16, "the distances")?;
    let distances = Distances::new(n, |v| if v == source as usize { 0.0 } else { f64::INFINITY })?;
    graph.memory().plan_residency();
    let log2 = chunk_log2(graph);
    let (mut active, mut next) = (ActiveTiles::none(n, log2), ActiveTiles::none(n, log2));
    active.set(source);
    let both = stored_once(graph);
    let mut run = Run::start(graph, "sssp", 0, progress);
    let mut history = PassHistory::default();
    while active.any() {
        let wanted = graph.tiles().select(|e| active.column(e) || (both && active.row(e)));
        let relax = |lowered: &mut u64, arcs: &Arcs<'_>| {
            *lowered += distances.relax(arcs, both, &next);
        };
        let total = AtomicU64::new(0);
        for_each_arc(
            graph,
            &wanted,
            |_| 0,
            relax,
            |lowered| {
                total.fetch_add(lowered, Ordering::Relaxed);
                Ok(())
            },
        )?;
        let lowered = total.into_inner();
        run.iteration("tiles", lowered as f64);
        active.clear();
        std::mem::swap(&mut active, &mut next);
        if let Some(near) = history.note(graph, &wanted, lowered)? {
            near.finish(graph, &distances, &active, &mut run)?;
            break;
        }
    }
    let report = run.finish(true)?;
    let reached = distances.to_vec();
    drop(distances);
    Ok((graph.order().to_user(reached, 1)?, report))
}

/// Distances as the bits of non-negative floats, which order as the floats do.
pub(crate) struct Distances(Array<AtomicU64>);

impl Distances {
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn new(vertices: usize, distance: impl Fn(usize) -> f64) -> Result<Self> {
        Array::from_fn(vertices, |v| AtomicU64::new(distance(v).to_bits())).map(Self)
    }

    /// The distances of all vertices.
    pub(crate) fn to_vec(&self) -> Vec<f64> {
        vec_from_fn(self.0.len(), |v| self.get(v as u32))
    }

    #[inline(always)]
    fn get(&self, v: u32) -> f64 {
        f64::from_bits(self.0[v as usize].load(Ordering::Relaxed))
    }

    /// Lowers the distance of `v`; returns whether it fell.
    #[inline(always)]
    fn lower(&self, v: u32, distance: f64) -> bool {
        distance < self.get(v)
            && self.0[v as usize].fetch_min(distance.to_bits(), Ordering::Relaxed)
                > distance.to_bits()
    }

    fn relax(&self, arcs: &Arcs<'_>, both: bool, next: &ActiveTiles) -> u64 {
        let mut lowered = 0;
        arcs.rows(|row, arcs| {
            let before = self.get(row);
            let mut own = before;
            arcs.weighted(|column, weight| {
                let other = self.get(column);
                if other + weight < own {
                    own = other + weight;
                } else if both && own + weight < other && self.lower(column, own + weight) {
                    next.set(column);
                    lowered += 1;
                }
            });
            if own < before && self.lower(row, own) {
                next.set(row);
                lowered += 1;
            }
        });
        lowered
    }
}
