//! Neighbour sampling without replacement, hop by hop.
//!
//! GraphSAGE's sampling (Hamilton, Ying, Leskovec, 2017) with PyG's contract: each hop expands the
//! nodes that the last one found, every node once, edge type by edge type in the graph's order, and
//! takes up to *fanout* neighbours of each. What is taken depends on (seed, epoch, batch, edge type,
//! hop, vertex) alone: see [`philox`](crate::sampling::philox).
//!
//! A hop goes through its nodes in blocks that fit the L2 cache, and through each block in three
//! steps that each know their addresses beforehand and prefetch them: *choose* arcs by their
//! numbers, *resolve* them to neighbours, *relabel* the neighbours.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::gathering::edges::EdgeValues;
use crate::options::{LoaderOptions, SampleOptions, check_fanouts, check_times};
use crate::pipeline::types::{Ends, GraphTypes};
use crate::residency::columns::Column;
use crate::residency::offsets::Offsets;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::choose::Chooser;
use crate::sampling::philox::EpochKey;
use crate::sampling::steps::{BLOCK, Draw, Expanded, choose_evenly, resolve};
use crate::sampling::table::{Table, TableKind};
use crate::sampling::weighted::{Choice, Values, Weighted};

/// The node types and edge types of a sampler's batches.
#[derive(Debug, Clone)]
pub struct SampledTypes {
    /// The number of nodes of each type.
    pub vertices: Vec<usize>,
    /// The node types at the ends of each edge type.
    pub ends: Vec<Ends>,
    /// The options of sampling along each edge type.
    pub sample: Vec<SampleOptions>,
    /// The node types of the seeds, as indices.
    pub inputs: Vec<usize>,
}

impl SampledTypes {
    /// The types of a graph with one node type and one edge type.
    pub fn of_one(vertices: usize, options: &SampleOptions) -> Self {
        let (ends, sample) = (vec![Ends::SAME], vec![options.clone()]);
        Self { vertices: vec![vertices], ends, sample, inputs: vec![0] }
    }

    /// The types of `types`, sampled with `options`.
    pub(crate) fn of(types: &GraphTypes, options: &LoaderOptions) -> Self {
        let (sample, inputs) = (options.sample.clone(), options.inputs.clone());
        Self { vertices: types.vertices(), ends: types.ends.clone(), sample, inputs }
    }

    /// Whether each seed gets nodes of its own.
    pub(crate) fn is_disjoint(&self) -> bool {
        self.sample.first().is_some_and(|options| options.disjoint)
    }

    /// The node type of a seed, and the seed's number in that; `None` for a number that no seed has.
    pub(crate) fn node(&self, seed: u32) -> Option<(usize, u32)> {
        let mut left = seed as usize;
        for &input in &self.inputs {
            match left.checked_sub(self.vertices[input]) {
                None => return Some((input, left as u32)),
                Some(rest) => left = rest,
            }
        }
        None
    }
}

/// A sampler of batches for one thread, which keeps its tables from batch to batch.
#[derive(Debug)]
pub struct Sampler {
    types: SampledTypes,
    chooser: Chooser,
    weighted: Weighted,
    /// The tables of the places of each type's nodes.
    tables: Vec<Box<dyn Table>>,
    /// The neighbours of the arcs that were chosen last.
    neighbors: Vec<u32>,
    pub(crate) list: Vec<u64>,
    /// The weights and times that were read to choose the edges of the last window: by batch, then by
    /// edge type.
    pub(crate) values: Vec<Vec<EdgeValues>>,
}

/// The parameters of a hop along the edges of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeHop<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) key: EpochKey,
    pub(crate) edge_type: usize,
    pub(crate) hop: usize,
}

