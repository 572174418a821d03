//! A weighted network without directions: the graph at first, then its communities as vertices.
//!
//! Its lists are visited in the order of vertices by one thread, or those of the vertices that have a turn by all: where they
//! do not fit the memory, both read them piece by piece. Those of a graph without weights come from its files, those of a
//! smaller network from segments, in memory or in a temporary file.

use std::ops::Range;

use tiergraph_core::{Draws, Result, threads};
use tiergraph_format::manifest::Weights;
use tiergraph_graph::Graph;
use tiergraph_mem::MemoryPlan;

use super::lists::{ARC_BYTES, BlockLists, List, groups};
use super::segments::{Buffer, Segments};
use super::weighted;
use crate::bits::Bits;
use crate::per_worker::PerWorker;
use crate::row_map::{self, ListDegrees, RowMap, Side, Wanted, cut};

/// Bytes of the lists of a block, with those of its vertices.
const BLOCK_BYTES: u64 = 1 << 20;
/// Parts of a block that threads take.
const IN_BLOCK: u32 = 64;
/// Neighbours between one that is prefetched and one that is visited.
const AHEAD: usize = 16;
/// Bytes of a vertex in a block.
const VERTEX_BYTES: u64 = 12;

/// Neighbours by vertex, with what connects them.
pub(super) struct Network<'g> {
    pub(super) graph: &'g Graph,
    lists: Lists<'g>,
    vertices: u32,
    /// How often a place of a vertex in its own list counts.
    loop_counts: f64,
    /// Bytes that are reserved for the lists of a block.
    block_bytes: u64,
}

enum Lists<'g> {
    /// The graph's, without weights.
    OfGraph(RowMap<'g>, &'g ListDegrees),
    Segments(Segments),
}

/// Vertices whose lists are in memory together.
pub(super) struct Blocks {
    pub(super) ranges: Vec<Range<u32>>,
    /// The most arcs of one.
    pub(super) most_arcs: u64,
}

/// All lists of a network, in memory.
pub(super) struct InMemory<'a> {
    lists: Box<dyn BlockLists + 'a>,
    loop_counts: f64,
}

impl InMemory<'_> {
    /// The neighbours of `v`.
    #[inline(always)]
    pub(super) fn neighbors(&self, v: u32) -> Neighbors<'_> {
        Neighbors { of: v, list: self.lists.list(v), loop_counts: self.loop_counts }
    }
}

impl<T: BlockLists> BlockLists for &T {
    #[inline(always)]
    fn list(&self, v: u32) -> List<'_> {
        (**self).list(v)
    }
}

impl BlockLists for row_map::Lists {
    #[inline(always)]
    fn list(&self, v: u32) -> List<'_> {
        List::Plain(self.of(v))
    }
}

/// A vertex and its neighbours.
pub(super) struct Neighbors<'a> {
    pub(super) of: u32,
    list: List<'a>,
    loop_counts: f64,
}

impl Neighbors<'_> {
    /// Calls `visit(neighbour, weight)` for each neighbour but the vertex itself and those that a weight of 0 connects.
    #[inline(always)]
    pub(super) fn each(&self, mut visit: impl FnMut(u32, f64)) {
        self.all(|target, weight| {
            if target != self.of && weight != 0.0 {
                visit(target, weight);
            }
        });
    }

    /// Calls `visit(neighbour, weight)` for each neighbour, of which the vertex itself is one with twice the weight of
    /// its edges with itself.
    #[inline(always)]
    pub(super) fn with_loops(&self, mut visit: impl FnMut(u32, f64)) {
        self.all(|target, weight| {
            visit(target, if target == self.of { weight * self.loop_counts } else { weight });
        });
    }

    /// As [`each`](Self::each), with two neighbours to prefetch for: those [`AHEAD`] and twice as many places later, or the
    /// last one.
    #[inline(always)]
    pub(super) fn each_ahead(&self, mut visit: impl FnMut(u32, f64, [u32; 2])) {
        let at = |i: usize| match self.list {
            List::Plain(targets) => targets[i.min(targets.len() - 1)],
            List::Weighted(arcs) => arcs[i.min(arcs.len() - 1)].target,
        };
        let mut i = 0;
        self.all(|target, weight| {
            if target != self.of && weight != 0.0 {
                visit(target, weight, [at(i + AHEAD), at(i + 2 * AHEAD)]);
            }
            i += 1;
        });
    }

    #[inline(always)]
    fn all(&self, mut visit: impl FnMut(u32, f64)) {
        match self.list {
            List::Plain(targets) => targets.iter().for_each(|&target| visit(target, 1.0)),
            List::Weighted(arcs) => arcs.iter().for_each(|arc| visit(arc.target, arc.weight())),
        }
    }
}

