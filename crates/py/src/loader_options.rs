//! The options of loaders, as Python gives them.

use serde::Deserialize;
use tiergraph_cache::placement::Placement;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::hetero::HeteroManifest;
use tiergraph_graph::{Direction, OpenOptions};
use tiergraph_sampler::{
    Fanout, LoaderOptions, Plan, Resident, SampleOptions, Sharing, Strategy, Times, TypedOptions,
};

use crate::batch::{handed_over, typed_handed_over};
use crate::build::options::cores;

/// The options of `tiergraph.NeighborLoader`; what is not given has its default.
#[derive(Deserialize)]
pub(crate) struct Options {
    pub(crate) memory: Option<u64>,
    pub(crate) io: Option<String>,
    num_neighbors: Vec<i64>,
    disjoint: bool,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    direction: Option<String>,
    seed: Option<u64>,
    threads: Option<usize>,
    window: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    features: Option<String>,
    share_pages: Option<bool>,
    edge_features: Option<String>,
    weight_attr: Option<String>,
    time_attr: Option<String>,
    temporal_strategy: Option<String>,
    placement: Option<PlacementName>,
    /// Whether epochs may have other seeds than the first.
    #[serde(default)]
    seeds_vary: bool,
    pub(crate) presample: Option<usize>,
    pub(crate) multiprocessors: Option<u32>,
    /// What loaders of heterogeneous graphs are told beside.
    typed: Option<Typed>,
}

/// What loaders of heterogeneous graphs are told beside the options of others.
#[derive(Deserialize)]
struct Typed {
    /// Of each edge type, one a hop.
    fanouts: Vec<Vec<i64>>,
    /// Of each node type.
    node_features: Vec<Option<String>>,
    /// Of each edge type, which of its columns and features are used.
    edges: Vec<TypedEdges>,
    /// The node types of the seeds.
    inputs: Vec<String>,
}

/// Which values of an edge type's edges are used, by name.
#[derive(Deserialize)]
struct TypedEdges {
    weight_attr: Option<String>,
    time_attr: Option<String>,
    features: Option<String>,
}

/// A placement by name, or the share of memory that features get.
#[derive(Deserialize)]
#[serde(untagged)]
enum PlacementName {
    Share(f64),
    Name(String),
}

impl Options {
    /// How a loader opens its graph.
    pub(crate) fn open(&self) -> Result<OpenOptions> {
        Ok(OpenOptions {
            memory: self.memory,
            engine: self.io.as_deref().unwrap_or("auto").parse()?,
            // Passes have workers; loaders have threads of their own.
            threads: Some(1),
            ..OpenOptions::default()
        })
    }

    pub(crate) fn loader(&self) -> Result<LoaderOptions> {
        let fanouts = self.num_neighbors.iter().map(|&k| fanout(k)).collect::<Result<_>>()?;
        let sample = SampleOptions {
            fanouts,
            disjoint: self.disjoint,
            weights: self.weight_attr.clone(),
            times: self.times(self.time_attr.as_deref())?,
        };
        let defaults = LoaderOptions::new(sample);
        let threads = self.threads.unwrap_or_else(cores);
        let window = self.window.unwrap_or(defaults.window);
        Ok(LoaderOptions {
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
            // Every thread has a window of its own.
            prefetch: self.prefetch.unwrap_or(window.saturating_mul(threads)),
            features: self.features.clone(),
            sharing: match self.share_pages {
                Some(false) => Sharing::Nothing,
                Some(true) | None => Sharing::Pages,
            },
            edge_features: self.edge_features.clone(),
            seeds_vary: self.seeds_vary,
            handed_over: handed_over(self.disjoint),
            ..defaults
        })
    }

    /// As [`loader`](Self::loader), for the types of a heterogeneous graph if it is one.
    pub(crate) fn of_types(&self, types: Option<&HeteroManifest>) -> Result<TypedOptions> {
        let batches = self.loader()?;
        let (Some(typed), Some(types)) = (&self.typed, types) else { return Ok(batches.into()) };
        let fanouts = typed.fanouts.iter().map(|hops| hops.iter().map(|&k| fanout(k)).collect());
        let fanouts: Vec<Vec<Fanout>> = fanouts.collect::<Result<_>>()?;
        let sample = fanouts.into_iter().zip(&typed.edges).map(|(fanouts, of)| {
            let (disjoint, weights) = (self.disjoint, of.weight_attr.clone());
            let times = self.times(of.time_attr.as_deref())?;
            Ok(SampleOptions { fanouts, disjoint, weights, times })
        });
        let inputs = typed.inputs.iter().map(|name| {
            types.node_type(name).ok_or_else(|| {
                let names: Vec<&str> = types.node_types.iter().map(|t| t.name.as_str()).collect();
                Error::new(ErrorKind::Input, "sample nodes of the type")
                    .object(name)
                    .expected(format!("one of {}", names.join(", ")))
            })
        });
        Ok(TypedOptions {
            sample: sample.collect::<Result<_>>()?,
            resident: vec![Resident::ALL; typed.edges.len()],
            features: typed.node_features.clone(),
            edge_features: typed.edges.iter().map(|of| of.features.clone()).collect(),
            inputs: inputs.collect::<Result<_>>()?,
            batches: LoaderOptions { handed_over: typed_handed_over(self.disjoint), ..batches },
        })
    }

    /// Sampling by the times `name`, where there are such.
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
                "topology" => Placement::TopologyFirst,
                "features" => Placement::FeaturesFirst,
                other => {
                    return Err(Error::new(ErrorKind::Input, "use the placement")
                        .object(other)
                        .expected("`unified`, `topology`, `features` or a share for features"));
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
