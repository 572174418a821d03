//! Algorithms by name: one entry each, from which `Graph.run`, the methods of Python and the command line follow.
//!
//! An entry has what is the same for all callers: a name, options as JSON with defaults, one column of values. What
//! Python adds is a docstring, and the command line what its options' help says.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tiergraph_core::{Draws, Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;

use crate::gpu::{self, Gpu, OnGpu};
use crate::{
    Communities, InCommon, Method, Objective, RunReport, Weighed, betweenness, clustering,
    coloring, communities, core_numbers, harmonic, independent_set, k_core, label_propagation,
    mutual, scc, triangles,
};

/// One value a vertex, in the user's order.
#[derive(Debug)]
pub enum Column {
    /// Vertices, as positions in the user's order: they are known by their ids.
    Vertices(Vec<u32>),
    /// Counts and numbers of classes.
    U32(Vec<u32>),
    /// Large counts.
    U64(Vec<u64>),
    /// Real numbers.
    F64(Vec<f64>),
}

/// The outcome of an algorithm.
#[derive(Debug)]
pub struct Outcome {
    /// A value for every vertex.
    pub column: Column,
    /// What was found of the whole graph, by the names that reports use.
    pub found: Map<String, Value>,
    /// The report of the run.
    pub report: RunReport,
}

/// An algorithm: what callers name it by, and what runs it.
struct Algorithm {
    name: &'static str,
    run: fn(On<'_>, &str) -> Result<Outcome>,
}

/// What an algorithm runs on: on the GPU, if there is one and the algorithm can.
#[derive(Clone, Copy)]
struct On<'a> {
    graph: &'a Graph,
    gpu: Option<&'a Gpu>,
    progress: &'a dyn Progress,
}

impl On<'_> {
    /// Runs `by_gpu` if there is a GPU; if there is none, or it says why not, `by_cpu`, with that reason.
    fn either<T>(
        self,
        by_gpu: impl Fn(&Graph, &Gpu, &dyn Progress) -> Result<OnGpu<T>>,
        by_cpu: impl Fn(&Graph, &dyn Progress) -> Result<T>,
    ) -> Result<(T, Option<String>)> {
        let why = match self.gpu {
            None => None,
            Some(gpu) => match by_gpu(self.graph, gpu, self.progress)? {
                Ok(found) => return Ok((found, None)),
                Err(why) => Some(format!("{why}: it ran on the CPU")),
            },
        };
        Ok((by_cpu(self.graph, self.progress)?, why))
    }
}

