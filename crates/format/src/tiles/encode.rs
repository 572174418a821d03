//! From a strip's arcs to the bytes of its tiles.
//!
//! Cost: a radix sort of the arcs by tile, row and column, then one pass; 24 bytes of working memory an
//! arc, 56 with weights. A caller that has sorted tiles already passes them to
//! [`StripEncoder::push_tile`]: 4 bytes an arc.

use super::bits::width;
use super::slices::{RowRun, Slicer};
use super::strip::EncodedStrip;
use super::{LANES, MAX_VERTICES, TileOptions, UNIFORM_MAX, radix_sort};
use crate::manifest::Weights;

const COLUMN: u64 = (1 << 48) - 1;
/// The most rows of a group.
const GROUP_ROWS: usize = 2048;

/// An encoder of strips, which keeps its working memory between them. Each thread has its own.
#[derive(Debug)]
pub struct StripEncoder {
    options: TileOptions,
    weighted: Vec<(u64, f64)>,
    weighted_scratch: Vec<(u64, f64)>,
    scratch: Vec<u64>,
    weights: Vec<f64>,
    keys: Vec<u32>,
    /// Where each row of the tile begins, then where the last ends.
    starts: Vec<u32>,
    by_length: Vec<RowRun>,
    steps: Vec<[u32; LANES]>,
}

