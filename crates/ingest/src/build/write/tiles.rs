//! From buckets to `tiles.blocks`.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_format::sink::FileSink;
use tiergraph_format::tiles::{EncodedStrip, StripEncoder, TileOptions, TilesIndex, TilesWriter};

use super::load::{Cell, PART_WORDS, Split, parts_of};
use super::sort::Encode;
use super::sorted::Sorted;
use super::turns::Prepare;
use crate::build::array::Array;
use crate::build::partition::family::Family;
use crate::build::partition::records::bits_below;

/// Rows that share an entry of the table from rows to strips: strips are cut at multiples of it.
const ROWS_LOG2: u32 = 5;

/// The encoder of tiles: sorted arcs to segments of `tiles.blocks`; a cell is a tile of a strip.
pub(crate) struct TilesEncode<'a> {
    family: Arc<Family>,
    options: TileOptions,
    encoder: StripEncoder,
    /// Whether this encoder counts the arcs of rows.
    counts_rows: bool,
    /// For each tile of a strip, the share of all arcs that its columns have.
    shares: &'a [f64],
    /// The number of arcs of each row of a strip.
    row_arcs: Vec<u32>,
}

/// The file that tiles go to.
pub(crate) struct TilesSink {
    writer: TilesWriter<FileSink>,
    /// The strip whose tiles are being written.
    open: EncodedStrip,
    /// The number of arcs of each row; counted where duplicates are removed.
    degrees: Option<Array<u32>>,
}

/// Encoded tiles of a strip, ready to be written.
pub(crate) struct ReadyTiles {
    strip: EncodedStrip,
    /// Rows and their numbers of arcs, where these are counted.
    counts: Vec<(u32, u32)>,
}

/// The division of a bucket into parts: by strip, by tile, and by some leading bits of the row.
pub(crate) struct TileSplit {
    column_bits: u32,
    column_mask: u32,
    columns_log2: u32,
    tiles: usize,
    /// The strip of each 32 rows.
    strip_of: Vec<Strip>,
    /// The parts of each tile of each strip.
    places: Vec<Place>,
    cells: Vec<Cell>,
}

/// A strip of a bucket: its first row there, and the index of its first place.
#[derive(Debug, Clone, Copy)]
struct Strip {
    first_row: u32,
    places: u32,
}

/// The parts of a tile: the first one, and how far rows are shifted to count from there.
#[derive(Debug, Clone, Copy)]
struct Place {
    part: u32,
    row_shift: u32,
}

impl Split for TileSplit {
    #[inline(always)]
    fn split(&self, key: u64) -> (u32, u32) {
        let (row, column) = ((key >> self.column_bits) as u32, key as u32 & self.column_mask);
        let strip = self.strip_of[(row >> ROWS_LOG2) as usize];
        let row = row - strip.first_row;
        let place = self.places[(strip.places + (column >> self.columns_log2)) as usize];
        let in_tile = (1 << self.columns_log2) - 1;
        (place.part + (row >> place.row_shift), row << self.columns_log2 | column & in_tile)
    }

    fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// The share of all arcs that each tile's columns have.
pub(crate) fn tile_shares(
    columns: usize,
    columns_log2: u32,
    arcs_of: impl Fn(usize) -> u64,
) -> Vec<f64> {
    let of_tile = |first: usize| -> u64 {
        (first..columns.min(first + (1 << columns_log2))).map(&arcs_of).sum()
    };
    let tiles: Vec<u64> = (0..columns).step_by(1 << columns_log2).map(of_tile).collect();
    let all = tiles.iter().sum::<u64>().max(1);
    tiles.iter().map(|&arcs| arcs as f64 / all as f64).collect()
}

impl<'a> TilesEncode<'a> {
    pub(crate) fn new(
        family: Arc<Family>,
        options: TileOptions,
        counts_rows: bool,
        shares: &'a [f64],
    ) -> Self {
        let encoder = StripEncoder::new(options);
        Self { family, options, encoder, counts_rows, shares, row_arcs: Vec::new() }
    }

    /// The rows of a bucket's strip, as rows of the graph.
    fn strip_rows(&self, bucket: usize, strip: usize) -> Range<u32> {
        let first = self.family.buckets[bucket].strips.start + strip;
        self.family.strips[first]..self.family.strips[first + 1]
    }

    fn encode_strip(
        &mut self,
        rows: Range<u32>,
        tiles: Range<u32>,
        ends: impl Iterator<Item = usize>,
        begin: usize,
        sorted: &Sorted,
    ) -> ReadyTiles {
        let mut strip = EncodedStrip {
            row_base: rows.start.into(),
            rows: rows.len() as u32,
            ..EncodedStrip::default()
        };
        let mut at = begin;
        for (tile, end) in tiles.zip(ends) {
            let weights = sorted.weights(at..end);
            self.encoder.push_tile(&mut strip, tile, sorted.words(at..end), weights);
            at = end;
        }
        let counts = if self.counts_rows {
            self.count_rows(&rows, sorted.words(begin..at))
        } else {
            Vec::new()
        };
        ReadyTiles { strip, counts }
    }

