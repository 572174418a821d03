//! Neighbour lists in memory, filled from both ends.
//!
//! A row's arcs come in ascending order of columns where a strip's tiles are decoded one after the other: they are
//! written to the list from its beginning on. A column's come strip by strip, the last strip first: they are written
//! from the list's end down, and sorted strip by strip at the end. In an undirected graph, whose edges are
//! stored once, the first are the smaller neighbours and the second the larger ones.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_format::tiles::{Segment, sort_words};
use tiergraph_kernels::{Kernel, Slice};

use crate::build::array::Array;

/// Neighbours that are sorted together even if they are of several strips.
const FEW: usize = 64;

/// Which ends of an arc of a tile have it in their lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) rows: bool,
    pub(super) columns: bool,
}

/// The neighbour lists of consecutive vertices.
#[derive(Debug, Default)]
pub(super) struct ArcLists {
    vertices: Range<u32>,
    words: Array<u32>,
    /// For each vertex, the end of what was written from its list's beginning on.
    front: Vec<u32>,
    /// For each vertex, the beginning of what was written from its list's end down.
    back: Vec<u32>,
    /// The number of self-loops among the arcs.
    pub(super) loops: u64,
    scratch: Vec<u32>,
}

impl ArcLists {
    /// Empties the lists, for `vertices` of which each has `arcs_of` arcs at most.
    pub(super) fn begin(
        &mut self,
        vertices: Range<u32>,
        arcs_of: impl Fn(usize) -> u64,
    ) -> Result<()> {
        self.front.clear();
        self.back.clear();
        self.loops = 0;
        let mut end = 0;
        for vertex in vertices.clone() {
            self.front.push(end);
            end += arcs_of(vertex as usize) as u32;
            self.back.push(end);
        }
        self.vertices = vertices;
        self.words.make_room(end as usize)
    }

    /// Adds the arcs of a segment to the lists of those of their `ends` that are here.
    pub(super) fn add(&mut self, kernel: &Kernel, segment: &Segment<'_>, ends: Ends) -> Result<()> {
        let (rows, columns) = (segment.row_base, segment.column_base);
        let meets = |first: u64, count: u64| {
            first < self.vertices.end.into() && first + count > self.vertices.start.into()
        };
        let width = kernel.options().columns() as u64;
        let takes_rows = ends.rows && meets(rows, segment.rows.into());
        let takes_columns = ends.columns && meets(columns, width);
        let has_diagonal = rows < columns + width && columns < rows + u64::from(segment.rows);
        let base = Base { row: rows as u32, column: columns as u32 };
        match (takes_rows, takes_columns) {
            (true, _) if has_diagonal => kernel.for_each(segment, |slice| {
                self.loops += self.add_rows(slice, base, true);
                if takes_columns {
                    self.add_columns(slice, base, true);
                }
            }),
            (true, true) => kernel.for_each(segment, |slice| {
                self.add_rows(slice, base, false);
                self.add_columns(slice, base, false);
            }),
            (true, false) => kernel.for_each(segment, |slice| {
                self.add_rows(slice, base, false);
            }),
            (false, true) => kernel.for_each(segment, |slice| {
                self.add_columns(slice, base, false);
            }),
            (false, false) => Ok(()),
        }
    }

    /// Adds the columns of a slice to the lists of its rows; the self-loops among them, if they are counted.
    #[inline(always)]
    fn add_rows(&mut self, slice: &Slice<'_>, base: Base, counts_loops: bool) -> u64 {
        let lanes = slice.active.first().map_or(0, |&active| usize::from(active));
        let (mut steps, mut loops) = (0, 0);
        for lane in (0..lanes).rev() {
            while slice.active.get(steps).is_some_and(|&active| usize::from(active) > lane) {
                steps += 1;
            }
            let row = base.row + slice.rows[lane];
            let Some(front) = self.front.get_mut(row.wrapping_sub(self.vertices.start) as usize)
            else {
                continue;
            };
            let begin = *front as usize;
            *front += steps as u32;
            // Degrees that were others in the first pass are found when the lists are read.
            let Some(to) = self.words.get_mut(begin..begin + steps) else { continue };
            for (to, step) in to.iter_mut().zip(slice.columns) {
                *to = base.column + step[lane];
            }
            if counts_loops {
                loops += to.iter().filter(|&&column| column == row).count() as u64;
            }
        }
        loops
    }

    /// Adds the rows of a slice to the lists of its columns; not those of self-loops that are `once`.
    #[inline(always)]
    fn add_columns(&mut self, slice: &Slice<'_>, base: Base, once: bool) {
        let first = base.column.wrapping_sub(self.vertices.start);
        let loops = base.row.wrapping_sub(base.column);
        for (step, &active) in slice.columns.iter().zip(slice.active) {
            for (&column, &row) in step.iter().zip(slice.rows).take(active.into()) {
                if once && column == loops.wrapping_add(row) {
                    continue;
                }
                let Some(back) = self.back.get_mut(first.wrapping_add(column) as usize) else {
                    continue;
                };
                *back = back.wrapping_sub(1);
                if let Some(to) = self.words.get_mut(*back as usize) {
                    *to = base.row + row;
                }
            }
        }
    }

    /// Calls `visit` with each vertex and its neighbours in ascending order. `strips` has the first row of each
    /// strip, and a row behind the last; false from `visit` ends it.
    ///
    /// The result is false if a vertex has other arcs than `arcs_of`: fewer, or more, or not as many where it is
    /// `exact`.
    pub(super) fn for_each(
        &mut self,
        strips: &[u32],
        arcs_of: impl Fn(usize) -> u64,
        exact: bool,
        mut visit: impl FnMut(u32, &[u32]) -> Result<bool>,
    ) -> Result<bool> {
        let mut begin = 0;
        for (vertex, (&front, &back)) in
            self.vertices.clone().zip(self.front.iter().zip(&self.back))
        {
            let end = begin + arcs_of(vertex as usize) as usize;
            let (front, back) = (front as usize, back as usize);
            if front < begin || front > back || back > end || (exact && front != back) {
                return Ok(false);
            }
            sort_by_strip(&mut self.words[back..end], strips, &mut self.scratch);
            if front < back {
                self.words.copy_within(back..end, front);
            }
            if !visit(vertex, &self.words[begin..end - (back - front)])? {
                break;
            }
            begin = end;
        }
        Ok(true)
    }
}

/// The first row and column of a segment.
#[derive(Debug, Clone, Copy)]
struct Base {
    row: u32,
    column: u32,
}

/// Sorts rows that come strip by strip.
fn sort_by_strip(rows: &mut [u32], strips: &[u32], scratch: &mut Vec<u32>) {
    if rows.len() <= FEW {
        return rows.sort_unstable();
    }
    let mut rest = rows;
    let mut strip = 0;
    while let Some(&row) = rest.first() {
        strip += strips[strip..].partition_point(|&first| first <= row);
        let (Some(&begin), Some(&end)) = (strips.get(strip - 1), strips.get(strip)) else {
            return rest.sort_unstable();
        };
        let len = rest.iter().position(|&row| row >= end).unwrap_or(rest.len());
        let (of_strip, others) = rest.split_at_mut(len);
        if scratch.len() < len {
            scratch.resize(len, 0);
        }
        // The highest bit in which rows of the strip differ.
        sort_words(of_strip, scratch, u32::BITS - (begin ^ (end - 1)).leading_zeros());
        rest = others;
    }
}
