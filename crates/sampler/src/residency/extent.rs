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
use crate::sampling::sampler::SampledTypes;

/// The numbers of nodes and edges of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The number of nodes, by node type.
    pub(crate) nodes: Vec<u64>,
    /// The number of edges, by edge type.
    pub(crate) edges: Vec<u64>,
}

impl Extent {
    /// The extent of `batch`.
    pub(crate) fn of(batch: &MiniBatch) -> Self {
        Self {
            nodes: batch.nodes.iter().map(|nodes| nodes.n_id.len() as u64).collect(),
            edges: batch.edges.iter().map(|edges| edges.e_id.len() as u64).collect(),
        }
    }

    /// The number of nodes of all types.
    pub(crate) fn all_nodes(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, &nodes| sum.saturating_add(nodes))
    }

    /// The number of edges of all types.
    pub(crate) fn all_edges(&self) -> u64 {
        self.edges.iter().fold(0, |sum, &edges| sum.saturating_add(edges))
    }

    /// The most of any batch, by the degrees of the graph: each hop's edges are at most those of as
    /// many vertices of the largest degrees as the hop before found.
    /// `offsets` are by edge type.
    pub(crate) fn bound(
        types: &SampledTypes,
        offsets: &[&Offsets],
        options: &LoaderOptions,
        seeds: &[u32],
    ) -> Self {
        let SampledTypes { ends, vertices, .. } = types;
        let vertices: Vec<u64> = vertices.iter().map(|&count| count as u64).collect();
        let batch_size = options.batch_size;
        let varying = options.seeds_vary;
        let batch = if varying { batch_size } else { batch_size.min(seeds.len()) } as u64;
        // Every tree of a disjoint batch may have the same vertices again.
        let trees = if options.disjoint() { batch } else { 1 };
        let degrees = offsets.iter().zip(ends).map(|(offsets, ends)| {
            let degree = |vertex: u32| {
                let arcs = offsets.arcs(vertex);
                arcs.end - arcs.start
            };
            let count = offsets.vertices() as u32;
            let all = Degrees::of((0..count).map(degree));
            let only = options.inputs == [ends.destination];
            let of_seeds = match only && !varying {
                true => {
                    let seeds = seeds.iter().copied().filter(|&seed| seed < count);
                    Degrees::of(seeds.map(degree))
                }
                false => all.clone(),
            };
            (all, of_seeds)
        });
        let degrees: Vec<(Degrees, Degrees)> = degrees.collect();
        let (mut nodes, mut edges) = (vec![0u64; vertices.len()], vec![0u64; degrees.len()]);
        let mut frontier = vec![0u64; vertices.len()];
        // All seeds may be of any of their types.
        options.inputs.iter().for_each(|&input| frontier[input] = batch);
        for hop in 0..options.hops() {
            let mut found = vec![0u64; vertices.len()];
            for (edge_type, (all, of_seeds)) in degrees.iter().enumerate() {
                let ends = ends[edge_type];
                let most = options.sample[edge_type].fanouts[hop].most();
                let expanded = frontier[ends.destination];
                let taken = match hop {
                    0 => of_seeds.largest(expanded, most),
                    _ => all.largest(expanded.div_ceil(trees), most).saturating_mul(trees),
                };
                edges[edge_type] = edges[edge_type].saturating_add(taken);
                found[ends.source] = found[ends.source].saturating_add(taken);
            }
            for (node_type, found) in found.into_iter().enumerate() {
                frontier[node_type] = found.min(vertices[node_type].saturating_mul(trees));
                nodes[node_type] = nodes[node_type].saturating_add(frontier[node_type]);
            }
        }
        for (node_type, nodes) in nodes.iter_mut().enumerate() {
            *nodes = (*nodes).min(vertices[node_type].saturating_mul(trees));
            if options.inputs.contains(&node_type) {
                *nodes = nodes.saturating_add(batch);
            }
        }
        for (edge_type, edges) in edges.iter_mut().enumerate() {
            let (all, of_seeds) = &degrees[edge_type];
            let destination = ends[edge_type].destination;
            let fanouts = options.sample[edge_type].fanouts.iter();
            let most = fanouts.map(|fanout| fanout.most()).max().unwrap_or(0);
            // No node is expanded twice in a tree.
            let once = all.largest(vertices[destination], most).saturating_mul(trees);
            let again = match options.inputs.contains(&destination) {
                true => of_seeds.largest(batch, most),
                false => 0,
            };
            *edges = (*edges).min(once.saturating_add(again));
        }
        Self { nodes, edges }
    }

    /// The smaller of both extents, type by type.
    pub(crate) fn min(&self, other: &Self) -> Self {
        let least = |a: &[u64], b: &[u64]| -> Vec<u64> {
            let others = b.iter().copied().chain(std::iter::repeat(0));
            a.iter().zip(others).map(|(&a, b)| a.min(b)).collect()
        };
        Self { nodes: least(&self.nodes, &other.nodes), edges: least(&self.edges, &other.edges) }
    }
}

/// The number of vertices with each degree, the largest first.
#[derive(Clone)]
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

    /// The number of arcs of the `vertices` with the largest degrees, of each at most `most`.
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