/// All algorithms that are run by name.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "triangles",
        run: |on, options| {
            let Nothing {} = read(options)?;
            let ((found, report), why) = on.either(gpu::triangles, triangles)?;
            let all =
                [("triangles", found.all.into()), ("transitivity", found.transitivity.into())];
            Ok(outcome(Column::U64(found.of), all, report).on_cpu(why))
        },
    },
    Algorithm {
        name: "clustering",
        run: |on, options| {
            let Nothing {} = read(options)?;
            let ((shares, report), why) = on.either(gpu::clustering, clustering)?;
            // A sum of nothing is -0.0.
            let mean = (0.0 + shares.iter().sum::<f64>()) / shares.len().max(1) as f64;
            let all = [("average_clustering", mean.into())];
            Ok(outcome(Column::F64(shares), all, report).on_cpu(why))
        },
    },
    Algorithm {
        name: "cdlp",
        run: |on, options| {
            let Iterations { iterations } = read(options)?;
            let by_gpu = |graph: &Graph, gpu: &Gpu, progress: &dyn Progress| {
                gpu::label_propagation(graph, gpu, iterations, progress)
            };
            let by_cpu = |graph: &Graph, progress: &dyn Progress| {
                label_propagation(graph, iterations, progress)
            };
            let ((labels, report), why) = on.either(by_gpu, by_cpu)?;
            Ok(groups(labels, "communities", report)?.on_cpu(why))
        },
    },
    Algorithm {
        name: "kcore",
        run: |on, options| {
            let Core { k } = read(options)?;
            let Some(k) = k else {
                let ((cores, report), why) = on.either(gpu::core_numbers, core_numbers)?;
                let largest = cores.iter().copied().max().unwrap_or(0);
                let all = [("largest_core", largest.into())];
                return Ok(outcome(Column::U32(cores), all, report).on_cpu(why));
            };
            let by_gpu = |graph: &Graph, gpu: &Gpu, progress: &dyn Progress| {
                Ok(gpu::core_numbers(graph, gpu, progress)?.map(|(mut cores, report)| {
                    cores.iter_mut().for_each(|core| *core = if *core >= k { k } else { 0 });
                    (cores, report)
                }))
            };
            let by_cpu = |graph: &Graph, progress: &dyn Progress| k_core(graph, k, progress);
            let ((cores, report), why) = on.either(by_gpu, by_cpu)?;
            let size = cores.iter().filter(|&&core| core > 0).count();
            Ok(outcome(Column::U32(cores), [("size", size.into())], report).on_cpu(why))
        },
    },
    Algorithm {
        name: "scc",
        run: |On { graph, progress, .. }, options| {
            let Nothing {} = read(options)?;
            let (labels, report) = scc(graph, progress)?;
            groups(labels, "components", report)
        },
    },
    Algorithm {
        name: "louvain",
        run: |on, options| grouped(on.graph, Method::Louvain, options, on.progress),
    },
    Algorithm {
        name: "leiden",
        run: |on, options| grouped(on.graph, Method::Leiden, options, on.progress),
    },
    Algorithm {
        name: "betweenness",
        run: |on, options| {
            let graph = on.graph;
            let Sources { sources, samples, seed } = read(options)?;
            let n = graph.vertices();
            let chosen = match (sources, samples) {
                (Some(ids), None) => {
                    let mut chosen = graph.ids().find(&ids)?;
                    chosen.sort_unstable();
                    chosen.dedup();
                    chosen
                }
                (None, Some(count)) if count < n => sample(graph, count, seed)?,
                (None, _) => (0..n as u32).collect(),
                (Some(_), Some(_)) => {
                    return Err(Error::new(ErrorKind::Input, "choose the sources of paths")
                        .expected("`sources` or `samples`")
                        .got("both"));
                }
            };
            let by_gpu = |graph: &Graph, gpu: &Gpu, progress: &dyn Progress| {
                gpu::betweenness(graph, gpu, &chosen, progress)
            };
            let by_cpu =
                |graph: &Graph, progress: &dyn Progress| betweenness(graph, &chosen, progress);
            let ((mut sums, report), why) = on.either(by_gpu, by_cpu)?;
            let is_sample = samples.is_some() && chosen.len() < n;
            let share = if is_sample { n as f64 / chosen.len() as f64 } else { 1.0 };
            // Both ends of a pair without a direction are sources.
            let pairs = if graph.manifest().directed { 1.0 } else { 0.5 };
            sums.iter_mut().for_each(|sum| *sum *= share * pairs);
            let mut outcome =
                outcome(Column::F64(sums), [("sources", chosen.len().into())], report);
            if is_sample {
                outcome
                    .found
                    .insert("error_bound".into(), error_bound(n, chosen.len(), pairs).into());
            }
            Ok(outcome.on_cpu(why))
        },
    },
    Algorithm {
        name: "independent_set",
        run: |on, options| {
            let Seed { seed } = read(options)?;
            let by_gpu = |graph: &Graph, gpu: &Gpu, progress: &dyn Progress| {
                gpu::independent_set(graph, gpu, seed, progress)
            };
            let by_cpu =
                |graph: &Graph, progress: &dyn Progress| independent_set(graph, seed, progress);
            let ((chosen, report), why) = on.either(by_gpu, by_cpu)?;
            let size: u64 = chosen.iter().map(|&is_in| u64::from(is_in)).sum();
            Ok(outcome(Column::U32(chosen), [("size", size.into())], report).on_cpu(why))
        },
    },
    Algorithm {
        name: "coloring",
        run: |on, options| {
            let Nothing {} = read(options)?;
            let ((colors, report), why) = on.either(gpu::coloring, coloring)?;
            let count = colors.iter().map(|&color| color + 1).max().unwrap_or(0);
            Ok(outcome(Column::U32(colors), [("colors", count.into())], report).on_cpu(why))
        },
    },
    Algorithm {
        name: "harmonic",
        run: |on, options| {
            let Counters { registers, seed } = read(options)?;
            let by_gpu = |graph: &Graph, gpu: &Gpu, progress: &dyn Progress| {
                gpu::harmonic(graph, gpu, registers, seed, progress)
            };
            let by_cpu =
                |graph: &Graph, progress: &dyn Progress| harmonic(graph, registers, seed, progress);
            let ((found, report), why) = on.either(by_gpu, by_cpu)?;
            let of_graph = [
                ("effective_diameter", found.effective_diameter.into()),
                ("mean_distance", found.mean_distance.into()),
                ("standard_error", (1.04 / (registers as f64).sqrt()).into()),
            ];
            Ok(outcome(Column::F64(found.harmonic), of_graph, report).on_cpu(why))
        },
    },
    Algorithm {
        name: "mutual",
        run: |on, options| {
            let Nothing {} = read(options)?;
            let ((found, report), why) = on.either(gpu::mutual, mutual)?;
            let of_graph = [("reciprocity", found.reciprocity.into())];
            Ok(outcome(Column::U32(found.of), of_graph, report).on_cpu(why))
        },
    },
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Core {
    #[serde(default)]
    k: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    registers: usize,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    #[serde(default)]
    sources: Option<Vec<u64>>,
    #[serde(default)]
    samples: Option<usize>,
    #[serde(default)]
    seed: u64,
}