impl StripEncoder {
    /// An encoder for a file with these options.
    pub fn new(options: TileOptions) -> Self {
        Self {
            options,
            weighted: Vec::new(),
            weighted_scratch: Vec::new(),
            scratch: Vec::new(),
            weights: Vec::new(),
            keys: Vec::new(),
            starts: Vec::new(),
            by_length: Vec::new(),
            steps: Vec::new(),
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
        let mut out = EncodedStrip { row_base, rows, ..Default::default() };
        out.bytes.reserve(arcs.len() * (2 + self.options.weights.bytes()));
        let keys = Keys::of(self.options.columns_log2, rows, arcs);
        self.sort(&keys, arcs, weights);
        let weights = std::mem::take(&mut self.weights);
        let mut tile = std::mem::take(&mut self.keys);
        let mut begin = 0;
        while begin < arcs.len() {
            let number = keys.tile(arcs[begin]);
            let end = begin + arcs[begin..].partition_point(|&a| keys.tile(a) == number);
            tile.clear();
            tile.extend(arcs[begin..end].iter().map(|&arc| keys.in_tile(arc)));
            let weights = weights.get(begin..end).unwrap_or_default();
            self.push_tile(&mut out, number, &tile, weights);
            begin = end;
        }
        (self.weights, self.keys) = (weights, tile);
        out
    }

    /// Appends tile `number` to a strip: tiles come in ascending order, their arcs as
    /// [`TileOptions::tile_key`]s in ascending order, with a weight each where the file has weights.
    ///
    /// # Panics
    /// As [`Self::encode`].
    pub fn push_tile(
        &mut self,
        strip: &mut EncodedStrip,
        number: u32,
        keys: &[u32],
        weights: &[f64],
    ) {
        let stored = self.options.weights != Weights::None;
        assert_eq!(weights.len(), if stored { keys.len() } else { 0 }, "weights of a tile");
        let Some(last) = keys.last() else { return };
        let row = last >> self.options.columns_log2;
        assert!(row < strip.rows, "row {row} in a strip of {}", strip.rows);
        strip.arcs += keys.len() as u64;
        self.tile(number, keys, weights, strip);
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

    /// Encodes one tile; the columns of rows that are too long for a slice are halved first.
    fn tile(&mut self, tile: u32, keys: &[u32], weights: &[f64], out: &mut EncodedStrip) {
        let longest = self.find_rows(keys);
        if longest as usize > self.options.max_row_arcs() {
            let (long, rest) = self.split(keys, weights);
            self.halves(tile, &long.0, &long.1, out);
            return self.tile(tile, &rest.0, &rest.1, out);
        }
        self.sort_by_length(keys, longest);
        let rows = &self.by_length[..];
        let long = rows.partition_point(|r| r.len as usize > UNIFORM_MAX);
        let (options, steps) = (&self.options, &mut self.steps);
        let mut slicer = Slicer { tile, keys, weights, options, steps, out };
        for slice in rows[..long].chunks(LANES) {
            slicer.jagged(slice);
        }
        for group in rows[long..].chunk_by(|a, b| a.len == b.len) {
            for part in group.chunks(self.options.group_rows(group[0].len as usize)) {
                slicer.uniform(part);
            }
        }
    }

    /// Finds where the rows of a tile begin and tells how many arcs the longest has.
    fn find_rows(&mut self, keys: &[u32]) -> u32 {
        let k = self.options.columns_log2;
        if self.starts.len() < keys.len() + 1 {
            self.starts.resize(keys.len() + 1, 0);
        }
        // Written whether a row begins or not: no branch that depends on the arcs.
        self.starts[0] = 0;
        let mut rows = usize::from(!keys.is_empty());
        for (i, pair) in keys.windows(2).enumerate() {
            self.starts[rows] = i as u32 + 1;
            rows += usize::from(pair[0] >> k != pair[1] >> k);
        }
        self.starts[rows] = keys.len() as u32;
        self.starts.truncate(rows + 1);
        self.starts.windows(2).fold(0, |most, pair| most.max(pair[1] - pair[0]))
    }

    /// Rows by descending length, ascending in a length: a counting sort.
    fn sort_by_length(&mut self, keys: &[u32], longest: u32) {
        let k = self.options.columns_log2;
        let mut places = vec![0u32; longest as usize + 2];
        for pair in self.starts.windows(2) {
            places[(longest - (pair[1] - pair[0])) as usize + 1] += 1;
        }
        for i in 1..places.len() {
            places[i] += places[i - 1];
        }
        self.by_length.resize(self.starts.len() - 1, RowRun::default());
        for pair in self.starts.windows(2) {
            let (start, len) = (pair[0], pair[1] - pair[0]);
            let place = &mut places[(longest - len) as usize];
            let row = keys[start as usize] >> k;
            self.by_length[*place as usize] = RowRun { row, start, len };
            *place += 1;
        }
    }

    /// The arcs of the rows that are too long for a slice, and the others.
    fn split(&self, keys: &[u32], weights: &[f64]) -> (Arcs, Arcs) {
        let most = self.options.max_row_arcs() as u32;
        let mut sides = (Arcs::default(), Arcs::default());
        for pair in self.starts.windows(2) {
            let run = pair[0] as usize..pair[1] as usize;
            let side = if pair[1] - pair[0] > most { &mut sides.0 } else { &mut sides.1 };
            side.0.extend_from_slice(&keys[run.clone()]);
            side.1.extend_from_slice(weights.get(run).unwrap_or_default());
        }
        sides
    }

    /// Encodes the lower half of the columns that have arcs and then the upper half, as groups of
    /// the same tile.
    fn halves(&mut self, tile: u32, keys: &[u32], weights: &[f64], out: &mut EncodedStrip) {
        let column_mask = self.options.columns() as u32 - 1;
        let columns = || keys.iter().map(|&key| key & column_mask);
        let (low, high) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
        let middle = low + (high - low) / 2;
        // Duplicates of one arc cannot be told apart by column: halve the run of arcs instead.
        let is_lower = |i: usize, key: u32| match low == high {
            true => i.is_multiple_of(2),
            false => key & column_mask <= middle,
        };
        for side in [true, false] {
            let (part, weights) = picked(keys, weights, |i, key| is_lower(i, key) == side);
            if !part.is_empty() {
                self.tile(tile, &part, &weights, out);
            }
        }
    }
}

/// Some of a tile's arcs: their keys, and weights if there are any.
type Arcs = (Vec<u32>, Vec<f64>);

/// The arcs that `wanted` picks by number and key, and their weights if there are any.
fn picked(keys: &[u32], weights: &[f64], wanted: impl Fn(usize, u32) -> bool) -> Arcs {
    let (mut part, mut count) = (vec![0; keys.len()], 0);
    // Written in any case: no branch that depends on the arcs.
    for (i, &key) in keys.iter().enumerate() {
        part[count] = key;
        count += usize::from(wanted(i, key));
    }
    part.truncate(count);
    let of_part = keys.iter().zip(weights).enumerate().filter(|(i, (key, _))| wanted(*i, **key));
    (part, of_part.map(|(_, (_, weight))| *weight).collect())
}

impl TileOptions {
    /// The key of an arc inside a tile: its row in the strip, then its column in the tile, as one word.
    #[inline(always)]
    pub fn tile_key(&self, row_in_strip: u32, column_in_tile: u32) -> u32 {
        row_in_strip << self.columns_log2 | column_in_tile
    }

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

    /// The [`TileOptions::tile_key`] of a key.
    #[inline(always)]
    fn in_tile(&self, key: u64) -> u32 {
        (key & ((1 << (self.columns_log2 + self.row_bits)) - 1)) as u32
    }

    #[inline(always)]
    fn tile(&self, key: u64) -> u32 {
        (key >> (self.columns_log2 + self.row_bits)) as u32
    }
}
