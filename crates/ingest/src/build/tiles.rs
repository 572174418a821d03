//! From buckets to `tiles.blocks`.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::FileSink;
use tiergraph_format::tiles::{
    EncodedStrip, StripEncoder, TileOptions, TilesIndex, TilesWriter, arc_key,
};

use super::array::Array;
use super::cell::{CellSorter, bits_below};
use super::family::Family;
use super::load::{Cells, ColumnGroups, Page};
use super::parts::{PartSorter, keys_of, part_bits};
use super::sort::Encode;

/// Groups of columns that a strip is divided into at most, about.
const GROUPS: u64 = 16;

/// Encodes strips, a group of tiles at a time: the bytes are those of whole strips.
pub(super) struct TilesEncode {
    family: Arc<Family>,
    columns: Arc<ColumnGroups>,
    options: TileOptions,
    encoder: StripEncoder,
    duplicates: bool,
    sorter: PartSorter,
    weighted_sorter: CellSorter,
    arcs: Vec<u64>,
    /// Arcs of each row of a cell.
    row_arcs: Vec<u32>,
}

/// Where tiles go.
pub(super) struct TilesSink {
    writer: TilesWriter<FileSink>,
    /// The strip whose groups of tiles are being written.
    open: EncodedStrip,
    /// Arcs of each row, counted where duplicates are removed.
    degrees: Option<Array<u32>>,
}

/// A group of tiles of a strip.
pub(super) struct ReadyTiles {
    strip: EncodedStrip,
    /// Rows and their arcs, where they are counted.
    counts: Vec<(u32, u32)>,
}

/// Groups columns by tiles, so that all groups have about the same share of the arcs.
pub(super) fn group_columns(
    columns: usize,
    columns_log2: u32,
    arcs_of: impl Fn(usize) -> u64,
) -> ColumnGroups {
    let of_tile = |first: usize| -> u64 {
        (first..columns.min(first + (1 << columns_log2))).map(&arcs_of).sum()
    };
    let tiles: Vec<u64> = (0..columns).step_by(1 << columns_log2).map(of_tile).collect();
    let share = tiles.iter().sum::<u64>() / GROUPS;
    let (mut group_of, mut starts, mut sum) = (Vec::with_capacity(tiles.len()), vec![0], 0);
    for (tile, &arcs) in tiles.iter().enumerate() {
        if sum > 0 && sum + arcs > share {
            starts.push(tile as u32);
            sum = 0;
        }
        group_of.push((starts.len() - 1) as u16);
        sum += arcs;
    }
    let count = starts.len();
    starts.push(tiles.len() as u32);
    if count == 1 {
        group_of.clear();
    }
    ColumnGroups { shift: columns_log2, group_of, count, starts }
}

impl TilesEncode {
    pub(super) fn new(
        family: Arc<Family>,
        columns: Arc<ColumnGroups>,
        options: TileOptions,
        duplicates: bool,
    ) -> Self {
        Self {
            family,
            columns,
            options,
            encoder: StripEncoder::new(options),
            duplicates,
            sorter: PartSorter::default(),
            weighted_sorter: CellSorter::default(),
            arcs: Vec::new(),
            row_arcs: Vec::new(),
        }
    }

    /// Encodes a cell without weights: tiles are dealt apart, sorted and given to the encoder.
    fn plain(
        &mut self,
        row_base: u64,
        rows: Range<u32>,
        tiles: Range<u32>,
        pages: &[Page],
    ) -> ReadyTiles {
        let (k, column_bits) = (self.options.columns_log2, self.family.record.column_bits);
        let (base, column_mask) = (u64::from(rows.start) << column_bits, (1u64 << column_bits) - 1);
        let row_bits = bits_below(rows.len() as u64);
        // A tile is dealt to parts by its leading rows.
        let lead = part_bits(keys_of(pages) / tiles.len().max(1)).min(row_bits);
        let in_tile = (1u64 << k) - 1;
        let split = |key: u64| {
            let (row, column) = ((key - base) >> column_bits, key & column_mask);
            let tile = (column >> k) as usize - tiles.start as usize;
            let part = tile << lead | (row >> (row_bits - lead)) as usize;
            (part, (row << k | column & in_tile) as u32)
        };
        self.sorter.sort(pages, tiles.len() << lead, k + row_bits - lead, split);
        let mut counts = Vec::new();
        if !self.duplicates {
            self.sorter.dedup();
            self.count_rows(rows.len());
            let counted = self.row_arcs.iter().enumerate().filter(|(_, arcs)| **arcs > 0);
            counts.extend(counted.map(|(row, &arcs)| (row_base as u32 + row as u32, arcs)));
        }
        let words = &self.sorter.words[..];
        let mut strip =
            EncodedStrip { row_base, rows: rows.len() as u32, ..EncodedStrip::default() };
        strip.bytes.reserve(2 * words.len());
        let mut begin = 0;
        for (tile, ends) in tiles.zip(self.sorter.ends.chunks(1 << lead)) {
            let end = ends[ends.len() - 1] as usize;
            self.encoder.push_tile(&mut strip, tile, &words[begin..end], &[]);
            begin = end;
        }
        ReadyTiles { strip, counts }
    }

