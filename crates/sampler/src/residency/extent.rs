//! How many nodes and edges a batch can have: the most that degrees and fanouts allow, and the most
//! that is expected after the batches of an epoch were counted.
//!
//! The first is certain and holds for every epoch. The second is smaller where neighbourhoods
//! overlap: batches of one epoch are random samples of the same seeds, so their sizes lie close
//! together, and no epoch's batch is larger than the mean by several times what an epoch's largest is.

use std::collections::BTreeMap;

use crate::options::{Fanout, LoaderOptions};
use crate::residency::offsets::Offsets;
use crate::sampling::batch::MiniBatch;

/// How many nodes and edges a batch has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) nodes: u64,
    pub(crate) edges: u64,
}

impl Extent {
    /// The most of any batch of `seeds`, by the degrees of the graph: each hop's edges are at most
    /// those of as many vertices of the largest degrees as the hop before found.
    pub(crate) fn bound(offsets: &Offsets, options: &LoaderOptions, seeds: &[u32]) -> Self {
        let vertices = offsets.vertices() as u64;
        let degree = |vertex: u32| {
            let arcs = offsets.arcs(vertex);
            arcs.end - arcs.start
        };
        let all = Degrees::of((0..vertices as u32).map(degree));
        let (of_seeds, batch) = match options.seeds_vary {
            true => (None, options.batch_size as u64),
            false => {
                let known = seeds.iter().filter(|&&seed| u64::from(seed) < vertices);
                let batch = options.batch_size.min(seeds.len()) as u64;
                (Some(Degrees::of(known.map(|&seed| degree(seed)))), batch)
            }
        };
        let first = of_seeds.as_ref().unwrap_or(&all);
        // Every tree of a disjoint batch may have the same vertices again.
        let trees = if options.sample.disjoint { batch } else { 1 };
        let (mut nodes, mut edges, mut frontier) = (0u64, 0u64, batch);
        for (hop, fanout) in options.sample.fanouts.iter().enumerate() {
            let taken = match hop {
                0 => first.largest(batch, fanout.most()),
                _ => all.largest(frontier.div_ceil(trees), fanout.most()).saturating_mul(trees),
            };
            edges = edges.saturating_add(taken);
            frontier = taken.min(vertices.saturating_mul(trees));
            nodes = nodes.saturating_add(frontier);
        }
        let most = options.sample.fanouts.iter().map(|fanout| fanout.most()).max().unwrap_or(0);
        // No node is expanded twice in a tree.
        let once = all.largest(vertices, most).saturating_mul(trees);
        Self {
            nodes: batch.saturating_add(nodes.min(vertices.saturating_mul(trees))),
            edges: edges.min(once.saturating_add(first.largest(batch, most))),
        }
    }

    /// The smaller of both counts.
    pub(crate) fn min(self, other: Self) -> Self {
        Self { nodes: self.nodes.min(other.nodes), edges: self.edges.min(other.edges) }
    }
}

/// How many vertices have each degree, the largest first.
struct Degrees(Vec<(u64, u64)>);

/// Degrees below are counted in a list, those above, which are few, in a map.
const LISTED: usize = 1 << 16;

impl Degrees {
    fn of(degrees: impl Iterator<Item = u64>) -> Self {
        let (mut listed, mut others) = (vec![0u64; LISTED], BTreeMap::new());
        for degree in degrees {
            match listed.get_mut(degree as usize) {
                Some(count) => *count += 1,
                None => *others.entry(degree).or_insert(0) += 1,
            }
        }
        let listed = listed.into_iter().enumerate().rev().filter(|&(_, count)| count > 0);
        let listed = listed.map(|(degree, count)| (degree as u64, count));
        Self(others.into_iter().rev().chain(listed).collect())
    }

    /// Arcs of the `vertices` of the largest degrees, of each at most `most`.
    fn largest(&self, vertices: u64, most: u64) -> u64 {
        let (mut left, mut arcs) = (vertices, 0u64);
        for &(degree, count) in &self.0 {
            let count = count.min(left);
            arcs = arcs.saturating_add(count.saturating_mul(degree.min(most)));
            left -= count;
        }
        arcs
    }
}

/// What batches that were counted had.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    nodes: Spread,
    edges: Spread,
    /// Bytes of the largest.
    pub(crate) bytes: u64,
    /// Nodes and edges by hop, of the one with the most nodes.
    pub(crate) hops: Hops,
}

/// Nodes and edges of a batch, hop by hop; nodes begin with the seeds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hops {
    pub(crate) nodes: Vec<usize>,
    pub(crate) edges: Vec<usize>,
}

/// How many counts there were, their sum and the largest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    counts: u64,
    sum: u64,
    pub(crate) most: u64,
}

