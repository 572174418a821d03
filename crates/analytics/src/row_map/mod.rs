//! `row_map`: all neighbours of a vertex together, for algorithms that need more of them than a sum.
//!
//! Vertices come in ranges whose lists fit the memory as plain ids, 4 bytes an arc. A graph that fits is one
//! range, whose lists stay for all later rounds. Of others, every round reads each page of rows once, from
//! the drive or from resident blocks, and decodes it to its place; the lists are visited, and the next range
//! takes their place. Out-neighbours come from `out.rows`, in-neighbours from `in.rows` or, in graphs without
//! them, from the strips of tiles; with codec `raw` from blocks of ids.

mod filling;
mod lists;
mod part;

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::{Array, MemoryPlan, Reservation};

use filling::Filling;

pub(crate) use lists::Lists;
pub(crate) use part::ListsPart;

/// The bytes of lists that are in memory at once where not all are: long enough for reads to be large.
const RANGE_BYTES: u64 = 64 << 20;

/// The bytes of lists for which there is always room, if the graph has as many.
const LEAST_BYTES: u64 = 256 << 10;

/// Vertices that are visited between two looks at whether a run is cancelled, where one thread visits them.
const CANCEL_EACH: usize = 1 << 14;

/// The arcs that make a vertex's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The arcs that leave it: all of an undirected graph's.
    Out,
    /// The arcs that enter it: all of an undirected graph's.
    In,
    /// The arcs that leave it, and then those that enter it.
    Both,
}

impl Side {
    /// This side, or the one that stands for all of them in a graph whose edges have no direction.
    pub(crate) fn of(self, graph: &Graph) -> Self {
        if graph.manifest().directed { self } else { Self::Out }
    }

    /// In how many directions `graph` has arcs of their own on this side.
    pub(crate) fn count(self, graph: &Graph) -> usize {
        self.directions(graph).len()
    }

    /// The directions of which `graph` has arcs of their own on this side.
    fn directions(self, graph: &Graph) -> &'static [Direction] {
        match self {
            Self::Both if graph.manifest().directed => &[Direction::Out, Direction::In],
            Self::In if graph.manifest().directed => &[Direction::In],
            _ => &[Direction::Out],
        }
    }
}

/// The degrees of a graph's vertices in each direction of a side.
#[derive(Debug)]
pub(crate) struct ListDegrees {
    side: Side,
    of: Vec<Vec<u32>>,
}

impl ListDegrees {
    /// Reads them: 4 bytes a vertex and direction.
    ///
    /// # Errors
    /// Degrees that cannot be read, or are damaged.
    pub(crate) fn read(graph: &Graph, side: Side) -> Result<Self> {
        let directions = side.directions(graph).iter();
        let of =
            directions.map(|&direction| graph.degrees().of(direction)).collect::<Result<_>>()?;
        Ok(Self { side, of })
    }

    /// The number of arcs in the list of `v`.
    #[inline(always)]
    pub(crate) fn all(&self, v: u32) -> u64 {
        self.of.iter().map(|degrees| u64::from(degrees[v as usize])).sum()
    }

    /// How many of them, the first of the list, leave `v`; all of an undirected graph's.
    #[inline(always)]
    pub(crate) fn out(&self, v: u32) -> usize {
        self.of[0][v as usize] as usize
    }
}

/// The different neighbours of `v` among the targets of its arcs, ascending and without itself. `buffer` has
/// them where the arcs are others.
pub(crate) fn distinct<'a>(v: u32, arcs: &'a [u32], buffer: &'a mut Vec<u32>) -> &'a [u32] {
    if arcs.is_sorted_by(|a, b| a < b) && arcs.binary_search(&v).is_err() {
        return arcs;
    }
    buffer.clear();
    buffer.extend(arcs.iter().filter(|&&target| target != v));
    buffer.sort_unstable();
    buffer.dedup();
    buffer
}

