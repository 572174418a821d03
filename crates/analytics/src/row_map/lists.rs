//! Neighbour lists of a range of vertices, in memory.

use std::ops::Range;
use std::sync::atomic::AtomicU32;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::Array;

use super::{Begin, ListDegrees, RowMap, Visit, Wanted};

/// The arcs that a thread visits before it takes others.
const PART_ARCS: usize = 1 << 14;

/// Neighbour lists of a range of vertices.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(super) first: u32,
    /// For each vertex of the range, where its list begins; a last entry says where the last list ends.
    pub(super) starts: Vec<u32>,
    /// Where each list ends, where some end before the next begins.
    pub(super) ends: Option<Vec<u32>>,
    pub(super) targets: Array<u32>,
}

impl Lists {
    /// Lists for the vertices from `first` on, with room for so many targets in each and none of them set.
    ///
    /// # Errors
    /// 2³² targets or more, no memory.
    pub(crate) fn of_lengths(first: u32, lengths: impl Iterator<Item = u32>) -> Result<Self> {
        let mut lists = Self { first, ..Self::default() };
        lists.move_to(first, lengths.map(u64::from))?;
        lists.targets = Array::zeroed(lists.starts.last().map_or(0, |&end| end as usize))?;
        Ok(lists)
    }

    /// Makes these the lists of other vertices, of so many targets each; returns the number of all.
    pub(super) fn move_to(
        &mut self,
        first: u32,
        lengths: impl Iterator<Item = u64>,
    ) -> Result<usize> {
        let (mut end, mut fits) = (0u64, true);
        (self.first, self.ends) = (first, None);
        self.starts.clear();
        self.starts.push(0);
        self.starts.extend(lengths.map(|length| {
            end += length;
            fits &= end <= u64::from(u32::MAX);
            end as u32
        }));
        let too_many = || {
            Error::new(ErrorKind::Input, "hold all neighbours in memory")
                .expected("fewer than 2^32 of them")
                .got("more")
        };
        fits.then_some(end as usize).ok_or_else(too_many)
    }

    /// All lists, which ascend. The caller has reserved [`RowMap::whole_bytes`].
    ///
    /// # Errors
    /// 2³² arcs or more; those of a pass.
    pub(crate) fn whole(graph: &Graph, degrees: &ListDegrees) -> Result<Self> {
        let mut lists = RowMap::filled_whole(graph, degrees)?;
        lists.sort(graph)?;
        Ok(lists)
    }

    /// Sorts every list, on all threads.
    pub(super) fn sort(&mut self, graph: &Graph) -> Result<()> {
        self.each_mut(graph, None, |_, list| {
            if !list.is_sorted() {
                list.sort_unstable();
            }
            list.len()
        })
    }

    /// Leaves every neighbour in a list once, ascending, and no vertex in its own list unless `with_loops`.
    pub(super) fn simplify(
        &mut self,
        graph: &Graph,
        some: Option<&[u32]>,
        with_loops: bool,
    ) -> Result<()> {
        self.each_mut(graph, some, |v, list| {
            let is_loop = |target| !with_loops && target == v;
            let has_loop = || !with_loops && list.binary_search(&v).is_ok();
            if list.is_sorted_by(|a, b| a < b) && !has_loop() {
                return list.len();
            }
            list.sort_unstable();
            let mut kept = 0;
            for i in 0..list.len() {
                let target = list[i];
                if !is_loop(target) && (kept == 0 || list[kept - 1] != target) {
                    list[kept] = target;
                    kept += 1;
                }
            }
            kept
        })
    }

    /// Calls `change` with every vertex, or with `some`, and its list, on all threads; it returns how much of
    /// the list stays.
    fn each_mut(
        &mut self,
        graph: &Graph,
        some: Option<&[u32]>,
        change: impl Fn(u32, &mut [u32]) -> usize + Sync,
    ) -> Result<()> {
        const VERTICES: usize = 1 << 12;
        let vertices = self.starts.len().saturating_sub(1);
        let mut ends = self.ends.take().unwrap_or_default();
        ends.clear();
        ends.extend(&self.starts[vertices.min(1)..]);
        ends.truncate(vertices);
        let starts = &self.starts;
        let mut rest = &mut self.targets[..starts.last().map_or(0, |&end| end as usize)];
        let parts = ends.chunks_mut(VERTICES).enumerate().map(|(part, ends)| {
            let first = part * VERTICES;
            let starts = &starts[first..=first + ends.len()];
            let len = (starts[ends.len()] - starts[0]) as usize;
            let (own, after) = std::mem::take(&mut rest).split_at_mut(len);
            rest = after;
            (self.first + first as u32, starts, ends, own)
        });
        graph.thread_pool().share(parts, |_, parts| {
            for (first, starts, ends, mut targets) in parts {
                for ((v, between), end) in (first..).zip(starts.windows(2)).zip(ends) {
                    let len = (between[1] - between[0]) as usize;
                    let (list, after) = std::mem::take(&mut targets).split_at_mut(len);
                    if some.is_none_or(|some| some.binary_search(&v).is_ok()) {
                        *end = between[0] + change(v, list) as u32;
                    }
                    targets = after;
                }
            }
        })?;
        self.ends = Some(ends);
        Ok(())
    }