    fn count_rows(&mut self, rows: &Range<u32>, words: &[u32]) -> Vec<(u32, u32)> {
        self.row_arcs.clear();
        self.row_arcs.resize(rows.len(), 0);
        for word in words {
            self.row_arcs[(word >> self.options.columns_log2) as usize] += 1;
        }
        let counts = rows.clone().zip(self.row_arcs.iter().copied());
        counts.filter(|(_, arcs)| *arcs > 0).collect()
    }
}

impl Encode for TilesEncode<'_> {
    type Split = TileSplit;

    fn split(&self, bucket: usize) -> TileSplit {
        let (family, k) = (&self.family, self.options.columns_log2);
        let Range { start, end } = family.buckets[bucket].strips;
        let first_row = family.buckets[bucket].rows.start;
        let arcs = family.arcs(bucket) as f64 / (end - start).max(1) as f64;
        let mut split = TileSplit {
            column_bits: family.column_bits,
            column_mask: ((1u64 << family.column_bits) - 1) as u32,
            columns_log2: k,
            tiles: self.shares.len(),
            strip_of: Vec::new(),
            places: Vec::new(),
            cells: Vec::new(),
        };
        let mut part = 0;
        for strip in 0..end - start {
            let rows = self.strip_rows(bucket, strip);
            let rows = rows.start - first_row..rows.end - first_row;
            let place = Strip { first_row: rows.start, places: split.places.len() as u32 };
            split.strip_of.resize((rows.end as usize).div_ceil(1 << ROWS_LOG2), place);
            let row_bits = bits_below(rows.len() as u64);
            for share in self.shares {
                let lead = bits_below((arcs * share) as u64 / PART_WORDS).min(row_bits);
                let row_shift = row_bits - lead;
                split.places.push(Place { part, row_shift });
                part += (rows.len() as u32).div_ceil(1 << row_shift);
                split.cells.push(Cell { parts_end: part, bits: k + row_shift });
            }
        }
        split
    }

    fn prepare(
        &mut self,
        bucket: usize,
        split: &TileSplit,
        wanted: &Range<usize>,
        sorted: &Sorted,
    ) -> Result<Vec<ReadyTiles>> {
        let first_part = parts_of(&split.cells, wanted).start;
        let end_of = |cell: usize| {
            let parts = split.cells[cell].parts_end - first_part;
            sorted.part(parts as usize - 1).end
        };
        let (mut ready, mut cell, mut begin) = (Vec::new(), wanted.start, 0);
        while cell < wanted.end {
            let strip = cell / split.tiles;
            let next = wanted.end.min((strip + 1) * split.tiles);
            let of_strip = |cell: usize| (cell - strip * split.tiles) as u32;
            let (rows, tiles) = (self.strip_rows(bucket, strip), of_strip(cell)..of_strip(next));
            ready.push(self.encode_strip(rows, tiles, (cell..next).map(end_of), begin, sorted));
            (cell, begin) = (next, end_of(next - 1));
        }
        Ok(ready)
    }
}

impl Prepare for TilesEncode<'_> {
    type Ready = Vec<ReadyTiles>;
    type Sink = TilesSink;

    fn write(&mut self, sink: &mut TilesSink, ready: Vec<ReadyTiles>) -> Result<()> {
        for ReadyTiles { strip, counts } in ready {
            if let Some(degrees) = &mut sink.degrees {
                counts.iter().for_each(|&(row, arcs)| degrees[row as usize] += arcs);
            }
            sink.push(strip)?;
        }
        Ok(())
    }
}

impl TilesSink {
    pub(crate) fn new(writer: TilesWriter<FileSink>, degrees: Option<Array<u32>>) -> Self {
        Self { writer, open: EncodedStrip::default(), degrees }
    }

    /// Adds tiles to the strip that is open, which the writer takes as a whole.
    fn push(&mut self, tiles: EncodedStrip) -> Result<()> {
        let open = &mut self.open;
        if open.rows == 0 || open.row_base != tiles.row_base {
            self.flush()?;
            self.open = tiles;
            return Ok(());
        }
        let before = open.bytes.len() as u32;
        open.arcs += tiles.arcs;
        open.groups.extend(tiles.groups.iter().map(|&(at, tile, arcs)| (at + before, tile, arcs)));
        open.bytes.extend_from_slice(&tiles.bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let strip = std::mem::take(&mut self.open);
        if strip.rows > 0 { self.writer.push(&strip) } else { Ok(()) }
    }

    /// Writes the last block; returns the file, its index and the degrees, if these were counted.
    pub(crate) fn finish(mut self) -> Result<(FileSink, Vec<TilesIndex>, Option<Array<u32>>)> {
        self.flush()?;
        let (file, index) = self.writer.finish()?;
        Ok((file, index, self.degrees))
    }
}
