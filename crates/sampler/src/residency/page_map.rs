//! Which page holds a vertex's neighbours: the rows' index, arranged for many look-ups.
//!
//! A search of the whole index costs a dozen cache misses. Here a table of every 64th vertex's page
//! leaves a few pages to search. 8 bytes a page and 4 for every 64 vertices.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::rows::RowsIndex;

/// Vertices between two entries of the table, as a power of two.
const JUMP_SHIFT: u32 = 6;

/// The index of a `*.rows` file, in memory.
#[derive(Debug)]
pub struct PageMap {
    /// Of each page: its first vertex, and how many of that vertex's neighbours are on earlier
    /// pages.
    begins: Vec<(u32, u32)>,
    /// The page of every 64th vertex, and the last page.
    jumps: Vec<u32>,
}

impl PageMap {
    /// Arranges `index` of a graph of so many vertices.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if a page begins outside of the graph.
    pub fn new(index: &RowsIndex, vertices: usize) -> Result<Self> {
        let words = index.to_words();
        let begins = words.as_chunks::<2>().0.iter().map(|&[vertex, ordinal]| {
            let inside = u32::try_from(vertex).ok().filter(|&v| (v as usize) < vertices);
            inside.zip(u32::try_from(ordinal).ok()).ok_or_else(|| outside(vertex, vertices))
        });
        let begins = begins.collect::<Result<Vec<(u32, u32)>>>()?;
        let mut jumps = Vec::with_capacity((vertices >> JUMP_SHIFT) + 2);
        let mut page = 0;
        for first in (0..vertices as u64).step_by(1 << JUMP_SHIFT) {
            let is_past = |page: usize| begins.get(page).is_some_and(|b| *b <= (first as u32, 0));
            while is_past(page + 1) {
                page += 1;
            }
            jumps.push(page as u32);
        }
        jumps.push(begins.len().saturating_sub(1) as u32);
        Ok(Self { begins, jumps })
    }

    /// The page with neighbour `ordinal` of `vertex`, which must have so many.
    #[inline]
    pub fn page(&self, vertex: u32, ordinal: u32) -> u64 {
        let jump = (vertex >> JUMP_SHIFT) as usize;
        let (low, high) = (self.jumps[jump] as usize, self.jumps[jump + 1] as usize);
        let among = &self.begins[low..=high];
        (low + among.partition_point(|b| *b <= (vertex, ordinal)).saturating_sub(1)) as u64
    }

    /// The first vertex of `page`, and how many of its neighbours are on earlier pages.
    #[inline]
    pub fn begin(&self, page: u64) -> (u32, u32) {
        self.begins[page as usize]
    }

    /// Whether the neighbours of `vertex`, which begin on `page`, go on on the next page.
    #[inline]
    pub fn goes_on(&self, vertex: u32, page: u64) -> bool {
        self.begins.get(page as usize + 1).is_some_and(|b| b.0 == vertex && b.1 > 0)
    }

    /// Pages.
    pub fn pages(&self) -> u64 {
        self.begins.len() as u64
    }

    /// Bytes in memory for so many pages and vertices.
    pub fn bytes_of(pages: u64, vertices: u64) -> u64 {
        pages * 8 + (vertices >> JUMP_SHIFT) * 4 + 8
    }
}

fn outside(vertex: u64, vertices: usize) -> Error {
    Error::new(ErrorKind::Format, "use an index of rows")
        .expected(format!("pages of {vertices} vertices"))
        .got(format!("one that begins with vertex {vertex}"))
}
