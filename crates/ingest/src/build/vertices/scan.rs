//! The first pass that sees vertices: counts them and their degrees, and samples their lists.
//!
//! Cost: two increments at random places an edge. With two threads one counts sources and the
//! other targets, so no counter is shared. A vertex has a byte that is counted in, and a word that
//! takes what overflows it: the bytes of four times as many vertices fit a cache.

use tiergraph_core::{Cancel, Error, ErrorKind, Result, threads};
use tiergraph_format::manifest::Weights;
use tiergraph_kernels::widest;
use tiergraph_mem::Budget;

use super::ends::{AtSources, End};
use super::ids::IdMap;
use super::sample::Sample;
use crate::build::array::Array;
use crate::build::input::Input;
use crate::build::needs::{SOURCE, TARGET, Watch};
use crate::build::options::{BuildOptions, OrderChoice, SelfLoops, WeightChoice};
use crate::build::progress::Ticker;
use crate::build::vertices::{Loops, Vertices, largest};
use crate::source::EdgeBatch;

/// Fewer vertices than this are never too many for their edges.
const FEW_VERTICES: u64 = 1 << 16;
/// More vertices than this for each edge are taken for ids that should be mapped.
const VERTICES_AN_EDGE: u64 = 64;
/// Bytes of the counters of a vertex, at both ends of its edges.
const COUNTERS_BYTES: u64 = 10;

/// The result of a scan: vertices, degrees, weights and a sample.
pub(crate) struct Scanned {
    pub(crate) vertices: usize,
    /// For each vertex, the edges that it is the source of.
    pub(crate) sources: Array<u32>,
    /// For each vertex, the edges that it is the target of; in undirected graphs, without self-loops.
    pub(crate) targets: Array<u32>,
    pub(crate) edges_read: u64,
    /// The number of edges that were kept.
    pub(crate) edges: u64,
    pub(crate) weights: Weights,
    pub(crate) sample: Sample,
    /// Vertices whose self-loops were dropped, where ids may turn out not to be dense.
    pub(crate) loops: Vec<u64>,
}

/// The outcome of a scan.
pub(crate) enum Scan {
    /// Vertices and their edges.
    Done(Box<Scanned>),
    /// Ids are so far apart that none can be counted in its place: they have to be collected first.
    Sparse {
        /// The number of edges that the source handed out.
        edges_read: u64,
        /// Ids whose self-loops were dropped, and which may have no other edge.
        loops: Vec<u64>,
    },
}

/// What a scan is told about the vertices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The map from ids to vertices; `None` where ids are vertices.
    pub(crate) ids: Option<&'a IdMap>,
    /// The least number of vertices.
    pub(crate) least: Option<u64>,
    /// Whether an id that is not below `least` is an error.
    pub(crate) exact: bool,

    /// Whether the scan stops at ids that are far apart, so that the caller maps them.
    pub(crate) gives_up: bool,
}

