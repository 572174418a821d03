//! What the two vertices of a pair have in common: `intersect`, over the lists of both.
//!
//! The neighbours of a vertex that is in several pairs are marked, and those of the other vertices, which have
//! fewer, are looked up there. Where all lists fit the memory, pairs are gone over once. Where not, the lists of
//! as many pairs' vertices of fewer arcs as fit are held while those of the others go by, part by part; a round reads pages of wanted
//! vertices alone where they are few. 64 bytes a pair, and the degrees.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, Reservation};

use super::intersect::{each_common, flip, has};
use crate::bits::Bits;
use crate::per_worker::PerWorker;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, Lists, RowMap, Side};

/// Pairs of a vertex that a thread takes together.
const TOGETHER: usize = 1 << 12;
/// What searching a long list for a value costs, as values that are looked at one after the other.
const SEARCH_COST: usize = 20;
/// Bytes of a pair beside its ends: its results, twice at the end, and its places in a part.
const PAIR_BYTES: u64 = 64;

/// How much a common neighbour adds to what the vertices of a pair have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighed {
    /// One: how many there are.
    Alike,
    /// The inverse of the logarithm of how many arcs lead to it (Adamic and Adar, Social Networks 25, 2003);
    /// nothing where only one does, which is so where a vertex is compared with itself.
    ByLogarithm,
    /// The inverse of how many arcs lead to it (Zhou, Lü and Zhang, Eur. Phys. J. B 71, 2009).
    ByArcs,
}

/// The sums and numbers of neighbours that were found for pairs of vertices.
#[derive(Debug, Default)]
pub struct InCommon {
    /// For each pair, the sum over all neighbours that both have.
    pub sums: Vec<f64>,
    /// For each pair, how many different neighbours each of its vertices has.
    pub neighbors: Vec<[u32; 2]>,
}

/// The neighbours that arcs lead to from both vertices of each pair, each counted once and as `weighed` says.
///
/// # Errors
/// Pairs of what are no vertices, 2³² pairs or more, state that does not fit the memory, any error of a pass.
pub fn in_common(
    graph: &Graph,
    pairs: &[[u32; 2]],
    weighed: Weighed,
    progress: &dyn Progress,
) -> Result<(InCommon, RunReport)> {
    let (n, count, workers) = (graph.vertices(), pairs.len(), graph.thread_pool().size());
    check(graph, pairs)?;
    let longest = RowMap::longest(graph, Side::Out)?;
    let plan = RowMap::memory(graph, Side::Out)?
        .and("the pairs", count as u64 * PAIR_BYTES)
        .and(
            "how many arcs lead to a vertex",
            if weighed == Weighed::Alike { 0 } else { n as u64 * 4 },
        )
        .and("which vertices are wanted", 2 * Bits::bytes(n))
        .and("the workers' marks", workers as u64 * Bits::bytes(n))
        .and("the neighbours of a pair's vertex", longest * 4 + 64);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Out)?;
    let mut rows = RowMap::new(graph, &degrees)?.distinct();
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "similarity", 0, progress).with_passes_of(rows.round_bytes());
    let found = Found::new(count, Values::of(graph, weighed)?)?;
    let marks = PerWorker::new((0..workers).map(|_| vec![0; n.div_ceil(64)]));
    if let Some(lists) = rows.whole()? {
        run.iteration("fill", 0.0);
        let mut passing: Vec<Passing> =
            (0..count as u32).map(|pair| Passing::of(&degrees, pairs, pair, |held| held)).collect();
        passing.sort_unstable_by_key(|passing| (passing.vertex, passing.pair));
        let of_vertices = passing.chunk_by(|a, b| a.vertex == b.vertex);
        let parts = of_vertices.flat_map(|of_vertex| of_vertex.chunks(TOGETHER));
        graph.thread_pool().share(parts, |worker, parts| {
            let mut marks = marks.of(worker);
            for part in parts.take_while(|_| !graph.cancel().is_cancelled()) {
                found.compare(&mut marks, lists.of(part[0].vertex), part, |held| lists.of(held));
            }
        })?;
        graph.cancel().check("compare the pairs")?;
        run.iteration("intersect", count as f64);
    } else {
        let mut parts = Parts::new(graph, &degrees, pairs, longest)?;
        while let Some(part) = parts.next(&mut rows)? {
            run.iteration("fill", 0.0);
            part.compare(&mut rows, &found, &marks)?;
            run.iteration("intersect", part.passing.len() as f64);
        }
    }
    let report = run.finish(true)?;
    Ok((found.into_values(), report))
}

/// Refuses pairs of what are no vertices, and too many.
pub(crate) fn check(graph: &Graph, pairs: &[[u32; 2]]) -> Result<()> {
    let n = graph.vertices();
    let refused = |expected: String, got: String| {
        Err(Error::new(ErrorKind::Input, "compare pairs of vertices").expected(expected).got(got))
    };
    if u32::try_from(pairs.len()).is_err() {
        return refused("fewer than 2^32 pairs".into(), pairs.len().to_string());
    }
    match pairs.as_flattened().iter().find(|&&v| v as usize >= n) {
        Some(vertex) => refused(format!("vertices below {n}"), vertex.to_string()),
        None => Ok(()),
    }
}

