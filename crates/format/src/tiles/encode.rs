//! From a strip's arcs to the bytes of its tiles.

use super::bits::{pack, width, width_nibble, nibble_width};
use super::{LANES, TileOptions, UNIFORM_MAX, radix_sort};
use crate::manifest::Weights;

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
struct RowRun {
    row: u32,
    start: u32,
    len: u32,
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
    /// Cost: a radix sort over the bits that tell arcs of this strip apart, then one pass.
    pub fn encode(
        &mut self,
        row_base: u64,
        rows: u32,
        arcs: &mut Vec<u64>,
        weights: Option<&[f64]>,
    ) -> EncodedStrip {
        let mut out =
            EncodedStrip { row_base, rows, arcs: arcs.len() as u64, ..Default::default() };
        out.bytes.reserve(arcs.len() * (2 + self.options.weights.bytes()));
        let k = self.options.columns_log2;
        let columns = arcs.iter().map(|a| a & COLUMN).max().unwrap_or(0);
        let row_bits = width(rows.saturating_sub(1));
        let bits = k + row_bits + (64 - (columns >> k).leading_zeros());
        // tile | row | column in tile
        let to_key = |arc: u64| {
            let (row, column) = (arc >> 48, arc & COLUMN);
            (column >> k << (k + row_bits)) | row << k | (column & ((1 << k) - 1))
        };
        match weights {
            None => {
                arcs.iter_mut().for_each(|a| *a = to_key(*a));
                radix_sort(arcs, &mut self.scratch, bits, |a| *a);
            }
            Some(weights) => {
                self.weighted.clear();
                self.weighted.extend(arcs.iter().zip(weights).map(|(&a, &w)| (to_key(a), w)));
                radix_sort(&mut self.weighted, &mut self.weighted_scratch, bits, |a| a.0);
                arcs.clear();
                arcs.extend(self.weighted.iter().map(|a| a.0));
                self.weights.clear();
                self.weights.extend(self.weighted.iter().map(|a| a.1));
            }
        }
        let tile_of = |arc: u64| arc >> (k + row_bits);
        let weights = std::mem::take(&mut self.weights);
        let mut begin = 0;
        while begin < arcs.len() {
            let tile = tile_of(arcs[begin]);
            let end = begin + arcs[begin..].partition_point(|&a| tile_of(a) == tile);
            let weights = weights.get(begin..end).unwrap_or_default();
            let tile = Tile { number: tile as u32, k, row_mask: (1 << row_bits) - 1 };
            self.tile(&tile, &arcs[begin..end], weights, &mut out);
            begin = end;
        }
        self.weights = weights;
        out
    }

    /// Encodes one tile; halves its columns first while a row is too long for a slice.
    fn tile(&mut self, tile: &Tile, arcs: &[u64], weights: &[f64], out: &mut EncodedStrip) {
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
            // So many rows that a group stays far smaller than a block.
            let per_group = (self.options.max_row_arcs() * 8 / group[0].len as usize)
                .next_multiple_of(LANES)
                .clamp(LANES, 2048);
            for part in group.chunks(per_group) {
                slicer.uniform(part);
            }
        }
        self.by_length = rows;
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

    fn halves(&mut self, tile: &Tile, arcs: &[u64], weights: &[f64], out: &mut EncodedStrip) {
        let column = |i: usize| tile.column(arcs[i]);
        let (mut low, mut high) = (u32::MAX, 0);
        for i in 0..arcs.len() {
            low = low.min(column(i));
            high = high.max(column(i));
        }
        let middle = low + (high - low) / 2;
        // Duplicates of one arc cannot be told apart by column: halve the run of arcs instead.
        let lower: Vec<bool> = if low == high {
            (0..arcs.len()).map(|i| i % 2 == 0).collect()
        } else {
            (0..arcs.len()).map(|i| column(i) <= middle).collect()
        };
        for side in [true, false] {
            let pick = |i: &usize| lower[*i] == side;
            let part: Vec<u64> = (0..arcs.len()).filter(pick).map(|i| arcs[i]).collect();
            let part_weights: Vec<f64> = match weights {
                [] => Vec::new(),
                w => (0..arcs.len()).filter(pick).map(|i| w[i]).collect(),
            };
            if !part.is_empty() {
                self.tile(tile, &part, &part_weights, out);
            }
        }
    }
}

const COLUMN: u64 = (1 << 48) - 1;

/// How a sorted arc's key reads.
struct Tile {
    number: u32,
    k: u32,
    row_mask: u64,
}

impl Tile {
    fn row(&self, arc: u64) -> u32 {
        (arc >> self.k & self.row_mask) as u32
    }

    fn column(&self, arc: u64) -> u32 {
        (arc & ((1 << self.k) - 1)) as u32
    }
}

/// Writes the groups of one tile.
struct Slicer<'a> {
    tile: &'a Tile,
    arcs: &'a [u64],
    weights: &'a [f64],
    options: &'a TileOptions,
    out: &'a mut EncodedStrip,
}

