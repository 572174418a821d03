//! From a strip's arcs to the bytes of its tiles.
//!
//! Cost: a radix sort of the arcs by tile, row and column, then one pass; 16 bytes of working
//! memory an arc, 48 with weights.

use super::bits::width;
use super::slices::Slicer;
use super::{LANES, MAX_VERTICES, TileOptions, UNIFORM_MAX, radix_sort};
use crate::manifest::Weights;

const COLUMN: u64 = (1 << 48) - 1;
/// The most rows of a group.
const GROUP_ROWS: usize = 2048;

/// A strip's tiles as bytes, with every place where a block may end.
#[derive(Debug, Default)]
pub struct EncodedStrip {
    /// First row of the strip.
    pub row_base: u64,
    /// Rows of the strip.
    pub rows: u32,
    /// Arcs of the strip.
    pub arcs: u64,
    /// The groups of all tiles, one after the other.
    pub bytes: Vec<u8>,
    /// `(offset, column tile, arcs)` of every group, ascending.
    pub groups: Vec<(u32, u32, u32)>,
}

/// Encodes strips and keeps its working memory between them. One a thread.
#[derive(Debug)]
pub struct StripEncoder {
    options: TileOptions,
    weighted: Vec<(u64, f64)>,
    weighted_scratch: Vec<(u64, f64)>,
    scratch: Vec<u64>,
    rows: Vec<RowRun>,
    by_length: Vec<RowRun>,
    weights: Vec<f64>,
}

/// The arcs `start..start + len` of a tile, which are those of one row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowRun {
    pub(super) row: u32,
    pub(super) start: u32,
    pub(super) len: u32,
}

