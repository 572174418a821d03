//! Edges at their end of lower degree, for a part of the vertices at a time.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::Result;
use tiergraph_format::manifest::Order;
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use crate::row_map::{ListDegrees, Lists, RowMap};

/// In a target of a list, that arcs lead both ways.
pub(super) const BOTH: u32 = 1 << 31;

/// Bytes of a part: where its lists begin, and a vertex's edges.
pub(super) fn least_bytes(graph: &Graph) -> u64 {
    // A list is not longer than the root of twice the edges.
    64 + ((graph.manifest().arcs as f64 * 2.0).sqrt() as u64 + 1) * 4
}

/// A worker's list of one vertex, while it is made.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The neighbours that have a higher rank, ascending, each once.
    pub(super) targets: Vec<u32>,
    /// Neighbours, shifted left, and whether they come from the second direction.
    arcs: Vec<u64>,
    /// The number of all neighbours.
    all: u32,
}

/// The lists of the vertices of one part: of each edge, the end of higher rank.
pub(super) struct Forward<'g, const ARCS: bool> {
    graph: &'g Graph,
    degrees: &'g ListDegrees,
    /// Vertices come by descending degree, so that a rank is higher where a number is lower.
    is_ordered: bool,
    /// The lengths of all vertices' lists.
    lengths: Vec<u32>,
    part: Lists,
    /// The first vertex of the next part.
    next: u32,
    room: u64,
    _held: Option<Reservation>,
}

impl<'g, const ARCS: bool> Forward<'g, ARCS> {
    pub(super) fn new(graph: &'g Graph, degrees: &'g ListDegrees) -> Self {
        let is_ordered = graph.manifest().order == Order::Degree;
        let (lengths, part) = (Vec::new(), Lists::default());
        Self { graph, degrees, is_ordered, lengths, part, next: 0, room: 0, _held: None }
    }

    /// Takes memory for parts: all that may be needed, or most of what is left.
    pub(super) fn make_room(&mut self) -> Result<()> {
        let memory = self.graph.memory();
        // Of an undirected graph, every edge has two arcs.
        let edges = self.graph.manifest().edges;
        let all = (self.graph.vertices() as u64 + 1) * 4 + edges * 4;
        self.room = all.min(memory.budget().left() / 4 * 3);
        self._held = memory.reserve_if_left(self.room, "the edges")?;
        if self._held.is_none() {
            self.room = 0;
        }
        self.room += least_bytes(self.graph);
        Ok(())
    }

    /// Whether `w` has a higher rank than `v`.
    #[inline(always)]
    fn is_ahead(&self, v: u32, w: u32) -> bool {
        if self.is_ordered {
            return w < v;
        }
        (self.degrees.all(w), w) > (self.degrees.all(v), v)
    }

    /// Makes the list of `v` out of its arcs.
    #[inline]
    pub(super) fn ahead(&self, v: u32, arcs: &[u32], to: &mut Ahead) {
        to.targets.clear();
        if !ARCS && arcs.is_sorted_by(|a, b| a < b) {
            to.targets.extend(arcs.iter().filter(|&&w| self.is_ahead(v, w) && w != v));
            to.all = arcs.len() as u32 - u32::from(arcs.binary_search(&v).is_ok());
            return;
        }
        let out = self.degrees.out(v);
        let arc = |(i, &w): (usize, &u32)| u64::from(w) << 1 | u64::from(ARCS && i >= out);
        to.arcs.clear();
        to.arcs.extend(arcs.iter().enumerate().map(arc).filter(|&arc| (arc >> 1) as u32 != v));
        to.arcs.sort_unstable();
        to.arcs.dedup();
        to.all = 0;
        let mut arcs = to.arcs.iter().peekable();
        while let Some(arc) = arcs.next() {
            let w = (arc >> 1) as u32;
            let is_both = arcs.next_if(|&&other| (other >> 1) as u32 == w).is_some();
            to.all += 1;
            if self.is_ahead(v, w) {
                to.targets.push(if ARCS && is_both { w | BOTH } else { w });
            }
        }
    }

    /// Counts the neighbours of every vertex, and those of its list.
    pub(super) fn count(&mut self, rows: &mut RowMap<'_>) -> Result<Vec<u32>> {
        let vertices = self.graph.vertices();
        let zeros = || (0..vertices).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let (neighbors, lengths) = (zeros(), zeros());
        rows.for_each(
            |_| Ahead::default(),
            |ahead, v, arcs| {
                self.ahead(v, arcs, ahead);
                neighbors[v as usize].store(ahead.all, Ordering::Relaxed);
                lengths[v as usize].store(ahead.targets.len() as u32, Ordering::Relaxed);
            },
        )?;
        let plain =
            |values: Vec<AtomicU32>| values.into_iter().map(AtomicU32::into_inner).collect();
        self.lengths = plain(lengths);
        Ok(plain(neighbors))
    }

    /// The first vertex of the next part.
    pub(super) fn place(&self) -> u32 {
        self.next
    }

    /// The lengths of all vertices' lists.
    pub(super) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Goes on with the part that begins at `place`; the lists of all vertices have these lengths.
    pub(super) fn go_on(&mut self, place: u32, lengths: Vec<u32>) {
        (self.next, self.lengths) = (place, lengths);
    }

    /// Fills the next part; false where there is none.
    pub(super) fn next(&mut self, rows: &mut RowMap<'_>) -> Result<bool> {
        let vertices = self.lengths.len() as u32;
        if self.next >= vertices {
            return Ok(false);
        }
        let first = self.next;
        let mut bytes = 4;
        while self.next < vertices {
            bytes += 4 + u64::from(self.lengths[self.next as usize]) * 4;
            if (bytes > self.room || bytes / 4 >= u64::from(u32::MAX)) && self.next > first {
                break;
            }
            self.next += 1;
        }
        let range = first..self.next;
        self.part = Lists::default();
        let lengths = &self.lengths[first as usize..self.next as usize];
        let mut part = Lists::of_lengths(first, lengths.iter().copied())?;
        let (starts, targets) = part.slots();
        rows.for_each_of(
            &|v| range.contains(&v),
            |_| Ahead::default(),
            |ahead, v, arcs| {
                self.ahead(v, arcs, ahead);
                let from = starts[(v - first) as usize] as usize;
                let targets = targets[from..].iter().zip(&ahead.targets);
                targets.for_each(|(to, &w)| to.store(w, Ordering::Relaxed));
            },
        )?;
        self.part = part;
        Ok(true)
    }

    /// The lists of this part.
    pub(super) fn part(&self) -> &Lists {
        &self.part
    }

    /// The vertices of this part.
    pub(super) fn vertices(&self) -> Range<u32> {
        self.part.vertices()
    }

    /// Whether this part has every vertex.
    pub(super) fn is_all(&self) -> bool {
        self.vertices().len() == self.lengths.len()
    }
}
