//! Communities of high modularity, or by the constant Potts model: Louvain and Leiden.
//!
//! Vertices move to the community where they gain most, communities become vertices of a smaller network, and
//! so on (Louvain: Blondel et al., J. Stat. Mech., 2008). Leiden (Traag, Waltman and van Eck, Sci. Rep. 9, 2019)
//! builds the smaller network of well-connected parts of communities, so that every community is connected.
//! Edges count both ways, whatever their direction, by their weights.
//!
//! Many vertices choose at once, by where all were before, and then move: turn after turn, drawn by seed (`moves`).
//! So all threads choose, and a seed's result is the same for any number of them, and in any memory. That holds 69 bytes a vertex
//! with edges (Leiden: 81), 8 more for each further thread that chooses, if there is memory for it, and lists as far as they
//! fit: those of the graph are read again, those of smaller networks and of graphs with weights are packed, and go on in
//! temporary files.

mod aggregate;
mod lists;
mod moves;
mod network;
mod packed;
mod scattered;
mod segments;
mod weighted;

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, Reservation};

use crate::labels::canonical_labels;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, Side};
use moves::{Partition, Quality, numbered};
use network::Network;

/// How communities are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Method {
    /// Of communities that may fall apart; faster.
    Louvain,
    /// Of connected communities.
    Leiden,
}

impl Method {
    /// The most bytes of state a vertex, where each becomes a vertex of the smaller network.
    fn bytes(self) -> u64 {
        OF_FIRST + self.bytes_of_smaller()
    }

    /// The most bytes of state a vertex of a smaller network while its vertices move and are refined: masses, communities with
    /// masses and members, weights to communities with a list of them that grows, where lists begin, bits, and moves; leads while they
    /// move, and then Leiden's parts with masses, and the weights to others.
    fn bytes_of_smaller(self) -> u64 {
        match self {
            Self::Louvain => 57,
            Self::Leiden => 69,
        }
    }

    /// The most bytes of state from when `own` vertices of the network `number` become `smaller` ones, until these do.
    fn bytes_from(self, number: u64, first: usize, own: usize, smaller: usize) -> u64 {
        let (first, own, smaller) = (first as u64, own as u64, smaller as u64);
        // Strengths, masses, communities and parts; of others than the first where lists begin, and what the first has.
        let before = if number == 0 { own * 24 } else { first * OF_FIRST + own * 20 };
        // Lengths of lists, and where they begin; beside this, members and several places, or a sum and an arc for each.
        let aggregating = before + (own * 4 + smaller * 24).max(smaller * 28);
        aggregating.max(first * OF_FIRST + smaller * self.bytes_of_smaller())
    }
}

