//! One k-core: the largest subgraph whose vertices all have k neighbours in it.
//!
//! Vertices of fewer than k neighbours go, and take one from each neighbour that stays, which may go then (Matula and
//! Beck, J. ACM 30, 1983). Only lists of those that go are read, and of a graph that may have loops, directions or
//! repeated edges all lists once. 8 bytes a vertex, and the degrees.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use crate::bits::Bits;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};

/// For every vertex, in the user's order, `k` if it is in the k-core, else 0.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn k_core(graph: &Graph, k: u32, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the neighbours that are left", n as u64 * 8)
        .and("the vertices that go", 3 * Bits::bytes(n));
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let mut rows = RowMap::new(graph, &degrees)?.simple();
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "kcore", 0, progress).with_passes_of(rows.round_bytes());
    let mut left =
        Array::from_fn(graph.thread_pool(), n, |v| AtomicU32::new(degrees.all(v as u32) as u32))?;
    let (mut gone, mut going) = (Bits::none(n), Bits::none(n));
    let is_resumed = run.resume(&json!({ "k": k }), |from| {
        from.array(&mut left)?;
        from.array(gone.words_mut())?;
        from.array(going.words_mut())
    })?;
    if !is_resumed {
        // Of those that have fewer than k arcs, no more has to be known.
        let may_stay = |v: u32| degrees.all(v) >= u64::from(k);
        if !graph.manifest().is_simple() {
            rows.for_each_of(
                &may_stay,
                |_| (),
                |(), v, neighbors| {
                    left[v as usize].store(neighbors.len() as u32, Ordering::Relaxed);
                },
            )?;
            run.iteration("count", 0.0);
        }
        let stays = |v: u32| may_stay(v) && left[v as usize].load(Ordering::Relaxed) >= k;
        (0..n as u32).filter(|&v| !stays(v)).for_each(|v| going.put(v));
    }
    while going.any() {
        gone.put_all(&going);
        let (next, count) = (Bits::none(n), AtomicU64::new(0));
        rows.for_each_of(
            &|v| going.has(v) && degrees.all(v) > 0,
            |_| (),
            |(), _, neighbors| {
                for &u in neighbors.iter().filter(|&&u| !gone.has(u)) {
                    if left[u as usize].fetch_sub(1, Ordering::Relaxed) == k {
                        next.put(u);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            },
        )?;
        going = next;
        run.iteration("peel", count.into_inner() as f64);
        run.keep(|to| {
            to.array(&left);
            to.array(gone.words());
            to.array(going.words());
            Ok(())
        })?;
    }
    let report = run.finish(true)?;
    drop((rows, left));
    let cores = vec_from_fn(graph.thread_pool(), n, |v| if gone.has(v as u32) { 0 } else { k })?;
    Ok((graph.order().to_user(cores, 1)?, report))
}
