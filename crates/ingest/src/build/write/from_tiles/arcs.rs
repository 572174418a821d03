//! Neighbour lists in memory, filled in ascending order.
//!
//! A row's columns ascend where the tiles of a strip are decoded one after the other. A column's rows ascend where strips
//! are, and where within a tile row after row is distributed to its columns ([`Rows`]). So nothing is sorted. In an
//! undirected graph, whose edges are stored once, a vertex has its smaller neighbours as a row, and then the
//! larger ones as a column.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_format::tiles::{LANES, Segment};
use tiergraph_kernels::{Kernel, MAX_STEPS, Slice};

use crate::build::array::Array;

/// Which ends of an arc of a tile have it in their lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) rows: bool,
    pub(super) columns: bool,
}

/// The neighbour lists of consecutive vertices.
#[derive(Debug)]
pub(super) struct ArcLists {
    vertices: Range<u32>,
    words: Array<u32>,
    /// For each vertex, where its next neighbour goes.
    ends: Vec<u32>,
    /// The number of self-loops among the arcs.
    pub(super) loops: u64,
    /// The rows of one tile that are to be distributed to its columns.
    rows: Rows,
}

/// The arcs of the rows of one tile.
#[derive(Debug)]
struct Rows {
    /// The first row of the strip, and the first column of the tile.
    base: (u32, u32),
    columns: Vec<u32>,
    pieces: Vec<Piece>,
    /// For each row of the strip, its last piece and one more; 0 if it has none.
    last: Box<[u32]>,
    /// The rows that have a piece, a bit each.
    present: Box<[u64]>,
    /// Whether self-loops are in the lists of their rows already.
    has_loops: bool,
}

/// Some arcs of one row: a range of `columns`, and the row's piece before and one more.
#[derive(Debug, Clone, Copy)]
struct Piece {
    begin: u32,
    len: u32,
    before: u32,
}

impl ArcLists {
    /// Lists of no vertices, to be filled from strips of at most `strip_rows` rows.
    pub(super) fn new(strip_rows: usize) -> Self {
        let rows = Rows {
            base: (0, 0),
            columns: Vec::new(),
            pieces: Vec::new(),
            last: vec![0; strip_rows].into(),
            present: vec![0; strip_rows.div_ceil(64)].into(),
            has_loops: false,
        };
        Self { vertices: 0..0, words: Array::default(), ends: Vec::new(), loops: 0, rows }
    }

    /// Bytes that lists of no vertices take, where strips have at most `rows` rows and tiles of a strip `arcs` arcs.
    pub(super) fn fixed_bytes(rows: u64, arcs: u64) -> u64 {
        let most_pieces = rows.min(arcs) + arcs / MAX_STEPS as u64;
        // Vectors that grow take up to twice as much.
        let grown = most_pieces * size_of::<Piece>() as u64 + arcs * size_of::<u32>() as u64;
        rows * size_of::<u32>() as u64 + rows / 8 + 2 * grown
    }

    /// Empties the lists, for `vertices` of which each has `arcs_of` arcs at most.
    pub(super) fn begin(
        &mut self,
        vertices: Range<u32>,
        arcs_of: impl Fn(usize) -> u64,
    ) -> Result<()> {
        self.ends.clear();
        self.loops = 0;
        let mut begin = 0;
        for vertex in vertices.clone() {
            self.ends.push(begin);
            begin += arcs_of(vertex as usize) as u32;
        }
        self.vertices = vertices;
        self.words.make_room(begin as usize)
    }

    /// Adds the arcs of a segment to the lists of those of their `ends` that are here. Segments come strip by strip,
    /// tile by tile; [`finish`](Self::finish) follows the last.
    pub(super) fn add(&mut self, kernel: &Kernel, segment: &Segment<'_>, ends: Ends) -> Result<()> {
        let (rows, columns) = (segment.row_base, segment.column_base);
        let width = kernel.options().columns() as u64;
        let meets = |first: u64, count: u64| {
            first < self.vertices.end.into() && first + count > self.vertices.start.into()
        };
        let takes_rows = ends.rows && meets(rows, segment.rows.into());
        let takes_columns = ends.columns && meets(columns, width);
        let base = (rows as u32, columns as u32);
        if self.rows.base != base {
            self.finish();
            self.rows.base = base;
        }
        let has_diagonal = rows < columns + width && columns < rows + u64::from(segment.rows);
        self.rows.has_loops = ends.rows && has_diagonal;
        let here = self.columns_here(columns, width);
        match (takes_rows, takes_columns) {
            (true, true) => kernel.for_each(segment, |slice| {
                self.add_rows(slice, has_diagonal);
                self.rows.keep(slice, here.clone());
            }),
            (true, false) => kernel.for_each(segment, |slice| self.add_rows(slice, has_diagonal)),
            (false, true) => kernel.for_each(segment, |slice| self.rows.keep(slice, here.clone())),
            (false, false) => Ok(()),
        }
    }

    /// The columns of the tile of `width` columns from `first` on that have a list here, counted from the tile's
    /// first; `None` if all have.
    fn columns_here(&self, first: u64, width: u64) -> Option<Range<u32>> {
        let place = |vertex: u32| u64::from(vertex).clamp(first, first + width) - first;
        let here = place(self.vertices.start)..place(self.vertices.end);
        (here != (0..width)).then_some(here.start as u32..here.end as u32)
    }

