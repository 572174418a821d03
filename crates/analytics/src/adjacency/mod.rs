//! All arcs as lists in memory: each vertex's out-neighbours, side by side.
//!
//! One pass makes them, from tiles or raw blocks, at 4 bytes a vertex and 4 to 12 an arc. A step of an
//! algorithm then costs only the arcs of its vertices, which a search of a graph with a long diameter
//! needs: its levels are thousands and small. Lists are in any order.

mod gathering;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::{Array, Reservation, prefetch};

use crate::edge_map::{Program, edge_map};
use crate::report::Run;
use gathering::Part;
pub(crate) use gathering::{Gathering, Place};

/// Steps after which a run on a GPU changes to lists: this many, and one more for every [`ARCS_A_STEP`]
/// arcs, because a step with almost no work takes as long there as listing so many arcs.
const STEPS: u64 = 128;
const ARCS_A_STEP: u64 = 10_000;

/// Adjacency lists of all out-arcs, with weights if these were asked for and the graph has any.
#[derive(Debug)]
pub(crate) struct Adjacency {
    /// Where each vertex's list ends; it begins where the list before ends.
    ends: Array<AtomicU32>,
    arcs: Stored,
    _held: Reservation,
}

/// The neighbours in all lists, and the bits of the arcs' weights.
#[derive(Debug)]
enum Stored {
    /// Neighbours; every weight is 1.
    Plain(Array<AtomicU32>),
    /// A neighbour in the lower half, its weight in the upper.
    F32(Array<AtomicU64>),
    /// Neighbours, and their weights.
    F64(Array<AtomicU32>, Array<AtomicU64>),
}

impl Stored {
    fn new(arcs: usize, weights: Weights) -> Result<Self> {
        Ok(match weights {
            Weights::None => Self::Plain(Array::zeroed(arcs)?),
            Weights::F32 => Self::F32(Array::zeroed(arcs)?),
            Weights::F64 => Self::F64(Array::zeroed(arcs)?, Array::zeroed(arcs)?),
        })
    }

    fn arc_bytes(weights: Weights) -> u64 {
        match weights {
            Weights::None => 4,
            Weights::F32 => 8,
            Weights::F64 => 12,
        }
    }

    /// The arcs, to be put in another order.
    fn as_part(&mut self) -> Part<'_> {
        match self {
            Self::Plain(targets) => Part::Plain(targets),
            Self::F32(arcs) => Part::F32(arcs),
            Self::F64(targets, weights) => Part::F64(targets, weights),
        }
    }

    /// Sets the target and weight of arc number `at`; false where there is no such arc.
    fn set(&self, at: usize, target: u32, weight: f64) -> bool {
        let is_set = |slot: Option<()>| slot.is_some();
        is_set(match self {
            Self::Plain(targets) => targets.get(at).map(|to| to.store(target, Ordering::Relaxed)),
            Self::F32(arcs) => {
                // A weight that was stored in 32 bits fits them.
                let bits = u64::from((weight as f32).to_bits()) << 32 | u64::from(target);
                arcs.get(at).map(|to| to.store(bits, Ordering::Relaxed))
            }
            Self::F64(targets, weights) => targets.get(at).zip(weights.get(at)).map(|(to, by)| {
                to.store(target, Ordering::Relaxed);
                by.store(weight.to_bits(), Ordering::Relaxed);
            }),
        })
    }
}

impl Adjacency {
    /// Bytes that lists take while they are made; they take 4 a vertex fewer from then on.
    pub(crate) fn bytes(graph: &Graph, weighted: bool) -> u64 {
        let arc_bytes = Stored::arc_bytes(weights(graph, weighted));
        graph.manifest().vertices * 8 + graph.manifest().arcs * arc_bytes
    }

    /// Bytes of where the lists of so many vertices end.
    pub(crate) fn bytes_of_ends(vertices: usize) -> u64 {
        vertices as u64 * 4
    }