/// Which vertices a round visits.
pub(crate) type Wanted<'a> = dyn Fn(u32) -> bool + Sync + 'a;

pub(crate) trait Begin<W>: Fn(usize) -> W + Sync {}
impl<W, F: Fn(usize) -> W + Sync> Begin<W> for F {}

pub(crate) trait Visit<W>: Fn(&mut W, u32, &[u32]) + Sync {}
impl<W, F: Fn(&mut W, u32, &[u32]) + Sync> Visit<W> for F {}

/// Bytes of a vertex of a range while its list is read: where it begins, where the next arc goes or it ends, and
/// its number, if that is needed.
fn vertex_bytes(graph: &Graph, side: Side) -> u64 {
    let bytes = |&direction: &Direction| match graph.rows(direction).is_stored() {
        true => 8,
        false if graph.raw(direction).is_stored() => 12,
        false => 8,
    };
    side.directions(graph).iter().map(bytes).max().unwrap_or(8)
}

/// The neighbour lists of a graph, range by range.
pub(crate) struct RowMap<'g> {
    graph: &'g Graph,
    degrees: &'g ListDegrees,
    ranges: Vec<Range<u32>>,
    lists: Lists,
    /// The vertices whose lists are all in memory.
    filled: Option<Range<u32>>,
    is_forward: bool,
    order: Listed,
    _held: Option<Reservation>,
}

/// How neighbours are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// Neighbours as they come.
    Any,
    /// Neighbours in ascending order.
    Sorted,
    /// Neighbours in ascending order, each once.
    Distinct,
    /// Neighbours in ascending order, each once, without the vertex itself.
    Simple,
}

impl<'g> RowMap<'g> {
    /// The least memory that [`RowMap::new`] takes; what is left beyond it may hold more lists.
    ///
    /// # Errors
    /// Degrees that cannot be read, or are damaged.
    pub(crate) fn memory(graph: &Graph, side: Side) -> Result<MemoryPlan> {
        let longest = Self::longest(graph, side)?;
        let degrees = graph.manifest().vertices * 4 * side.directions(graph).len() as u64;
        let lists = (longest * 4 + 64).max(LEAST_BYTES.min(Self::whole_bytes(graph, side)));
        Ok(MemoryPlan::default().and("the degrees", degrees).and("lists of neighbours", lists))
    }

    /// The number of arcs of all lists.
    pub(crate) fn arcs(graph: &Graph, side: Side) -> u64 {
        graph.manifest().arcs * side.directions(graph).len() as u64
    }

    /// Bytes of all lists while they are read.
    pub(crate) fn whole_bytes(graph: &Graph, side: Side) -> u64 {
        let arcs = Self::arcs(graph, side);
        (graph.manifest().vertices + 1) * vertex_bytes(graph, side) + arcs * 4
    }

    /// The most arcs that a vertex has, or some more.
    ///
    /// # Errors
    /// Degrees that cannot be read, or are damaged.
    pub(crate) fn longest(graph: &Graph, side: Side) -> Result<u64> {
        let directions = side.directions(graph).iter();
        directions.map(|&direction| graph.degrees().largest(direction).map(u64::from)).sum()
    }

    fn of(graph: &'g Graph, degrees: &'g ListDegrees, ranges: Vec<Range<u32>>) -> Self {
        let (lists, order) = (Lists::default(), Listed::Any);
        Self { graph, degrees, ranges, lists, filled: None, is_forward: false, order, _held: None }
    }

