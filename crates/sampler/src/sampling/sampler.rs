//! Neighbour sampling without replacement, hop by hop.
//!
//! GraphSAGE's sampling (Hamilton, Ying, Leskovec, 2017) with PyG's contract: each hop expands the
//! nodes that the last one found, every node once, and takes up to *fanout* of its neighbours. What
//! is taken depends on (seed, epoch, batch, hop, vertex) alone: see [`philox`](crate::sampling::philox).
//!
//! A hop goes through its nodes in blocks that fit the L2 cache, and through each block in three
//! steps that each know their addresses beforehand and ask for them ahead: *choose* arcs by their
//! numbers, *resolve* them to neighbours, *relabel* the neighbours.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::gathering::edges::EdgeValues;
use crate::options::{SampleOptions, check_fanouts, check_times};
use crate::residency::columns::Column;
use crate::residency::topology::Topology;
use crate::sampling::batch::{MiniBatch, Seeds};
use crate::sampling::choose::Chooser;
use crate::sampling::philox::{EpochKey, Stream};
use crate::sampling::steps::{BLOCK, Draw, Frontier, check_places, choose_evenly, resolve};
use crate::sampling::table::{Table, TableKind};
use crate::sampling::weighted::{Biased, Choice, Values};

/// Samples batches on one thread; keeps its tables from batch to batch.
#[derive(Debug)]
pub struct Sampler {
    options: SampleOptions,
    vertices: usize,
    chooser: Chooser,
    biased: Biased,
    labels: Table,
    /// The neighbours of the arcs that were chosen last.
    neighbors: Vec<u32>,
    list: Vec<u64>,
    /// What was read of the values of each batch's edges, of the last window.
    pub(crate) values: Vec<EdgeValues>,
}

impl Sampler {
    /// A sampler for graphs of so many vertices.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for fanouts that counters cannot number, [`ErrorKind::Budget`] where
    /// the system has no memory for the table.
    pub fn new(vertices: usize, options: &SampleOptions) -> Result<Self> {
        Self::with_table(vertices, options, TableKind::for_graph(vertices))
    }