/// The name of the memory of state, in an error that refuses it.
const STATE: &str = "the communities";
/// Bytes that a vertex has while smaller networks' do: its strength, and its number there.
const OF_FIRST: u64 = 12;

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
    /// Draws the turns in which vertices move.
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
/// A resolution that is not 0 or more, weights whose sum overflows, state that does not fit the memory, any error of a pass.
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
    let n = graph.tiles().vertices();
    let most = n as u64 * options.method.bytes();
    let plan = Network::memory(graph)?
        .and("the vertices' ids", graph.ids().of_positions_bytes())
        .and("neighbours of communities", Network::aggregate_bytes(graph))
        .and(STATE, most);
    let held = graph.memory().reserve_all(&plan)?;
    let state = State { graph, all: held.bytes(), held, most };
    let name = if options.method == Method::Leiden { "leiden" } else { "louvain" };
    let mut run = Run::start(graph, name, 0, progress);
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let mut network = Network::read(graph, &degrees)?;
    let mut strengths = Array::<f64>::zeroed(n)?;
    network.sweep(|neighbors| {
        let own = &mut strengths[neighbors.of as usize];
        neighbors.with_loops(|_, weight| *own += weight);
    })?;
    run.iteration("lists", 0.0);
    let all: f64 = strengths.iter().sum();
    if !all.is_finite() {
        return Err(Error::new(ErrorKind::Input, "find communities")
            .expected("weights whose sum, over both ends of each edge, is a float64")
            .got(format!("a sum that overflows: above {:e}", f64::MAX))
            .hint("divide all weights by the same number"));
    }
    let counts_edges = options.objective == Objective::Modularity;
    let scale = match options.objective {
        Objective::Modularity if all > 0.0 => options.resolution / all,
        Objective::Modularity => 0.0,
        Objective::Potts => options.resolution,
    };
    let quality = Quality { scale, weight: all, counts_edges };
    let mut search = Search { quality, options, first: n, state, run };
    let mut community = Array::from_fn(graph.thread_pool(), n, |v| v as u32)?;
    let mut done = [0u64];
    // Between iterations there is no more to keep than this; within one there is much more.
    if options.iterations > 1 {
        search.run.resume(options, |from| {
            from.array(&mut done)?;
            from.array(&mut community)
        })?;
    }
    for iteration in done[0] as usize..options.iterations {
        let moves = search.levels(&mut network, &strengths, &mut community)?;
        if moves == 0 && iteration > 0 {
            break;
        }
        search.run.keep(|to| {
            to.array(&[iteration as u64 + 1]);
            to.array(&community);
            Ok(())
        })?;
    }
    if options.method == Method::Leiden {
        // A community that lost a vertex after its last refinement may be in pieces, which are worth more.
        community = connected(&mut network, &community)?;
    }
    let mut masses = Array::<f64>::zeroed(n)?;
    community.iter().zip(&strengths[..]).for_each(|(&own, mass)| masses[own as usize] += mass);
    let chance: f64 = masses.iter().map(|mass| (mass / all.max(f64::MIN_POSITIVE)).powi(2)).sum();
    let mut inside = 0.0;
    network.sweep(|neighbors| {
        let own = community[neighbors.of as usize];
        neighbors.with_loops(|u, weight| {
            if community[u as usize] == own {
                inside += weight;
            }
        });
    })?;
    let modularity = if all > 0.0 { inside / all - chance } else { 0.0 };
    let report = search.run.finish(true)?;
    // The first vertex of a community stands for it.
    let mut first = Array::<u32>::zeroed(n)?;
    for (v, &own) in community.iter().enumerate().rev() {
        first[own as usize] = v as u32;
    }
    let labels = canonical_labels(graph, |v| first[community[v] as usize])?;
    Ok((Found { labels, modularity }, report))
}

/// The memory of a run. Where a smaller network has far fewer vertices, it is less, and lists may have the rest.
struct State<'g> {
    graph: &'g Graph,
    held: Reservation,
    /// What was reserved at first, and what part of it was for state.
    all: u64,
    most: u64,
}

impl State<'_> {
    /// Holds so many bytes for state, of which there was memory for more.
    fn resize(&mut self, bytes: u64) -> Result<()> {
        let bytes = self.all - self.most + bytes.min(self.most);
        self.held.shrink_to(bytes);
        let more = bytes - self.held.bytes();
        self.held.join(self.graph.memory().reserve(more, STATE)?);
        Ok(())
    }
}

/// For each of `vertex`, its place in `of`.
fn of_each(graph: &Graph, vertex: &[u32], of: &[u32]) -> Result<Array<u32>> {
    Array::from_fn(graph.thread_pool(), vertex.len(), |v| of[vertex[v] as usize])
}

/// The communities to which a network's vertices moved.
struct Moved<'g> {
    moves: u64,
    community: Array<u32>,
    /// The network to go on with.
    smaller: Option<Smaller<'g>>,
}

/// A network of communities, or of parts of them.
struct Smaller<'g> {
    network: Network<'g>,
    /// The masses of its vertices.
    masses: Array<f64>,
    /// The communities in which its vertices begin.
    start: Array<u32>,
    /// For each vertex of the network before, that of this one.
    part: Array<u32>,
}

/// How communities are found, and what is told of it.
struct Search<'a, 'g> {
    quality: Quality,
    options: &'a Communities,
    /// The number of the graph's vertices.
    first: usize,
    state: State<'g>,
    run: Run<'g>,
}