impl StripEncoder {
    /// An encoder for a file with these options.
    pub fn new(options: TileOptions) -> Self {
        Self {
            options,
            weighted: Vec::new(),
            weighted_scratch: Vec::new(),
            scratch: Vec::new(),
            rows: Vec::new(),
            by_length: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Encodes the strip of `rows` rows from `row_base`, whose arcs are [`super::arc_key`]s in any
    /// order (the vector is left in no particular order), with a weight each where the file has
    /// weights.
    ///
    /// # Panics
    /// If `weights` is not what the options say or not as long as `arcs`, if a row is not below
    /// `rows` or a column not below [`MAX_VERTICES`], if an arc is there twice although the
    /// options' minimum gap is 1, or if the strip needs 4 GiB.
    pub fn encode(
        &mut self,
        row_base: u64,
        rows: u32,
        arcs: &mut Vec<u64>,
        weights: Option<&[f64]>,
    ) -> EncodedStrip {
        let stored = self.options.weights != Weights::None;
        let lengths = (stored.then_some(arcs.len()), weights.map(<[f64]>::len));
        assert_eq!(lengths.0, lengths.1, "as many weights as the file has");
        let mut out =
            EncodedStrip { row_base, rows, arcs: arcs.len() as u64, ..Default::default() };
        out.bytes.reserve(arcs.len() * (2 + self.options.weights.bytes()));
        let keys = Keys::of(self.options.columns_log2, rows, arcs);
        self.sort(&keys, arcs, weights);
        let weights = std::mem::take(&mut self.weights);
        let mut begin = 0;
        while begin < arcs.len() {
            let number = keys.tile(arcs[begin]);
            let end = begin + arcs[begin..].partition_point(|&a| keys.tile(a) == number);
            let tile = keys.reader(number);
            let weights = weights.get(begin..end).unwrap_or_default();
            self.tile(&tile, &arcs[begin..end], weights, &mut out);
            begin = end;
        }
        self.weights = weights;
        out
    }

    /// Turns `arcs` into keys in the order of tiles, rows and columns; their weights, in the same
    /// order, go to `self.weights`.
    fn sort(&mut self, keys: &Keys, arcs: &mut Vec<u64>, weights: Option<&[f64]>) {
        let Some(weights) = weights else {
            arcs.iter_mut().for_each(|a| *a = keys.key(*a));
            return radix_sort(arcs, &mut self.scratch, keys.bits, |a| *a);
        };
        self.weighted.clear();
        self.weighted.extend(arcs.iter().zip(weights).map(|(&a, &w)| (keys.key(a), w)));
        radix_sort(&mut self.weighted, &mut self.weighted_scratch, keys.bits, |a| a.0);
        arcs.clear();
        arcs.extend(self.weighted.iter().map(|a| a.0));
        self.weights.clear();
        self.weights.extend(self.weighted.iter().map(|a| a.1));
    }

    /// Encodes one tile; halves its columns first while a row is too long for a slice.
    fn tile(&mut self, tile: &Tile, arcs: &[u64], weights: &[f64], out: &mut EncodedStrip) {
        let longest = self.find_rows(tile, arcs);
        if longest as usize > self.options.max_row_arcs() {
            return self.halves(tile, arcs, weights, out);
        }
        self.sort_by_length(longest);
        let rows = std::mem::take(&mut self.by_length);
        let long = rows.partition_point(|r| r.len as usize > UNIFORM_MAX);
        let mut slicer = Slicer { tile, arcs, weights, options: &self.options, out };
        for slice in rows[..long].chunks(LANES) {
            slicer.jagged(slice);
        }
        for group in rows[long..].chunk_by(|a, b| a.len == b.len) {
            for part in group.chunks(self.options.group_rows(group[0].len as usize)) {
                slicer.uniform(part);
            }
        }
        self.by_length = rows;
    }

    /// Lists the rows of a tile and tells how many arcs the longest has.
    fn find_rows(&mut self, tile: &Tile, arcs: &[u64]) -> u32 {
        self.rows.clear();
        let mut longest = 0;
        for (i, &arc) in arcs.iter().enumerate() {
            let row = tile.row(arc);
            match self.rows.last_mut() {
                Some(run) if run.row == row => run.len += 1,
                _ => self.rows.push(RowRun { row, start: i as u32, len: 1 }),
            }
            longest = longest.max(self.rows.last().map_or(0, |r| r.len));
        }
        longest
    }

    /// Rows by descending length, ascending in a length: a counting sort.
    fn sort_by_length(&mut self, longest: u32) {
        let mut starts = vec![0u32; longest as usize + 2];
        for run in &self.rows {
            starts[(longest - run.len) as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        self.by_length.resize(self.rows.len(), RowRun::default());
        for run in &self.rows {
            let place = &mut starts[(longest - run.len) as usize];
            self.by_length[*place as usize] = *run;
            *place += 1;
        }
    }

    /// Encodes the lower half of the columns that have arcs and then the upper half, as groups of
    /// the same tile.
    fn halves(&mut self, tile: &Tile, arcs: &[u64], weights: &[f64], out: &mut EncodedStrip) {
        let columns = || arcs.iter().map(|&a| tile.column(a));
        let (low, high) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
        let middle = low + (high - low) / 2;
        // Duplicates of one arc cannot be told apart by column: halve the run of arcs instead.
        let lower: Vec<bool> = if low == high {
            (0..arcs.len()).map(|i| i.is_multiple_of(2)).collect()
        } else {
            columns().map(|column| column <= middle).collect()
        };
        for side in [true, false] {
            let picked = || lower.iter().enumerate().filter(|l| *l.1 == side).map(|l| l.0);
            let part: Vec<u64> = picked().map(|i| arcs[i]).collect();
            let part_weights: Vec<f64> = picked().filter_map(|i| weights.get(i).copied()).collect();
            if !part.is_empty() {
                self.tile(tile, &part, &part_weights, out);
            }
        }
    }
}

impl TileOptions {
    /// The most rows of `length` arcs in a group: so many that it stays far smaller than a block.
    fn group_rows(&self, length: usize) -> usize {
        (self.max_row_arcs() * 8 / length).next_multiple_of(LANES).clamp(LANES, GROUP_ROWS)
    }
}

/// How a strip's arcs are sorted: tile, then row, then column in the tile, in `bits` bits.
#[derive(Debug, Clone, Copy)]
struct Keys {
    columns_log2: u32,
    row_bits: u32,
    bits: u32,
}

impl Keys {
    fn of(columns_log2: u32, rows: u32, arcs: &[u64]) -> Self {
        let (mut row, mut column) = (0, 0);
        for &arc in arcs {
            row = row.max(arc >> 48);
            column = column.max(arc & COLUMN);
        }
        assert!(arcs.is_empty() || row < u64::from(rows), "row {row} in a strip of {rows}");
        assert!(column < MAX_VERTICES, "column {column} of at most {MAX_VERTICES}");
        let row_bits = width(row as u32);
        let tile_bits = 64 - (column >> columns_log2).leading_zeros();
        Self { columns_log2, row_bits, bits: tile_bits + row_bits + columns_log2 }
    }

    #[inline(always)]
    fn key(&self, arc: u64) -> u64 {
        let (k, row, column) = (self.columns_log2, arc >> 48, arc & COLUMN);
        (column >> k << (k + self.row_bits)) | (row << k) | (column & ((1 << k) - 1))
    }

    fn reader(&self, number: u32) -> Tile {
        Tile {
            number,
            columns_log2: self.columns_log2,
            row_mask: (1 << self.row_bits) - 1,
            column_mask: (1 << self.columns_log2) - 1,
        }
    }

    #[inline(always)]
    fn tile(&self, key: u64) -> u32 {
        (key >> (self.columns_log2 + self.row_bits)) as u32
    }
}

/// One tile, and how its arcs' keys read.
pub(super) struct Tile {
    pub(super) number: u32,
    columns_log2: u32,
    row_mask: u64,
    column_mask: u64,
}

impl Tile {
    #[inline(always)]
    fn row(&self, key: u64) -> u32 {
        (key >> self.columns_log2 & self.row_mask) as u32
    }

    /// The column inside the tile.
    #[inline(always)]
    pub(super) fn column(&self, key: u64) -> u32 {
        (key & self.column_mask) as u32
    }
}