/// So many different vertices, by internal ids, chosen by `seed` whatever their order on disk.
fn sample(graph: &Graph, count: usize, seed: u64) -> Result<Vec<u32>> {
    let n = graph.vertices();
    let _held = graph.memory().reserve(n as u64 * 12, "the choice of vertices")?;
    let mut positions: Vec<u32> = (0..n as u32).collect();
    let mut draws = Draws::new(seed);
    for i in 0..count {
        positions.swap(i, i + draws.below((n - i) as u64) as usize);
    }
    positions.truncate(count);
    let ids = graph.ids().of_positions(positions)?;
    graph.ids().find(&ids)
}

/// A bound that the error of every vertex's betweenness, of so many sampled sources, exceeds with a probability
/// of at most 1 in 10 (Hoeffding's inequality for all vertices: Brandes and Pich, Int. J. Bifurc. Chaos 17, 2007).
fn error_bound(vertices: usize, samples: usize, pairs: f64) -> f64 {
    let n = vertices as f64;
    let most = n * (n - 2.0).max(0.0) * pairs;
    most * ((2.0 * n / 0.1).ln() / (2.0 * samples.max(1) as f64)).sqrt()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grouping {
    resolution: f64,
    seed: u64,
    #[serde(default)]
    objective: Option<String>,
    iterations: usize,
}

fn grouped(
    graph: &Graph,
    method: Method,
    options: &str,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let Grouping { resolution, seed, objective, iterations } = read(options)?;
    let objective = match objective.as_deref() {
        None | Some("modularity") => Objective::Modularity,
        Some("cpm") => Objective::Potts,
        Some(other) => {
            return Err(Error::new(ErrorKind::Input, "find communities by")
                .object(other)
                .expected("`modularity` or `cpm`"));
        }
    };
    let options = Communities { method, objective, resolution, iterations, seed };
    let (found, report) = communities(graph, &options, progress)?;
    let mut outcome = groups(found.labels, "communities", report)?;
    outcome.found.insert("modularity".into(), found.modularity.into());
    Ok(outcome)
}

/// Options of an algorithm that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Iterations {
    iterations: usize,
}

/// Runs the algorithm of this name, with its options as a JSON object: on `gpu`, if there is one and the
/// algorithm can; `device_why` says why it ran on the CPU then.
///
/// # Errors
/// A name or options that it does not have, and the algorithm's own.
pub fn run(
    graph: &Graph,
    gpu: Option<&Gpu>,
    name: &str,
    options: &str,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let Some(found) = ALGORITHMS.iter().find(|algorithm| algorithm.name == name) else {
        let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        let expected = format!("one of {}", names.join(", "));
        return Err(Error::new(ErrorKind::Input, "run algorithm").object(name).expected(expected));
    };
    let outcome = (found.run)(On { graph, gpu, progress }, options)?;
    let is_on_gpu = outcome.report.device != "cpu" || outcome.found.contains_key(DEVICE_WHY);
    if gpu.is_none() || is_on_gpu {
        return Ok(outcome);
    }
    Ok(outcome.on_cpu(Some(format!("{name} has no version for GPUs: it ran on the CPU"))))
}

/// What pairs of vertices have in common, as [`in_common`](crate::in_common): on `gpu`, if there is one and the lists
/// fit it. Among what was found is why it ran on the CPU otherwise.
///
/// # Errors
/// Errors of comparing pairs on the CPU or on a GPU.
pub fn compare_pairs(
    graph: &Graph,
    gpu: Option<&Gpu>,
    pairs: &[[u32; 2]],
    weighed: Weighed,
    progress: &dyn Progress,
) -> Result<(InCommon, RunReport, Map<String, Value>)> {
    let ((found, report), why) = On { graph, gpu, progress }.either(
        |graph, gpu, progress| gpu::in_common(graph, gpu, pairs, weighed, progress),
        |graph, progress| crate::in_common(graph, pairs, weighed, progress),
    )?;
    Ok((found, report, why.map(|why| (DEVICE_WHY.to_owned(), why.into())).into_iter().collect()))
}

/// The name of the reason why an algorithm ran on the CPU, among what was found.
const DEVICE_WHY: &str = "device_why";

impl Outcome {
    /// The same, with the reason why it ran on the CPU, if there is one.
    fn on_cpu(mut self, why: Option<String>) -> Self {
        self.found.extend(why.map(|why| (DEVICE_WHY.to_owned(), why.into())));
        self
    }
}

fn read<T: DeserializeOwned>(options: &str) -> Result<T> {
    serde_json::from_str(options)
        .map_err(|e| Error::new(ErrorKind::Input, "use the algorithm's options").got(e))
}

fn outcome<const N: usize>(
    column: Column,
    found: [(&str, Value); N],
    report: RunReport,
) -> Outcome {
    let found = found.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Outcome { column, found, report }
}

/// Vertices grouped by labels, each the position of one of the graph's vertices.
fn groups(labels: Vec<u32>, name: &'static str, report: RunReport) -> Result<Outcome> {
    let sizes = crate::ComponentSizes::of(&labels, 0)?;
    let found = [(name, sizes.components.into()), ("largest", sizes.largest_component.into())];
    Ok(outcome(Column::Vertices(labels), found, report))
}