    /// Adds the columns of a slice to the lists of its rows.
    #[inline(always)]
    fn add_rows(&mut self, slice: &Slice<'_>, counts_loops: bool) {
        let (first_row, first_column) = self.rows.base;
        each_lane(slice, |lane, steps| {
            let row = first_row + slice.rows[lane];
            let place = row.wrapping_sub(self.vertices.start) as usize;
            let Some(end) = self.ends.get_mut(place) else { return };
            let begin = *end as usize;
            *end += steps as u32;
            // Degrees that were others in the first pass are found when the lists are read.
            let Some(to) = self.words.get_mut(begin..begin + steps) else { return };
            for (to, step) in to.iter_mut().zip(slice.columns) {
                *to = first_column + step[lane];
            }
            if counts_loops {
                self.loops += to.iter().filter(|&&column| column == row).count() as u64;
            }
        });
    }

    /// Adds the rows of the last tile to the lists of its columns.
    pub(super) fn finish(&mut self) {
        let Self { vertices, words, ends, rows, .. } = self;
        let (first_row, first_column) = rows.base;
        let first = first_column.wrapping_sub(vertices.start);
        rows.take_each(|row, columns, has_loops| {
            let row_column = (first_row + row).wrapping_sub(first_column);
            for &column in columns {
                if has_loops && column == row_column {
                    continue;
                }
                let Some(end) = ends.get_mut(first.wrapping_add(column) as usize) else { continue };
                if let Some(to) = words.get_mut(*end as usize) {
                    *to = first_row + row;
                }
                *end = end.wrapping_add(1);
            }
        });
    }

    /// Calls `visit` with each vertex and its neighbours in ascending order, until it gives false.
    ///
    /// The result is false if a vertex has other arcs than `arcs_of`: more, or not as many where it is `exact`.
    pub(super) fn for_each(
        &self,
        arcs_of: impl Fn(usize) -> u64,
        exact: bool,
        mut visit: impl FnMut(u32, &[u32]) -> Result<bool>,
    ) -> Result<bool> {
        let mut begin = 0;
        for (vertex, &end) in self.vertices.clone().zip(&self.ends) {
            let (end, room) = (end as usize, begin + arcs_of(vertex as usize) as usize);
            if end < begin || end > room || (exact && end < room) {
                return Ok(false);
            }
            if !visit(vertex, &self.words[begin..end])? {
                break;
            }
            begin = room;
        }
        Ok(true)
    }
}

impl Rows {
    /// Keeps the arcs of a slice: those whose columns are `here`, of which there are few where a hub's list takes
    /// as much memory as those of a tile's other columns together.
    #[inline(always)]
    fn keep(&mut self, slice: &Slice<'_>, here: Option<Range<u32>>) {
        let below = here.map(|here| [here.start, here.end].map(|end| steps_below(slice, end)));
        each_lane(slice, |lane, steps| {
            let steps = match &below {
                Some([begin, end]) => begin[lane] as usize..end[lane] as usize,
                None => 0..steps,
            };
            if steps.is_empty() {
                return;
            }
            let row = slice.rows[lane] as usize;
            // Of a damaged file, which is found when the lists are read.
            let Some(last) = self.last.get_mut(row) else { return };
            let (begin, len) = (self.columns.len() as u32, steps.len() as u32);
            self.columns.extend(slice.columns[steps].iter().map(|step| step[lane]));
            self.pieces.push(Piece { begin, len, before: *last });
            *last = self.pieces.len() as u32;
            self.present[row / 64] |= 1 << (row % 64);
        });
    }

    /// Calls `visit` with each row, some of its columns, and whether it may have a self-loop that does not count;
    /// forgets all.
    fn take_each(&mut self, mut visit: impl FnMut(u32, &[u32], bool)) {
        if self.pieces.is_empty() {
            return;
        }
        for (word, present) in self.present.iter_mut().enumerate() {
            while *present != 0 {
                let row = word * 64 + present.trailing_zeros() as usize;
                *present &= *present - 1;
                let mut piece = std::mem::take(&mut self.last[row]);
                while let Some(&Piece { begin, len, before }) =
                    piece.checked_sub(1).and_then(|i| self.pieces.get(i as usize))
                {
                    let columns = &self.columns[begin as usize..(begin + len) as usize];
                    visit(row as u32, columns, self.has_loops);
                    piece = before;
                }
            }
        }
        self.columns.clear();
        self.pieces.clear();
    }
}

/// The steps of each lane whose columns are below `end`: they are its first, because columns ascend.
#[inline(always)]
fn steps_below(slice: &Slice<'_>, end: u32) -> [u32; LANES] {
    let mut steps = [0; LANES];
    for (columns, &active) in slice.columns.iter().zip(slice.active) {
        for (lane, (steps, &column)) in steps.iter_mut().zip(columns).enumerate() {
            *steps += u32::from(lane < usize::from(active)) & u32::from(column < end);
        }
    }
    steps
}

/// Calls `visit` with each lane of a slice that has arcs, and how many.
#[inline(always)]
fn each_lane(slice: &Slice<'_>, mut visit: impl FnMut(usize, usize)) {
    let lanes = slice.active.first().map_or(0, |&active| usize::from(active));
    let mut steps = 0;
    for lane in (0..lanes).rev() {
        while slice.active.get(steps).is_some_and(|&active| usize::from(active) > lane) {
            steps += 1;
        }
        visit(lane, steps);
    }
}
