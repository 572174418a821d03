//! Counting what closes wedges: the lists of a part against the marked neighbours of every vertex.

use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::{Result, ThreadPool};
use tiergraph_mem::Array;

use super::forward::{Ahead, BOTH, Forward};
use crate::per_worker::PerWorker;
use crate::row_map::RowMap;
use crate::structure::intersect::{flip, has};

/// A list this many times longer than the marked one is searched, and not walked.
const MUCH_LONGER: usize = 16;

/// Counts of a run, the workers' and the sums that are too large for these.
pub(super) struct Closing<const ARCS: bool> {
    counts: Vec<AtomicU64>,
    workers: PerWorker<Worker>,
}

/// One worker's counts, and the marks of the neighbours of the vertex that it is at.
struct Worker {
    counts: Array<u32>,
    marks: Array<u64>,
    /// Marks of those that arcs lead to and from; of no length if arcs do not count.
    both: Array<u64>,
    hits: Vec<u32>,
    ahead: Ahead,
    /// What was closed in this pass.
    closed: u64,
}

/// How many arcs an edge has, which a target of a list tells.
#[inline(always)]
fn arcs(target: u32) -> u32 {
    1 + (target >> 31)
}

impl<const ARCS: bool> Closing<ARCS> {
    pub(super) fn bytes(vertices: usize, workers: usize) -> u64 {
        let marks = vertices.div_ceil(8) as u64 * if ARCS { 2 } else { 1 };
        vertices as u64 * 8 + workers as u64 * (vertices as u64 * 4 + marks)
    }

    pub(super) fn new(vertices: usize, workers: usize) -> Result<Self> {
        let words = vertices.div_ceil(64);
        let counts = Array::batch(workers, vertices)?.into_iter();
        let marks = Array::batch(workers, words)?.into_iter();
        let both = Array::batch(workers, if ARCS { words } else { 0 })?.into_iter();
        let make = |((counts, marks), both)| Worker {
            counts,
            marks,
            both,
            hits: Vec::new(),
            ahead: Ahead::default(),
            closed: 0,
        };
        let workers = PerWorker::new(counts.zip(marks).zip(both).map(make));
        Ok(Self { counts: (0..vertices).map(|_| AtomicU64::new(0)).collect(), workers })
    }

    /// Compares the lists of every vertex with those of this part; returns the triangles that were found.
    pub(super) fn pass(
        &mut self,
        rows: &mut RowMap<'_>,
        forward: &Forward<'_, ARCS>,
    ) -> Result<u64> {
        if forward.is_all() {
            forward.part().visit(
                rows.graph(),
                &|_| true,
                false,
                &|worker| self.workers.of(worker),
                &|worker, v, list| self.vertex(worker, forward, v, list),
            )?;
        } else {
            rows.for_each(
                |worker| self.workers.of(worker),
                |worker, v, arcs| {
                    let mut ahead = std::mem::take(&mut worker.ahead);
                    forward.ahead(v, arcs, &mut ahead);
                    self.vertex(worker, forward, v, &ahead.targets);
                    worker.ahead = ahead;
                },
            )?;
        }
        let workers = self.workers.all_mut();
        Ok(workers.map(|worker| std::mem::take(&mut worker.closed)).sum())
    }

    /// Closes the wedges of `v`, whose list is `own`.
    #[inline]
    fn vertex(&self, worker: &mut Worker, forward: &Forward<'_, ARCS>, v: u32, own: &[u32]) {
        if own.len() < 2 {
            return;
        }
        let plain = |target: u32| if ARCS { target & !BOTH } else { target };
        let mark = |worker: &mut Worker| {
            for &u in own {
                flip(&mut worker.marks, plain(u));
                if ARCS && u & BOTH != 0 {
                    flip(&mut worker.both, plain(u));
                }
            }
        };
        mark(worker);
        let range = forward.vertices();
        let mut at_v = 0u64;
        for &target in own {
            let u = plain(target);
            if !range.contains(&u) {
                continue;
            }
            let list = forward.part().of(u);
            let mut hits = std::mem::take(&mut worker.hits);
            let found = match list.len() / MUCH_LONGER > own.len() {
                true => search(own, list, &mut hits, plain),
                false => walk(&worker.marks, list, &mut hits, plain),
            };
            let mut at_u = 0u64;
            for &hit in &hits[..found] {
                let w = plain(hit);
                let (by_u, by_v) = match ARCS {
                    true => (arcs(hit), 1 + u32::from(has(&worker.both, w))),
                    false => (1, 1),
                };
                at_v += u64::from(by_u);
                at_u += u64::from(by_v);
                self.add(worker, w, if ARCS { arcs(target) } else { 1 });
            }
            worker.hits = hits;
            worker.closed += found as u64;
            if at_u > 0 {
                self.counts[u as usize].fetch_add(at_u, Ordering::Relaxed);
            }
        }
        mark(worker);
        if at_v > 0 {
            self.counts[v as usize].fetch_add(at_v, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn add(&self, worker: &mut Worker, w: u32, more: u32) {
        let (sum, is_full) = worker.counts[w as usize].overflowing_add(more);
        worker.counts[w as usize] = sum;
        if is_full {
            self.counts[w as usize].fetch_add(1 << 32, Ordering::Relaxed);
        }
    }

    /// The counts of every vertex so far, those of the workers among them.
    pub(super) fn counts(&mut self) -> &mut [AtomicU64] {
        for worker in self.workers.all_mut() {
            for (all, own) in self.counts.iter_mut().zip(&mut *worker.counts) {
                *all.get_mut() += u64::from(std::mem::take(own));
            }
        }
        &mut self.counts
    }

    /// The counts of every vertex.
    pub(super) fn finish(mut self, threads: &ThreadPool) -> Result<Array<u64>> {
        let all: &[AtomicU64] = self.counts();
        Array::from_fn(threads, all.len(), |v| all[v].load(Ordering::Relaxed))
    }
}

/// Puts the targets of `list` that are marked first in `hits`, and returns how many there are.
#[inline]
fn walk(marks: &[u64], list: &[u32], hits: &mut Vec<u32>, plain: impl Fn(u32) -> u32) -> usize {
    if hits.len() < list.len() {
        hits.resize(list.len(), 0);
    }
    let mut found = 0;
    for &target in list {
        // Whether it stays is not guessed by a branch.
        hits[found] = target;
        found += usize::from(has(marks, plain(target)));
    }
    found
}

/// As [`walk`], for few marked vertices, `own`, and a long list: both ascend.
fn search(own: &[u32], list: &[u32], hits: &mut Vec<u32>, plain: impl Fn(u32) -> u32) -> usize {
    hits.clear();
    for &target in own {
        if let Ok(at) = list.binary_search_by_key(&plain(target), |&other| plain(other)) {
            hits.push(list[at]);
        }
    }
    hits.len()
}