impl<'g> Network<'g> {
    /// The edges of a graph, either way, of the vertices up to the last that has some. The caller has reserved
    /// [`Network::memory`].
    ///
    /// # Errors
    /// Any error of a pass; those of a temporary file.
    pub(super) fn read(graph: &'g Graph, degrees: &'g ListDegrees) -> Result<Self> {
        let memory = graph.memory();
        let _for_smaller =
            memory.reserve_if_left(memory.budget().left() / 3, "smaller networks")?;
        let lists = match graph.manifest().weighted {
            Weights::None => Lists::OfGraph(RowMap::new(graph, degrees)?, degrees),
            _ => Lists::Segments(weighted::lists(graph, degrees)?),
        };
        // An arc from a vertex to itself is listed at both its ends.
        let loop_counts = if graph.manifest().directed { 1.0 } else { 2.0 };
        let vertices = graph.tiles().vertices() as u32;
        let longest = (0..vertices).map(|v| degrees.all(v)).max();
        let block_bytes = block_bytes(longest.unwrap_or(0));
        Ok(Self { graph, lists, vertices, loop_counts, block_bytes })
    }

    /// The least memory of [`read`](Self::read), and of what visits lists.
    ///
    /// # Errors
    /// Those of [`RowMap::memory`].
    pub(super) fn memory(graph: &Graph) -> Result<MemoryPlan> {
        let arcs = RowMap::arcs(graph, Side::Both);
        let block = block_bytes(RowMap::longest(graph, Side::Both)?);
        let plan = RowMap::memory(graph, Side::Both)?.and("the lists of a block", block);
        Ok(match graph.manifest().weighted {
            Weights::None => plan,
            _ => plan
                .and("where lists with weights begin", graph.vertices() as u64 * 8)
                .and("neighbours and weights", weighted::least_room(arcs)),
        })
    }

