//! Options of sampling and of loaders.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::Direction;

use crate::gathering::matrix::Delivery;
use crate::sampling::philox::MAX_DRAWS;
use crate::sampling::weighted::Strategy;

/// The number of neighbours that a hop takes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fanout {
    /// All neighbours.
    All,
    /// At most so many neighbours, without replacement.
    Most(u32),
}

impl Fanout {
    /// The most neighbours that are taken of a node.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::Most(k) => k.into(),
        }
    }
}

/// Options of sampling along one edge type, and the values of its edges that batches come with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleOptions {
    /// The fanout of each hop, nearest hop first.
    pub fanouts: Vec<Fanout>,
    /// Whether each seed gets nodes of its own, shared with no other seed.
    pub disjoint: bool,
    /// The name of the weights by which neighbours are taken; `None` to take them evenly.
    pub weights: Option<String>,
    /// Sampling by time, none later than the seed's; only for disjoint batches.
    pub times: Option<Times>,
    /// The name of the edge features that batches come with; `None` for none.
    pub features: Option<String>,
    /// The names of the columns of values that batches come with, beside what they are sampled by.
    pub values: Vec<String>,
    /// The values of these edges that stay in memory; the others are read.
    pub resident: Resident,
}

/// Options of sampling by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The name of the column of times.
    pub name: String,
    /// The rule by which edges are taken of those that are not too late.
    pub strategy: Strategy,
}

/// A choice of columns that stay in memory; the others are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Weights: 4 bytes an arc.
    pub weights: bool,
    /// Times: 8 bytes an arc.
    pub times: bool,
    /// Edges' numbers: 4 bytes an arc, 8 where there are 2³² edges.
    pub numbers: bool,
    /// Values that batches come with and are not sampled by: 4 or 8 bytes an arc each.
    pub values: bool,
}

impl Default for Resident {
    fn default() -> Self {
        Self::ALL
    }
}

impl Resident {
    /// All columns in memory.
    pub const ALL: Self = Self { weights: true, times: true, numbers: true, values: true };
    /// No column in memory.
    pub const NONE: Self = Self { weights: false, times: false, numbers: false, values: false };
}

/// Whether feature rows on one page share its read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// A page is read once for all rows of a window that are on it.
    #[default]
    Pages,
    /// Every row is read for itself, as other systems do: to measure what sharing is worth.
    Nothing,
}

/// Options of a loader.
#[derive(Debug, Clone, PartialEq)]
pub struct LoaderOptions {
    /// Options of sampling along each edge type, all with as many hops.
    pub sample: Vec<SampleOptions>,
    /// The name of the features that batches come with, for each node type; `None` for none.
    pub features: Vec<Option<String>>,
    /// The node types of the seeds, as indices. Seeds of several types are numbered through: the nodes
    /// of the first type, then those of the next.
    pub inputs: Vec<usize>,
    /// The direction of sampling: `In` for messages along edges, as PyG samples.
    pub direction: Direction,
    /// The number of seeds in a batch; the last one may have fewer.
    pub batch_size: usize,
    /// Whether a last batch with fewer seeds is left out.
    pub drop_last: bool,
    /// Whether each epoch shuffles its seeds.
    pub shuffle: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// W: the number of batches that are prepared together and share reads.
    pub window: usize,
    /// The number of threads that prepare windows.
    pub threads: usize,
    /// Whether fewer threads do, where the memory does not hold what so many take.
    pub fewer_threads: bool,
    /// The number of batches that may be begun beyond a window, and not yet taken.
    pub prefetch: usize,
    /// Whether rows on one page share its read.
    pub sharing: Sharing,
    /// The type in which the vertices' features are delivered.
    pub delivery: Delivery,
    /// Bytes of pages that a thread keeps from hop to hop of a window: of neighbours, and as many
    /// of values of edges.
    pub retain_bytes: usize,
    /// Whether epochs may have other seeds than those that the loader is made with.
    pub seeds_vary: bool,
    /// Bytes of the arrays that the caller makes of a batch.
    pub handed_over: HandedOver,
    /// Bytes that are reserved for each thread beside its tables.
    pub per_thread: PerThread,
}

/// Bytes of the arrays that a caller makes of a batch, which count in memory plans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Bytes for each node.
    pub node_bytes: u64,
    /// Bytes for each edge.
    pub edge_bytes: u64,
}

/// Memory that a thread will need when the largest batch comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerThread {
    /// Bytes that its table and lists grow by.
    pub growth_bytes: u64,
    /// Bytes of a window's batches until these have memory of their own.
    pub scratch_bytes: u64,
}

impl LoaderOptions {
    /// Bytes of pages that a thread keeps by default.
    pub(crate) const RETAIN_BYTES: usize = 16 << 20;