/// How much each vertex of a graph counts, where it is a common neighbour of a pair.
pub(crate) struct Values {
    /// How many arcs lead to a vertex, where that counts.
    arcs: Option<ListDegrees>,
    weighed: Weighed,
}

impl Values {
    /// The values of the vertices of `graph`, which take the memory of degrees unless they are alike.
    pub fn of(graph: &Graph, weighed: Weighed) -> Result<Self> {
        let arcs = match weighed {
            Weighed::Alike => None,
            Weighed::ByLogarithm | Weighed::ByArcs => Some(ListDegrees::read(graph, Side::In)?),
        };
        Ok(Self { arcs, weighed })
    }

    /// How much vertex `w` counts as a common neighbour.
    #[inline(always)]
    pub fn value(&self, w: u32) -> f64 {
        let arcs = self.arcs.as_ref().map_or(1, |arcs| arcs.all(w));
        match self.weighed {
            Weighed::ByLogarithm if arcs < 2 => 0.0,
            Weighed::ByLogarithm => 1.0 / (arcs as f64).ln(),
            Weighed::Alike | Weighed::ByArcs => 1.0 / arcs as f64,
        }
    }
}

/// The sums and the numbers of neighbours of pairs, as several threads find them.
struct Found {
    values: Values,
    /// The bits of each pair's sum.
    sums: Array<AtomicU64>,
    /// The numbers of neighbours of each pair's first vertex, and above of its second.
    neighbors: Array<AtomicU64>,
}

impl Found {
    fn new(pairs: usize, values: Values) -> Result<Self> {
        Ok(Self { values, sums: Array::zeroed(pairs)?, neighbors: Array::zeroed(pairs)? })
    }

    /// Compares the list of a vertex with the others of its pairs, which `held` gives by their numbers. `marks`
    /// are of no vertex before and after.
    fn compare<'l>(
        &self,
        marks: &mut [u64],
        list: &[u32],
        of_vertex: &[Passing],
        held: impl Fn(u32) -> &'l [u32],
    ) {
        let few = |passing: &Passing| held(passing.held).len();
        let apart = |few: usize| (few + list.len()).min(few * SEARCH_COST);
        let each = of_vertex.iter().map(|passing| apart(few(passing))).sum::<usize>();
        let marked = of_vertex.iter().map(few).sum::<usize>() + 2 * list.len();
        let is_marked = marked < each;
        if is_marked {
            list.iter().for_each(|&w| flip(marks, w));
        }
        for passing in of_vertex {
            let (other, mut sum) = (held(passing.held), 0.0);
            if is_marked {
                for &w in other {
                    // Most lists have few in common: this branch is guessed well, and a sum of zeros is not free.
                    if has(marks, w) {
                        sum += self.values.value(w);
                    }
                }
            } else {
                each_common(other, list, |w| sum += self.values.value(w));
            }
            let lengths = [other.len() as u64, list.len() as u64];
            let [first, second] =
                if passing.is_turned { [lengths[1], lengths[0]] } else { lengths };
            let pair = passing.pair as usize;
            self.sums[pair].store(sum.to_bits(), Ordering::Relaxed);
            self.neighbors[pair].store(second << 32 | first, Ordering::Relaxed);
        }
        if is_marked {
            list.iter().for_each(|&w| flip(marks, w));
        }
    }

    fn into_values(self) -> InCommon {
        let loaded = |array: &Array<AtomicU64>| {
            array.iter().map(|value| value.load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        let sums = loaded(&self.sums).into_iter().map(f64::from_bits).collect();
        let lengths = loaded(&self.neighbors).into_iter();
        InCommon {
            sums,
            neighbors: lengths.map(|both| [both as u32, (both >> 32) as u32]).collect(),
        }
    }
}

/// A pair of a part.
#[derive(Debug, Clone, Copy)]
struct Passing {
    /// The vertex whose list goes by.
    vertex: u32,
    /// The number, in the part, of the one whose list is held.
    held: u32,
    pair: u32,
    /// Whether the one that is held is the pair's second.
    is_turned: bool,
}

impl Passing {
    /// Pair number `pair`, of whose vertex that is held `number` makes its number.
    fn of(
        degrees: &ListDegrees,
        pairs: &[[u32; 2]],
        pair: u32,
        number: impl FnOnce(u32) -> u32,
    ) -> Self {
        let ends = pairs[pair as usize];
        let held = held_of(degrees, ends);
        let is_turned = ends[0] != held;
        let vertex = ends[usize::from(!is_turned)];
        Self { vertex, held: number(held), pair, is_turned }
    }
}

/// The pairs, by vertices whose lists are held together.
struct Parts<'a> {
    graph: &'a Graph,
    degrees: &'a ListDegrees,
    pairs: &'a [[u32; 2]],
    /// Pairs, those with the same held vertex side by side.
    order: Vec<u32>,
    /// How many of them are in parts that were made.
    done: usize,
    /// Bytes of the lists of a part.
    room: u64,
    _held: Option<Reservation>,
}

