//! The options of loaders, which Python passes as JSON.

use serde::Deserialize;
use tiergraph_cache::placement::{Kind, Placement};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, OpenOptions};
use tiergraph_sampler::{Fanout, LoaderOptions, Plan, SampleOptions, Sharing, Strategy, Times};

use crate::batch::handed_over;
use crate::build::options::cores;

/// The options of `tiergraph.NeighborLoader`; those not given have their defaults.
#[derive(Deserialize)]
pub(crate) struct Options {
    pub(crate) memory: Option<u64>,
    pub(crate) io: Option<String>,
    disjoint: bool,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    direction: Option<String>,
    seed: Option<u64>,
    threads: Option<usize>,
    window: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    share_pages: Option<bool>,
    temporal_strategy: Option<String>,
    placement: Option<PlacementName>,
    /// Whether epochs may be given other seeds than the loader's.
    #[serde(default)]
    seeds_vary: bool,
    /// Bytes that the caller holds for the loader, beside seeds and their times.
    #[serde(default)]
    held: u64,
    pub(crate) presample: Option<usize>,
    pub(crate) multiprocessors: Option<u32>,
    /// Options of sampling along each edge type; an ordinary graph has one.
    edges: Vec<EdgeOptions>,
    /// For each node type, the name of the features that batches come with; `None` for no features.
    features: Vec<Option<String>>,
    /// The node types of the seeds, as indices.
    inputs: Vec<usize>,
}

/// Options of sampling along one edge type: fanouts, and the names of the edges' values to use.
#[derive(Deserialize)]
struct EdgeOptions {
    /// The fanout of each hop; -1 for all neighbours.
    fanouts: Vec<i64>,
    weight_attr: Option<String>,
    time_attr: Option<String>,
    features: Option<String>,
    #[serde(default)]
    values: Vec<String>,
}

/// A placement by name, or the share of memory that features get.
#[derive(Deserialize)]
#[serde(untagged)]
enum PlacementName {
    Share(f64),
    Name(String),
}

/// The name, in errors, of what takes `Options::held_bytes`.
pub(crate) const HELD: &str = "the seeds, their times, links and ids";

impl Options {
    /// Bytes of what is held for so many seeds, by the caller and here, while an epoch runs.
    pub(crate) fn held_bytes(&self, seeds: usize, timed: bool) -> u64 {
        // The caller's ids, vertices, and an epoch's; the places of a shuffle; an epoch's own ids.
        let of_seed = 8 + 4 + 4 + 4 * u64::from(self.shuffle) + 12 * u64::from(self.seeds_vary);
        // The caller's times, a copy, and an epoch's.
        let of_times = 3 * 8 * u64::from(timed);
        self.held + seeds as u64 * (of_seed + of_times)
    }

    /// The options that a loader opens its graph with.
    pub(crate) fn open(&self) -> Result<OpenOptions> {
        Ok(OpenOptions {
            memory: self.memory,
            engine: self.io.as_deref().unwrap_or("auto").parse()?,
            // Passes have workers; loaders have threads of their own.
            threads: Some(1),
            ..OpenOptions::default()
        })
    }

    /// Converts the options to those of the sampler's loader and validates them, for a graph with
    /// several types if `typed`. An unknown direction or temporal strategy, or a fanout that is neither
    /// -1 nor a 32-bit count, is an error.
    pub(crate) fn loader(&self, typed: bool) -> Result<LoaderOptions> {
        let sample = self.edges.iter().map(|of| {
            Ok(SampleOptions {
                fanouts: of.fanouts.iter().map(|&k| fanout(k)).collect::<Result<_>>()?,
                disjoint: self.disjoint,
                weights: of.weight_attr.clone(),
                times: self.times(of.time_attr.as_deref())?,
                features: of.features.clone(),
                values: of.values.clone(),
                ..SampleOptions::default()
            })
        });
        let defaults = LoaderOptions::new(SampleOptions::default());
        let threads = self.threads.unwrap_or_else(cores);
        let window = self.window.unwrap_or(defaults.window);
        Ok(LoaderOptions {
            sample: sample.collect::<Result<_>>()?,
            features: self.features.clone(),
            inputs: self.inputs.clone(),
            direction: match self.direction.as_deref() {
                Some("out") => Direction::Out,
                Some("in") | None => Direction::In,
                Some(other) => {
                    return Err(Error::new(ErrorKind::Input, "sample in direction")
                        .object(other)
                        .expected("`in` or `out`"));
                }
            },
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            shuffle: self.shuffle,
            seed: self.seed.unwrap_or(defaults.seed),
            window,
            threads,
            fewer_threads: self.threads.is_none(),
            // Every thread has a window of its own.
            prefetch: self.prefetch.unwrap_or(window.saturating_mul(threads)),
            sharing: match self.share_pages {
                Some(false) => Sharing::Nothing,
                Some(true) | None => Sharing::Pages,
            },
            seeds_vary: self.seeds_vary,
            handed_over: handed_over(self.disjoint, typed),
            ..defaults
        })
    }

    /// Sampling by the times called `name`; `None` without a name.
    fn times(&self, name: Option<&str>) -> Result<Option<Times>> {
        let Some(name) = name.map(str::to_owned) else { return Ok(None) };
        let strategy = match self.temporal_strategy.as_deref() {
            Some("uniform") | None => Strategy::Uniform,
            Some("last") => Strategy::Last,
            Some(other) => {
                return Err(Error::new(ErrorKind::Input, "sample with the temporal strategy")
                    .object(other)
                    .expected("`uniform` or `last`"));
            }
        };
        Ok(Some(Times { name, strategy }))
    }

    pub(crate) fn plan(&self) -> Result<Plan> {
        let placement = match &self.placement {
            None => Placement::default(),
            Some(PlacementName::Share(share)) => Placement::Hybrid(*share),
            Some(PlacementName::Name(name)) => match name.as_str() {
                "unified" => Placement::Unified,
                "topology" => Placement::TOPOLOGY_FIRST,
                "features" => Placement::FEATURES_FIRST,
                "topology/features" => {
                    Placement::First { gpu: Kind::Topology, host: Kind::Features }
                }
                "features/topology" => {
                    Placement::First { gpu: Kind::Features, host: Kind::Topology }
                }
                other => {
                    return Err(Error::new(ErrorKind::Input, "use the placement")
                        .object(other)
                        .expected(
                            "`unified`, `topology`, `features`, `topology/features`, \
                             `features/topology` or a share for features",
                        ));
                }
            },
        };
        Ok(Plan { placement, ..Plan::default() })
    }
}

fn fanout(count: i64) -> Result<Fanout> {
    match (count, u32::try_from(count)) {
        (-1, _) => Ok(Fanout::All),
        (_, Ok(count)) => Ok(Fanout::Most(count)),
        _ => Err(Error::new(ErrorKind::Input, "sample with the fanout")
            .object(count)
            .expected("a count of neighbours, or -1 for all")),
    }
}