impl Spread {
    pub(crate) fn add(&mut self, count: u64) {
        self.counts += 1;
        self.sum += count;
        self.most = self.most.max(count);
    }

    /// What no batch of another epoch is expected to exceed: the mean, three times what the largest
    /// is above it, and an eighth, for batches that are few.
    pub(crate) fn expected(self) -> u64 {
        let mean = self.sum / self.counts.max(1);
        mean + 3 * (self.most - mean) + mean.div_ceil(8)
    }
}

impl Counted {
    /// Counts a batch of `bytes`.
    pub(crate) fn add(&mut self, batch: &MiniBatch, bytes: u64) {
        if batch.n_id.len() as u64 >= self.nodes.most {
            self.hops.nodes.clone_from(&batch.num_sampled_nodes);
            self.hops.edges.clone_from(&batch.num_sampled_edges);
        }
        self.nodes.add(batch.n_id.len() as u64);
        self.edges.add(batch.e_id.len() as u64);
        self.bytes = self.bytes.max(bytes);
    }

    /// The most that is expected of a batch of any epoch, from the `batches` of one of which these
    /// were counted. Nothing is known where batches that were not counted may have other seeds than
    /// chance gives them.
    pub(crate) fn expected(&self, options: &LoaderOptions, batches: usize) -> Option<Extent> {
        let all = self.nodes.counts as usize >= batches;
        if !all && !options.shuffle {
            return None;
        }
        let whole = options.sample.fanouts.iter().all(|&fanout| fanout == Fanout::All);
        if all && whole && !options.shuffle && !options.seeds_vary {
            // The same batches in every epoch.
            return Some(Extent { nodes: self.nodes.most, edges: self.edges.most });
        }
        Some(Extent { nodes: self.nodes.expected(), edges: self.edges.expected() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SampleOptions;

    fn options(fanouts: &[Fanout], batch_size: usize, disjoint: bool) -> LoaderOptions {
        let sample =
            SampleOptions { fanouts: fanouts.to_vec(), disjoint, ..SampleOptions::default() };
        LoaderOptions { batch_size, ..LoaderOptions::new(sample) }
    }

    fn bound(degrees: &[u32], options: &LoaderOptions, seeds: &[u32]) -> (u64, u64) {
        let arcs = degrees.iter().map(|&d| u64::from(d)).sum();
        let offsets = Offsets::new(degrees, arcs).unwrap_or_else(|e| panic!("{e}"));
        let most = Extent::bound(&offsets, options, seeds);
        (most.nodes, most.edges)
    }

    #[test]
    fn a_bound_follows_the_largest_degrees_and_ends_at_the_graph() {
        let degrees = [1, 5, 2, 0, 70_000, 1];
        let all = Fanout::All;
        assert_eq!(bound(&degrees, &options(&[all], 1, false), &[0, 2, 3]), (3, 2));
        assert_eq!(bound(&degrees, &options(&[all], 2, false), &[0, 2, 3]), (5, 3));
        // The second hop may find the hub; all vertices are six, beside the seed.
        assert_eq!(bound(&degrees, &options(&[all, all], 1, false), &[0]), (1 + 6, 1 + 70_000));
        let most = options(&[Fanout::Most(2), Fanout::Most(3)], 1, false);
        assert_eq!(bound(&degrees, &most, &[1]), (1 + 2 + 4, 2 + 6));
        let varying = LoaderOptions { seeds_vary: true, ..options(&[Fanout::Most(4)], 2, false) };
        assert_eq!(bound(&degrees, &varying, &[3]), (2 + 6, 8));
        // Both trees may have the same largest vertex.
        let trees = options(&[Fanout::Most(1), Fanout::Most(10)], 2, true);
        assert_eq!(bound(&degrees, &trees, &[0, 2]), (2 + 2 + 12 - 2, 2 + 20));
    }

    #[test]
    fn what_is_expected_is_exact_where_every_epoch_has_the_same_batches() {
        let mut counted = Counted::default();
        for nodes in [10, 20, 30] {
            let batch = MiniBatch { n_id: vec![0; nodes], ..MiniBatch::default() };
            counted.add(&batch, 0);
        }
        let same = LoaderOptions { shuffle: false, ..options(&[Fanout::All], 1, false) };
        let nodes = |options: &LoaderOptions, batches| {
            counted.expected(options, batches).map(|extent| extent.nodes)
        };
        assert_eq!(nodes(&same, 3), Some(30));
        assert_eq!(nodes(&same, 4), None);
        let shuffled = LoaderOptions { shuffle: true, ..same };
        assert_eq!(nodes(&shuffled, 3), Some(20 + 30 + 3));
    }
}
