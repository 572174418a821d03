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
use super::sort::Encode;

/// Groups of columns that a strip is divided into at most, about.
const GROUPS: u64 = 16;

/// Encodes strips, a group of tiles at a time: the bytes are those of whole strips.
pub(super) struct TilesEncode {
    family: Arc<Family>,
    columns: Arc<ColumnGroups>,
    weights: Weights,
    encoder: StripEncoder,
    duplicates: bool,
    sorter: CellSorter,
    arcs: Vec<u64>,
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
    let (mut group_of, mut group, mut sum) = (Vec::with_capacity(tiles.len()), 0u16, 0);
    for arcs in tiles {
        if sum > 0 && sum + arcs > share {
            group += 1;
            sum = 0;
        }
        group_of.push(group);
        sum += arcs;
    }
    let count = usize::from(group) + 1;
    if count == 1 {
        group_of.clear();
    }
    ColumnGroups { shift: columns_log2, group_of, count }
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
            weights: options.weights,
            encoder: StripEncoder::new(options),
            duplicates,
            sorter: CellSorter::default(),
            arcs: Vec::new(),
        }
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

    fn prepare(&mut self, bucket: usize, rows: Range<u32>, pages: &[Page]) -> Result<ReadyTiles> {
        let column_bits = self.family.record.column_bits;
        self.sorter.gather(pages, u64::from(rows.start) << column_bits);
        let mut counts = Vec::new();
        if !self.duplicates || self.weights != Weights::None {
            self.sorter.sort(column_bits + bits_below(rows.len() as u64), self.duplicates);
        }
        let row_base = self.family.buckets[bucket].rows.start + rows.start;
        if !self.duplicates {
            let runs = self.sorter.keys.chunk_by(|a, b| a >> column_bits == b >> column_bits);
            let row = |key: u64| row_base + (key >> column_bits) as u32;
            counts.extend(runs.map(|run| (row(run[0]), run.len() as u32)));
        }
        let column_mask = (1u64 << column_bits) - 1;
        self.arcs.clear();
        let arc = |key: &u64| arc_key((key >> column_bits) as u32, key & column_mask);
        self.arcs.extend(self.sorter.keys.iter().map(arc));
        let weights = (self.weights != Weights::None).then_some(&self.sorter.weights[..]);
        let rows = rows.len() as u32;
        let strip = self.encoder.encode(row_base.into(), rows, &mut self.arcs, weights);
        Ok(ReadyTiles { strip, counts })
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
