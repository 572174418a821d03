//! Neighbours of few vertices, read from pages of rows.

use std::ops::Range;

use tiergraph_cache::BlockKey;
use tiergraph_core::Result;
use tiergraph_format::rows::{PAGE_BYTES, RowsPage, check_page, damaged_list};
use tiergraph_format::salt::Salt;
use tiergraph_io::FileId;
use tiergraph_mem::Reservation;

use super::slots::Slots;
use super::{Extent, KEPT, READS, fewest};
use crate::rows::RowFile;
use crate::{Direction, Graph, PageReader};

/// The fewest pages that a reader keeps.
const FEW: u64 = 64;
/// Bytes that a kept page takes.
const SLOT_BYTES: u64 = Slots::slot_bytes(PAGE_BYTES);

/// A reader of neighbour lists in pages of rows, which keeps the pages that it read last.
pub(super) struct NearRows<'a> {
    graph: &'a Graph,
    rows: &'a RowFile,
    file: FileId,
    name: String,
    salt: Salt,
    reader: PageReader,
    slots: Slots,
    _held: Reservation,
}

impl<'a> NearRows<'a> {
    /// The least bytes that a reader takes; 0 in a graph without rows.
    pub(super) fn least_bytes(graph: &Graph, direction: Direction) -> u64 {
        let Some(rows) = graph.rows(direction).file() else { return 0 };
        fewest(graph, PAGE_BYTES, rows.index.len() as u64, FEW) * SLOT_BYTES
            + PageReader::most_bytes(graph, READS)
    }

    /// Makes a reader that takes at most `bytes`; `None` without rows, or where that memory is not left.
    pub(super) fn new(graph: &'a Graph, direction: Direction, bytes: u64) -> Result<Option<Self>> {
        let Some(rows) = graph.rows(direction).file() else { return Ok(None) };
        let most = bytes.saturating_sub(PageReader::most_bytes(graph, READS)) / SLOT_BYTES;
        let pages = most.min(rows.index.len() as u64);
        if pages < fewest(graph, PAGE_BYTES, rows.index.len() as u64, FEW) || pages == 0 {
            return Ok(None);
        }
        let reader = PageReader::with_reads(graph, READS)?;
        let needed = pages * SLOT_BYTES + reader.resident_bytes();
        let Some(held) = graph.memory().reserve_if_left(needed, KEPT)? else { return Ok(None) };
        let name = format!("{}.rows", rows.direction);
        let (salt, name) = (graph.manifest().salt(&name), graph.file_name(&name));
        let (file, slots) = (rows.file, Slots::new(pages as usize, PAGE_BYTES)?);
        Ok(Some(Self { graph, rows, file, name, salt, reader, slots, _held: held }))
    }
}

impl NearRows<'_> {
    /// The extent of the lists of `vertices`, which ascend.
    pub(super) fn extent(&self, vertices: &[u32]) -> Extent {
        let (mut missing, mut lists, mut after) = (0, 0, 0);
        for &v in vertices {
            let pages = self.rows.index.pages_of_after(v.into(), u64::saturating_sub(after, 1));
            lists += self.rows.list_bytes(&pages);
            let is_missing = |page: &u64| !self.is_here(*page);
            missing += (pages.start.max(after)..pages.end).filter(is_missing).count();
            after = after.max(pages.end);
        }
        let page = PAGE_BYTES as u64;
        let missing = missing as u64 * page;
        Extent { missing, lists, all: self.rows.index.len() as u64 * page }
    }

    fn is_here(&self, page: u64) -> bool {
        self.slots.get(page).is_some() || self.graph.cache().contains(self.key(page))
    }

    /// The cache key of the block that holds this page.
    fn key(&self, page: u64) -> BlockKey {
        let per_block = (self.graph.block_bytes() / PAGE_BYTES) as u64;
        BlockKey { file: self.rows.direction.rows_file(), block: page / per_block }
    }

    /// Calls `visit(vertex, neighbour)` for every neighbour of `vertices`, which ascend.
    pub(super) fn visit(
        &mut self,
        vertices: &[u32],
        visit: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let mut missing = Vec::new();
        // The first page that was not looked at.
        let mut after = 0;
        for &v in vertices {
            let pages = self.rows.index.pages_of_after(v.into(), u64::saturating_sub(after, 1));
            for page in pages.start.max(after)..pages.end {
                if !self.here(page, vertices, visit)? {
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
            |number, page| {
                if !graph.is_unchecked() {
                    check_page(page, name, number, *salt)?;
                }
                slots.get_or(number, |slot| {
                    slot.copy_from_slice(page);
                    Ok(())
                })?;
                let own = on_page(rows, number, vertices);
                walk(graph, &RowsPage::parse(page)?, own, visit)
            },
        )?;
        graph.totals().read_pages(read.bytes, read.reads);
        Ok(())
    }

    /// Visits the neighbours that are on `page`; false where that is not in memory.
    fn here(&self, page: u64, vertices: &[u32], visit: &mut impl FnMut(u32, u64)) -> Result<bool> {
        let own = on_page(self.rows, page, vertices);
        if let Some(bytes) = self.slots.get(page) {
            walk(self.graph, &RowsPage::parse(bytes)?, own, visit)?;
            return Ok(true);
        }
        let Some(block) = self.graph.cache().get(self.key(page)) else { return Ok(false) };
        let per_block = (self.graph.block_bytes() / PAGE_BYTES) as u64;
        let at = (page % per_block) as usize * PAGE_BYTES;
        walk(self.graph, &RowsPage::parse(&block[at..at + PAGE_BYTES])?, own, visit)?;
        Ok(true)
    }
}

/// Those of `vertices`, which ascend, that may have neighbours on `page`.
fn on_page<'v>(rows: &RowFile, page: u64, vertices: &'v [u32]) -> &'v [u32] {
    let Range { start, end } = rows.index.vertices_on(page);
    let below = |bound: u64| vertices.partition_point(|&v| u64::from(v) < bound);
    &vertices[below(start)..below(end)]
}

/// Visits the neighbours of `vertices` that lie on `page`; refuses ids that are not those of vertices,
/// which an unchecked page may hold.
fn walk(
    graph: &Graph,
    page: &RowsPage<'_>,
    vertices: &[u32],
    visit: &mut impl FnMut(u32, u64),
) -> Result<()> {
    let count = graph.manifest().vertices;
    vertices.iter().try_for_each(|&v| {
        let mut is_sound = true;
        page.walk(v.into(), |u| {
            is_sound = u < count;
            if is_sound {
                visit(v, u);
            }
            is_sound
        })?;
        if is_sound { Ok(()) } else { Err(damaged_list(v)) }
    })
}
