//! Sampling a window of batches of several types.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::PageReader;

use super::batch::{HeteroBatch, SampledEdges};
use crate::options::Fanout;
use crate::residency::topology::Topology;
use crate::sampling::batch::Seeds;
use crate::sampling::choose::Chooser;
use crate::sampling::philox::EpochKey;
use crate::sampling::retained::Retained;
use crate::sampling::steps::{BLOCK, Draw, Frontier, Taken, check_places, choose_evenly, resolve};
use crate::sampling::table::{Places, TableKind};
use crate::sampling::window::{SampleReads, look_up};

/// Samples batches on one thread; keeps its tables from batch to batch.
#[derive(Debug)]
pub struct HeteroSampler {
    /// Of each edge type, the places of its source's and its destination's node types.
    ends: Vec<(usize, usize)>,
    fanouts: Vec<Vec<Fanout>>,
    /// Nodes of each type.
    vertices: Vec<usize>,
    input: usize,
    chooser: Chooser,
    /// Of each node type.
    places: Vec<Places>,
    neighbors: Vec<u32>,
    list: Vec<u64>,
}

impl HeteroSampler {
    /// A sampler for graphs of so many nodes of each type, whose edge types have these ends.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where the system has no memory for the tables.
    pub fn new(
        vertices: &[usize],
        ends: &[(usize, usize)],
        fanouts: &[Vec<Fanout>],
        input: usize,
    ) -> Result<Self> {
        let table = |&count: &usize| Places::new(count, TableKind::for_graph(count));
        Ok(Self {
            ends: ends.to_vec(),
            fanouts: fanouts.to_vec(),
            vertices: vertices.to_vec(),
            input,
            chooser: Chooser::default(),
            places: vertices.iter().map(table).collect::<Result<_>>()?,
            neighbors: Vec::new(),
            list: Vec::new(),
        })
    }

    /// Bytes of the tables.
    pub fn resident_bytes(&self) -> u64 {
        let buffers = 4 * self.neighbors.capacity() + 8 * self.list.capacity();
        self.places.iter().map(Places::resident_bytes).sum::<u64>() + buffers as u64
    }

    /// Samples the batches of `seeds` into `batches`, one for each, reading what is not in memory
    /// through `reader`. `topologies` and `keys` are by edge type.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have; [`ErrorKind::Format`] for
    /// damage; what reading gives.
    pub fn sample_window(
        &mut self,
        topologies: &[Topology],
        reader: &mut PageReader,
        keys: &[EpochKey],
        seeds: &[Seeds<'_>],
        batches: &mut [HeteroBatch],
        retain_bytes: usize,
    ) -> Result<SampleReads> {
        for (&seeds, batch) in seeds.iter().zip(&mut *batches) {
            self.begin(seeds, batch)?;
        }
        if topologies.iter().all(Topology::is_resident) {
            for batch in batches {
                self.sample(topologies, keys, batch)?;
            }
            return Ok(SampleReads::default());
        }
        self.sample_from_pages(topologies, reader, keys, batches, retain_bytes)
    }

    fn begin(&self, seeds: Seeds<'_>, batch: &mut HeteroBatch) -> Result<()> {
        let vertices = self.vertices[self.input];
        if let Some(seed) = seeds.vertices.iter().find(|&&seed| seed as usize >= vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} nodes of its type")));
        }
        batch.begin((self.vertices.len(), self.ends.len()), self.input, seeds);
        Ok(())
    }

    fn hops(&self) -> usize {
        self.fanouts.first().map_or(0, Vec::len)
    }

    /// Enters all nodes of a batch in the tables, which forget those of the batch before.
    fn enter(&mut self, batch: &HeteroBatch) -> Result<()> {
        let pairs = self.places.iter_mut().zip(&batch.nodes);
        pairs.into_iter().try_for_each(|(places, nodes)| places.enter(&nodes.n_id))
    }

    /// Samples one batch whose neighbours are all in memory.
    fn sample(
        &mut self,
        topologies: &[Topology],
        keys: &[EpochKey],
        batch: &mut HeteroBatch,
    ) -> Result<()> {
        self.enter(batch)?;
        for hop in 0..self.hops() {
            let frontiers: Vec<Range<usize>> = batch.nodes.iter().map(|n| n.frontier()).collect();
            let before = batch.sizes();
            for (edge_type, topology) in topologies.iter().enumerate() {
                let first = batch.edges[edge_type].e_id.len();
                let frontier = &frontiers[self.ends[edge_type].1];
                for begin in frontier.clone().step_by(BLOCK) {
                    let block = begin..frontier.end.min(begin + BLOCK);
                    let edges = self.choose(topology, keys, edge_type, hop, block, batch);
                    let taken = self.taken(batch, edge_type, edges);
                    resolve(topology, taken, &mut self.neighbors, &mut self.list)?;
                    let neighbors = std::mem::take(&mut self.neighbors);
                    self.relabel(batch, edge_type, &neighbors)?;
                    self.neighbors = neighbors;
                }
                batch.edges[edge_type].end_hop(first);
            }
            batch.end_hop(&before);
        }
        Ok(())
    }

