//! Which page holds which neighbours, small enough to stay in memory.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

/// The index of a rows file: for every page, its first vertex, and how many of that vertex's neighbours
/// earlier pages hold.
///
/// Its file is a flat array of `u64`: these two for every page. 16 bytes a page, which holds some
/// 2,000 arcs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowsIndex {
    /// `(first vertex, first ordinal)` of each page, ascending.
    pages: Vec<(u64, u64)>,
}

impl RowsIndex {
    /// The index whose flat array is `words`.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if there is not a pair for every page, in ascending order.
    pub fn from_words(words: &[u64]) -> Result<Self> {
        let (pairs, rest) = words.as_chunks::<2>();
        let pages: Vec<_> = pairs.iter().map(|&[vertex, ordinal]| (vertex, ordinal)).collect();
        if !rest.is_empty() || !pages.is_sorted_by(|a, b| a < b) {
            return Err(Error::new(ErrorKind::Format, "read an index of rows")
                .expected("an ascending pair for every page")
                .got(format!("{} words in another order", words.len())));
        }
        Ok(Self { pages })
    }

    /// The index as a flat array of two words a page.
    pub fn to_words(&self) -> Vec<u64> {
        self.pages.iter().flat_map(|&(vertex, ordinal)| [vertex, ordinal]).collect()
    }

    pub(super) fn push(&mut self, vertex: u64, ordinal: u64) {
        self.pages.push((vertex, ordinal));
    }

    /// The number of pages in the rows file.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether the rows file has no page, so no arc.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes that the index takes in memory.
    pub fn resident_bytes(&self) -> usize {
        size_of_val(&self.pages[..])
    }

    /// The numbers of the pages that hold `vertex`'s neighbours, if it has any.
    pub fn pages_of(&self, vertex: u64) -> Range<u64> {
        let end = self.pages.partition_point(|page| page.0 <= vertex);
        let first = self.pages[..end].partition_point(|page| *page <= (vertex, 0));
        first.saturating_sub(1) as u64..end as u64
    }

    /// As [`pages_of`](Self::pages_of), where no page before `from` has neighbours of `vertex`:
    /// cheap if its pages are soon after. For vertices that ascend.
    pub fn pages_of_after(&self, vertex: u64, from: u64) -> Range<u64> {
        let rest = self.pages.get(from as usize..).unwrap_or(&[]);
        let mut near = 1;
        while rest.get(near).is_some_and(|page| page.0 <= vertex) {
            near *= 2;
        }
        let rest = &rest[..rest.len().min(near + 1)];
        let end = rest.partition_point(|page| page.0 <= vertex);
        let first = rest[..end].partition_point(|page| *page <= (vertex, 0));
        from + first.saturating_sub(1) as u64..from + end as u64
    }

    /// The vertices whose lists may be on page `page`, whole or in part.
    pub fn vertices_on(&self, page: u64) -> Range<u64> {
        let Some(&(first, _)) = self.pages.get(page as usize) else { return 0..0 };
        // A list that began before the next page ends on it or goes on.
        let end = self
            .pages
            .get(page as usize + 1)
            .map_or(u64::MAX, |&(vertex, ordinal)| vertex.saturating_add(u64::from(ordinal > 0)));
        first..end
    }

    /// The number of the page that holds neighbour `k` (from 0) of `vertex`, if it has so many; `None`
    /// if `vertex` comes before all pages.
    pub fn page_of_kth(&self, vertex: u64, k: u64) -> Option<u64> {
        let after = self.pages.partition_point(|page| *page <= (vertex, k));
        after.checked_sub(1).map(|page| page as u64)
    }
}