    /// Where each list begins, and the targets, to be set by several threads.
    pub(crate) fn slots(&mut self) -> (&[u32], &[AtomicU32]) {
        (&self.starts, self.targets.as_atomic())
    }

    /// The neighbours of `v`, which is in the range.
    #[inline(always)]
    pub(crate) fn of(&self, v: u32) -> &[u32] {
        let at = (v - self.first) as usize;
        let end = self.ends.as_ref().map_or(self.starts[at + 1], |ends| ends[at]);
        &self.targets[self.starts[at] as usize..end as usize]
    }

    /// Where each list begins, where each ends, and the targets.
    pub(crate) fn arrays(&self) -> (&[u32], &[u32], &[u32]) {
        let ends = self.ends.as_deref().unwrap_or(&self.starts[self.starts.len().min(1)..]);
        (&self.starts[..ends.len()], ends, &self.targets)
    }

    /// The range of vertices that have lists here.
    pub(crate) fn vertices(&self) -> Range<u32> {
        self.first..self.first + self.starts.len().saturating_sub(1) as u32
    }

    /// The range as parts of about as many arcs each, from its end to its begin, or from its begin.
    pub(super) fn parts(&self, is_forward: bool) -> impl Iterator<Item = Range<u32>> + '_ {
        let (mut begin, mut end) = (0, self.starts.len().saturating_sub(1));
        std::iter::from_fn(move || {
            if begin == end {
                return None;
            }
            // A vertex costs as much as some arcs.
            let few = (end - begin).min(PART_ARCS / 4);
            let part = if is_forward {
                let limit = self.starts[begin].saturating_add(PART_ARCS as u32);
                let ends = &self.starts[begin + 1..=begin + few];
                begin..begin + ends.partition_point(|&to| to <= limit).max(1)
            } else {
                let limit = self.starts[end].saturating_sub(PART_ARCS as u32);
                let first = end - few;
                first + self.starts[first..end - 1].partition_point(|&from| from < limit)..end
            };
            (begin, end) = if is_forward { (part.end, end) } else { (begin, part.start) };
            Some(self.first + part.start as u32..self.first + part.end as u32)
        })
    }

    /// Calls `visit` with each vertex of the range for which `wanted` is true, on all threads. Each worker
    /// has a state, which `begin` makes of its number. Vertices come about from the last to the first, or from
    /// the first if `is_forward`.
    pub(crate) fn visit<W>(
        &self,
        graph: &Graph,
        wanted: &Wanted<'_>,
        is_forward: bool,
        begin: &impl Begin<W>,
        visit: &impl Visit<W>,
    ) -> Result<()> {
        let part = |state: &mut W, part: Range<u32>| {
            let mut one = |v: u32| {
                if wanted(v) {
                    visit(state, v, self.of(v));
                }
            };
            if is_forward { part.for_each(&mut one) } else { part.rev().for_each(&mut one) }
        };
        share(graph, self.parts(is_forward), begin, part)
    }

    /// As [`visit`](Self::visit), for these `vertices` of the range.
    pub(super) fn visit_some<W>(
        &self,
        graph: &Graph,
        vertices: &[u32],
        begin: &impl Begin<W>,
        visit: &impl Visit<W>,
    ) -> Result<()> {
        let part = |state: &mut W, part: &[u32]| {
            part.iter().for_each(|&v| visit(state, v, self.of(v)));
        };
        share(graph, vertices.chunks(PART_ARCS / 64), begin, part)
    }
}

/// Shares `parts` among all threads until there are no more, or the run is cancelled.
fn share<W, P>(
    graph: &Graph,
    parts: impl Iterator<Item = P> + Send,
    begin: &impl Begin<W>,
    each: impl Fn(&mut W, P) + Sync,
) -> Result<()> {
    graph.thread_pool().share(parts, |worker, parts| {
        let mut state = begin(worker);
        parts
            .take_while(|_| !graph.cancel().is_cancelled())
            .for_each(|part| each(&mut state, part));
    })?;
    graph.cancel().check("finish the pass")
}
