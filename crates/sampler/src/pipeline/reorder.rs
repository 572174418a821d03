//! Orders of feature rows that put rows which batches want together on one page.
//!
//! A page is read for any of its rows, so it should hold rows that are equally hot, or that the same
//! batches want. Hotness is counted by presampling, as [`Hotness`] is. Who wants a row is told by its
//! *signature*: two minima, under two hashes, over the seeds whose trees reached it (min-hashing:
//! Broder, *On the resemblance and containment of documents*, 1997). Rows with the same seeds around
//! them have the same signature with the probability that their sets of seeds overlap by.
//!
//! Which of the two matters more depends on the graph (communities: the signature; R-MAT: nothing but
//! the hotness), so [`Loader::reorder_rows`] tries each [`SortBy`] on batches that it did not count.
//! Sorting by the first batch or by a min-hash of batches was measured as well: it gained nothing, for
//! the seeds are shuffled anew every epoch.

use std::cmp::Reverse;

use serde::Serialize;
use tiergraph_cache::placement::by_hotness;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::features::RowLayout;

use crate::pipeline::loader::Loader;
use crate::pipeline::order::Inputs;
use crate::residency::hotness::Hotness;
use crate::sampling::batch::MiniBatch;

/// The most windows that an order is tried on.
const TRIAL_WINDOWS: usize = 16;
/// The hottest part of rows, one in so many, is taken to be in memory when orders are tried.
const KEPT_SHARE: usize = 10;
/// Rows that one window in so many wants are sorted by hotness in [`SortBy::Tail`].
const WARM: u32 = 10;

/// The keys by which rows are sorted; all begin with the hottest rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// The number of windows that wanted them.
    Counts,
    /// Classes of hotness, each half as hot as the one before; in a class, signatures.
    Classes,
    /// Counts, down to one window in ten; then signatures.
    Tail,
}

impl SortBy {
    const ALL: [Self; 3] = [Self::Counts, Self::Classes, Self::Tail];

    /// The class that `count` of `windows` is sorted by; smaller is hotter.
    fn class(self, count: u32, windows: u32) -> u32 {
        match self {
            _ if count == 0 => u32::MAX,
            Self::Counts => windows - count,
            Self::Classes => (windows / count).ilog2(),
            Self::Tail if count >= windows.div_ceil(WARM) => windows - count,
            Self::Tail => windows,
        }
    }
}

/// An order of rows, and the counts by which it was chosen.
#[derive(Debug, Clone, Serialize)]
pub struct ReorderedRows {
    /// The row of each vertex.
    #[serde(skip)]
    pub rows: Vec<u32>,
    /// The keys by which rows are sorted.
    pub by: SortBy,
    /// The number of windows that were counted.
    pub windows: u32,
    /// The number of rows that some of them wanted.
    pub wanted_rows: usize,
    /// For every order that was tried, the number of pages that the trial's windows read.
    pub trials: Vec<(SortBy, u64)>,
    /// The number of rows that these windows missed: pages, if each row were read by itself.
    pub trial_rows: u64,
}

/// Counts and signatures of every row, from presampling.
struct RowCounts {
    hotness: Hotness,
    windows: u32,
    /// For each of two hashes, the least hash of a seed that led to each row.
    signatures: [Vec<u32>; 2],
    labels: Vec<u32>,
}

impl RowCounts {
    fn record_signatures(&mut self, batches: &[MiniBatch]) {
        for batch in batches {
            for (which, least) in (0u64..).zip(&mut self.signatures) {
                let labels = &mut self.labels;
                labels.clear();
                let (nodes, edges) = (&batch.nodes[0], &batch.edges[0]);
                let seeds = &nodes.n_id[..batch.batch_size()];
                labels.extend(seeds.iter().map(|&seed| hash(u64::from(seed) << 1 | which)));
                labels.resize(nodes.n_id.len(), u32::MAX);
                // Edges come hop by hop: whom a node was expanded for is known by then.
                for (&row, &col) in edges.row.iter().zip(&edges.col) {
                    labels[row as usize] = labels[row as usize].min(labels[col as usize]);
                }
                for (&vertex, &label) in nodes.n_id.iter().zip(labels.iter()) {
                    let least = &mut least[vertex as usize];
                    *least = label.min(*least);
                }
            }
        }
    }

