//! Communities of high modularity, or by the constant Potts model: Louvain and Leiden.
//!
//! Vertices move to the community where they gain most, communities become vertices of a smaller network, and
//! so on (Louvain: Blondel et al., J. Stat. Mech., 2008). Leiden (Traag, Waltman and van Eck, Sci. Rep. 9, 2019)
//! builds the smaller network of well-connected parts of communities, so that every community is connected.
//! Edges count both ways, whatever their direction, by their weights. The whole graph is in memory: 4 bytes a neighbour, 12 with
//! weights, 12 of the smaller networks and 80 a vertex. Vertices move one after the other, so that a seed's result is the same
//! for any number of threads, which share the building of networks.

mod moves;
mod network;

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::vec_from_fn;

use crate::labels::canonical_labels;
use crate::report::{Run, RunReport};
use crate::row_map::{RowMap, Side};
use moves::{Partition, Quality};
use network::Network;

/// How communities are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Method {
    /// Of communities that may fall apart; faster.
    Louvain,
    /// Of connected communities.
    Leiden,
}

/// What is made as large as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Objective {
    /// The share of edges inside communities, less what it would be by chance.
    #[default]
    Modularity,
    /// The edges inside communities, less `resolution` for each pair of vertices (constant Potts model).
    Potts,
}

/// Options of [`communities`].
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Communities {
    /// How communities are made.
    pub method: Method,
    /// What is made as large as possible.
    pub objective: Objective,
    /// Larger ones make more and smaller communities.
    pub resolution: f64,
    /// How often all of it is done again, from the communities that were found.
    pub iterations: usize,
    /// The order in which vertices move first.
    pub seed: u64,
}

/// The communities of a graph.
#[derive(Debug)]
pub struct Found {
    /// For each vertex, in the user's order, the first position in its community.
    pub labels: Vec<u32>,
    /// The modularity of the communities, at resolution 1.
    pub modularity: f64,
}

/// Finds communities.
///
/// # Errors
/// A resolution that is not 0 or more, state that does not fit the memory, any error of a pass.
pub fn communities(
    graph: &Graph,
    options: &Communities,
    progress: &dyn Progress,
) -> Result<(Found, RunReport)> {
    if !(options.resolution >= 0.0 && options.resolution.is_finite()) {
        return Err(Error::new(ErrorKind::Input, "find communities")
            .expected("a resolution of 0 or more")
            .got(options.resolution));
    }
    let n = graph.vertices();
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the communities", n as u64 * 80 + graph.ids().of_positions_bytes())
        .and("all neighbours", Network::bytes(graph));
    let _state = graph.memory().reserve_all(&plan)?;
    let name = if options.method == Method::Leiden { "leiden" } else { "louvain" };
    let mut run = Run::start(graph, name, 0, progress);
    let network = Network::read(graph)?;
    run.iteration("lists", 0.0);
    let strengths: Vec<f64> = (0..n as u32).map(|v| network.strength(v)).collect();
    let all: f64 = strengths.iter().sum();
    let counts_edges = options.objective == Objective::Modularity;
    let scale = match options.objective {
        Objective::Modularity if all > 0.0 => options.resolution / all,
        Objective::Modularity => 0.0,
        Objective::Potts => options.resolution,
    };
    let quality = Quality { scale, counts_edges };
    let mut community: Vec<u32> = (0..n as u32).collect();
    let mut done = [0u64];
    // Between iterations there is no more to keep than this; within one there is much more.
    if options.iterations > 1 {
        run.resume(options, |from| {
            from.array(&mut done)?;
            from.array(&mut community)
        })?;
    }
    for iteration in done[0] as usize..options.iterations {
        let moves =
            levels(graph, &network, &strengths, quality, options, &mut community, &mut run)?;
        if moves == 0 && iteration > 0 {
            break;
        }
        run.keep(|to| {
            to.array(&[iteration as u64 + 1]);
            to.array(&community);
            Ok(())
        })?;
    }
    if options.method == Method::Leiden {
        // A community that lost a vertex after its last refinement may be in pieces, which are worth more.
        network.cut(&mut community);
    }
    let mut masses = vec![0.0; n];
    community.iter().zip(&strengths).for_each(|(&own, mass)| masses[own as usize] += mass);
    let chance: f64 = masses.iter().map(|mass| (mass / all.max(f64::MIN_POSITIVE)).powi(2)).sum();
    let modularity = if all > 0.0 { network.inside(&community) / all - chance } else { 0.0 };
    let report = run.finish(true)?;
    // The first vertex of a community stands for it.
    let mut first = vec![u32::MAX; n];
    for (v, &own) in community.iter().enumerate().rev() {
        first[own as usize] = v as u32;
    }
    let roots = vec_from_fn(graph.thread_pool(), n, |v| first[community[v] as usize])?;
    let labels = canonical_labels(graph, |v| roots[v])?;
    Ok((Found { labels, modularity }, report))
}

/// Moves vertices, then communities as vertices, and so on, until none moves. `community` has those to begin
/// with, and then those that were found. Returns how many moves of vertices there were.
fn levels(
    graph: &Graph,
    network: &Network,
    strengths: &[f64],
    quality: Quality,
    options: &Communities,
    community: &mut Vec<u32>,
    run: &mut Run<'_>,
) -> Result<u64> {
    let n = network.len();
    let masses: Vec<f64> = if quality.counts_edges { strengths.to_vec() } else { vec![1.0; n] };
    // For each vertex of the graph, that of the present network.
    let mut vertex: Vec<u32> = Vec::new();
    let mut smaller: Option<(Network, Vec<f64>, Vec<u32>)> = None;
    let (mut first_moves, mut level) = (None, 0u64);
    loop {
        let (present, masses, start) = match &mut smaller {
            Some((network, masses, start)) => (&*network, &masses[..], std::mem::take(start)),
            None => (network, &masses[..], std::mem::take(community)),
        };
        let mut partition = Partition::new(present, quality, masses, start);
        let moves = partition.move_vertices(graph, options.seed.wrapping_add(level))?;
        run.iteration("move", moves as f64);
        first_moves.get_or_insert(moves);
        let count = partition.renumber();
        let place = |of: &[u32], vertex: &[u32]| -> Vec<u32> {
            match vertex.is_empty() {
                true => of.to_vec(),
                false => vertex.iter().map(|&v| of[v as usize]).collect(),
            }
        };
        *community = place(&partition.community, &vertex);
        if count == present.len() || (moves == 0 && level > 0) {
            return Ok(first_moves.unwrap_or(0));
        }
        let (parts, parts_count) = match options.method {
            Method::Louvain => (Vec::new(), count),
            Method::Leiden => {
                let mut refined = partition.refined(graph)?;
                let count = refined.renumber();
                run.iteration("refine", count as f64);
                (refined.community, count)
            }
        };
        let of_vertices = if parts.is_empty() { &partition.community } else { &parts };
        if parts_count == present.len() {
            return Ok(first_moves.unwrap_or(0));
        }
        let next = present.aggregate(graph, of_vertices, parts_count)?;
        run.iteration("aggregate", parts_count as f64);
        let (mut next_masses, mut start) = (vec![0.0; parts_count], vec![0; parts_count]);
        for (v, &part) in of_vertices.iter().enumerate() {
            next_masses[part as usize] += masses[v];
            start[part as usize] = match options.method {
                Method::Louvain => part,
                // Communities begin as they were found.
                Method::Leiden => partition.community[v],
            };
        }
        vertex = place(of_vertices, &vertex);
        smaller = Some((next, next_masses, start));
        level += 1;
    }
}
