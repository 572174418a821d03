//! From a bucket on disk to cells in memory.
//!
//! A cell is what is sorted at once: small enough for a core's cache where the rows allow it. While
//! a bucket is read its records are dealt out to the pages of their cells, so that no part of the
//! sort works on more than a cell and memory goes back to the pool cell by cell.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::manifest::Weights;

use super::family::{ChunkReader, Family, Record};

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
    /// The first of each group's 2^shift columns, in that unit, and the end of the last; empty where
    /// nobody asks.
    pub(super) starts: Vec<u32>,
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

    /// The columns of a cell, in units of 2^shift.
    pub(super) fn columns_of(&self, cell: usize) -> Range<u32> {
        let group = cell % self.columns.count;
        self.columns.starts[group]..self.columns.starts[group + 1]
    }

    /// From a key to its cell. Borrows what it looks at once for all keys.
    #[inline]
    fn finder(&self, column_bits: u32) -> impl Fn(u64) -> usize + '_ {
        let (part_of_row, row_shift) = (&self.part_of_row[..], self.row_shift + column_bits);
        let (group_of, group_shift) = (&self.columns.group_of[..], self.columns.shift);
        let (groups, column_mask) = (self.columns.count, (1u64 << column_bits) - 1);
        move |key| {
            let part = part_of_row[(key >> row_shift) as usize] as usize;
            if group_of.is_empty() {
                return part;
            }
            part * groups + usize::from(group_of[((key & column_mask) >> group_shift) as usize])
        }
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
        let cell_of = cells.finder(family.record.column_bits);
        let (open, record) = (&mut self.open[..], family.record);
        for_each_key(bytes, records, record, |key, bytes| {
            // A cell before the wanted ones wraps around to a large number.
            let cell = cell_of(key).wrapping_sub(wanted.start);
            let Some(page) = open.get_mut(cell) else { return };
            if page.keys.len() == page.keys.capacity() {
                let full = std::mem::replace(page, fresh(&mut self.pool, self.page_keys));
                if !full.keys.is_empty() {
                    self.cells[cell].push(full);
                }
            }
            page.keys.push(key);
            if WEIGHTED {
                page.weights.push(record.weight(bytes));
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
    let cell_of = cells.finder(family.record.column_bits);
    reader.for_each(|bytes, records| {
        for_each_key(bytes, records, family.record, |key, _| counts[cell_of(key)] += 1);
        cancel.check("build the graph")
    })?;
    Ok(counts)
}

/// Calls `visit` with the key and the bytes of each record.
#[inline]
fn for_each_key(bytes: &[u8], records: usize, record: Record, mut visit: impl FnMut(u64, &[u8])) {
    let (size, mask) = (record.bytes(), record.mask());
    for i in 0..records {
        let bytes = &bytes[i * size..];
        let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        visit(word & mask, bytes);
    }
}
