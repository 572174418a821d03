//! Core numbers: the largest k for which a vertex is in a subgraph whose vertices all have k neighbours in it.
//!
//! Every vertex begins with its degree as an upper bound, and takes the largest k for which k neighbours have
//! a bound of k or more, until none changes (Montresor, De Pellegrini and Miorandi, IEEE TPDS 24, 2013). A
//! vertex is looked at only when fewer neighbours support its bound than the bound says: those that do are
//! counted, and taken off as their own bounds fall (SemiCore*, Wen et al., ICDE 2016). So the first rounds
//! read everything, and later ones the pages of few vertices. Where lists are in memory in parts, a round goes on in each
//! until no bound of it may fall. Few vertices of whom bounds may fall are followed on one thread from neighbour to
//! neighbour, so that a long path costs what its vertices do. Directions, loops and repeated edges do not matter. 8 bytes a
//! vertex, and the degrees.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, prefetch, vec_from_fn};

use crate::per_worker::PerWorker;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, ListsPart, RowMap, Side};

/// One in so many of the vertices and arcs in memory are few: to follow them costs less than to look for them.
const FEW: usize = 64;

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
        let is_whole = rows.is_whole();
        rows.for_each_part(&|v| bounds.is_open(v), |part| bounds.round(part, &counts, is_whole))?;
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

    /// Lowers the bounds of vertices that have lists here until none is open, or, `once`, those that are open now where
    /// these are many.
    fn round(&self, part: &ListsPart<'_>, counts: &PerWorker<Vec<u32>>, once: bool) -> Result<()> {
        let most = part.size() / FEW;
        loop {
            match part.few(&|v| self.is_open(v), most) {
                Some(open) if open.is_empty() => return Ok(()),
                Some(open) => self.follow(part, &mut counts.of(0), open, most)?,
                None => {
                    part.visit(
                        &|v| self.is_open(v),
                        &|worker| counts.of(worker),
                        &|counts: &mut MutexGuard<'_, Vec<u32>>, v, neighbors: &[u32]| {
                            self.lower(counts, v, neighbors, |_| ());
                        },
                    )?;
                    if once {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Lowers the bounds of `open` vertices, then those of neighbours that are open because of it, and so on, as long as
    /// vertices and arcs are no more than `most`.
    fn follow(
        &self,
        part: &ListsPart<'_>,
        counts: &mut Vec<u32>,
        mut open: Vec<u32>,
        most: usize,
    ) -> Result<()> {
        let (mut next, mut size) = (Vec::new(), 0);
        while !open.is_empty() && size <= most {
            part.check_cancel()?;
            size = 0;
            for v in open.drain(..) {
                let Some(neighbors) = part.get(v) else { continue };
                self.lower(counts, v, neighbors, |u| {
                    if let Some(list) = part.get(u) {
                        size += 1 + list.len();
                        next.push(u);
                    }
                });
            }
            std::mem::swap(&mut open, &mut next);
        }
        Ok(())
    }

    /// Lowers the bound of `v` to what its neighbours support. Calls `opened` with each neighbour that is open since then,
    /// if no other thread lowers bounds.
    #[inline(always)]
    fn lower(&self, counts: &mut Vec<u32>, v: u32, neighbors: &[u32], mut opened: impl FnMut(u32)) {
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
                let support = self.support[u as usize].fetch_sub(1, Ordering::SeqCst);
                if i64::from(support) == i64::from(other) {
                    opened(u);
                }
            }
        }
        self.support[v as usize].fetch_add(support, Ordering::SeqCst);
        self.fell.fetch_add(u64::from(bound < before), Ordering::Relaxed);
    }
}