    /// Whether a run on a GPU should change to lists: its steps took longer than making lists would, and
    /// these fit the memory beside `state_bytes`.
    pub(crate) fn pays(graph: &Graph, run: &Run<'_>, weighted: bool, state_bytes: u64) -> bool {
        run.steps() as u64 > STEPS + graph.manifest().arcs / ARCS_A_STEP
            && Self::bytes(graph, weighted) + state_bytes <= graph.memory().budget().left()
    }

    /// Makes the lists, with weights if `weighted`; `None` where there is no memory for them, or where
    /// there are 2³² arcs or more. Blocks that are resident make room.
    ///
    /// # Errors
    /// Any error of a pass; degrees that are not those of the arcs.
    pub(crate) fn read(graph: &Graph, weighted: bool) -> Result<Option<Self>> {
        let (vertices, arcs) = (graph.manifest().vertices, graph.manifest().arcs);
        let (weights, bytes) = (weights(graph, weighted), Self::bytes(graph, weighted));
        if u32::try_from(arcs).is_err() || bytes > graph.memory().budget().left() {
            return Ok(None);
        }
        // Another run may have been faster.
        let Some(mut held) = graph.memory().reserve_if_left(bytes, "the arcs as lists")? else {
            return Ok(None);
        };
        let degrees = graph.degrees().of(Direction::Out)?;
        let mut begin = 0u32;
        let mut ends = Array::<AtomicU32>::zeroed(degrees.len())?;
        for (end, &degree) in ends.iter_mut().zip(&degrees) {
            *end.get_mut() = begin;
            begin = begin.wrapping_add(degree);
        }
        let lists = Filling { ends, arcs: Stored::new(arcs as usize, weights)? };
        lists.fill(graph)?;
        lists.check(graph, &degrees)?;
        drop(degrees);
        held.shrink_to(bytes - vertices * 4);
        Ok(Some(Self { ends: lists.ends, arcs: lists.arcs, _held: held }))
    }

    /// The number of arcs in all lists.
    pub(crate) fn arcs(&self) -> usize {
        self.ends.last().map_or(0, |end| end.load(Ordering::Relaxed) as usize)
    }

    /// The out-degree of `v`.
    #[inline(always)]
    pub(crate) fn degree(&self, v: u32) -> usize {
        self.list(v).len()
    }

    #[inline(always)]
    fn list(&self, v: u32) -> Range<usize> {
        let end = |v: u32| self.ends[v as usize].load(Ordering::Relaxed) as usize;
        let begin = v.checked_sub(1).map_or(0, end);
        begin..end(v)
    }

    /// Prefetches where the list of `v` is.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self, v: u32) {
        prefetch(&self.ends, v as usize);
    }

    /// Prefetches the beginning of the list of `v`.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, v: u32) {
        let begin = self.list(v).start;
        match &self.arcs {
            Stored::Plain(targets) => prefetch(targets, begin),
            Stored::F32(arcs) => prefetch(arcs, begin),
            Stored::F64(targets, weights) => {
                prefetch(targets, begin);
                prefetch(weights, begin);
            }
        }
    }

    /// Calls `visit` with each neighbour of `v`.
    #[inline(always)]
    pub(crate) fn targets(&self, v: u32, mut visit: impl FnMut(u32)) {
        let list = self.list(v);
        match &self.arcs {
            Stored::Plain(targets) | Stored::F64(targets, _) => {
                targets[list].iter().for_each(|target| visit(target.load(Ordering::Relaxed)));
            }
            Stored::F32(arcs) => {
                arcs[list].iter().for_each(|arc| visit(arc.load(Ordering::Relaxed) as u32));
            }
        }
    }

    /// Calls `visit(neighbour, weight)` for each arc of `v`; weights are 1 where there are none.
    #[inline(always)]
    pub(crate) fn weighted(&self, v: u32, mut visit: impl FnMut(u32, f64)) {
        let list = self.list(v);
        match &self.arcs {
            Stored::Plain(targets) => {
                targets[list].iter().for_each(|target| visit(target.load(Ordering::Relaxed), 1.0));
            }
            Stored::F32(arcs) => arcs[list].iter().for_each(|arc| {
                let arc = arc.load(Ordering::Relaxed);
                visit(arc as u32, f32::from_bits((arc >> 32) as u32).into());
            }),
            Stored::F64(targets, weights) => {
                let weights = &weights[list.clone()];
                for (target, weight) in targets[list].iter().zip(weights) {
                    let weight = f64::from_bits(weight.load(Ordering::Relaxed));
                    visit(target.load(Ordering::Relaxed), weight);
                }
            }
        }
    }

    /// The weight of arc number `at`, counted list by list.
    pub(crate) fn weight(&self, at: usize) -> f64 {
        match &self.arcs {
            Stored::Plain(_) => 1.0,
            Stored::F32(arcs) => {
                f32::from_bits((arcs[at].load(Ordering::Relaxed) >> 32) as u32).into()
            }
            Stored::F64(_, weights) => f64::from_bits(weights[at].load(Ordering::Relaxed)),
        }
    }
}