    /// The lists of which these are the degrees; none is read. The caller has reserved [`RowMap::memory`].
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(graph: &'g Graph, degrees: &'g ListDegrees) -> Result<Self> {
        let mut made = Self::of(graph, degrees, Vec::new());
        let vertices = graph.vertices() as u32;
        let arcs: u64 = (0..vertices).map(|v| degrees.all(v)).sum();
        let whole = (u64::from(vertices) + 1) * vertex_bytes(graph, degrees.side) + arcs * 4;
        let memory = graph.memory();
        let least = LEAST_BYTES.min(Self::whole_bytes(graph, degrees.side));
        if arcs < u64::from(u32::MAX) {
            made._held = memory.reserve_if_left(whole.saturating_sub(least), "the neighbours")?;
            if made._held.is_some() {
                made.ranges.push(0..vertices);
                return Ok(made);
            }
        }
        let more = (memory.budget().left() / 4).min(RANGE_BYTES);
        made._held = memory.reserve_if_left(more, "neighbours")?;
        let room = least + if made._held.is_some() { more } else { 0 };
        let lengths = (0..vertices).map(|v| degrees.all(v));
        made.ranges = cut(lengths, vertex_bytes(graph, degrees.side), room);
        Ok(made)
    }

    /// Bytes of the files that a round over all lists reads, where none is in memory.
    pub(crate) fn round_bytes(&self) -> u64 {
        let bytes = |name: String| self.graph.manifest().files.get(&name).map_or(0, |f| f.bytes);
        let of = |&direction: &Direction| match self.graph.rows(direction).is_stored() {
            true => bytes(format!("{direction}.rows")),
            false if self.graph.raw(direction).is_stored() => self.graph.raw(direction).bytes(),
            false => self.graph.tiles().bytes(),
        };
        self.degrees.side.directions(self.graph).iter().map(of).sum()
    }

    /// The graph whose lists they are.
    pub(crate) fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The same, whose rounds go from the first vertex to the last: in degree order, those of many arcs first.
    /// Others go from the last to the first.
    pub(crate) fn forward(self) -> Self {
        Self { is_forward: true, ..self }
    }

    /// The same, whose lists ascend.
    pub(crate) fn sorted(self) -> Self {
        Self { order: Listed::Sorted, ..self }
    }

    /// The same, whose lists have every neighbour once, ascending.
    pub(crate) fn distinct(self) -> Self {
        Self { order: Listed::Distinct, ..self }
    }

    /// The same, whose lists have every neighbour once, ascending, and not the vertex itself.
    pub(crate) fn simple(self) -> Self {
        Self { order: Listed::Simple, ..self }
    }

    /// Whether all lists are in memory once they were read.
    pub(crate) fn is_whole(&self) -> bool {
        self.ranges.len() <= 1
    }

    /// Calls `visit` with every vertex and all its neighbours, on all threads: the neighbours of each
    /// direction one direction after the other, in any order and as often as there are arcs. Each worker
    /// has a state, which `begin` makes of its number for every range.
    ///
    /// # Errors
    /// Those of a pass; lists that are not as long as degrees say.
    pub(crate) fn for_each<W>(&mut self, begin: impl Begin<W>, visit: impl Visit<W>) -> Result<()> {
        self.for_each_of(&|_| true, begin, visit)
    }

    /// As [`for_each`](Self::for_each), for the vertices of which `wanted` is true. Where lists are not in
    /// memory and few are wanted, only their pages are read.
    pub(crate) fn for_each_of<W>(
        &mut self,
        wanted: &Wanted<'_>,
        begin: impl Begin<W>,
        visit: impl Visit<W>,
    ) -> Result<()> {
        self.for_each_part(wanted, |part| part.visit(wanted, &begin, &visit))
    }

