//! A map from neighbours to pages: the index of a `*.rows` file, arranged for many look-ups.
//!
//! A search of the whole index costs a dozen cache misses. Here a table of every 64th vertex's page
//! leaves a few pages to search. 8 bytes a page and 4 for every 64 vertices.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::rows::RowsIndex;

/// Vertices between two entries of the table, as a power of two.
const JUMP_SHIFT: u32 = 6;

/// A map from a vertex's neighbours to the pages of a `*.rows` file, in memory.
#[derive(Debug)]
pub struct PageMap {
    /// For each page, its first vertex, and how many of that vertex's neighbours are on earlier pages.
    begins: Vec<(u32, u32)>,
    /// The page of every 64th vertex, and the last page.
    jumps: Vec<u32>,
}

impl PageMap {
    /// Makes the map from `index`, for a graph of `vertices` vertices.
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

    /// The page that holds neighbour number `ordinal` of `vertex`, which has so many.
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

    /// Whether the neighbours of `vertex` that begin on `page` continue on the next page.
    #[inline]
    pub fn goes_on(&self, vertex: u32, page: u64) -> bool {
        self.begins.get(page as usize + 1).is_some_and(|b| b.0 == vertex && b.1 > 0)
    }

    /// The number of pages.
    pub fn pages(&self) -> u64 {
        self.begins.len() as u64
    }

    /// Bytes that the map of `pages` pages and `vertices` vertices takes.
    pub fn bytes_of(pages: u64, vertices: u64) -> u64 {
        pages * 8 + (vertices >> JUMP_SHIFT) * 4 + 8
    }
}

fn outside(vertex: u64, vertices: usize) -> Error {
    Error::new(ErrorKind::Format, "use an index of rows")
        .expected(format!("pages of {vertices} vertices"))
        .got(format!("one that begins with vertex {vertex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(begins: &[(u32, u32)], vertices: usize) -> PageMap {
        let words: Vec<u64> = begins.iter().flat_map(|&(v, n)| [v.into(), n.into()]).collect();
        let index = RowsIndex::from_words(&words).unwrap_or_else(|error| panic!("{error}"));
        PageMap::new(&index, vertices).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Pages of several vertices, of one, and of a hub's lists; vertices around the table's entries.
    const BEGINS: [(u32, u32); 12] = [
        (0, 0),
        (3, 0),
        (3, 100),
        (3, 200),
        (4, 0),
        (63, 0),
        (64, 0),
        (64, 7),
        (128, 0),
        (129, 0),
        (400, 5),
        (500, 0),
    ];

    #[test]
    fn a_neighbour_is_on_the_last_page_that_begins_no_later() {
        let map = map(&BEGINS, 600);
        assert_eq!(map.pages(), 12);
        for vertex in 0..600 {
            for ordinal in [0, 1, 5, 6, 7, 8, 99, 100, 199, 200, 1000] {
                let after = BEGINS.iter().filter(|&&begin| begin <= (vertex, ordinal)).count();
                let page = after as u64 - 1;
                assert_eq!(map.page(vertex, ordinal), page, "neighbour {ordinal} of {vertex}");
                assert_eq!(map.begin(page), BEGINS[page as usize]);
            }
        }
    }

    #[test]
    fn a_list_goes_on_where_the_next_page_begins_inside_it() {
        let map = map(&BEGINS, 600);
        let goes_on = |vertex: u32| map.goes_on(vertex, map.page(vertex, 0));
        let lists: Vec<u32> = (0..600).filter(|&vertex| goes_on(vertex)).collect();
        assert_eq!(lists, [3, 64, 400]);
        assert!(map.goes_on(3, 2) && !map.goes_on(3, 3) && !map.goes_on(500, 11));
    }

    #[test]
    fn a_look_up_searches_the_pages_of_64_vertices() {
        let begins: Vec<(u32, u32)> = (0..4096).map(|page| (page * 2, 0)).collect();
        let map = map(&begins, 8192);
        for (place, pages) in map.jumps.windows(2).enumerate() {
            let here = pages[1] - pages[0];
            assert!(here <= 32, "{here} pages of vertices from {} on", place * 64);
        }
    }

    #[test]
    fn a_map_takes_no_more_bytes_than_were_counted() {
        for vertices in [1, 63, 64, 65, 128, 600] {
            let begins: Vec<_> = BEGINS.iter().copied().filter(|b| b.0 < vertices).collect();
            let map = map(&begins, vertices as usize);
            let bytes = (size_of_val(&map.begins[..]) + size_of_val(&map.jumps[..])) as u64;
            let counted = PageMap::bytes_of(map.pages(), vertices.into());
            assert!(bytes <= counted && counted <= bytes + 8, "{bytes} of {counted} bytes");
        }
    }

    #[test]
    fn pages_that_begin_outside_of_the_graph_are_refused() {
        for begin in [[600, 0], [1 << 33, 0], [5, 1 << 32]] {
            let index = RowsIndex::from_words(&begin).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(PageMap::new(&index, 600).unwrap_err().kind(), ErrorKind::Format);
        }
        assert_eq!(map(&[], 600).pages(), 0);
    }
}