    /// A smaller network of these lists, without edges of vertices with themselves.
    pub(super) fn smaller(&self, vertices: u32, segments: Segments) -> Network<'g> {
        let lists = Lists::Segments(segments);
        Network { lists, vertices, loop_counts: 1.0, ..*self }
    }

    /// The number of vertices.
    pub(super) fn len(&self) -> usize {
        self.vertices as usize
    }

    /// Whether the network is a graph without weights, each of whose arcs counts 1.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.lists, Lists::OfGraph(..))
    }

    /// Whether all lists of the network are in memory, so that a sweep reads nothing.
    pub(super) fn is_in_memory(&self) -> bool {
        match &self.lists {
            Lists::OfGraph(lists, _) => lists.is_whole(),
            Lists::Segments(segments) => segments.are_in_memory(),
        }
    }

    /// All lists, if they are in memory, and what visits one of them.
    ///
    /// # Errors
    /// Those of a pass, where lists in memory are not yet read.
    pub(super) fn in_memory(&mut self) -> Result<Option<InMemory<'_>>> {
        let (vertices, loop_counts) = (self.vertices, self.loop_counts);
        let lists: Box<dyn BlockLists + '_> = match &mut self.lists {
            Lists::OfGraph(lists, _) => match lists.whole()? {
                Some(lists) => Box::new(lists),
                None => return Ok(None),
            },
            Lists::Segments(segments) if segments.are_in_memory() => {
                Box::new(segments.in_memory(&(0..vertices)))
            }
            Lists::Segments(_) => return Ok(None),
        };
        Ok(Some(InMemory { lists, loop_counts }))
    }

    /// The length of each list.
    pub(super) fn lengths(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.lists {
            Lists::OfGraph(_, degrees) => Box::new((0..self.vertices).map(|v| degrees.all(v))),
            Lists::Segments(segments) => Box::new(segments.lengths()),
        }
    }

    /// Calls `visit` with every vertex, from the first to the last.
    ///
    /// # Errors
    /// Those of a pass; a run that was cancelled.
    pub(super) fn sweep(&mut self, visit: impl FnMut(Neighbors<'_>)) -> Result<()> {
        self.sweep_of(&|_| true, visit)
    }

    /// As [`sweep`](Self::sweep), with the vertices that are `wanted`.
    ///
    /// # Errors
    /// Those of [`sweep`](Self::sweep).
    pub(super) fn sweep_of(
        &mut self,
        wanted: &Wanted<'_>,
        mut visit: impl FnMut(Neighbors<'_>),
    ) -> Result<()> {
        let Self { vertices, loop_counts, .. } = *self;
        if let Lists::OfGraph(lists, _) = &mut self.lists {
            return lists.in_order(&|v| v < vertices && wanted(v), |v, targets| {
                visit(Neighbors { of: v, list: List::Plain(targets), loop_counts });
            });
        }
        let blocks = self.blocks();
        let order = blocks.ranges.iter().filter(|block| (*block).clone().any(wanted));
        self.each_block(&blocks, order, wanted, |block, lists| {
            let of = block.filter(|&v| wanted(v));
            of.for_each(|of| visit(Neighbors { of, list: lists.list(of), loop_counts }));
            Ok(())
        })
    }

    /// The vertices in blocks, whose lists are in memory at a time. They are the same in any memory.
    pub(super) fn blocks(&self) -> Blocks {
        let ranges = cut(self.lengths(), VERTEX_BYTES, BLOCK_BYTES);
        let mut lengths = self.lengths();
        let most = ranges.iter().map(|range| lengths.by_ref().take(range.len()).sum()).max();
        Blocks { ranges, most_arcs: most.unwrap_or(0) }
    }

    /// Bytes of all lists and of their vertices, as without weights.
    pub(super) fn bytes(&self) -> u64 {
        self.lengths().sum::<u64>() * 4 + u64::from(self.vertices) * VERTEX_BYTES
    }

    /// What `choose` gives of the vertices that are `wanted`, in their order: threads choose at once, as many as there are
    /// states of `workers`.
    ///
    /// # Errors
    /// Those of [`sweep`](Self::sweep).
    pub(super) fn choose<W: Send, T: Send>(
        &mut self,
        blocks: &Blocks,
        wanted: &Bits,
        workers: &PerWorker<W>,
        choose: impl Fn(&mut W, Neighbors<'_>) -> Option<T> + Sync,
    ) -> Result<Vec<T>> {
        let (threads, cancel) = (self.graph.thread_pool(), self.graph.cancel());
        let loop_counts = self.loop_counts;
        let mut chosen = Vec::new();
        let mut share = |lists: &dyn BlockLists, ranges: &[Range<u32>]| {
            cancel.check("find communities")?;
            let choose = |worker, ranges: &mut dyn Iterator<Item = (usize, &Range<u32>)>| {
                let mut own = Vec::new();
                if worker >= workers.len() {
                    return own;
                }
                let state = &mut *workers.of(worker);
                for (number, range) in ranges {
                    let of = wanted.within(range.clone());
                    let each =
                        |of| choose(state, Neighbors { of, list: lists.list(of), loop_counts });
                    own.push((number, of.filter_map(each).collect::<Vec<T>>()));
                }
                own
            };
            let mut ranges = ranges.iter().enumerate();
            let of_threads = match workers.len() {
                // The others go on with the next lists meanwhile.
                1 => vec![choose(0, &mut ranges)],
                _ => threads.share(ranges, choose)?,
            };
            let mut of_ranges: Vec<_> = of_threads.into_iter().flatten().collect();
            of_ranges.sort_unstable_by_key(|&(number, _)| number);
            chosen.extend(of_ranges.into_iter().flat_map(|(_, of_range)| of_range));
            Ok(())
        };
        let order =
            blocks.ranges.iter().filter(|block| wanted.within((*block).clone()).next().is_some());
        let parts = |block: Range<u32>| {
            let each = (block.len() as u32).div_ceil(IN_BLOCK);
            groups(block, each)
        };
        if let Some(InMemory { lists, .. }) = self.in_memory()? {
            share(&*lists, &order.cloned().flat_map(parts).collect::<Vec<_>>())?;
            return Ok(chosen);
        }
        self.each_block(blocks, order, &|v| wanted.has(v), |block, lists| {
            share(lists, &parts(block))
        })?;
        Ok(chosen)
    }

    /// Calls `each` with one block after the other, in this order, and with the lists of its vertices that are `wanted`. Those
    /// that are not in memory are read while `each` has those of the block before, if there is memory for both.
    fn each_block<'b>(
        &mut self,
        blocks: &Blocks,
        order: impl Iterator<Item = &'b Range<u32>> + Send,
        wanted: &Wanted<'_>,
        mut each: impl FnMut(Range<u32>, &dyn BlockLists) -> Result<()>,
    ) -> Result<()> {
        let (graph, in_memory) = (self.graph, self.is_in_memory());
        let mut each = |block: &Range<u32>, lists: &dyn BlockLists| {
            graph.cancel().check("find communities")?;
            each(block.clone(), lists)
        };
        let bytes = if in_memory { 0 } else { blocks.most_arcs * ARC_BYTES };
        // A community may have a longer list than any vertex of the graph.
        let longer = bytes.saturating_sub(self.block_bytes);
        let _longer = graph.memory().reserve(longer, "the longest list of communities")?;
        let ahead = graph.memory().reserve_if_left(bytes, "the lists of the next block")?;
        let buffers = 1 + usize::from(ahead.is_some());
        match &mut self.lists {
            Lists::OfGraph(lists, _) => {
                if let Some(lists) = lists.whole()? {
                    return { order }.try_for_each(|block| each(block, lists));
                }
                let (lists, new) = (&*lists, (0..buffers).map(|_| Default::default()).collect());
                let read = |block: &&Range<u32>, to: &mut _| lists.read_to(to, block, wanted);
                threads::ahead("lists", order, new, read, |block, lists| each(block, lists))
            }
            Lists::Segments(segments) if in_memory => {
                { order }.try_for_each(|block| each(block, &segments.in_memory(block)))
            }
            Lists::Segments(segments) => {
                let new = (0..buffers).map(|_| Buffer::default()).collect();
                let read = |block: &&Range<u32>, to: &mut _| segments.read_to(to, block, wanted);
                threads::ahead("lists", order, new, read, |block, buffer| {
                    each(block, &segments.pieces(buffer, block))
                })
            }
        }
    }
}

/// The most bytes of the lists of a block, with weights, where the longest list has so many arcs.
fn block_bytes(longest: u64) -> u64 {
    (BLOCK_BYTES / 4).max(longest) * ARC_BYTES
}

/// Brings `values` into a random order (Fisher and Yates).
pub(super) fn shuffle(values: &mut [u32], draws: &mut Draws) {
    for i in (1..values.len()).rev() {
        values.swap(i, draws.below(i as u64 + 1) as usize);
    }
}
