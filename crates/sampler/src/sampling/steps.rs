//! The steps of a hop that samplers share: choosing arcs, resolving them to neighbours, relabelling.
//!
//! Each step knows its addresses beforehand and prefetches them. Nodes are those of one type
//! where a graph has several.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_mem::prefetch;

use crate::residency::offsets::Offset;
use crate::residency::topology::Topology;
use crate::sampling::batch::{SampledEdges, SampledNodes};
use crate::sampling::choose::Chooser;
use crate::sampling::philox::{EpochKey, Stream};

/// The number of nodes that go through the three steps together: so many fit the L2 cache.
pub(crate) const BLOCK: usize = 128;
/// How many accesses ahead memory is prefetched.
pub(crate) const AHEAD: usize = 16;

/// The parameters of the draws for each node of a hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    pub(crate) key: EpochKey,
    pub(crate) batch: u32,
    pub(crate) hop: u32,
    /// The most neighbours that are taken of a node.
    pub(crate) most: u64,
}

impl Draw {
    /// The stream of draws of one of `nodes`.
    #[inline]
    pub(crate) fn stream(&self, nodes: &SampledNodes, node: usize) -> Stream {
        let tree = nodes.tree.get(node).copied().unwrap_or(0);
        Stream { batch: self.batch, hop: self.hop, vertex: nodes.n_id[node], tree }
    }
}

/// Chosen edges, those of one expanded node side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    /// The nodes that the places in `col` are of.
    pub(crate) n_id: &'a [u32],
    pub(crate) col: &'a [u32],
    pub(crate) e_id: &'a [u64],
}

impl<'a> Taken<'a> {
    /// The edges of each expanded node, one run after the other.
    pub(crate) fn runs(self) -> impl Iterator<Item = &'a [u32]> + Clone {
        self.col.chunk_by(|a, b| a == b)
    }

    /// The vertex whose edges `run` are.
    pub(crate) fn vertex(&self, run: &[u32]) -> u32 {
        self.n_id[run[0] as usize]
    }
}

/// Nodes of a batch that are expanded together.
#[derive(Debug, Clone)]
pub(crate) struct Expanded<'a> {
    /// All nodes of the expanded nodes' type.
    pub(crate) nodes: &'a SampledNodes,
    /// The places of the expanded nodes among these.
    pub(crate) block: Range<usize>,
}

/// Chooses arcs of nodes evenly and appends them. `sums` are the vertices' offsets.
pub(crate) fn choose_evenly<T: Offset>(
    chooser: &mut Chooser,
    sums: &[T],
    draw: Draw,
    expanded: Expanded<'_>,
    edges: &mut SampledEdges,
) {
    let Expanded { nodes, block } = expanded;
    let (n_id, SampledEdges { e_id, col, .. }) = (&nodes.n_id, edges);
    for node in block.clone().take(AHEAD) {
        prefetch(sums, n_id[node] as usize);
    }
    for node in block.clone() {
        if node + AHEAD < block.end {
            prefetch(sums, n_id[node + AHEAD] as usize);
        }
        let vertex = n_id[node] as usize;
        let (begin, end) = (sums[vertex].into(), sums[vertex + 1].into());
        let (degree, at): (u64, usize) = (end - begin, e_id.len());
        let taken = degree.min(draw.most) as usize;
        e_id.resize(at + taken, 0);
        col.resize(at + taken, node as u32);
        chooser.choose(draw.key, draw.stream(nodes, node), degree, begin, &mut e_id[at..]);
    }
}

/// Writes to `neighbors` the neighbours that chosen edges lead to, from memory. `list` is scratch.
pub(crate) fn resolve(
    topology: &Topology,
    taken: Taken<'_>,
    neighbors: &mut Vec<u32>,
    list: &mut Vec<u64>,
) -> Result<()> {
    let arcs = taken.e_id;
    neighbors.resize(arcs.len(), 0);
    let Some(decoded) = topology.decoded() else {
        return resolve_on_pages(topology, taken, neighbors, list);
    };
    for &arc in arcs.iter().take(AHEAD) {
        prefetch(decoded, arc as usize);
    }
    for (i, slot) in neighbors.iter_mut().enumerate() {
        if let Some(&arc) = arcs.get(i + AHEAD) {
            prefetch(decoded, arc as usize);
        }
        *slot = decoded[arcs[i] as usize];
    }
    Ok(())
}

/// Writes to `neighbors` the neighbours that chosen edges lead to, from resident pages.
fn resolve_on_pages(
    topology: &Topology,
    taken: Taken<'_>,
    neighbors: &mut [u32],
    list: &mut Vec<u64>,
) -> Result<()> {
    let mut ahead = taken.runs();
    ahead.by_ref().take(AHEAD).for_each(|run| topology.prefetch(taken.vertex(run)));
    let mut at = 0;
    for run in taken.runs() {
        if let Some(run) = ahead.next() {
            topology.prefetch(taken.vertex(run));
        }
        let edges = at..at + run.len();
        at = edges.end;
        let (arcs, out) = (&taken.e_id[edges.clone()], &mut neighbors[edges]);
        topology.resolve_resident(taken.vertex(run), arcs, out, list)?;
    }
    Ok(())
}
