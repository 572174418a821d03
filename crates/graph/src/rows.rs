//! Neighbours of chosen vertices, from the pages that hold them.

use std::fmt;
use std::ops::Range;

use tiergraph_cache::BlockKey;
use tiergraph_core::Result;
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::rows::{PAGE_BYTES, RowsIndex, RowsPage, check_page};
use tiergraph_io::FileId;

use crate::Graph;
use crate::reads::{SMALL_READ, Want};

/// Which end of an arc a list belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The source: out-neighbours.
    Out,
    /// The destination: in-neighbours.
    In,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "out",
            Self::In => "in",
        })
    }
}

impl Direction {
    /// The number of its rows file in block keys.
    fn file(self) -> u32 {
        match self {
            Self::Out => 1,
            Self::In => 2,
        }
    }
}

/// The resident index of a `*.rows` file.
#[derive(Debug)]
pub(crate) struct Rows {
    direction: Direction,
    file: FileId,
    bytes: u64,
    index: RowsIndex,
}

impl Rows {
    pub(crate) fn open(dir: &GraphDir, direction: Direction, file: FileId) -> Result<Self> {
        let name = format!("{direction}.rows.index");
        let words: Vec<u64> = flat::read(&dir.path().join(&name), dir.entry(&name)?)?;
        let bytes = dir.entry(&format!("{direction}.rows"))?.bytes;
        Ok(Self { direction, file, bytes, index: RowsIndex::from_words(&words)? })
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.index.resident_bytes() as u64
    }
}

/// The pages that hold the neighbours of a sorted set of vertices.
#[derive(Debug)]
pub struct RowSelection {
    direction: Direction,
    wants: Vec<Want>,
    /// For each want, the pages of the file that are used.
    pages: Vec<Range<u64>>,
}

impl RowSelection {
    /// Bytes of all reads, resident or not.
    pub fn bytes(&self) -> u64 {
        self.wants.iter().map(|w| w.len as u64).sum()
    }
}

impl Graph {
    pub(crate) fn rows(&self, direction: Direction) -> Option<&Rows> {
        // An undirected graph has one file for both.
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        self.rows.iter().find(|(d, _)| *d == wanted).map(|(_, rows)| rows)
    }

    /// Whether neighbours in this direction can be read vertex by vertex.
    pub fn has_rows(&self, direction: Direction) -> bool {
        self.rows(direction).is_some()
    }

    /// Plans to read the neighbours of `vertices`, which ascend; `None` without rows.
    pub fn select_rows(&self, direction: Direction, vertices: &[u32]) -> Option<RowSelection> {
        let rows = self.rows(direction)?;
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &vertex in vertices {
            let pages = rows.index.pages_of(u64::from(vertex));
            match runs.last_mut() {
                Some(run) if pages.start <= run.end => run.end = run.end.max(pages.end),
                _ => runs.push(pages),
            }
        }
        let roomy = self.cache().capacity() >= self.cache().resident_bytes() + rows.bytes
            || self.cache().contains(BlockKey { file: rows.direction.file(), block: 0 });
        let mut selection =
            RowSelection { direction: rows.direction, wants: Vec::new(), pages: Vec::new() };
        let per_block = (self.block_bytes() / PAGE_BYTES) as u64;
        for run in runs {
            let mut page = run.start;
            while page < run.end {
                let block = page / per_block;
                let end = run.end.min((block + 1) * per_block);
                self.want_rows(rows, roomy, block, page..end, &mut selection);
                page = end;
            }
        }
        Some(selection)
    }

    /// Wants pages of one block: the block where it may be resident, else runs of small reads.
    fn want_rows(
        &self,
        rows: &Rows,
        roomy: bool,
        block: u64,
        pages: Range<u64>,
        to: &mut RowSelection,
    ) {
        let size = self.block_bytes() as u64;
        let key = BlockKey { file: rows.direction.file(), block };
        let is_last = (block + 1) * size > rows.bytes;
        if (roomy || self.cache().contains(key)) && !is_last {
            match to.wants.last() {
                Some(want) if want.key == Some(key) => {
                    if let Some(last) = to.pages.last_mut() {
                        last.end = pages.end;
                    }
                }
                _ => {
                    let (offset, len) = (block * size, size as usize);
                    to.wants.push(Want { file: rows.file, offset, len, key: Some(key) });
                    to.pages.push(pages);
                }
            }
            return;
        }
        let most = (SMALL_READ / PAGE_BYTES) as u64;
        for begin in pages.clone().step_by(most as usize) {
            let end = pages.end.min(begin + most);
            let offset = begin * PAGE_BYTES as u64;
            let len = (end - begin) as usize * PAGE_BYTES;
            to.wants.push(Want { file: rows.file, offset, len, key: None });
            to.pages.push(begin..end);
        }
    }

    /// Calls `visit(state, vertex, neighbours)` for each of `vertices` that has neighbours; a
    /// vertex whose list spans pages comes once a page.
    ///
    /// # Errors
    /// As [`Graph::tile_pass`].
    pub fn neighbor_pass<W>(
        &self,
        selection: &RowSelection,
        vertices: &[u32],
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, u32, &[u64]) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let name = self.file_name(&format!("{}.rows", selection.direction));
        let one = |(state, list): &mut (W, Vec<u64>), i: usize, bytes: &[u8], fresh: bool| {
            let want = &selection.wants[i];
            let first_page = want.offset / PAGE_BYTES as u64;
            let whole = want.key.is_some();
            for (page, number) in bytes.chunks_exact(PAGE_BYTES).zip(first_page..) {
                let used = selection.pages[i].contains(&number);
                if fresh && (used || whole) {
                    check_page(page, &name, number)?;
                }
                if !used {
                    continue;
                }
                let page = RowsPage::parse(page)?;
                let (low, high) = (page.vertices().start, page.vertices().end);
                let from = vertices.partition_point(|&v| u64::from(v) < low);
                for &vertex in vertices[from..].iter().take_while(|&&v| u64::from(v) < high) {
                    list.clear();
                    page.neighbors(u64::from(vertex), list)?;
                    visit(state, vertex, list)?;
                }
            }
            Ok(())
        };
        self.read_all(&selection.wants, |w| (begin(w), Vec::new()), one, |(state, _)| end(state))
    }
}
