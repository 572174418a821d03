//! From a bucket on disk to cells in memory.
//!
//! A cell is what is sorted at once: small enough for a core's cache where the rows allow it. While
//! a bucket is read its records are dealt out to the pages of their cells, so that no part of the
//! sort works on more than a cell and memory goes back to the pool cell by cell.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::manifest::Weights;

use super::family::{ChunkReader, Family};

/// Rows that share an entry of the table from rows to cells, as a power of two, in buckets of many
/// rows: none of them has many arcs there.
const MANY_ROWS_LOG2: u32 = 5;
/// Buckets of more rows have many.
const MANY_ROWS: u32 = 1 << 18;

/// How a bucket is divided into cells: by rows, and by groups of columns inside the rows.
#[derive(Debug)]
pub(super) struct Cells {
    /// Rows in the bucket of each part.
    pub(super) rows: Vec<Range<u32>>,
    row_shift: u32,
    part_of_row: Vec<u32>,
    columns: Arc<ColumnGroups>,
}

/// Consecutive columns that are sorted together.
#[derive(Debug, Default)]
pub(super) struct ColumnGroups {
    pub(super) shift: u32,
    /// The group of each 2^shift columns; empty when there is one group.
    pub(super) group_of: Vec<u16>,
    pub(super) count: usize,
}

impl Cells {
    /// Parts of given rows, in ascending order and at multiples of 32 rows.
    pub(super) fn of_rows(rows: Vec<Range<u32>>, columns: Arc<ColumnGroups>) -> Self {
        Self::new(rows, MANY_ROWS_LOG2, columns)
    }

    fn new(rows: Vec<Range<u32>>, row_shift: u32, columns: Arc<ColumnGroups>) -> Self {
        let mut part_of_row = Vec::new();
        for (part, rows) in rows.iter().enumerate() {
            part_of_row.resize((rows.end as usize).div_ceil(1 << row_shift), part as u32);
        }
        Self { rows, row_shift, part_of_row, columns }
    }

    /// Parts of about `cell_arcs` arcs of `rows` rows.
    pub(super) fn by_arcs(rows: u32, cell_arcs: u64, arcs_of: impl Fn(u32) -> u64) -> Self {
        let row_shift = if rows > MANY_ROWS { MANY_ROWS_LOG2 } else { 0 };
        let mut parts: Vec<Range<u32>> = Vec::new();
        let mut arcs = 0;
        for begin in (0..rows).step_by(1 << row_shift) {
            let end = rows.min(begin + (1 << row_shift));
            let more: u64 = (begin..end).map(&arcs_of).sum();
            match parts.last_mut() {
                Some(part) if arcs + more <= cell_arcs => {
                    part.end = end;
                    arcs += more;
                }
                _ => {
                    parts.push(begin..end);
                    arcs = more;
                }
            }
        }
        let columns = Arc::new(ColumnGroups { count: 1, ..ColumnGroups::default() });
        Self::new(parts, row_shift, columns)
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len() * self.columns.count
    }

    /// The rows, in the bucket, of a cell.
    pub(super) fn rows_of(&self, cell: usize) -> Range<u32> {
        self.rows[cell / self.columns.count].clone()
    }

    #[inline]
    fn of(&self, row: u32, column: u32) -> usize {
        let part = self.part_of_row[(row >> self.row_shift) as usize] as usize;
        if self.columns.group_of.is_empty() {
            return part;
        }
        let group = self.columns.group_of[(column >> self.columns.shift) as usize];
        part * self.columns.count + usize::from(group)
    }
}

/// Part of a cell's arcs: their keys in the bucket, and weights if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: Vec<u64>,
    pub(super) weights: Vec<f64>,
}