impl Sampler {
    /// A sampler with tables of the kind `table` for the nodes of each type; `None` for the fastest. Those
    /// of disjoint batches are hashed.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for fanouts that counters cannot number, options of times that do not go
    /// together; [`ErrorKind::Budget`] where
    /// the system has no memory for the tables.
    pub fn new(types: SampledTypes, table: Option<TableKind>) -> Result<Self> {
        for options in &types.sample {
            check_fanouts(&options.fanouts)?;
            check_times(options)?;
        }
        let table = |&count: &usize| {
            let kind = table.unwrap_or_else(|| TableKind::for_graph(count));
            kind.table(count, types.is_disjoint())
        };
        Ok(Self {
            tables: types.vertices.iter().map(table).collect::<Result<_>>()?,
            types,
            chooser: Chooser::default(),
            weighted: Weighted::default(),
            neighbors: Vec::new(),
            list: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Bytes that the tables take.
    pub fn resident_bytes(&self) -> u64 {
        let buffers = 4 * self.neighbors.capacity() + 8 * self.list.capacity();
        self.tables.iter().map(|table| table.resident_bytes()).sum::<u64>() + buffers as u64
    }

    /// The node types at the ends of an edge type.
    pub(crate) fn ends(&self, edge_type: usize) -> Ends {
        self.types.ends[edge_type]
    }

    /// The options of sampling along an edge type.
    pub(crate) fn options(&self, edge_type: usize) -> &SampleOptions {
        &self.types.sample[edge_type]
    }

    /// The number of hops, the same along every edge type.
    pub(crate) fn hops(&self) -> usize {
        self.types.sample.first().map_or(0, |options| options.fanouts.len())
    }

    /// Samples the batch of `seeds` from neighbours that are all in memory into `batch`, whose memory
    /// is used again. `topologies` and `keys` are by edge type.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have, or a topology or weights that
    /// are not all in memory (see [`sample_window`](Self::sample_window)); [`ErrorKind::Format`] for damage.
    pub fn sample(
        &mut self,
        topologies: &[Topology],
        keys: &[EpochKey],
        seeds: Seeds<'_>,
        batch: &mut MiniBatch,
    ) -> Result<()> {
        if !topologies.iter().all(Topology::samples_in_memory) {
            return Err(Error::new(ErrorKind::Input, "sample a batch alone")
                .expected("all neighbours and what they are chosen by in memory")
                .got("pages that must be read"));
        }
        self.begin(topologies, seeds, batch)?;
        self.enter(batch)?;
        for hop in 0..self.hops() {
            let frontiers = batch.frontiers();
            for (edge_type, (topology, &key)) in topologies.iter().zip(keys).enumerate() {
                let first = batch.edges[edge_type].e_id.len();
                let frontier = &frontiers[self.types.ends[edge_type].destination];
                let of = TypeHop { topology, key, edge_type, hop };
                for begin in frontier.clone().step_by(BLOCK) {
                    let block = begin..frontier.end.min(begin + BLOCK);
                    let edges = self.choose(of, block, batch)?;
                    let taken = batch.taken(edge_type, self.types.ends[edge_type], edges);
                    resolve(topology, taken, &mut self.neighbors, &mut self.list)?;
                    let neighbors = std::mem::take(&mut self.neighbors);
                    let relabelled = self.relabel(batch, edge_type, &neighbors);
                    self.neighbors = neighbors;
                    relabelled?;
                }
                batch.edges[edge_type].end_hop(first);
            }
            batch.end_hop(&frontiers);
        }
        Ok(())
    }

    /// Starts a batch with its seeds as its first nodes.
    pub(crate) fn begin(
        &self,
        topologies: &[Topology],
        seeds: Seeds<'_>,
        batch: &mut MiniBatch,
    ) -> Result<()> {
        let types = &self.types;
        if let Some(seed) = seeds.vertices.iter().find(|&&seed| types.node(seed).is_none()) {
            let vertices: usize = types.inputs.iter().map(|&input| types.vertices[input]).sum();
            let what = if types.vertices.len() > 1 { "nodes of its type" } else { "vertices" };
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {vertices} {what}")));
        }
        let timed = topologies.iter().any(|topology| topology.columns().times.is_some());
        let expected = if timed { seeds.vertices.len() } else { 0 };
        if seeds.times.len() != expected {
            return Err(Error::new(ErrorKind::Input, "sample by time")
                .expected(format!("{expected} times of seeds"))
                .got(seeds.times.len()));
        }
        batch.begin(types, seeds);
        Ok(())
    }

    /// Enters all nodes of a batch in the tables, which forget those of the batch before.
    pub(crate) fn enter(&mut self, batch: &MiniBatch) -> Result<()> {
        self.tables.iter_mut().zip(&batch.nodes).try_for_each(|(table, nodes)| table.enter(nodes))
    }

    /// Chooses arcs of one type for the nodes `block` and appends them to the batch; returns the range
    /// of the new edges.
    pub(crate) fn choose(
        &mut self,
        of: TypeHop<'_>,
        block: Range<usize>,
        batch: &mut MiniBatch,
    ) -> Result<Range<usize>> {
        let destination = self.types.ends[of.edge_type].destination;
        let mut edges = std::mem::take(&mut batch.edges[of.edge_type]);
        let first = edges.e_id.len();
        let mut chosen = Ok(());
        if of.topology.columns().are_weighted_or_timed() {
            let columns = of.topology.columns();
            let weights = columns.weights.as_ref().and_then(Column::resident);
            let times = columns.times.as_ref().and_then(Column::resident);
            let mut nodes = block;
            chosen = nodes.try_for_each(|node| {
                let arcs = of.topology.offsets().arcs(batch.nodes[destination].n_id[node]);
                let places = arcs.start as usize..arcs.end as usize;
                let values = Values {
                    weights: weights.map(|all| &all[places.clone()]),
                    times: times.map(|all| &all[places]),
                    strategy: columns.strategy,
                };
                self.choose_one(of, batch, node, &values, &mut edges.e_id)?;
                edges.col.resize(edges.e_id.len(), node as u32);
                Ok(())
            });
        } else {
            let draw = self.draw(of, batch);
            let expanded = Expanded { nodes: &batch.nodes[destination], block };
            let chooser = &mut self.chooser;
            match of.topology.offsets() {
                Offsets::Narrow(sums) => choose_evenly(chooser, sums, draw, expanded, &mut edges),
                Offsets::Wide(sums) => choose_evenly(chooser, sums, draw, expanded, &mut edges),
            }
        }
        let taken = first..edges.e_id.len();
        batch.edges[of.edge_type] = edges;
        chosen.map(|()| taken)
    }

    /// The parameters of the draws for each node of a batch in a hop.
    fn draw(&self, of: TypeHop<'_>, batch: &MiniBatch) -> Draw {
        let most = self.types.sample[of.edge_type].fanouts[of.hop].most();
        Draw { key: of.key, batch: batch.number, hop: of.hop as u32, most }
    }

    /// Chooses arcs of one node by the arcs' values, and appends them to `out`.
    pub(crate) fn choose_one(
        &mut self,
        of: TypeHop<'_>,
        batch: &MiniBatch,
        node: usize,
        values: &Values<'_>,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        let draw = self.draw(of, batch);
        let stream = draw.stream(&batch.nodes[self.types.ends[of.edge_type].destination], node);
        let until = batch.seed_time.get(stream.tree as usize).copied();
        let arcs = of.topology.offsets().arcs(stream.vertex);
        let choice = Choice { key: of.key, stream, arcs, most: draw.most, until };
        self.weighted.choose(&mut self.chooser, values, choice, out)
    }

    /// Gives the neighbours of the last edges of a type their places among the source's nodes.
    pub(crate) fn relabel(
        &mut self,
        batch: &mut MiniBatch,
        edge_type: usize,
        neighbors: &[u32],
    ) -> Result<()> {
        let ends = self.types.ends[edge_type];
        self.tables[ends.source].relabel(batch, edge_type, ends, neighbors)
    }
}