    /// Calls `work` with each part of the lists that is in memory at a time: those of a range of vertices, or of the few
    /// of it that are `wanted` when the range begins.
    ///
    /// # Errors
    /// Those of `work` and of [`for_each`](Self::for_each).
    pub(crate) fn for_each_part(
        &mut self,
        wanted: &Wanted<'_>,
        mut work: impl FnMut(&ListsPart<'_>) -> Result<()>,
    ) -> Result<()> {
        let (count, is_forward) = (self.ranges.len(), self.is_forward);
        for turn in 0..count {
            let number = if is_forward { turn } else { count - 1 - turn };
            let filled = self.fill(&self.ranges[number].clone(), wanted)?;
            let some = match &filled {
                Filled::All => None,
                Filled::Some(some) => Some(&some[..]),
            };
            work(&ListsPart { graph: self.graph, lists: &self.lists, some, is_forward })?;
        }
        Ok(())
    }

    /// Calls `visit` with each of `vertices`, which ascend, and its neighbours, one after the other. Where
    /// lists are not in memory and few vertices of a range are asked for, only their pages are read.
    ///
    /// # Errors
    /// Those of [`for_each`](Self::for_each).
    pub(crate) fn one_by_one(
        &mut self,
        vertices: &[u32],
        visit: &mut dyn FnMut(u32, &[u32]),
    ) -> Result<()> {
        for number in 0..self.ranges.len() {
            let Range { start, end } = self.ranges[number];
            let own =
                vertices.partition_point(|&v| v < start)..vertices.partition_point(|&v| v < end);
            let own = &vertices[own];
            if !own.is_empty() {
                self.fill(&(start..end), &|v| own.binary_search(&v).is_ok())?;
                own.iter().for_each(|&v| visit(v, self.lists.of(v)));
            }
        }
        Ok(())
    }

    /// Calls `visit` with every vertex that is `wanted` and its neighbours, one after the other, from the first to the
    /// last. Where lists are not in memory and few of a range are wanted when it begins, only their pages are read; of these
    /// ranges vertices that are wanted later are not visited.
    ///
    /// # Errors
    /// Those of [`for_each`](Self::for_each).
    pub(crate) fn in_order(
        &mut self,
        wanted: &Wanted<'_>,
        mut visit: impl FnMut(u32, &[u32]),
    ) -> Result<()> {
        let cancel = self.graph.cancel();
        for number in 0..self.ranges.len() {
            let range = self.ranges[number].clone();
            let filled = self.fill(&range, wanted)?;
            let mut one = |(i, v)| {
                if i % CANCEL_EACH == 0 {
                    cancel.check("finish the pass")?;
                }
                visit(v, self.lists.of(v));
                Ok(())
            };
            match filled {
                Filled::All => range.filter(|&v| wanted(v)).enumerate().try_for_each(&mut one)?,
                Filled::Some(some) => some.into_iter().enumerate().try_for_each(&mut one)?,
            }
        }
        Ok(())
    }

    /// All lists, if they fit the memory at once.
    ///
    /// # Errors
    /// Those of a pass.
    pub(crate) fn whole(&mut self) -> Result<Option<&Lists>> {
        if !self.is_whole() {
            return Ok(None);
        }
        self.fill(&self.ranges[0].clone(), &|_| true)?;
        Ok(Some(&self.lists))
    }

    /// Puts the lists of the vertices of `range` that are `wanted` into `lists`, for which the caller has reserved memory.
    ///
    /// # Errors
    /// Those of [`for_each`](Self::for_each).
    pub(crate) fn read_to(
        &self,
        lists: &mut Lists,
        range: &Range<u32>,
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        self.fill_to(lists, range, wanted, 0)?;
        Ok(())
    }

    fn filled_whole(graph: &Graph, degrees: &ListDegrees) -> Result<Lists> {
        let vertices = 0..graph.vertices() as u32;
        let mut all = RowMap::of(graph, degrees, std::iter::once(vertices).collect());
        all.fill(&all.ranges[0].clone(), &|_| true)?;
        Ok(all.lists)
    }

    /// Whether all lists, with their degrees, fit the memory that is left.
    pub(crate) fn fits(graph: &Graph, side: Side) -> Result<bool> {
        let bytes = Self::whole_bytes(graph, side) + Self::memory(graph, side)?.bytes();
        Ok(bytes <= graph.memory().budget().left())
    }

    /// Has the lists of `range` in memory, or only those of the vertices that are wanted if these are few.
    fn fill(&mut self, range: &Range<u32>, wanted: &Wanted<'_>) -> Result<Filled> {
        if self.filled.as_ref() == Some(range) {
            return Ok(Filled::All);
        }
        if !self.is_whole() && !range.clone().any(wanted) {
            return Ok(Filled::Some(Vec::new()));
        }
        self.filled = None;
        // The largest range at once: what was reserved is for one.
        let arcs = |range: &Range<u32>| range.clone().map(|v| self.degrees.all(v)).sum::<u64>();
        let most = match self.lists.targets.is_empty() {
            true => self.ranges.iter().map(arcs).max().unwrap_or(0),
            false => 0,
        };
        let mut lists = std::mem::take(&mut self.lists);
        let filled = self.fill_to(&mut lists, range, wanted, most)?;
        self.lists = lists;
        self.filled = matches!(filled, Filled::All).then(|| range.clone());
        Ok(filled)
    }

    /// The vertices of a range that are wanted, if these are few, or have few of its arcs.
    fn few(&self, range: &Range<u32>, wanted: &Wanted<'_>) -> Option<Vec<u32>> {
        const FEW: usize = 16;
        const LISTED: usize = 1 << 12;
        const PART: u64 = 2;
        let few = range.len() / FEW;
        let some = range.clone().filter(|&v| wanted(v)).take(few.max(LISTED) + 1);
        let some: Vec<u32> = some.collect();
        let arcs = |vertices: &mut dyn Iterator<Item = u32>| -> u64 {
            vertices.map(|v| self.degrees.all(v)).sum()
        };
        let has_few_arcs = || arcs(&mut some.iter().copied()) <= arcs(&mut range.clone()) / PART;
        let is_few = some.len() <= few || (some.len() <= LISTED && has_few_arcs());
        is_few.then_some(some)
    }

    /// Makes `lists` those of `range`, or of the vertices that are wanted if these are few, with room for `most` arcs
    /// or more.
    fn fill_to(
        &self,
        lists: &mut Lists,
        range: &Range<u32>,
        wanted: &Wanted<'_>,
        most: u64,
    ) -> Result<Filled> {
        let few = if self.is_whole() { None } else { self.few(range, wanted) };
        let end = lists.move_to(range.start, range.clone().map(|v| self.degrees.all(v)))?;
        if lists.targets.len() < end {
            lists.targets = Array::default();
            lists.targets = Array::zeroed(end.max(most as usize))?;
        }
        let mut after = None;
        for (i, &direction) in self.degrees.side.directions(self.graph).iter().enumerate() {
            let (graph, degrees) = (self.graph, &self.degrees.of[i][..]);
            let (starts, targets) = lists.slots();
            let some = few.as_deref();
            let range = range.clone();
            let into = Filling { graph, range, starts, after, degrees, targets, few: some };
            into.fill(direction)?;
            after = Some(degrees);
        }
        match self.order {
            Listed::Any => (),
            Listed::Sorted => lists.sort(self.graph)?,
            Listed::Distinct => lists.simplify(self.graph, few.as_deref(), true)?,
            Listed::Simple => lists.simplify(self.graph, few.as_deref(), false)?,
        }
        Ok(few.map_or(Filled::All, Filled::Some))
    }
}

/// Cuts vertices whose lists have these `lengths` into ranges of `room` bytes, of which a vertex takes `each` and four for
/// each arc; or of one vertex where that takes more.
pub(crate) fn cut(lengths: impl Iterator<Item = u64>, each: u64, room: u64) -> Vec<Range<u32>> {
    let (mut ranges, mut range, mut bytes) = (Vec::new(), 0..0, each);
    for length in lengths {
        let more = length * 4 + each;
        if bytes + more > room && !range.is_empty() {
            ranges.push(range.clone());
            (range.start, bytes) = (range.end, each);
        }
        range.end += 1;
        bytes += more;
    }
    ranges.push(range);
    ranges
}

/// Which lists of a range are in memory.
enum Filled {
    All,
    /// Those of some vertices. Others may be wanted by the time that these are visited; the next round has them.
    Some(Vec<u32>),
}