    fn count_rows(&mut self, rows: usize) {
        self.row_arcs.clear();
        self.row_arcs.resize(rows, 0);
        for word in &self.sorter.words {
            self.row_arcs[(word >> self.options.columns_log2) as usize] += 1;
        }
    }

    /// Encodes a cell with weights.
    fn weighted(&mut self, row_base: u64, rows: Range<u32>, pages: &[Page]) -> ReadyTiles {
        let column_bits = self.family.record.column_bits;
        let (sorter, mut counts) = (&mut self.weighted_sorter, Vec::new());
        sorter.gather(pages, u64::from(rows.start) << column_bits);
        sorter.sort(column_bits + bits_below(rows.len() as u64), self.duplicates);
        if !self.duplicates {
            let runs = sorter.keys.chunk_by(|a, b| a >> column_bits == b >> column_bits);
            let row = |key: u64| row_base as u32 + (key >> column_bits) as u32;
            counts.extend(runs.map(|run| (row(run[0]), run.len() as u32)));
        }
        let column_mask = (1u64 << column_bits) - 1;
        let arc = |key: &u64| arc_key((key >> column_bits) as u32, key & column_mask);
        self.arcs.clear();
        self.arcs.extend(sorter.keys.iter().map(arc));
        let rows = rows.len() as u32;
        let strip = self.encoder.encode(row_base, rows, &mut self.arcs, Some(&sorter.weights));
        ReadyTiles { strip, counts }
    }
}

impl Encode for TilesEncode {
    type Ready = ReadyTiles;
    type Sink = TilesSink;

    fn cells(&self, bucket: usize) -> Cells {
        let bucket = &self.family.buckets[bucket];
        let strip = |i: usize| {
            let bounds = &self.family.strips[i..i + 2];
            bounds[0] - bucket.rows.start..bounds[1] - bucket.rows.start
        };
        let strips = bucket.strips.clone().map(strip).collect();
        Cells::of_rows(strips, Arc::clone(&self.columns))
    }

    fn prepare(
        &mut self,
        bucket: usize,
        cells: &Cells,
        cell: usize,
        pages: &[Page],
    ) -> Result<ReadyTiles> {
        let rows = cells.rows_of(cell);
        let row_base = u64::from(self.family.buckets[bucket].rows.start + rows.start);
        Ok(match self.options.weights {
            Weights::None => self.plain(row_base, rows, cells.columns_of(cell), pages),
            _ => self.weighted(row_base, rows, pages),
        })
    }

    fn write(&mut self, sink: &mut TilesSink, ready: ReadyTiles) -> Result<()> {
        if let Some(degrees) = &mut sink.degrees {
            ready.counts.iter().for_each(|&(row, arcs)| degrees[row as usize] += arcs);
        }
        sink.push(ready.strip)
    }
}

impl TilesSink {
    pub(super) fn new(writer: TilesWriter<FileSink>, degrees: Option<Array<u32>>) -> Self {
        Self { writer, open: EncodedStrip::default(), degrees }
    }

    /// Joins groups of tiles to strips, which is what the writer takes.
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

    /// Writes the last block.
    pub(super) fn finish(mut self) -> Result<(FileSink, Vec<TilesIndex>, Option<Array<u32>>)> {
        self.flush()?;
        let (file, index) = self.writer.finish()?;
        Ok((file, index, self.degrees))
    }
}