/// Reads all edges once and counts vertices and degrees; `sample_arcs` limits the sample of adjacency.
#[allow(clippy::too_many_arguments)]
pub(crate) fn scan(
    input: &mut Input<'_>,
    known: Known<'_>,
    undirected: bool,
    options: &BuildOptions,
    budget: &Budget,
    sample_arcs: usize,
    mut watch: Watch<'_>,
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<Scan> {
    let ends =
        |vertices| -> Result<_> { Ok((End::new(vertices, budget)?, End::new(vertices, budget)?)) };
    let least = if watch.has_refused() { 0 } else { known.least.unwrap_or(0) };
    let (mut sources, mut targets) = match ends(least) {
        Err(error) if error.kind() == ErrorKind::Budget => {
            watch.refuse(error);
            ends(0)?
        }
        made => made?,
    };
    let mut weights = Kind { choice: options.weights, exact: true };
    let mut sample = (options.order == OrderChoice::Auto).then(|| Sample::new(sample_arcs));
    let drop_loops = options.self_loops == SelfLoops::Remove;
    let vertices = Vertices { ids: known.ids, drop_loops };
    let (mut edges_read, mut edges) = (0, 0);
    let (mut reach, mut loops, mut sparse) = (0, Loops::default(), false);
    std::thread::scope(|scope| {
        let mut at_sources = AtSources::Here(&mut sources);
        if options.threads > 1 {
            at_sources =
                at_sources.apart(|body| threads::start_in(scope, "count", body).map(drop))?;
        }
        input.pass(true, |batch| {
            cancel.check("build the graph")?;
            edges_read += batch.len() as u64;
            ticker.add(batch.len() as u64);
            if (known.exact || known.gives_up || (drop_loops && known.ids.is_none()))
                && let Some(most) = largest(batch).filter(|most| *most >= reach)
            {
                reach = most.saturating_add(1);
                known.check(most)?;
                sparse |= known.gives_up && !fits(reach, budget);
            }
            if known.gives_up && drop_loops {
                loops.extend(batch);
            }
            // Memory that has ended already is to be told in one message, with all edges seen.
            if (known.gives_up && watch.looked_at(batch)) || sparse {
                return Ok(());
            }
            vertices.prepare(batch, options.threads)?;
            edges += batch.len() as u64;
            weights.check(batch)?;
            if watch.looked_at(batch) {
                return Ok(());
            }
            let counted = at_sources.count(batch, |src, dst| {
                if let Some(sample) = &mut sample {
                    widest(|| sample.extend(src, dst));
                }
                match undirected {
                    false => targets.count(dst, |_| true),
                    true => targets.count(dst, |edge| src[edge] != dst[edge]),
                }
            });
            watch.end(counted, batch)
        })
    })?;
    // An id that has lost its edge is an id all the same.
    let n = sources.vertices.max(targets.vertices).max(watch.vertices());
    let n = n.max(if drop_loops && known.ids.is_none() { reach } else { 0 });
    let far_apart = known.least.is_none() && n > FEW_VERTICES.max(VERTICES_AN_EDGE * edges_read);
    if far_apart && !known.gives_up {
        return Err(too_sparse(n, edges_read));
    }
    watch.finish(|seen| {
        sources.tell(seen, SOURCE);
        targets.tell(seen, TARGET);
        seen.edges = edges.max(seen.edges);
    })?;
    if sparse || far_apart {
        return Ok(Scan::Sparse { edges_read, loops: loops.finish() });
    }
    Ok(Scan::Done(Box::new(Scanned {
        vertices: n as usize,
        sources: sources.finish(n)?,
        targets: targets.finish(n)?,
        edges_read,
        edges,
        weights: if input.weighted { weights.found() } else { Weights::None },
        sample: sample.unwrap_or_else(|| Sample::new(0)),
        loops: loops.finish(),
    })))
}

impl Scan {
    /// The scan's result; an error if it gave up.
    pub(crate) fn done(self) -> Result<Scanned> {
        match self {
            Self::Done(scanned) => Ok(*scanned),
            Self::Sparse { edges_read, .. } => Err(too_sparse(u64::from(u32::MAX), edges_read)),
        }
    }
}

impl Known<'_> {
    /// Refuses an id that is beyond the vertices, or that no array has a place for.
    fn check(&self, id: u64) -> Result<()> {
        match self.least {
            Some(vertices) if self.exact && id >= vertices => {
                Err(Error::new(ErrorKind::Input, "use the id")
                    .object(id)
                    .expected(format!("ids below {vertices}, as `--vertices {vertices}` says"))
                    .hint(format!("`--vertices {}`, or leave it out", id.saturating_add(1))))
            }
            _ if id >= u64::from(u32::MAX) && !self.gives_up => Err(too_many(id)),
            _ => Ok(()),
        }
    }
}

/// Whether counters for `vertices` vertices fit what is left of the budget.
pub(crate) fn fits(vertices: u64, budget: &Budget) -> bool {
    vertices <= u64::from(u32::MAX)
        && (vertices <= FEW_VERTICES
            || vertices.next_power_of_two().saturating_mul(COUNTERS_BYTES) <= budget.left())
}

/// The error of an id that no array in memory has a place for.
pub(crate) fn too_many(id: u64) -> Error {
    Error::new(ErrorKind::Input, "use the id")
        .object(id)
        .expected("ids up to 4294967294, as a build keeps 4-byte ids in memory")
        .hint("`--ids map` gives large ids to few vertices; split larger graphs")
}

/// The error of a vertex whose edges are more than a counter holds.
pub(crate) fn too_many_edges() -> Error {
    Error::new(ErrorKind::Input, "count the edges of a vertex")
        .expected("at most 4294967295")
        .hint("remove duplicate edges before building")
}

fn too_sparse(vertices: u64, edges: u64) -> Error {
    Error::new(ErrorKind::Input, "use ids up to")
        .object(vertices - 1)
        .expected(format!("at most {VERTICES_AN_EDGE} vertices an edge"))
        .got(format!("{vertices} vertices, {edges} edges"))
        .hint("`--ids map` makes only ids that occur vertices")
}

/// The type in which weights will be stored, as far as is known.
struct Kind {
    choice: WeightChoice,
    /// Whether all weights so far are 32-bit floats.
    exact: bool,
}

impl Kind {
    fn check(&mut self, batch: &EdgeBatch) -> Result<()> {
        let Some(weights) = &batch.weights else { return Ok(()) };
        let rounded = self.choice == WeightChoice::F32;
        let bad =
            |w: &&f64| !(**w >= 0.0 && w.is_finite() && (!rounded || (**w as f32).is_finite()));
        if let Some(weight) = weights.iter().find(bad) {
            let expected =
                if rounded { "weights from 0 to 3.4e38" } else { "weights of 0 or more" };
            return Err(Error::new(ErrorKind::Input, "use the weight")
                .object(weight)
                .expected(expected));
        }
        self.exact &= weights.iter().all(|&w| f64::from(w as f32) == w);
        Ok(())
    }

    fn found(&self) -> Weights {
        match self.choice {
            WeightChoice::None => Weights::None,
            WeightChoice::F32 => Weights::F32,
            WeightChoice::F64 => Weights::F64,
            WeightChoice::Auto if self.exact => Weights::F32,
            WeightChoice::Auto => Weights::F64,
        }
    }
}
