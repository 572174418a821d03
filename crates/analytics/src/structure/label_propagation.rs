//! Community detection by label propagation, as LDBC Graphalytics defines it (CDLP).
//!
//! Every vertex begins with its own id as its label. In each iteration all vertices at once take the label
//! that most of their neighbours have, the smallest of those that are as frequent (Raghavan, Albert and
//! Kumara, Phys. Rev. E 76, 2007, made deterministic). In a directed graph a neighbour counts once for each
//! arc, whichever way it leads. A vertex without neighbours keeps its label. One pass an iteration;
//! 8 bytes a vertex, and the degrees.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, prefetch, vec_from_fn};

use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};

/// The places of a table of few labels, which are most tables once communities have formed.
const SMALL: usize = 256;

/// Lists of so many neighbours and fewer are sorted by label; longer ones are counted in a table.
const SORTED: usize = 24;

/// Labels every vertex, in the user's order, with the position in that order of the vertex that its label
/// comes from. Ends after `iterations`, or when no label changes any more.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn label_propagation(
    graph: &Graph,
    iterations: usize,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let workers = graph.thread_pool().size() as u64;
    let rows_memory = RowMap::memory(graph, Side::Both)?;
    let longest = Counts::bytes(graph, Side::Both)?;
    let labels_bytes = (n as u64 * 8).max(graph.ids().of_positions_bytes());
    let plan =
        rows_memory.and("the labels", labels_bytes).and("the workers' counts", workers * longest);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let labels = Array::<AtomicU32>::zeroed(n)?;
    graph.order().for_each_position(n, |v, position| {
        labels[v].store(position as u32, Ordering::Relaxed);
    })?;
    let next = Array::<AtomicU32>::zeroed(n)?;
    let mut both = [labels, next];
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run =
        Run::start(graph, "cdlp", iterations as u64, progress).with_passes_of(rows.round_bytes());
    let (mut converged, mut done) = (false, [0]);
    run.resume(&json!({ "iterations": iterations }), |from| {
        from.array(&mut done)?;
        from.array(&mut both[0])
    })?;
    // Vertices without neighbours are not visited.
    let [labels, next] = &both;
    labels.iter().zip(&**next).for_each(|(label, next)| {
        next.store(label.load(Ordering::Relaxed), Ordering::Relaxed);
    });
    for iteration in done[0]..iterations as u64 {
        let [labels, next] = &both;
        let changed = AtomicU64::new(0);
        rows.for_each(
            |_| Counts { changed: 0, total: &changed, sorted: Vec::new(), table: Vec::new() },
            |counts, v, list| {
                let own = labels[v as usize].load(Ordering::Relaxed);
                let label = counts.most_frequent(list, labels).unwrap_or(own);
                next[v as usize].store(label, Ordering::Relaxed);
                counts.changed += u64::from(label != own);
            },
        )?;
        both.swap(0, 1);
        let changed = changed.into_inner();
        run.iteration("pass", changed as f64);
        converged = changed == 0;
        if converged {
            break;
        }
        run.keep(|to| {
            to.array(&[iteration + 1]);
            to.array(&both[0]);
            Ok(())
        })?;
    }
    let report = run.finish(converged)?;
    let [labels, next] = both;
    drop((rows, next));
    let labels = vec_from_fn(graph.thread_pool(), n, |v| labels[v].load(Ordering::Relaxed))?;
    Ok((graph.order().to_user(labels, 1)?, report))
}

/// A worker's counts of the labels of one vertex's neighbours.
struct Counts<'a> {
    sorted: Vec<u32>,
    /// A hash table with open addressing: labels and how often they occur; a count of 0 is an empty place.
    table: Vec<(u32, u32)>,
    /// How many labels changed.
    changed: u64,
    total: &'a AtomicU64,
}

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        self.total.fetch_add(self.changed, Ordering::Relaxed);
    }
}

impl Counts<'_> {
    /// The most that a table takes, and the one that it grows out of.
    fn bytes(graph: &Graph, side: Side) -> Result<u64> {
        let labels = RowMap::longest(graph, side)?.min(graph.manifest().vertices);
        let places = (labels * 2).next_power_of_two().max(SMALL as u64);
        Ok(places * 3 / 2 * size_of::<(u32, u32)>() as u64)
    }

    /// The label that most of `neighbors` have, the smallest of several; `None` of none.
    #[inline]
    fn most_frequent(&mut self, neighbors: &[u32], labels: &[AtomicU32]) -> Option<u32> {
        const AHEAD: usize = 16;
        let label = |i: usize| {
            if let Some(&later) = neighbors.get(i + AHEAD) {
                prefetch(labels, later as usize);
            }
            labels[neighbors[i] as usize].load(Ordering::Relaxed)
        };
        if neighbors.len() <= SORTED {
            self.sorted.clear();
            self.sorted.extend((0..neighbors.len()).map(label));
            self.sorted.sort_unstable();
            return most_frequent_sorted(&self.sorted);
        }
        self.table.clear();
        self.table.resize(SMALL, (0, 0));
        let (mut best, mut used) = ((0, u32::MAX), 0);
        for i in 0..neighbors.len() {
            let label = label(i);
            let (_, count) = place(&mut self.table, label);
            used += usize::from(*count == 0);
            *count += 1;
            if *count > best.0 || (*count == best.0 && label < best.1) {
                best = (*count, label);
            }
            if used * 2 > self.table.len() {
                self.grow();
            }
        }
        Some(best.1)
    }

    /// Makes the table twice as large.
    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, 0); self.table.len() * 2];
        let smaller = std::mem::replace(&mut self.table, larger);
        for (label, count) in smaller.into_iter().filter(|(_, count)| *count > 0) {
            *place(&mut self.table, label) = (label, count);
        }
    }
}

/// The place of `label` in a table that is not full, which is made its own if it has none.
#[inline(always)]
fn place(table: &mut [(u32, u32)], label: u32) -> &mut (u32, u32) {
    let mut at = hash(label, table.len());
    while table[at].1 > 0 && table[at].0 != label {
        at = (at + 1) & (table.len() - 1);
    }
    table[at].0 = label;
    &mut table[at]
}

/// The place at which a table of `size`, a power of two, is searched for a label first.
#[inline(always)]
fn hash(label: u32, size: usize) -> usize {
    (u64::from(label).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - size.trailing_zeros())) as usize
}

fn most_frequent_sorted(labels: &[u32]) -> Option<u32> {
    let runs = labels.chunk_by(|a, b| a == b);
    // Of runs of one length, the first has the smallest label.
    runs.reduce(|best, run| if run.len() > best.len() { run } else { best }).map(|run| run[0])
}