impl Search<'_, '_> {
    /// Moves vertices, then communities as vertices, and so on, until none come together. `community` has those to begin
    /// with, and then those that were found. Returns how many moves of vertices there were.
    fn levels(
        &mut self,
        network: &mut Network<'_>,
        strengths: &[f64],
        community: &mut Array<u32>,
    ) -> Result<u64> {
        self.state.resize(self.state.most)?;
        let graph = network.graph;
        let start = std::mem::take(community);
        let mut next = match self.quality.counts_edges {
            true => self.level(network, strengths, start, 0)?,
            false => {
                let ones = Array::from_fn(graph.thread_pool(), network.len(), |_| 1.0)?;
                self.level(network, &ones, start, 0)?
            }
        };
        let first_moves = next.moves;
        // For each vertex of the graph, that of the present network.
        let mut vertex: Option<Array<u32>> = None;
        let mut number = 1u64;
        while let Some(Smaller { mut network, masses, start, part }) = next.smaller.take() {
            next.community = Array::default();
            vertex = Some(match vertex {
                None => part,
                Some(vertex) => of_each(graph, &vertex, &part)?,
            });
            next = self.level(&mut network, &masses, start, number)?;
            number += 1;
        }
        *community = match vertex {
            None => next.community,
            Some(vertex) => of_each(graph, &vertex, &next.community)?,
        };
        Ok(first_moves)
    }

    /// Moves the vertices of a network, which begin in the communities `start`, and makes the next network.
    fn level<'n>(
        &mut self,
        network: &mut Network<'n>,
        masses: &[f64],
        start: Array<u32>,
        number: u64,
    ) -> Result<Moved<'n>> {
        let method = self.options.method;
        let seed = self.options.seed.wrapping_add(number);
        let mut partition = Partition::new(self.quality, masses, start)?;
        let moves = partition.move_vertices(network, seed)?;
        self.run.iteration("move", moves as f64);
        let refined = match method {
            Method::Louvain => None,
            Method::Leiden => Some(partition.refined(network, seed)?),
        };
        let (community, count) = numbered(partition.community, seed)?;
        let is_last = count == network.len() || (moves == 0 && number > 0);
        let (part, parts_count) = match refined {
            _ if is_last => (Array::default(), network.len()),
            None => (
                Array::from_fn(network.graph.thread_pool(), community.len(), |v| community[v])?,
                count,
            ),
            Some(refined) => numbered(refined, seed)?,
        };
        if method == Method::Leiden && !is_last {
            self.run.iteration("refine", parts_count as f64);
        }
        if parts_count == network.len() {
            return Ok(Moved { moves, community, smaller: None });
        }
        self.state.resize(method.bytes_from(number, self.first, network.len(), parts_count))?;
        let next = network.aggregate(&part, parts_count)?;
        self.run.iteration("aggregate", parts_count as f64);
        let (mut next_masses, mut start) =
            (Array::<f64>::zeroed(parts_count)?, Array::zeroed(parts_count)?);
        for ((&part, &own), mass) in part.iter().zip(&community[..]).zip(masses) {
            next_masses[part as usize] += mass;
            // Communities begin as they were found.
            start[part as usize] = own;
        }
        let smaller = Smaller { network: next, masses: next_masses, start, part };
        Ok(Moved { moves, community, smaller: Some(smaller) })
    }
}

/// For each vertex the first of the connected piece of its community that it is in.
fn connected(network: &mut Network<'_>, community: &[u32]) -> Result<Array<u32>> {
    let threads = network.graph.thread_pool();
    let mut piece = Array::from_fn(threads, community.len(), |v| v as u32)?;
    fn root(piece: &mut [u32], mut v: u32) -> u32 {
        while piece[v as usize] != v {
            let above = piece[piece[v as usize] as usize];
            piece[v as usize] = above;
            v = above;
        }
        v
    }
    network.sweep(|neighbors| {
        let v = neighbors.of;
        neighbors.each(|u, weight| {
            if u < v && community[u as usize] == community[v as usize] && weight > 0.0 {
                let (a, b) = (root(&mut piece, u), root(&mut piece, v));
                piece[a.max(b) as usize] = a.min(b);
            }
        });
    })?;
    for v in 0..piece.len() {
        piece[v] = root(&mut piece, v as u32);
    }
    Ok(piece)
}