    /// As [`new`](Self::new), with a table of choice.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_table(vertices: usize, options: &SampleOptions, table: TableKind) -> Result<Self> {
        check_fanouts(&options.fanouts)?;
        check_times(options)?;
        let labels = Table::new(vertices, options.disjoint, table)?;
        Ok(Self {
            options: options.clone(),
            vertices,
            chooser: Chooser::default(),
            biased: Biased::default(),
            labels,
            neighbors: Vec::new(),
            list: Vec::new(),
            values: Vec::new(),
        })
    }

    /// What is sampled.
    pub fn options(&self) -> &SampleOptions {
        &self.options
    }

    /// Bytes of the tables.
    pub fn resident_bytes(&self) -> u64 {
        let buffers = 4 * self.neighbors.capacity() + 8 * self.list.capacity();
        self.labels.resident_bytes() + buffers as u64
    }

    /// Samples the batch of `seeds` of the epoch of `key` into `batch`, whose memory is used again.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have, or a topology or weights that
    /// are not all in memory (see [`sample_window`](Self::sample_window)); [`ErrorKind::Format`] for damage.
    pub fn sample(
        &mut self,
        topology: &Topology,
        key: EpochKey,
        seeds: Seeds<'_>,
        batch: &mut MiniBatch,
    ) -> Result<()> {
        if !topology.is_resident() || !topology.columns().choose_in_memory() {
            return Err(Error::new(ErrorKind::Input, "sample a batch alone")
                .expected("all neighbours and what they are chosen by in memory")
                .got("pages that must be read"));
        }
        self.begin(topology, seeds, batch)?;
        self.label_nodes(batch)?;
        for hop in 0..self.options.fanouts.len() {
            let frontier = batch.frontier();
            let (nodes, edges) = (batch.n_id.len(), batch.e_id.len());
            for begin in frontier.clone().step_by(BLOCK) {
                let block = begin..frontier.end.min(begin + BLOCK);
                let arcs = self.choose(topology, key, hop, block, batch)?;
                self.resolve(topology, batch, arcs.clone())?;
                self.relabel(batch, arcs)?;
            }
            batch.num_sampled_nodes.push(batch.n_id.len() - nodes);
            batch.num_sampled_edges.push(batch.e_id.len() - edges);
        }
        Ok(())
    }

    /// Starts a batch with its seeds.
    pub(crate) fn begin(
        &self,
        topology: &Topology,
        seeds: Seeds<'_>,
        batch: &mut MiniBatch,
    ) -> Result<()> {
        if let Some(seed) = seeds.vertices.iter().find(|&&seed| seed as usize >= self.vertices) {
            return Err(Error::new(ErrorKind::Input, "sample from seed")
                .object(seed)
                .expected(format!("one of {} vertices", self.vertices)));
        }
        let timed = topology.columns().times.is_some();
        let expected = if timed { seeds.vertices.len() } else { 0 };
        if seeds.times.len() != expected {
            return Err(Error::new(ErrorKind::Input, "sample by time")
                .expected(format!("{expected} times of seeds"))
                .got(seeds.times.len()));
        }
        batch.begin(seeds, self.options.disjoint);
        Ok(())
    }

    /// Enters all nodes of a batch in the table, which forgets those of the batch before.
    pub(crate) fn label_nodes(&mut self, batch: &MiniBatch) -> Result<()> {
        self.labels.enter(batch)
    }

    /// Chooses arcs of the nodes `block`, appends them to the batch and tells where they are.
    pub(crate) fn choose(
        &mut self,
        topology: &Topology,
        key: EpochKey,
        hop: usize,
        block: Range<usize>,
        batch: &mut MiniBatch,
    ) -> Result<Range<usize>> {
        if topology.columns().are_biased() {
            return self.choose_biased(topology, key, hop, block, batch);
        }
        let first_arc = batch.e_id.len();
        let draw = Draw { key, batch: batch.number, hop: hop as u32, most: self.most(hop) };
        let frontier = Frontier { n_id: &batch.n_id, tree: &batch.tree, nodes: block };
        let (e_id, col) = (&mut batch.e_id, &mut batch.col);
        choose_evenly(&mut self.chooser, topology.offsets(), draw, frontier, e_id, col);
        Ok(first_arc..batch.e_id.len())
    }

    /// As [`choose`](Self::choose), by weights and times.
    fn choose_biased(
        &mut self,
        topology: &Topology,
        key: EpochKey,
        hop: usize,
        block: Range<usize>,
        batch: &mut MiniBatch,
    ) -> Result<Range<usize>> {
        let first_arc = batch.e_id.len();
        let (most, columns) = (self.most(hop), topology.columns());
        let weights = columns.weights.as_ref().and_then(Column::resident);
        let times = columns.times.as_ref().and_then(Column::resident);
        for node in block {
            let vertex = batch.n_id[node];
            let tree = batch.tree.get(node).copied().unwrap_or(0);
            let until = batch.seed_time.get(tree as usize).copied();
            let stream = Stream { batch: batch.number, hop: hop as u32, vertex, tree };
            let arcs = topology.offsets().arcs(vertex);
            let places = arcs.start as usize..arcs.end as usize;
            let values = Values {
                weights: weights.map(|all| &all[places.clone()]),
                times: times.map(|all| &all[places]),
                strategy: columns.strategy,
            };
            let choice = Choice { arcs, most, until };
            self.choose_by(&values, (key, stream), choice, &mut batch.e_id)?;
            batch.col.resize(batch.e_id.len(), node as u32);
        }
        Ok(first_arc..batch.e_id.len())
    }

    /// Appends what is taken of one vertex's arcs, whose values are at hand.
    pub(crate) fn choose_by(
        &mut self,
        values: &Values<'_>,
        of: (EpochKey, Stream),
        choice: Choice,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        self.biased.choose(&mut self.chooser, values, of, choice, out)
    }

    /// What was read of the values of the edges of the last window's batches, to choose them.
    pub(crate) fn take_values(&mut self) -> Vec<EdgeValues> {
        std::mem::take(&mut self.values)
    }

    /// The most neighbours of a node that a hop takes.
    pub(crate) fn most(&self, hop: usize) -> u64 {
        self.options.fanouts[hop].most()
    }

    /// Looks up whom the chosen `arcs` lead to, in memory.
    pub(crate) fn resolve(
        &mut self,
        topology: &Topology,
        batch: &MiniBatch,
        arcs: Range<usize>,
    ) -> Result<()> {
        resolve(topology, batch.taken(arcs), &mut self.neighbors, &mut self.list)
    }

    /// Gives the neighbours that were resolved for `arcs` their places in the batch.
    pub(crate) fn relabel(&mut self, batch: &mut MiniBatch, arcs: Range<usize>) -> Result<()> {
        let neighbors = std::mem::take(&mut self.neighbors);
        let relabelled = self.relabel_list(batch, arcs, &neighbors);
        self.neighbors = neighbors;
        relabelled
    }

    /// As [`relabel`](Self::relabel), for neighbours in a list of their own.
    pub(crate) fn relabel_list(
        &mut self,
        batch: &mut MiniBatch,
        arcs: Range<usize>,
        neighbors: &[u32],
    ) -> Result<()> {
        check_places(batch.n_id.len(), neighbors.len())?;
        self.labels.relabel(batch, arcs, neighbors)
    }
}