    /// The row of each vertex. Rows that no batch wanted come last, in the graph's order.
    fn rows(&self, by: SortBy) -> Vec<u32> {
        let counts = &self.hotness.rows[0].uses;
        let [first, second] = &self.signatures;
        let key = |&vertex: &u32| {
            let at = vertex as usize;
            let class = by.class(counts[at], self.windows);
            match by {
                SortBy::Tail if class < self.windows => (class, 0, 0, vertex),
                SortBy::Counts => (class, 0, 0, vertex),
                _ => (class, first[at], second[at], vertex),
            }
        };
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        order.sort_unstable_by_key(key);
        rows_of(&order)
    }
}

/// The row of each vertex, in the order of descending `degrees`.
pub fn by_degree(degrees: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..degrees.len() as u32).collect();
    order.sort_unstable_by_key(|&vertex| (Reverse(degrees[vertex as usize]), vertex));
    rows_of(&order)
}

/// The place of each vertex in `order`.
fn rows_of(order: &[u32]) -> Vec<u32> {
    let mut rows = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&vertex, row)| rows[vertex as usize] = row);
    rows
}

/// 32 well-mixed bits: Splitmix64's finaliser (Steele, Lea, Flood, 2014).
fn hash(i: u64) -> u32 {
    let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 32) as u32
}

impl Loader {
    /// The order of the rows of `layout` that suits epochs over `seeds`: counts what `epoch` wants
    /// (`batches` of it, or all), and tries orders on the epoch after it.
    ///
    /// Costs a presampling and three short ones, and 28 bytes a vertex and 8 a page of neighbours.
    ///
    /// # Errors
    /// As [`Loader::presample`]; [`ErrorKind::Input`] without seeds.
    pub fn reorder_rows<'a>(
        &self,
        layout: RowLayout,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        batches: usize,
    ) -> Result<ReorderedRows> {
        let seeds = seeds.into();
        if seeds.seeds.is_empty() {
            return Err(Error::new(ErrorKind::Input, "order features by what is wanted")
                .expected("seeds")
                .got("none"));
        }
        let (graph, topologies) = (self.0.any(), self.topologies());
        let [topology] = topologies else {
            return Err(
                Error::new(ErrorKind::Input, "reorder rows").expected("a graph of one type")
            );
        };
        let vertices = graph.vertices();
        let held = graph.memory().reserve(20 * vertices as u64, "the order of feature rows")?;
        let mut counts = RowCounts {
            hotness: Hotness::of_one(topology),
            windows: 0,
            signatures: [vec![u32::MAX; vertices], vec![u32::MAX; vertices]],
            labels: Vec::new(),
        };
        self.for_each_window(epoch, seeds, batches, |window| {
            counts.windows += 1;
            counts.hotness.record(topologies, window);
            counts.record_signatures(window);
        })?;
        let mut kept = vec![false; vertices];
        let hottest =
            by_hotness(&counts.hotness.rows[0].uses).into_iter().take(vertices / KEPT_SHARE);
        hottest.for_each(|vertex| kept[vertex as usize] = true);
        let most = batches.min(TRIAL_WINDOWS * self.options().window);
        let (mut trials, mut trial_rows) = (Vec::new(), 0);
        for by in SortBy::ALL {
            let (rows, mut pages, mut read) = (counts.rows(by), Vec::new(), 0);
            trial_rows = 0;
            self.for_each_window(epoch + 1, seeds, most, |window| {
                pages.clear();
                let nodes = window.iter().flat_map(|batch| &batch.nodes[0].n_id);
                for &vertex in nodes.filter(|&&vertex| !kept[vertex as usize]) {
                    trial_rows += 1;
                    pages.extend(layout.pages(rows[vertex as usize].into()));
                }
                pages.sort_unstable();
                pages.dedup();
                read += pages.len() as u64;
            })?;
            trials.push((by, read));
        }
        let best = trials.iter().min_by_key(|(_, pages)| *pages);
        let by = best.map_or(SortBy::Counts, |(by, _)| *by);
        drop(held);
        Ok(ReorderedRows {
            rows: counts.rows(by),
            by,
            windows: counts.windows,
            wanted_rows: counts.hotness.rows[0].uses.iter().filter(|&&count| count > 0).count(),
            trials,
            trial_rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hotter_rows_never_have_a_later_class() {
        for by in SortBy::ALL {
            for windows in [1, 2, 9, 10, 11, 100] {
                let classes: Vec<u32> =
                    (0..=windows).rev().map(|count| by.class(count, windows)).collect();
                assert!(classes.is_sorted(), "{by:?} {windows}: {classes:?}");
                assert_eq!(classes.last(), Some(&u32::MAX));
            }
        }
    }

    #[test]
    fn degrees_descend_and_ties_keep_their_order() {
        assert_eq!(by_degree(&[1, 5, 5, 0]), [2, 0, 1, 3]);
    }
}