    /// The options of batches of 1,024 seeds of a graph with one type, in windows of four, prepared by
    /// two threads, without features.
    pub fn new(sample: SampleOptions) -> Self {
        Self {
            sample: vec![sample],
            features: vec![None],
            inputs: vec![0],
            direction: Direction::In,
            batch_size: 1024,
            drop_last: false,
            shuffle: true,
            seed: 0,
            window: 4,
            threads: 2,
            fewer_threads: false,
            prefetch: 6,
            sharing: Sharing::default(),
            delivery: Delivery::default(),
            retain_bytes: Self::RETAIN_BYTES,
            seeds_vary: false,
            handed_over: HandedOver::default(),
            per_thread: PerThread::default(),
        }
    }

    /// The number of threads that do, where the memory does not hold what more take.
    pub(crate) fn least_threads(&self) -> usize {
        if self.fewer_threads { 1 } else { self.threads }
    }

    /// The number of threads, or as many as `room` has `each` bytes for, if these do.
    pub(crate) fn threads_within(&self, each: u64, room: u64) -> usize {
        self.threads.min((room / each.max(1)) as usize).max(self.least_threads())
    }

    /// The number of hops.
    pub fn hops(&self) -> usize {
        self.sample.first().map_or(0, |sample| sample.fanouts.len())
    }

    /// Whether each seed gets nodes of its own.
    pub fn disjoint(&self) -> bool {
        self.sample.first().is_some_and(|sample| sample.disjoint)
    }

    /// Whether any edge type is sampled by time.
    pub(crate) fn timed(&self) -> bool {
        self.sample.iter().any(|sample| sample.times.is_some())
    }

    /// Refuses options that make no batches of a graph with so many node types and edge types.
    pub(crate) fn check(&self, node_types: usize, edge_types: usize) -> Result<()> {
        let counts =
            [("batch_size", self.batch_size), ("window", self.window), ("threads", self.threads)];
        for (name, count) in counts {
            if count == 0 || u32::try_from(count).is_err() {
                return Err(Error::new(ErrorKind::Input, "load batches with")
                    .object(name)
                    .expected("1 or more, below 2^32")
                    .got(count));
            }
        }
        self.sample.iter().try_for_each(|sample| check_fanouts(&sample.fanouts))?;
        let error = || Error::new(ErrorKind::Input, "sample with the fanouts");
        if self.sample.len() != edge_types {
            return Err(error()
                .expected(format!("those of {edge_types} edge types"))
                .got(self.sample.len()));
        }
        if let Some(other) = self.sample.iter().find(|of| of.fanouts.len() != self.hops()) {
            return Err(error()
                .expected(format!("{} hops for every edge type", self.hops()))
                .got(other.fanouts.len()));
        }
        if self.sample.iter().any(|sample| sample.disjoint != self.disjoint()) {
            return Err(Error::new(ErrorKind::Input, "sample disjoint batches")
                .expected("all edge types or none to be disjoint"));
        }
        let unknown = self.inputs.iter().any(|&input| input >= node_types);
        if self.features.len() != node_types || self.inputs.is_empty() || unknown {
            return Err(Error::new(ErrorKind::Input, "sample nodes of the types")
                .object(format!("{:?}", self.inputs))
                .expected(format!("one of {node_types} types, and whose features for each")));
        }
        Ok(())
    }
}

/// The most hops: a hop's number has eight bits in a counter.
const MAX_HOPS: usize = 255;

pub(crate) fn check_fanouts(fanouts: &[Fanout]) -> Result<()> {
    let too_large = |fanout: &&Fanout| matches!(fanout, Fanout::Most(k) if *k > MAX_DRAWS);
    let error = || Error::new(ErrorKind::Input, "sample with the fanouts");
    if fanouts.len() > MAX_HOPS {
        return Err(error().expected(format!("at most {MAX_HOPS} hops")).got(fanouts.len()));
    }
    match fanouts.iter().find(too_large) {
        Some(fanout) => Err(error()
            .expected(format!("at most {MAX_DRAWS} neighbours"))
            .got(format!("{fanout:?}"))),
        None => Ok(()),
    }
}

pub(crate) fn check_times(options: &SampleOptions) -> Result<()> {
    let Some(times) = &options.times else { return Ok(()) };
    let error = || Error::new(ErrorKind::Input, "sample by the times").object(&times.name);
    if !options.disjoint {
        return Err(error().expected("disjoint batches: each seed has a time of its own"));
    }
    if times.strategy == Strategy::Last && options.weights.is_some() {
        return Err(error().expected("the strategy `uniform`, for weights").got("`last`"));
    }
    Ok(())
}