impl Slicer<'_> {
    /// Notes that a group starts here: a block may end before it.
    fn group(&mut self, runs: &[RowRun]) {
        let arcs = runs.iter().map(|r| r.len).sum();
        self.out.groups.push((self.out.bytes.len() as u32, self.tile.number, arcs));
    }

    /// Rows of one length: `length, rows`, then slices of 32 rows in ascending order.
    fn uniform(&mut self, runs: &[RowRun]) {
        self.group(runs);
        let length = runs[0].len as usize;
        self.out.bytes.extend_from_slice(&(length as u16).to_le_bytes());
        self.out.bytes.extend_from_slice(&(runs.len() as u16).to_le_bytes());
        for slice in runs.chunks(LANES) {
            let mut gaps = [0u32; LANES];
            for (i, pair) in slice.windows(2).enumerate() {
                gaps[i + 1] = pair[1].row - pair[0].row;
            }
            let row_nibble = width_nibble(gaps.iter().map(|&g| width(g)).max().unwrap_or(0));
            let first = self.step_width(slice, 0);
            self.out.bytes.extend_from_slice(&(slice[0].row as u16).to_le_bytes());
            self.out.bytes.push(row_nibble | first << 4);
            let nibbles = self.step_nibbles(slice, length);
            pack(&mut self.out.bytes, &gaps[..slice.len()], nibble_width(row_nibble));
            self.steps(slice, first, &nibbles, length);
        }
    }

    /// At most 32 rows of any lengths, longest first: `0, rows`, then rows and lengths by a frame
    /// of reference, then steps of as many lanes as still have arcs.
    fn jagged(&mut self, slice: &[RowRun]) {
        self.group(slice);
        let longest = slice[0].len;
        let base = slice.iter().map(|r| r.row).min().unwrap_or(0);
        let rows: Vec<u32> = slice.iter().map(|r| r.row - base).collect();
        let missing: Vec<u32> = slice.iter().map(|r| longest - r.len).collect();
        let nibble = |v: &[u32]| width_nibble(v.iter().map(|&x| width(x)).max().unwrap_or(0));
        let (row_nibble, len_nibble) = (nibble(&rows), nibble(&missing));
        let first = self.step_width(slice, 0);
        let out = &mut self.out.bytes;
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&(slice.len() as u16).to_le_bytes());
        out.extend_from_slice(&(longest as u16).to_le_bytes());
        out.extend_from_slice(&(base as u16).to_le_bytes());
        out.push(row_nibble | first << 4);
        out.push(len_nibble);
        let nibbles = self.step_nibbles(slice, longest as usize);
        pack(&mut self.out.bytes, &rows, nibble_width(row_nibble));
        pack(&mut self.out.bytes, &missing, nibble_width(len_nibble));
        self.steps(slice, first, &nibbles, longest as usize);
    }

    /// What lane `run` stores in step `k`: its first column, then the gaps.
    #[inline]
    fn field(&self, run: &RowRun, k: usize) -> u32 {
        let at = run.start as usize + k;
        let column = self.tile.column(self.arcs[at]);
        if k == 0 {
            return column;
        }
        column - self.tile.column(self.arcs[at - 1]) - self.options.min_gap
    }

    fn step_width(&self, slice: &[RowRun], k: usize) -> u8 {
        let lanes = slice.iter().take_while(|r| r.len as usize > k);
        // The width of the OR of all fields is that of the widest.
        width_nibble(width(lanes.fold(0, |all, r| all | self.field(r, k))))
    }

    /// The widths of steps 1 and on, written as nibbles.
    fn step_nibbles(&mut self, slice: &[RowRun], length: usize) -> Vec<u8> {
        let nibbles: Vec<u8> = (1..length).map(|k| self.step_width(slice, k)).collect();
        for pair in nibbles.chunks(2) {
            self.out.bytes.push(pair[0] | pair.get(1).unwrap_or(&0) << 4);
        }
        nibbles
    }

    fn steps(&mut self, slice: &[RowRun], first: u8, nibbles: &[u8], length: usize) {
        let mut fields = [0u32; LANES];
        let mut lanes = slice.len();
        for k in 0..length {
            while slice[lanes - 1].len as usize <= k {
                lanes -= 1;
            }
            for (field, run) in fields.iter_mut().zip(&slice[..lanes]) {
                *field = self.field(run, k);
            }
            let nibble = if k == 0 { first } else { nibbles[k - 1] };
            pack(&mut self.out.bytes, &fields[..lanes], nibble_width(nibble));
        }
        self.step_weights(slice, length);
    }

    fn step_weights(&mut self, slice: &[RowRun], length: usize) {
        if self.options.weights == Weights::None {
            return;
        }
        for k in 0..length {
            for run in slice.iter().take_while(|r| r.len as usize > k) {
                let weight = self.weights[run.start as usize + k];
                match self.options.weights {
                    Weights::F32 => {
                        self.out.bytes.extend_from_slice(&(weight as f32).to_le_bytes());
                    }
                    _ => self.out.bytes.extend_from_slice(&weight.to_le_bytes()),
                }
            }
        }
    }
}
