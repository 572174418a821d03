//! Labels of parts of a graph that depend on the parts alone.

use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::{as_atomic, vec_from_fn, zeroed_vec};

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
            let first = if v < linked {
                least[root(v) as usize].load(Ordering::Relaxed)
            } else {
                position as u32
            };
            label.store(first, Ordering::Relaxed);
        }
    })?;
    Ok(labels)
}