/// Deals a bucket's records out to cells. One a thread; it keeps its pages for the next bucket.
#[derive(Debug)]
pub(super) struct Loader {
    pool: Vec<Page>,
    page_keys: usize,
    /// Whether records' weights are wanted.
    weighted: bool,
    /// Full pages of each cell, and the one that is being filled.
    cells: Vec<Vec<Page>>,
    open: Vec<Page>,
}

impl Loader {
    pub(super) fn new(page_keys: usize, weighted: bool) -> Self {
        Self { pool: Vec::new(), page_keys, weighted, cells: Vec::new(), open: Vec::new() }
    }

    /// Reads all records whose cell is among `wanted`.
    pub(super) fn load(
        &mut self,
        reader: ChunkReader,
        family: &Family,
        cells: &Cells,
        wanted: Range<usize>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.cells.clear();
        self.cells.resize_with(wanted.len(), Vec::new);
        self.open.clear();
        self.open.resize_with(wanted.len(), Page::default);
        reader.for_each(|bytes, records| {
            cancel.check("build the graph")?;
            match self.weighted && family.record.weights != Weights::None {
                true => self.deal::<true>(bytes, records, family, cells, &wanted),
                false => self.deal::<false>(bytes, records, family, cells, &wanted),
            }
            Ok(())
        })
    }

    fn deal<const WEIGHTED: bool>(
        &mut self,
        bytes: &[u8],
        records: usize,
        family: &Family,
        cells: &Cells,
        wanted: &Range<usize>,
    ) {
        for_each_key(bytes, records, family, |key, cell, record| {
            let cell = cells.of(cell.0, cell.1).wrapping_sub(wanted.start);
            if cell >= wanted.len() {
                return;
            }
            let page = &mut self.open[cell];
            if page.keys.len() == page.keys.capacity() {
                let full = std::mem::replace(page, fresh(&mut self.pool, self.page_keys));
                if !full.keys.is_empty() {
                    self.cells[cell].push(full);
                }
            }
            let page = &mut self.open[cell];
            page.keys.push(key);
            if WEIGHTED {
                page.weights.push(family.record.weight(record));
            }
        });
    }

    /// The pages of the `cell`-th wanted cell; give them back with [`Self::put_back`].
    pub(super) fn take(&mut self, cell: usize) -> Vec<Page> {
        let mut pages = std::mem::take(&mut self.cells[cell]);
        pages.push(std::mem::take(&mut self.open[cell]));
        pages
    }

    pub(super) fn put_back(&mut self, pages: Vec<Page>) {
        for mut page in pages {
            if page.keys.capacity() > 0 {
                page.keys.clear();
                page.weights.clear();
                self.pool.push(page);
            }
        }
    }
}

fn fresh(pool: &mut Vec<Page>, keys: usize) -> Page {
    pool.pop().unwrap_or_else(|| Page { keys: Vec::with_capacity(keys), weights: Vec::new() })
}

/// Counts the records of each cell of a bucket.
pub(super) fn count(
    reader: ChunkReader,
    family: &Family,
    cells: &Cells,
    cancel: &Cancel,
) -> Result<Vec<u64>> {
    let mut counts = vec![0; cells.count()];
    reader.for_each(|bytes, records| {
        for_each_key(bytes, records, family, |_, (row, column), _| {
            counts[cells.of(row, column)] += 1;
        });
        cancel.check("build the graph")
    })?;
    Ok(counts)
}

/// Calls `visit` with the key, the row in the bucket and column, and the bytes of each record.
#[inline]
fn for_each_key(
    bytes: &[u8],
    records: usize,
    family: &Family,
    mut visit: impl FnMut(u64, (u32, u32), &[u8]),
) {
    let record = family.record;
    let (size, mask, column_bits) = (record.bytes(), record.mask(), record.column_bits);
    let column_mask = (1u64 << column_bits) - 1;
    for i in 0..records {
        let bytes = &bytes[i * size..];
        let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let key = word & mask;
        visit(key, ((key >> column_bits) as u32, (key & column_mask) as u32), bytes);
    }
}
