//! Generators of synthetic graphs by name, with parameters as a JSON object.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::features::FeatureType;
use tiergraph_ingest::EdgeSource;
use tiergraph_ingest::features::{Attachments, ClassModel, Classes};
use tiergraph_ingest::generate::{
    BlockModel, Generated, GeneratorOptions, Model, Rmat, Uniform, WeightRange,
};

const EDGE_FACTOR: u64 = 16;
const SEED: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RmatParameters {
    scale: u32,
    edge_factor: Option<u64>,
    seed: Option<u64>,
    weights: Option<Weights>,
    features: Option<usize>,
    classes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UniformParameters {
    vertices: u64,
    edges: u64,
    seed: Option<u64>,
    weights: Option<Weights>,
    features: Option<usize>,
    classes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockParameters {
    vertices: u64,
    communities: u64,
    mean_degree: f64,
    inside: f64,
    seed: Option<u64>,
    weights: Option<Weights>,
    features: Option<usize>,
    classes: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Weights {
    Unit,
    Byte,
}

/// The source of the edges of a generated graph: `kind` is `rmat`, `uniform` or `sbm`.
pub(crate) fn source(kind: &str, parameters: &str, threads: usize) -> Result<Box<dyn EdgeSource>> {
    match kind {
        "rmat" => {
            let p: RmatParameters = read(kind, parameters)?;
            let (factor, seed) = (p.edge_factor.unwrap_or(EDGE_FACTOR), p.seed.unwrap_or(SEED));
            let model = Rmat::new(p.scale, factor, Rmat::GRAPH500, seed)?;
            Ok(stream(model, seed, p.weights, threads))
        }
        "uniform" => {
            let p: UniformParameters = read(kind, parameters)?;
            let seed = p.seed.unwrap_or(SEED);
            Ok(stream(Uniform::new(p.vertices, p.edges, seed)?, seed, p.weights, threads))
        }
        "sbm" => {
            let p: BlockParameters = read(kind, parameters)?;
            let seed = p.seed.unwrap_or(SEED);
            let model = BlockModel::new(p.vertices, p.communities, p.mean_degree, p.inside, seed)?;
            Ok(stream(model, seed, p.weights, threads))
        }
        _ => Err(Error::new(ErrorKind::Input, "generate a graph of kind")
            .object(kind)
            .expected("`rmat`, `uniform` or `sbm`")),
    }
}

/// The features and labels of the generated graph whose edges [`source`] makes of the same `parameters`.
pub(crate) fn attachments(
    kind: &str,
    parameters: &str,
    dtype: FeatureType,
    threads: usize,
) -> Result<Attachments> {
    let random = |classes: Option<u64>| classes.map_or(Classes::None, Classes::Random);
    let (vertices, dim, classes, seed) = match kind {
        "rmat" => {
            let p: RmatParameters = read(kind, parameters)?;
            (1 << p.scale, p.features, random(p.classes), p.seed)
        }
        "uniform" => {
            let p: UniformParameters = read(kind, parameters)?;
            (p.vertices, p.features, random(p.classes), p.seed)
        }
        _ => {
            let p: BlockParameters = read(kind, parameters)?;
            let communities = p.communities;
            let of = |classes| Classes::Communities { communities, classes };
            // Features without classes that they tell apart would be of no use.
            let classes = p.classes.or(p.features.map(|_| communities));
            (p.vertices, p.features, classes.map_or(Classes::None, of), p.seed)
        }
    };
    if dim.is_none() && classes == Classes::None {
        return Ok(Attachments::default());
    }
    let model = ClassModel::new(vertices, dim.unwrap_or(0), classes, seed.unwrap_or(SEED))?;
    model.attachments(dtype, threads)
}

fn read<T: DeserializeOwned>(kind: &str, parameters: &str) -> Result<T> {
    serde_json::from_str(parameters)
        .map_err(|e| Error::new(ErrorKind::Input, "generate a graph of kind").object(kind).got(e))
}

fn stream<M: Model + 'static>(
    model: M,
    seed: u64,
    weights: Option<Weights>,
    threads: usize,
) -> Box<dyn EdgeSource> {
    let defaults = GeneratorOptions::default();
    let weights = weights.map(|weights| match weights {
        Weights::Unit => WeightRange::Unit,
        Weights::Byte => WeightRange::Byte,
    });
    Box::new(Generated::new(model, seed, GeneratorOptions { weights, threads, ..defaults }))
}
