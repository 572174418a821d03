//! What all epochs and workers of a loader of several types share.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_graph::{Features, Graph, HeteroGraph};

use super::batch::HeteroBatch;
use super::options::HeteroOptions;
use super::sampler::HeteroSampler;
use crate::pipeline::scratch::{Chest, Tools};
use crate::pipeline::shared::{Inputs, SeedOrder};
use crate::residency::rows::RowStore;
use crate::residency::topology::Topology;
use crate::sampling::batch::Seeds;
use crate::sampling::philox::EpochKey;
use crate::sampling::window::SampleReads;

/// What workers share.
pub struct HeteroShared {
    pub(crate) graph: Arc<HeteroGraph>,
    /// Of each edge type.
    pub(crate) topologies: Vec<Topology>,
    /// Of each node type whose features batches come with.
    pub(crate) rows: Vec<Option<RowStore>>,
    pub(crate) options: HeteroOptions,
    pub(crate) tools: Chest<HeteroSampler>,
}

impl std::fmt::Debug for HeteroShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeteroLoader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl HeteroShared {
    /// The graph whose budget, engines and cancellation all types share.
    pub(crate) fn any(&self) -> &Graph {
        self.graph.any()
    }

    /// The features of a node type that batches come with.
    pub(crate) fn features(&self, node_type: usize) -> Result<Option<(&Features, &RowStore)>> {
        match (&self.options.features[node_type], &self.rows[node_type]) {
            (Some(name), Some(rows)) => {
                Ok(Some((self.graph.nodes()[node_type].features(name)?, rows)))
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn order(&self, epoch: u64, inputs: Inputs<'_>) -> Result<SeedOrder> {
        let vertices = self.graph.nodes()[self.options.input].vertices();
        SeedOrder::new(&self.options.batches, vertices, epoch, inputs)
    }

    /// Samples the batches `window` into as many of `batches`.
    pub(crate) fn sample(
        &self,
        tools: &mut Tools<HeteroSampler>,
        epoch: u64,
        order: &SeedOrder,
        window: Range<usize>,
        batches: &mut Vec<HeteroBatch>,
    ) -> Result<SampleReads> {
        let options = &self.options.batches;
        let key = |edge_type| EpochKey::of_edge_type(options.seed, epoch, edge_type);
        let keys: Vec<EpochKey> = (0..self.topologies.len() as u32).map(key).collect();
        let seeds = |number: usize| Seeds {
            number: order.number(number),
            vertices: &order.seeds[order.range(number)],
            times: &[],
        };
        let seeds: Vec<Seeds<'_>> = window.map(seeds).collect();
        batches.resize_with(seeds.len(), HeteroBatch::default);
        let Tools { sampler, reader, .. } = tools;
        let topologies = &self.topologies;
        let retain_bytes = options.retain_bytes;
        let reads =
            sampler.sample_window(topologies, reader, &keys, &seeds, batches, retain_bytes)?;
        self.reserve_growth(tools)?;
        Ok(reads)
    }

    pub(crate) fn are_resident(&self) -> bool {
        self.topologies.iter().all(Topology::is_resident)
    }

    /// A worker's tools: used ones, or new.
    pub(crate) fn take_tools(&self) -> Result<Tools<HeteroSampler>> {
        self.tools.take().map_or_else(|| self.new_tools(), Ok)
    }

    pub(crate) fn new_tools(&self) -> Result<Tools<HeteroSampler>> {
        let vertices: Vec<usize> = self.graph.nodes().iter().map(|g| g.vertices()).collect();
        let HeteroOptions { fanouts, input, .. } = &self.options;
        let sampler = HeteroSampler::new(&vertices, self.graph.ends(), fanouts, *input)?;
        let mut tools = Tools::new(sampler, self.any().page_reader()?);
        self.reserve_growth(&mut tools)?;
        Ok(tools)
    }

    fn reserve_growth(&self, tools: &mut Tools<HeteroSampler>) -> Result<()> {
        let retained =
            if self.are_resident() { 0 } else { self.options.batches.retain_bytes as u64 };
        let tables = tools.sampler.resident_bytes();
        tools.reserve_growth(self.any(), tables, retained)
    }
}
