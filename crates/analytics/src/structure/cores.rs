//! Core numbers: the largest k for which a vertex is in a subgraph whose vertices all have k neighbours in it.
//!
//! Every vertex begins with its degree as an upper bound, and takes the largest k for which k neighbours have
//! a bound of k or more, until none changes (Montresor, De Pellegrini and Miorandi, IEEE TPDS 24, 2013). A
//! vertex is looked at only when fewer neighbours support its bound than the bound says: those that do are
//! counted, and taken off as their own bounds fall (SemiCore*, Wen et al., ICDE 2016). So the first rounds
//! read everything, and later ones the pages of few vertices. Directions, loops and repeated edges do not
//! matter. 8 bytes a vertex, and the degrees.
//!
//! One k-core alone takes less: vertices of fewer than k neighbours go, and take one from each neighbour that stays, which
//! may go then (Matula and Beck, J. ACM 30, 1983). Only lists of those that go are read, and of a graph that may have
//! loops, directions or repeated edges all lists once.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, prefetch, vec_from_fn};

use crate::bits::Bits;
use crate::per_worker::PerWorker;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};

/// The core number of every vertex, in the user's order.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn core_numbers(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let workers = graph.thread_pool().size() as u64;
    let longest = RowMap::longest(graph, Side::Both)?;
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the core numbers", n as u64 * 16)
        .and("the workers' counts", workers * longest * 4);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let most = largest_possible(&degrees, n);
    let mut bounds = Bounds {
        of: Array::from_fn(graph.thread_pool(), n, |v| {
            AtomicU32::new(degrees.all(v as u32).min(most) as u32)
        })?,
        // No vertex is sure of its bound.
        support: Array::<AtomicI32>::zeroed(n)?,
        fell: AtomicU64::new(0),
    };
    // For each worker, how many neighbours have each bound.
    let counts = PerWorker::new((0..workers).map(|_| Vec::new()));
    let mut rows = RowMap::new(graph, &degrees)?.simple();
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "kcore", 0, progress).with_passes_of(rows.round_bytes());
    run.resume(&(), |from| {
        from.array(&mut bounds.of)?;
        from.array(&mut bounds.support)
    })?;
    while (0..n).any(|v| bounds.is_open(v as u32)) {
        rows.for_each_of(
            &|v| bounds.is_open(v),
            |worker| counts.of(worker),
            |counts, v, neighbors| bounds.lower(counts, v, neighbors),
        )?;
        run.iteration("pass", bounds.fell.swap(0, Ordering::Relaxed) as f64);
        run.keep(|to| {
            to.array(&bounds.of);
            to.array(&bounds.support);
            Ok(())
        })?;
    }
    let report = run.finish(true)?;
    drop(rows);
    let cores = vec_from_fn(graph.thread_pool(), n, |v| bounds.of[v].load(Ordering::Relaxed))?;
    Ok((graph.order().to_user(cores, 1)?, report))
}

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

/// The largest k for which k vertices and one more have degree k or more, as all of a k-core have.
fn largest_possible(degrees: &ListDegrees, vertices: usize) -> u64 {
    let mut counts = vec![0u64; vertices.max(1)];
    for v in 0..vertices {
        counts[(degrees.all(v as u32) as usize).min(vertices - 1)] += 1;
    }
    let (mut k, mut above) = (vertices.saturating_sub(1), 0);
    while k > 0 {
        above += counts[k];
        if above > k as u64 {
            break;
        }
        k -= 1;
    }
    k as u64
}

/// Upper bounds of all core numbers.
struct Bounds {
    of: Array<AtomicU32>,
    /// At most as many neighbours as have the vertex's own bound or more.
    support: Array<AtomicI32>,
    /// How many bounds fell in this round.
    fell: AtomicU64,
}

impl Bounds {
    /// Whether the bound of `v` may be too large.
    #[inline(always)]
    fn is_open(&self, v: u32) -> bool {
        let support = self.support[v as usize].load(Ordering::Relaxed);
        i64::from(support) < i64::from(self.of[v as usize].load(Ordering::Relaxed))
    }

    /// Lowers the bound of `v` to what its neighbours support.
    fn lower(&self, counts: &mut Vec<u32>, v: u32, neighbors: &[u32]) {
        const AHEAD: usize = 16;
        let own = &self.of[v as usize];
        let before = own.load(Ordering::Relaxed);
        let most = (before as usize).min(neighbors.len());
        counts.clear();
        counts.resize(most + 1, 0);
        for (i, &u) in neighbors.iter().enumerate() {
            if let Some(&later) = neighbors.get(i + AHEAD) {
                prefetch(&self.of, later as usize);
            }
            let bound = self.of[u as usize].load(Ordering::Relaxed) as usize;
            counts[bound.min(most)] += 1;
        }
        let (mut bound, mut support) = (most, counts[most] as usize);
        while support < bound {
            bound -= 1;
            support += counts[bound] as usize;
        }
        let bound = bound as u32;
        // The order of these four, together with that of the others', keeps the support from being too large:
        // a neighbour that falls either sees the new bound, and takes itself off the new count, or is counted
        // with what it fell to.
        own.store(bound, Ordering::SeqCst);
        self.support[v as usize].store(0, Ordering::SeqCst);
        let mut support = 0;
        for &u in neighbors {
            let other = self.of[u as usize].load(Ordering::SeqCst);
            support += i32::from(other >= bound);
            if bound < other && other <= before {
                self.support[u as usize].fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.support[v as usize].fetch_add(support, Ordering::SeqCst);
        self.fell.fetch_add(u64::from(bound < before), Ordering::Relaxed);
    }
}