/// Counts of batches that were sampled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// The counts of nodes, by node type.
    nodes: Vec<Spread>,
    /// The counts of edges, by edge type.
    edges: Vec<Spread>,
    batches: usize,
    /// The number of nodes of the batch with the most.
    most_nodes: u64,
    /// Bytes of the largest batch.
    pub(crate) bytes: u64,
    /// The number of nodes of that batch, hop by hop: its seeds first.
    pub(crate) hop_nodes: Vec<usize>,
    /// The number of edges of the batch with the most nodes, hop by hop.
    pub(crate) hop_edges: Vec<usize>,
}

/// A spread of counts: how many there were, their sum and the largest.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    counts: u64,
    sum: u64,
    most: u64,
}

impl Spread {
    fn add(&mut self, count: u64) {
        self.counts += 1;
        self.sum += count;
        self.most = self.most.max(count);
    }

    /// What no batch of another epoch is expected to exceed: the mean, three times what the largest
    /// is above it, and an eighth, for batches that are few.
    fn expected(self) -> u64 {
        let mean = self.sum / self.counts.max(1);
        mean + 3 * (self.most - mean) + mean.div_ceil(8)
    }
}

impl Counted {
    /// Counts a batch of `bytes`.
    pub(crate) fn add(&mut self, batch: &MiniBatch, bytes: u64) {
        if batch.node_count() >= self.most_nodes {
            self.most_nodes = batch.node_count();
            self.hop_nodes = by_hop(batch.nodes.iter().map(|nodes| &nodes.num_sampled[..]));
            self.hop_edges = by_hop(batch.edges.iter().map(|edges| &edges.num_sampled[..]));
        }
        let Extent { nodes, edges } = Extent::of(batch);
        for (spreads, counts) in [(&mut self.nodes, nodes), (&mut self.edges, edges)] {
            spreads.resize_with(counts.len(), Spread::default);
            spreads.iter_mut().zip(counts).for_each(|(spread, count)| spread.add(count));
        }
        self.batches += 1;
        self.bytes = self.bytes.max(bytes);
    }

    /// The most that is expected of a batch of any epoch, from the `batches` of one of which these
    /// were counted. Nothing is known where batches that were not counted may have other seeds than
    /// chance gives them.
    pub(crate) fn expected(&self, options: &LoaderOptions, batches: usize) -> Option<Extent> {
        let all = self.batches >= batches;
        let LoaderOptions { shuffle, seeds_vary, .. } = *options;
        if !all && !shuffle {
            return None;
        }
        let mut fanouts = options.sample.iter().flat_map(|sample| &sample.fanouts);
        let whole = fanouts.all(|&fanout| fanout == Fanout::All);
        // The same batches in every epoch.
        let same = all && whole && !shuffle && !seeds_vary;
        let of = |spreads: &[Spread]| -> Vec<u64> {
            let of = |spread: &Spread| if same { spread.most } else { spread.expected() };
            spreads.iter().map(of).collect()
        };
        Some(Extent { nodes: of(&self.nodes), edges: of(&self.edges) })
    }
}

/// The counts of all types, hop by hop.
fn by_hop<'a>(types: impl Iterator<Item = &'a [usize]>) -> Vec<usize> {
    types.fold(Vec::new(), |mut all, counts| {
        all.resize(all.len().max(counts.len()), 0);
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SampleOptions;
    use crate::sampling::batch::SampledNodes;

    fn options(fanouts: &[Fanout], batch_size: usize, disjoint: bool) -> LoaderOptions {
        let sample =
            SampleOptions { fanouts: fanouts.to_vec(), disjoint, ..SampleOptions::default() };
        LoaderOptions { batch_size, ..LoaderOptions::new(sample) }
    }

    fn bound(degrees: &[u32], options: &LoaderOptions, seeds: &[u32]) -> (u64, u64) {
        let arcs = degrees.iter().map(|&d| u64::from(d)).sum();
        let offsets = Offsets::new(degrees, arcs).unwrap_or_else(|e| panic!("{e}"));
        let types = SampledTypes::of_one(degrees.len(), &options.sample[0]);
        let most = Extent::bound(&types, &[&offsets], options, seeds);
        (most.all_nodes(), most.all_edges())
    }

    #[test]
    fn a_bound_follows_the_largest_degrees_and_ends_at_the_graph() {
        let degrees = [1, 5, 2, 0, 70_000, 1];
        let all = Fanout::All;
        assert_eq!(bound(&degrees, &options(&[all], 1, false), &[0, 2, 3]), (3, 2));
        assert_eq!(bound(&degrees, &options(&[all], 2, false), &[0, 2, 3]), (5, 3));
        // A seed behind those that have neighbours has none.
        assert_eq!(bound(&degrees, &options(&[all], 2, false), &[0, 6]), (3, 1));
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
            let nodes = SampledNodes { n_id: vec![0; nodes], ..SampledNodes::default() };
            let batch = MiniBatch { nodes: vec![nodes], ..MiniBatch::default() };
            counted.add(&batch, 0);
        }
        let same = LoaderOptions { shuffle: false, ..options(&[Fanout::All], 1, false) };
        let nodes = |options: &LoaderOptions, batches| {
            counted.expected(options, batches).map(|extent| extent.all_nodes())
        };
        assert_eq!(nodes(&same, 3), Some(30));
        assert_eq!(nodes(&same, 4), None);
        let shuffled = LoaderOptions { shuffle: true, ..same };
        assert_eq!(nodes(&shuffled, 3), Some(20 + 30 + 3));
    }
}