/// The lists that are held, and the pairs of their vertices.
struct Part<'a> {
    graph: &'a Graph,
    lists: Lists,
    /// How long each list is.
    lengths: Vec<u32>,
    /// Pairs by ascending vertices whose lists go by.
    passing: Vec<Passing>,
}

impl<'a> Parts<'a> {
    fn new(
        graph: &'a Graph,
        degrees: &'a ListDegrees,
        pairs: &'a [[u32; 2]],
        longest: u64,
    ) -> Result<Self> {
        let mut order: Vec<u32> = (0..pairs.len() as u32).collect();
        order.sort_unstable_by_key(|&pair| (held_of(degrees, pairs[pair as usize]), pair));
        let held = |&pair: &u32| held_of(degrees, pairs[pair as usize]);
        let vertices = order.chunk_by(|a, b| held(a) == held(b)).map(|of_one| held(&of_one[0]));
        let all = vertices.map(|v| degrees.all(v) * 4 + 4).sum::<u64>();
        let more = all.min(graph.memory().budget().left() / 4 * 3);
        let held = graph.memory().reserve_if_left(more, "the neighbours of pairs' vertices")?;
        let room = longest * 4 + 64 + if held.is_some() { more } else { 0 };
        Ok(Self { graph, degrees, pairs, order, done: 0, room, _held: held })
    }

    /// Reads the lists of the next part; `None` where there is none.
    fn next(&mut self, rows: &mut RowMap<'_>) -> Result<Option<Part<'a>>> {
        let Self { graph, degrees, pairs, .. } = *self;
        let (mut vertices, mut passing, mut bytes) = (Vec::new(), Vec::new(), 4);
        for &pair in &self.order[self.done..] {
            let held = held_of(degrees, pairs[pair as usize]);
            if vertices.last() != Some(&held) {
                bytes += degrees.all(held) * 4 + 4;
                if bytes > self.room && !vertices.is_empty() {
                    break;
                }
                vertices.push(held);
            }
            let number = vertices.len() as u32 - 1;
            passing.push(Passing::of(degrees, pairs, pair, |_| number));
        }
        if passing.is_empty() {
            return Ok(None);
        }
        self.done += passing.len();
        passing.sort_unstable_by_key(|passing| (passing.vertex, passing.pair));
        let mut lists = Lists::of_lengths(0, vertices.iter().map(|&v| degrees.all(v) as u32))?;
        let lengths: Vec<_> = vertices.iter().map(|_| AtomicU32::new(0)).collect();
        let (starts, targets) = lists.slots();
        let wanted = set_of(graph, vertices.iter().copied());
        rows.for_each_of(
            &|v| wanted.has(v),
            |_| (),
            |(), v, list| {
                let Ok(at) = vertices.binary_search(&v) else { return };
                lengths[at].store(list.len() as u32, Ordering::Relaxed);
                let to = &targets[starts[at] as usize..];
                to.iter().zip(list).for_each(|(to, &w)| to.store(w, Ordering::Relaxed));
            },
        )?;
        let lengths = lengths.into_iter().map(AtomicU32::into_inner).collect();
        Ok(Some(Part { graph, lists, lengths, passing }))
    }
}

impl Part<'_> {
    /// Compares the lists that are held with the others of their pairs, which go by.
    fn compare(
        &self,
        rows: &mut RowMap<'_>,
        found: &Found,
        marks: &PerWorker<Vec<u64>>,
    ) -> Result<()> {
        let wanted = set_of(self.graph, self.passing.iter().map(|passing| passing.vertex));
        let held = |number: u32| &self.lists.of(number)[..self.lengths[number as usize] as usize];
        rows.for_each_of(
            &|v| wanted.has(v),
            |worker| marks.of(worker),
            |marks, v, list| {
                let first = self.passing.partition_point(|passing| passing.vertex < v);
                let rest = &self.passing[first..];
                let of_vertex = &rest[..rest.partition_point(|passing| passing.vertex == v)];
                found.compare(marks, list, of_vertex, held);
            },
        )
    }
}

/// The vertex of a pair whose list is held: the one of fewer arcs.
fn held_of(degrees: &ListDegrees, [a, b]: [u32; 2]) -> u32 {
    if (degrees.all(b), b) < (degrees.all(a), a) { b } else { a }
}

/// The set of `vertices`.
fn set_of(graph: &Graph, vertices: impl Iterator<Item = u32>) -> Bits {
    let bits = Bits::none(graph.vertices());
    vertices.for_each(|v| bits.put(v));
    bits
}
