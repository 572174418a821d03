//! The loader: what all epochs share, and how it is set up.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use crate::gathering::edges;
use crate::options::LoaderOptions;
use crate::pipeline::epoch::Epoch;
use crate::pipeline::order::Inputs;
use crate::pipeline::scratch::ScratchPool;
use crate::pipeline::shared::Shared;
use crate::pipeline::types::GraphTypes;
use crate::residency::columns::Columns;
use crate::residency::hotness::Hotness;
use crate::residency::neighbors::{Residency, Residents};
use crate::residency::rows::RowStore;
use crate::residency::sizes::Sizes;
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;

/// A loader that prepares batches of one graph, with one type or several, epoch after epoch.
///
/// ```
/// use std::sync::Arc;
/// use tiergraph_graph::{Graph, OpenOptions};
/// use tiergraph_sampler::{Fanout, Residency, Loader, LoaderOptions, SampleOptions};
/// # use tiergraph_core::{Cancel, Silent};
/// # use tiergraph_ingest::build::{BuildOptions, Purpose, build};
/// # use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
/// # use tiergraph_ingest::{EdgeBatch, Endpoints};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("six.tg");
/// # let ends = Endpoints::U64 { src: vec![0, 0, 1, 3, 3], dst: vec![1, 2, 2, 4, 5] };
/// # let spec = MemorySpec { name: "six vertices".into(), ..MemorySpec::default() };
/// # let batch = EdgeBatch { ends, weights: None };
/// # let options = BuildOptions { purpose: Purpose::Training, ..BuildOptions::default() };
/// # let mut source = ArraySource::new(spec, vec![batch])?;
/// # build(&mut source, &path, &options, &Silent, &Cancel::default())?;
/// let graph = Arc::new(Graph::open(&path, &OpenOptions::default())?);
/// let fanouts = vec![Fanout::Most(25), Fanout::Most(10)];
/// let sample = SampleOptions { fanouts, ..SampleOptions::default() };
/// let options = LoaderOptions { batch_size: 2, ..LoaderOptions::new(sample) };
/// let loader = Loader::new(graph, options, &Residency::Decoded, [])?;
/// for prepared in loader.epoch(0, &[0, 1, 2, 3, 4, 5], 0)? {
///     let batch = prepared?.batch;
///     assert_eq!(batch.batch_size(), 2);
///     let (nodes, edges) = (&batch.nodes[0], &batch.edges[0]);
///     assert!(edges.row.iter().all(|&node| (node as usize) < nodes.n_id.len()));
/// }
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Loader(pub(crate) Arc<Shared>);

impl Loader {
    /// A loader of a graph with one type, which keeps the neighbours that `keep` names and the feature
    /// rows `rows` in memory.
    ///
    /// # Errors
    /// As [`of_types`](Self::of_types).
    pub fn new(
        graph: Arc<Graph>,
        options: LoaderOptions,
        keep: &Residency,
        rows: impl IntoIterator<Item = u32>,
    ) -> Result<Self> {
        Self::of_types(graph, options, Residents::of_one(keep.clone(), rows))
    }

    /// A loader of a graph with any types, which keeps `residents` in memory.
    ///
    /// # Errors
    /// Options that make no batches of this graph, features that it does not have, residents that do not
    /// fit its memory, and errors of reading.
    pub fn of_types(
        types: impl Into<GraphTypes>,
        options: LoaderOptions,
        residents: Residents,
    ) -> Result<Self> {
        let types = types.into();
        options.check(types.nodes.len(), types.edges.len())?;
        let direction = options.direction;
        let (features, edge_features) = (types.features(&options)?, types.edge_features(&options)?);
        let (mut topologies, mut edge_rows, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (edge_type, (graph, keep)) in types.edges.iter().zip(&residents.neighbors).enumerate() {
            let sample = &options.sample[edge_type];
            let columns = Columns::load(graph, direction, sample, sample.resident)?;
            let features = sample.features.as_ref().zip(edge_features[edge_type]);
            edge_rows.push(match features {
                Some((name, features)) => {
                    edges::check(name, features, &columns)?;
                    Some(RowStore::load(graph, features, [])?)
                }
                None => None,
            });
            topologies.push(types.topology(edge_type, direction, keep)?.with_columns(columns));
        }
        for ((graph, features), kept) in types.nodes.iter().zip(features).zip(residents.rows) {
            let load = |features| RowStore::load(graph, features, kept);
            rows.push(features.map(load).transpose()?);
        }
        let scratch = ScratchPool::default();
        let sizes = Sizes::of(&types, topologies.iter().map(Topology::columns), &options)?;
        let shared = Shared { types, topologies, rows, edge_rows, options, sizes, scratch };
        let threads = shared.options.threads;
        shared.scratch.fill(shared.any(), threads, || shared.new_scratch())?;
        Ok(Self(Arc::new(shared)))
    }

    /// The loader's options.
    pub fn options(&self) -> &LoaderOptions {
        &self.0.options
    }

    /// The neighbours that batches are sampled from, by edge type.
    pub fn topologies(&self) -> &[Topology] {
        &self.0.topologies
    }

    /// Begins epoch `epoch` over `seeds` (nodes of the input type), at batch `first`: 0, or the batch at
    /// which a run is resumed.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tiergraph_core::ErrorKind::Input) for a seed that the graph does not have,
    /// or too many, and for bounds of batches that do not cut the seeds or belong to a loader that
    /// shuffles; threads that the system refuses.
    pub fn epoch<'a>(
        &self,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        first: usize,
    ) -> Result<Epoch> {
        let order = self.0.order(epoch, seeds.into())?;
        Epoch::start(Arc::clone(&self.0), epoch, order, first)
    }

    /// Counts the pages and rows that the first `batches` of an epoch want, without reading features.
    ///
    /// # Errors
    /// Those of [`Loader::epoch`], and errors of reading.
    pub fn presample<'a>(
        &self,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        batches: usize,
    ) -> Result<Hotness> {
        let (mut hotness, _held) = self.no_counts()?;
        self.for_each_window(epoch, seeds.into(), batches, |window| {
            hotness.record(self.topologies(), window);
        })?;
        Ok(hotness)
    }

    /// Empty counts of what batches want, with the reservation of their memory.
    pub(crate) fn no_counts(&self) -> Result<(Hotness, Reservation)> {
        let (types, topologies) = (&self.0.types, self.topologies());
        let nodes = types.vertices();
        let pages = topologies.iter().map(|topology| topology.map().pages()).sum();
        let bytes = Hotness::bytes_of(pages, nodes.iter().sum::<usize>() as u64);
        let held = self.0.any().memory().reserve(bytes, "the counts of what batches want")?;
        Ok((Hotness::new(topologies, &types.ends, &nodes), held))
    }

    /// Samples the first `batches` of an epoch and calls `visit` with each window of them.
    pub(crate) fn for_each_window(
        &self,
        epoch: u64,
        seeds: Inputs<'_>,
        batches: usize,
        mut visit: impl FnMut(&[MiniBatch]),
    ) -> Result<()> {
        let shared = &*self.0;
        let order = shared.order(epoch, seeds)?;
        let count = order.batches().min(batches);
        let window = shared.options.window;
        let mut scratch = shared.take_scratch()?;
        let mut batches = Vec::new();
        let visited = (0..count).step_by(window).try_for_each(|begin| {
            shared.any().cancel().check("count what batches want")?;
            let window = begin..count.min(begin + window);
            shared.sample(&mut scratch, epoch, &order, window, &mut batches)?;
            visit(&batches);
            Ok(())
        });
        shared.scratch.give(scratch);
        visited
    }
}