    /// Samples a window of batches. What an edge type's edges lead to is looked up for all batches
    /// together, each page once; places are given when a hop's edges of all types are known.
    fn sample_from_pages(
        &mut self,
        topologies: &[Topology],
        reader: &mut PageReader,
        keys: &[EpochKey],
        batches: &mut [HeteroBatch],
        retain_bytes: usize,
    ) -> Result<SampleReads> {
        let mut reads = SampleReads::default();
        let read = topologies.iter().filter(|topology| !topology.is_resident()).count();
        let mut retained: Vec<Retained> = topologies.iter().map(|_| Retained::default()).collect();
        for hop in 0..self.hops() {
            let limit = if hop + 1 < self.hops() { retain_bytes / read.max(1) } else { 0 };
            let mut found = Vec::new();
            for (edge_type, topology) in topologies.iter().enumerate() {
                let edges = self.choose_all(topology, keys, edge_type, hop, batches);
                let taken: Vec<Taken<'_>> = batches
                    .iter()
                    .zip(edges)
                    .map(|(batch, edges)| self.taken(batch, edge_type, edges))
                    .collect();
                found.push(if topology.is_resident() {
                    self.resolve_all(topology, &taken)?
                } else {
                    let retained = &mut retained[edge_type];
                    look_up(topology, reader, &taken, retained, limit, &mut reads)?
                });
            }
            for (number, batch) in batches.iter_mut().enumerate() {
                self.enter(batch)?;
                let before = batch.sizes();
                for (edge_type, found) in found.iter().enumerate() {
                    let first = batch.edges[edge_type].row.len();
                    self.relabel(batch, edge_type, &found[number])?;
                    batch.edges[edge_type].end_hop(first);
                }
                batch.end_hop(&before);
            }
        }
        reads.distinct_pages = retained.iter().map(Retained::distinct_pages).sum();
        Ok(reads)
    }

    fn taken<'b>(
        &self,
        batch: &'b HeteroBatch,
        edge_type: usize,
        edges: Range<usize>,
    ) -> Taken<'b> {
        batch.edges[edge_type].taken(&batch.nodes[self.ends[edge_type].1], edges)
    }

    /// Chooses edges of one type for the nodes `block` and tells where they are.
    fn choose(
        &mut self,
        topology: &Topology,
        keys: &[EpochKey],
        edge_type: usize,
        hop: usize,
        block: Range<usize>,
        batch: &mut HeteroBatch,
    ) -> Range<usize> {
        let most = self.fanouts[edge_type][hop].most();
        let draw = Draw { key: keys[edge_type], batch: batch.number, hop: hop as u32, most };
        let n_id = &batch.nodes[self.ends[edge_type].1].n_id;
        let SampledEdges { e_id, col, .. } = &mut batch.edges[edge_type];
        let first = e_id.len();
        let frontier = Frontier { n_id, tree: &[], nodes: block };
        choose_evenly(&mut self.chooser, topology.offsets(), draw, frontier, e_id, col);
        first..e_id.len()
    }

    /// As [`choose`](Self::choose), for all nodes of each batch that the hop before found.
    fn choose_all(
        &mut self,
        topology: &Topology,
        keys: &[EpochKey],
        edge_type: usize,
        hop: usize,
        batches: &mut [HeteroBatch],
    ) -> Vec<Range<usize>> {
        let destination = self.ends[edge_type].1;
        let each = batches.iter_mut().map(|batch| {
            let frontier = batch.nodes[destination].frontier();
            self.choose(topology, keys, edge_type, hop, frontier, batch)
        });
        each.collect()
    }

    /// Looks up in memory whom the edges of each batch lead to.
    fn resolve_all(&mut self, topology: &Topology, taken: &[Taken<'_>]) -> Result<Vec<Vec<u32>>> {
        let each = taken.iter().map(|&taken| {
            let mut neighbors = Vec::new();
            resolve(topology, taken, &mut neighbors, &mut self.list)?;
            Ok(neighbors)
        });
        each.collect()
    }

    /// Gives the neighbours of the last edges of a type their places among the source's nodes.
    fn relabel(
        &mut self,
        batch: &mut HeteroBatch,
        edge_type: usize,
        neighbors: &[u32],
    ) -> Result<()> {
        let source = self.ends[edge_type].0;
        let n_id = &mut batch.nodes[source].n_id;
        check_places(n_id.len(), neighbors.len())?;
        self.places[source].relabel(n_id, &mut batch.edges[edge_type].row, neighbors)
    }
}
