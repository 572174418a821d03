//! Neighbours of a few vertices at a time, on the calling thread, from pages that are kept.
//!
//! A [`row_pass`](Graph::row_pass) is for many vertices: it wakes all threads, and pages that are not
//! resident are read again by the next one. A search of a graph with a long diameter asks for a few
//! vertices thousands of times, and most are on the pages of those before.

use std::ops::Range;

use tiergraph_cache::BlockKey;
use tiergraph_core::{ErrorKind, Result};
use tiergraph_format::rows::{PAGE_BYTES, RowsPage, check_page};
use tiergraph_format::salt::Salt;
use tiergraph_io::FileId;
use tiergraph_mem::{Array, Reservation};

use crate::rows::Rows;
use crate::{Direction, Graph, PageReader};

/// Fewer pages than this are not worth a reader.
const LEAST_PAGES: u64 = 64;
/// Reads in flight: a level brings few pages.
const READS: usize = 8;
/// A page that is kept, and its number.
const SLOT_BYTES: u64 = (PAGE_BYTES + size_of::<u64>()) as u64;
/// A slot without a page.
const EMPTY: u64 = u64::MAX;

/// Reads neighbours, and keeps the pages that it read last: page p in slot p mod the slots.
pub struct NearRows<'a> {
    graph: &'a Graph,
    rows: &'a Rows,
    file: FileId,
    name: String,
    salt: Salt,
    reader: PageReader,
    slots: Slots,
    _held: Reservation,
}

/// Pages, each in the one slot that its number gives it.
struct Slots {
    numbers: Vec<u64>,
    bytes: Array<u8>,
}

impl Slots {
    fn new(count: usize) -> Result<Self> {
        Ok(Self { numbers: vec![EMPTY; count], bytes: Array::zeroed(count * PAGE_BYTES)? })
    }

    fn slot(&self, page: u64) -> usize {
        (page % self.numbers.len() as u64) as usize
    }

    fn get(&self, page: u64) -> Option<&[u8]> {
        let slot = self.slot(page);
        let here = self.numbers[slot] == page;
        here.then(|| &self.bytes[slot * PAGE_BYTES..][..PAGE_BYTES])
    }

    fn put(&mut self, page: u64, bytes: &[u8]) {
        let slot = self.slot(page);
        self.numbers[slot] = page;
        self.bytes[slot * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(bytes);
    }
}

impl Graph {
    /// The least memory, in bytes, of a reader that [`near_rows`](Self::near_rows) makes; 0 without rows.
    pub fn near_rows_bytes(&self, direction: Direction) -> u64 {
        let Some(rows) = self.rows(direction) else { return 0 };
        let pages = LEAST_PAGES.min(rows.index.len() as u64);
        pages * SLOT_BYTES + self.page_reader_bytes(READS)
    }

    /// A reader of rows that takes at most `bytes`, which it reserves; `None` without rows, or where that
    /// memory is not left.
    ///
    /// # Errors
    /// When the system refuses a further engine, or memory.
    pub fn near_rows(&self, direction: Direction, bytes: u64) -> Result<Option<NearRows<'_>>> {
        let Some(rows) = self.rows(direction) else { return Ok(None) };
        let most = bytes.saturating_sub(self.page_reader_bytes(READS)) / SLOT_BYTES;
        let pages = most.min(rows.index.len() as u64);
        if pages < LEAST_PAGES.min(rows.index.len() as u64) || pages == 0 {
            return Ok(None);
        }
        let reader = self.page_reader_of(READS)?;
        let needed = pages * SLOT_BYTES + reader.resident_bytes();
        let held = match self.reserve(needed, "the pages of rows that are kept") {
            Ok(held) => held,
            Err(error) if error.kind() == ErrorKind::Budget => return Ok(None),
            Err(error) => return Err(error),
        };
        let name = format!("{}.rows", rows.direction);
        let (salt, name) = (self.manifest().salt(&name), self.file_name(&name));
        let (file, slots) = (rows.file, Slots::new(pages as usize)?);
        Ok(Some(NearRows { graph: self, rows, file, name, salt, reader, slots, _held: held }))
    }
}

impl NearRows<'_> {
    /// Calls `visit(vertex, neighbour)` for every neighbour of `vertices`, which ascend. Reads each
    /// page once that is not kept.
    ///
    /// # Errors
    /// A read that fails for good, a page that is damaged, cancellation.
    pub fn visit(&mut self, vertices: &[u32], mut visit: impl FnMut(u32, u64)) -> Result<()> {
        let mut missing = Vec::new();
        // The first page that was not looked at.
        let mut after = 0;
        for &v in vertices {
            let pages = self.rows.index.pages_of_after(v.into(), u64::saturating_sub(after, 1));
            for page in pages.start.max(after)..pages.end {
                if !self.here(page, vertices, &mut visit)? {
                    missing.push(page);
                }
            }
            after = after.max(pages.end);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let Self { graph, rows, file, name, salt, reader, slots, .. } = self;
        let read = reader.read(
            *file,
            &missing,
            || Ok(false),
            |first, bytes| {
                for (page, number) in bytes.chunks_exact(PAGE_BYTES).zip(first..) {
                    check_page(page, name, number, *salt)?;
                    slots.put(number, page);
                    let own = on_page(rows, number, vertices);
                    walk(&RowsPage::parse(page)?, own, &mut visit)?;
                }
                Ok(())
            },
        )?;
        graph.totals().read_pages(read.bytes, read.reads);
        Ok(())
    }

    /// Visits the neighbours that are on `page`; false where that is not in memory.
    fn here(&self, page: u64, vertices: &[u32], visit: &mut impl FnMut(u32, u64)) -> Result<bool> {
        let own = on_page(self.rows, page, vertices);
        if let Some(bytes) = self.slots.get(page) {
            walk(&RowsPage::parse(bytes)?, own, visit)?;
            return Ok(true);
        }
        let per_block = (self.graph.block_bytes() / PAGE_BYTES) as u64;
        let key = BlockKey { file: self.rows.direction.file(), block: page / per_block };
        let Some(block) = self.graph.cache().get(key) else { return Ok(false) };
        let at = (page % per_block) as usize * PAGE_BYTES;
        walk(&RowsPage::parse(&block[at..at + PAGE_BYTES])?, own, visit)?;
        Ok(true)
    }
}

/// Those of `vertices`, which ascend, that may have neighbours on `page`.
fn on_page<'v>(rows: &Rows, page: u64, vertices: &'v [u32]) -> &'v [u32] {
    let Range { start, end } = rows.index.vertices_on(page);
    let below = |bound: u64| vertices.partition_point(|&v| u64::from(v) < bound);
    &vertices[below(start)..below(end)]
}

fn walk(page: &RowsPage<'_>, vertices: &[u32], visit: &mut impl FnMut(u32, u64)) -> Result<()> {
    vertices.iter().try_for_each(|&v| {
        page.walk(v.into(), |u| {
            visit(v, u);
            true
        })
    })
}
