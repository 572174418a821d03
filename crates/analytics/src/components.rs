//! Weakly connected components: union-find in one pass over the arcs.
//!
//! Labels each vertex with its component's first vertex in the user's order, so that results are
//! identical from run to run, whatever order arcs come in. Lock-free union-find: a root
//! is hooked to a smaller one, paths are halved (Anderson and Woll, STOC 1991). In degree order the
//! hubs' tiles come first, after which most arcs join nothing and cost one load from a cached tile.
//! Bytes: one pass, less what is resident. 8 bytes of state a vertex up to the last that has an arc, half of
//! them while arcs are read, and 4 a vertex of the result.

use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::{Progress, Result, ThreadPool};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, MemoryPlan, as_atomic, vec_from_fn, zeroed_vec};

use crate::edge_map::{Program, edge_map};
use crate::report::{Run, RunReport};

/// Labels every vertex, in the user's order, with the first position in its weakly connected component.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn wcc(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let _state = graph.memory().reserve_all(&memory(graph))?;
    let threads = graph.thread_pool();
    let parents = Array::from_fn(threads, graph.tiles().vertices(), |v| AtomicU32::new(v as u32))?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "wcc", 1, progress);
    let selection = graph.tiles().select(|_| true);
    edge_map(graph, &selection, Join { parents: &parents })?;
    compress(&parents, threads)?;
    run.iteration("pass", 0.0);
    let report = run.finish(true)?;
    Ok((canonical_labels(graph, |v| parent(&parents, v as u32))?, report))
}

/// The memory of a run and of its result: first the trees, then the least position of each tree and the
/// labels, then the labels as user ids.
pub(crate) fn memory(graph: &Graph) -> MemoryPlan {
    let trees = graph.tiles().vertices() as u64 * 8 + graph.vertices() as u64 * 4;
    MemoryPlan::default().and("the components", trees.max(graph.ids().of_positions_bytes()))
}

fn parent(parents: &[AtomicU32], v: u32) -> u32 {
    parents[v as usize].load(Ordering::Relaxed)
}

/// Joins the trees that the two ends of each arc are in.
#[derive(Clone, Copy)]
struct Join<'a> {
    parents: &'a [AtomicU32],
}

/// A row, and its parent when it was last looked at.
struct Row {
    vertex: u32,
    parent: u32,
}

impl Program for Join<'_> {
    type Worker = ();
    type Source = u32;
    type Row = Row;

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn load(&self, column: u32) -> u32 {
        column
    }

    #[inline(always)]
    fn empty(&self, vertex: u32) -> Row {
        Row { vertex, parent: parent(self.parents, vertex) }
    }

    #[inline(always)]
    fn take(&self, (): &mut (), row: &mut Row, other: u32, _weight: f64) {
        if parent(self.parents, other) != row.parent {
            join(self.parents, row.vertex, other);
            row.parent = parent(self.parents, row.vertex);
        }
    }
}

/// The root above `v`; every vertex on the way then skips its parent (path halving).
fn find(parents: &[AtomicU32], mut v: u32) -> u32 {
    loop {
        let above = parent(parents, v);
        let root = parent(parents, above);
        if above == root {
            return root;
        }
        // No root is lost to a race: `v` is none, and what is stored is above it.
        parents[v as usize].store(root, Ordering::Relaxed);
        v = root;
    }
}

/// Hooks the larger root to the smaller.
#[cold]
fn join(parents: &[AtomicU32], a: u32, b: u32) {
    loop {
        let (p, q) = (find(parents, a), find(parents, b));
        let (low, high) = (p.min(q), p.max(q));
        let root = &parents[high as usize];
        if low == high
            || root.compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return;
        }
    }
}

/// Points every vertex at its root.
fn compress(parents: &[AtomicU32], threads: &ThreadPool) -> Result<()> {
    threads.share(parents.chunks(1 << 16), |_, parts| {
        for v in parts.flatten() {
            let mut root = v.load(Ordering::Relaxed);
            while parent(parents, root) != root {
                root = parent(parents, root);
            }
            v.store(root, Ordering::Relaxed);
        }
    })?;
    Ok(())
}

/// The canonical label of every vertex, in the user's order: the first position in its tree. `root` returns
/// the root of the tree of a vertex that is in a tile, which is the tree's least vertex.
pub(crate) fn canonical_labels(
    graph: &Graph,
    root: impl Fn(usize) -> u32 + Sync,
) -> Result<Vec<u32>> {
    let (n, linked) = (graph.vertices(), graph.tiles().vertices());
    let threads = graph.thread_pool();
    if !graph.order().is_reordered() {
        return vec_from_fn(threads, n, |v| if v < linked { root(v) } else { v as u32 });
    }
    let least = vec_from_fn(threads, linked, |_| AtomicU32::new(u32::MAX))?;
    graph.order().for_each_position(linked, |v, position| {
        if v >= linked {
            return;
        }
        let least = &least[root(v) as usize];
        // Almost none is less than what is there.
        if (position as u32) < least.load(Ordering::Relaxed) {
            least.fetch_min(position as u32, Ordering::Relaxed);
        }
    })?;
    let mut labels = zeroed_vec(n);
    let places = as_atomic(&mut labels);
    graph.order().for_each_position(n, |v, position| {
        if let Some(label) = places.get(position) {
            // A vertex without arcs is alone.
            let first = if v < linked { parent(&least, root(v)) } else { position as u32 };
            label.store(first, Ordering::Relaxed);
        }
    })?;
    Ok(labels)
}