/// The type of the weights that lists hold.
fn weights(graph: &Graph, weighted: bool) -> Weights {
    if weighted { graph.manifest().weighted } else { Weights::None }
}

/// Adjacency lists under construction, which all threads add arcs to.
struct Filling {
    /// For each vertex, the index in `arcs` of the next arc that is added to its list.
    ends: Array<AtomicU32>,
    arcs: Stored,
}

impl Filling {
    fn fill(&self, graph: &Graph) -> Result<()> {
        let all = graph.tiles().select(|_| true);
        // Of an undirected graph's raw blocks, a row is a whole list.
        let whole = !graph.tiles().is_stored() && !graph.manifest().directed;
        let fits = AtomicBool::new(true);
        edge_map(graph, &all, Fill { lists: self, whole, fits: &fits })?;
        if fits.into_inner() { Ok(()) } else { Err(other_degrees(graph)) }
    }

    /// Adds an arc; false where there is no room for it.
    #[inline(always)]
    fn put(&self, from: u32, to: u32, weight: f64) -> bool {
        let Some(end) = self.ends.get(from as usize) else { return false };
        self.arcs.set(end.fetch_add(1, Ordering::Relaxed) as usize, to, weight)
    }

    /// Checks that every list ends where the next begins.
    fn check(&self, graph: &Graph, degrees: &[u32]) -> Result<()> {
        let mut end = 0u32;
        let as_said = self.ends.iter().zip(degrees).all(|(found, &degree)| {
            end = end.wrapping_add(degree);
            found.load(Ordering::Relaxed) == end
        });
        if as_said { Ok(()) } else { Err(other_degrees(graph)) }
    }
}

/// Adds arcs to the lists of their sources, and edges that are stored once to those of both ends.
#[derive(Clone, Copy)]
struct Fill<'a> {
    lists: &'a Filling,
    /// Whether a raw row is the list of its own vertex, and not of its arcs' sources.
    whole: bool,
    /// Whether every arc that was added had a place in its list.
    fits: &'a AtomicBool,
}

impl Fill<'_> {
    #[inline(always)]
    fn put(&self, from: u32, to: u32, weight: f64) {
        if !self.lists.put(from, to, weight) {
            self.fits.store(false, Ordering::Relaxed);
        }
    }
}

impl Program for Fill<'_> {
    type Worker = ();
    type Source = u32;
    type Row = u32;

    const WEIGHTED: bool = true;

    #[inline(always)]
    fn load(&self, column: u32) -> u32 {
        column
    }

    #[inline(always)]
    fn empty(&self, row: u32) -> u32 {
        row
    }

    #[inline(always)]
    fn take(&self, (): &mut (), row: &mut u32, column: u32, weight: f64) {
        let (from, to) = if self.whole { (*row, column) } else { (column, *row) };
        self.put(from, to, weight);
    }

    #[inline(always)]
    fn scatter(&self, (): &mut (), row: &u32, column: u32, weight: f64) {
        self.put(*row, column, weight);
    }
}

/// The error of lists that are not as long as degrees say.
pub(crate) fn other_degrees(graph: &Graph) -> Error {
    Error::new(ErrorKind::Format, "list the arcs of")
        .object(graph.dir().path().display())
        .expected("as many of each vertex as its degree says")
        .got("others: a file is damaged")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}
