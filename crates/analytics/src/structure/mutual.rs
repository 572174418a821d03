//! Mutual neighbours, and the reciprocity of a directed graph (Newman, Forrest and Balthrop, Phys. Rev. E
//! 66, 2002). One pass; 8 bytes a vertex, and the degrees.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use super::intersect::each_common;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side, distinct};

/// The mutual neighbours of every vertex.
#[derive(Debug)]
pub struct Mutual {
    /// For each vertex, in the user's order, the vertices that it has arcs to and from.
    pub of: Vec<u32>,
    /// The share of arcs between different vertices that have one back, repeated ones counted once. Without
    /// any, 0 of a graph with directions and 1 of others.
    pub reciprocity: f64,
}

/// Counts mutual neighbours, in one pass.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn mutual(graph: &Graph, progress: &dyn Progress) -> Result<(Mutual, RunReport)> {
    let n = graph.vertices();
    let workers = graph.thread_pool().size() as u64;
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the counts", n as u64 * 8)
        .and("the workers' lists", workers * RowMap::longest(graph, Side::Both)? * 8);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let counts = Array::<AtomicU32>::zeroed(n)?;
    let all = AtomicU64::new(0);
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "mutual", 1, progress).with_passes_of(rows.round_bytes());
    let directed = graph.manifest().directed;
    rows.for_each(
        |_| (Vec::new(), Vec::new()),
        |(to, from), v, arcs| {
            let (out, into) = arcs.split_at(degrees.out(v));
            let to = distinct(v, out, to);
            let found = match directed {
                true => {
                    let mut both = 0;
                    each_common(to, distinct(v, into, from), |_| both += 1);
                    both
                }
                false => to.len(),
            };
            counts[v as usize].store(found as u32, Ordering::Relaxed);
            all.fetch_add(to.len() as u64, Ordering::Relaxed);
        },
    )?;
    run.iteration("pass", 0.0);
    let report = run.finish(true)?;
    let of = vec_from_fn(graph.thread_pool(), n, |v| counts[v].load(Ordering::Relaxed))?;
    mutual_of(graph, of, all.into_inner(), report)
}

/// What is said of mutual neighbours in the graph's order, where vertices have arcs to `all` neighbours together.
pub(crate) fn mutual_of(
    graph: &Graph,
    of: Vec<u32>,
    all: u64,
    report: RunReport,
) -> Result<(Mutual, RunReport)> {
    let back: u64 = of.iter().map(|&count| u64::from(count)).sum();
    let reciprocity = match all {
        0 if graph.manifest().directed => 0.0,
        0 => 1.0,
        _ => back as f64 / all as f64,
    };
    Ok((Mutual { of: graph.order().to_user(of, 1)?, reciprocity }, report))
}
