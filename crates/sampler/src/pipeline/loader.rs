//! The loader: what all epochs share, and how it is set up.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_graph::Graph;

use crate::gathering::edges;
use crate::options::LoaderOptions;
use crate::pipeline::cut::Rank;
use crate::pipeline::epoch::Epoch;
use crate::pipeline::scratch::Chest;
use crate::pipeline::shared::{Inputs, Shared};
use crate::residency::columns::Columns;
use crate::residency::hotness::{Hotness, Kept};
use crate::residency::neighbors::Keep;
use crate::residency::rows::RowStore;
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;

/// Prepares batches of one graph, epoch after epoch.
///
/// ```
/// use std::sync::Arc;
/// use tiergraph_graph::{Graph, OpenOptions};
/// use tiergraph_sampler::{Fanout, Keep, Loader, LoaderOptions, SampleOptions};
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
/// let loader = Loader::new(graph, options, &Keep::Decoded, [])?;
/// for prepared in loader.epoch(0, &[0, 1, 2, 3, 4, 5], 0)? {
///     let batch = prepared?.batch;
///     assert_eq!(batch.batch_size(), 2);
///     assert!(batch.row.iter().all(|&node| (node as usize) < batch.n_id.len()));
/// }
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Loader(pub(crate) Arc<Shared>);

impl Loader {
    /// A loader with these neighbours in memory, and these vertices' rows of features.
    ///
    /// # Errors
    /// Options that make no batches, features that the graph does not have, what does not fit the
    /// graph's memory, and what reading gives.
    pub fn new(
        graph: Arc<Graph>,
        options: LoaderOptions,
        keep: &Keep,
        rows: impl IntoIterator<Item = u32>,
    ) -> Result<Self> {
        options.check()?;
        let columns = Columns::load(&graph, options.direction, &options.sample, options.resident)?;
        let edge_rows = match &options.edge_features {
            Some(name) => {
                edges::check(&graph, name, &columns)?;
                Some(RowStore::load(&graph, graph.edge_features(name)?, [])?)
            }
            None => None,
        };
        let topology = Topology::open(&graph, options.direction, keep)?.with_columns(columns);
        let store = match &options.features {
            Some(name) => Some(RowStore::load(&graph, graph.features(name)?, rows)?),
            None => None,
        };
        let tools = Chest::default();
        let shared = Shared { graph, topology, rows: store, edge_rows, options, tools };
        shared.tools.fill(&shared.graph, shared.options.threads, || shared.new_tools())?;
        Ok(Self(Arc::new(shared)))
    }

    /// The options.
    pub fn options(&self) -> &LoaderOptions {
        &self.0.options
    }

    /// The neighbours.
    pub fn topology(&self) -> &Topology {
        &self.0.topology
    }

    /// Begins epoch `epoch` over `seeds` (the graph's vertices), from batch `first` on: 0, or where
    /// a run that is resumed was.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a seed that the graph does not have, or too many; what the system
    /// refuses threads for.
    pub fn epoch<'a>(
        &self,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        first: usize,
    ) -> Result<Epoch> {
        let order = self.0.order(epoch, seeds.into())?;
        Epoch::start(Arc::clone(&self.0), epoch, order, first)
    }

    /// As [`epoch`](Self::epoch), with batches of any sizes: batch i of the rank has the seeds from
    /// `bounds[i]` to `bounds[i + 1]`.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch); bounds that do not cut the seeds, a loader that shuffles.
    pub fn epoch_of(
        &self,
        epoch: u64,
        seeds: &[u32],
        bounds: Vec<usize>,
        rank: Rank,
        first: usize,
    ) -> Result<Epoch> {
        Epoch::start(Arc::clone(&self.0), epoch, self.0.order_of(seeds, bounds, rank)?, first)
    }

    /// Counts what the batches of an epoch want, without their features: `batches` of them, or all.
    ///
    /// # Errors
    /// As [`Loader::epoch`], and what reading gives.
    pub fn presample<'a>(
        &self,
        epoch: u64,
        seeds: impl Into<Inputs<'a>>,
        batches: usize,
    ) -> Result<Hotness> {
        let graph = &self.0.graph;
        let counts = Hotness::bytes_of(self.0.topology.map().pages(), graph.manifest().vertices);
        let _held = graph.reserve(counts, "the counts of what batches want")?;
        let mut hotness = Hotness::new(&self.0.topology);
        self.for_each_window(epoch, seeds.into(), batches, |window| {
            hotness.record(&self.0.topology, window);
        })?;
        Ok(hotness)
    }

    /// Samples the first `batches` of an epoch and shows them, a window at a time.
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
        let mut tools = shared.take_tools()?;
        let mut batches = Vec::new();
        let visited = (0..count).step_by(shared.options.window).try_for_each(|begin| {
            shared.graph.cancel().check("count what batches want")?;
            let window = begin..count.min(begin + shared.options.window);
            shared.sample(&mut tools, epoch, &order, window, &mut batches)?;
            visit(&batches);
            Ok(())
        });
        shared.tools.give(tools);
        visited
    }

    /// The same loader with other things in memory.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn with_kept(self, kept: Kept) -> Result<Self> {
        let (graph, options) = (Arc::clone(&self.0.graph), self.0.options.clone());
        // What was kept goes before what shall be kept comes.
        drop(self);
        Self::new(graph, options, &Keep::Pages(kept.pages), kept.vertices)
    }
}
