//! Triangles and local clustering coefficients: `intersect`, over the lists of both ends of an edge.
//!
//! An edge is kept at the end of lower degree, so that no list is longer than √2|E| (Chiba and Nishizeki,
//! SIAM J. Comput. 14, 1985); a triangle is found once, at its vertex of least degree, whose neighbours are
//! marked in a bitmap that the lists of each of them are compared with. Where those lists do not fit the memory, as many
//! vertices' as fit are held while all others go by (Hu, Tao and Chung, SIGMOD 2013): bytes are one pass to count, one to fill,
//! and one for each part that the memory holds, which is the least up to a constant.
//!
//! Directions, loops and repeated edges do not matter to a triangle. The clustering coefficient is LDBC
//! Graphalytics': of the ordered pairs of different neighbours of `v`, whichever way they are reached, the
//! share that an arc leads along; 0 for fewer than two neighbours. 24 bytes a vertex, 4 more a worker, and the lists: 4 an edge.

mod close;
mod forward;

use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};
use close::Closing;
use forward::Forward;

/// The triangles of a graph.
#[derive(Debug)]
pub struct Triangles {
    /// For each vertex, in the user's order, the triangles that it is in.
    pub of: Vec<u64>,
    /// The number of all.
    pub all: u64,
    /// The share of paths of two edges that a third edge closes; 0 where there is no such path.
    pub transitivity: f64,
}

/// Counts triangles.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn triangles(graph: &Graph, progress: &dyn Progress) -> Result<(Triangles, RunReport)> {
    triangles_of(graph, find::<false>(graph, "triangles", progress)?)
}

/// The triangles of what was closed.
pub(crate) fn triangles_of(graph: &Graph, found: WedgesClosed) -> Result<(Triangles, RunReport)> {
    let all = found.closed.iter().sum::<u64>() / 3;
    let pairs: f64 = found.neighbors.iter().map(|&d| pairs(d)).sum();
    let transitivity = if pairs > 0.0 { all as f64 * 6.0 / pairs } else { 0.0 };
    let of = graph.order().in_user(1, |v| std::slice::from_ref(&found.closed[v]))?;
    Ok((Triangles { of, all, transitivity }, found.report))
}

/// The local clustering coefficient of every vertex, in the user's order.
///
/// # Errors
/// State that does not fit the memory, any error of a pass; directed graphs of 2³¹ vertices and more.
pub fn clustering(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<f64>, RunReport)> {
    let directed = graph.manifest().directed;
    let found = match directed {
        true => find::<true>(graph, "clustering", progress)?,
        false => find::<false>(graph, "clustering", progress)?,
    };
    clustering_of(graph, found)
}

/// The coefficients of what was closed: of a directed graph, by how many arcs.
pub(crate) fn clustering_of(graph: &Graph, found: WedgesClosed) -> Result<(Vec<f64>, RunReport)> {
    let directed = graph.manifest().directed;
    // An undirected edge leads both ways.
    let arcs = if directed { 1.0 } else { 2.0 };
    let share = |v: usize| match pairs(found.neighbors[v]) {
        0.0 => 0.0,
        pairs => found.closed[v] as f64 * arcs / pairs,
    };
    let shares = vec_from_fn(graph.thread_pool(), graph.vertices(), share)?;
    Ok((graph.order().in_user(1, |v| std::slice::from_ref(&shares[v]))?, found.report))
}

/// Ordered pairs of different neighbours.
fn pairs(neighbors: u32) -> f64 {
    f64::from(neighbors) * (f64::from(neighbors) - 1.0)
}

/// What a run finds of each vertex, in the graph's order.
pub(crate) struct WedgesClosed {
    /// The edges between its neighbours, or the arcs if these count.
    pub(crate) closed: Array<u64>,
    /// The number of its neighbours.
    pub(crate) neighbors: Vec<u32>,
    pub(crate) report: RunReport,
}

/// Counts what closes the wedges of every vertex: with `ARCS`, an edge that has an arc each way counts twice.
fn find<const ARCS: bool>(
    graph: &Graph,
    name: &'static str,
    progress: &dyn Progress,
) -> Result<WedgesClosed> {
    let n = graph.vertices();
    if ARCS && n > forward::BOTH as usize {
        return Err(Error::new(ErrorKind::Input, "find the clustering coefficients of")
            .object(graph.dir().path().display())
            .expected("a directed graph of at most 2^31 vertices")
            .got(format!("{n} vertices")));
    }
    let side = Side::Both;
    let workers = graph.thread_pool().size();
    let memory = RowMap::memory(graph, side)?
        .and("the counts", n as u64 * 16)
        .and("the workers' counts and marks", Closing::<ARCS>::bytes(n, workers))
        .and("the edges of a vertex", forward::least_bytes(graph));
    let _state = graph.memory().reserve_all(&memory)?;
    let degrees = ListDegrees::read(graph, side)?;
    let mut closing = Closing::<ARCS>::new(n, workers)?;
    let mut forward = Forward::<ARCS>::new(graph, &degrees);
    forward.make_room()?;
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, name, 0, progress).with_passes_of(rows.round_bytes());
    let (mut neighbors, mut next) = (Vec::new(), [0]);
    let is_counted = run.resume(&(), |from| {
        from.array(&mut next)?;
        neighbors = from.list(n)?;
        forward.go_on(next[0], from.list(n)?);
        from.array(closing.counts())
    })?;
    if !is_counted {
        neighbors = forward.count(&mut rows)?;
        run.iteration("count", 0.0);
    }
    while forward.next(&mut rows)? {
        run.iteration("fill", 0.0);
        let closed = closing.pass(&mut rows, &forward)?;
        run.iteration("intersect", closed as f64);
        run.keep(|to| {
            to.array(&[forward.place()]);
            to.array(&neighbors);
            to.array(forward.lengths());
            to.array(closing.counts());
            Ok(())
        })?;
    }
    let report = run.finish(true)?;
    Ok(WedgesClosed { closed: closing.finish(graph.thread_pool())?, neighbors, report })
}
