//! Feature rows by page: all that batches request of a page is copied while it is there.

use tiergraph_core::Result;
use tiergraph_graph::{Features, PageReader, PagesRead};
use tiergraph_mem::PAGE_BYTES;

use crate::options::Sharing;

/// A request: the part of a feature row that lies on one page.
#[derive(Debug, Clone, Copy)]
struct Fragment {
    page: u64,
    /// The target of the row: a number that the caller chose.
    target: u64,
    at_in_row: u32,
    at_in_page: u16,
    bytes: u16,
}

/// Requests for parts of feature rows, in the order of pages.
#[derive(Debug)]
pub(crate) struct Fragments(Vec<Fragment>);

impl Fragments {
    /// The requests for the rows of the `wanted` vertices, each with its target.
    pub(crate) fn new(features: &Features, wanted: impl Iterator<Item = (u32, u64)>) -> Self {
        let mut all = Vec::with_capacity(wanted.size_hint().0);
        for (vertex, target) in wanted {
            let begin = features.offset(vertex);
            let end = begin + features.row_bytes() as u64;
            for page in features.page_span(vertex) {
                let page_begin = page * PAGE_BYTES as u64;
                let (from, to) = (begin.max(page_begin), end.min(page_begin + PAGE_BYTES as u64));
                all.push(Fragment {
                    page,
                    target,
                    at_in_row: (from - begin) as u32,
                    at_in_page: (from - page_begin) as u16,
                    bytes: (to - from) as u16,
                });
            }
        }
        all.sort_unstable_by_key(|fragment| (fragment.page, fragment.at_in_page));
        Self(all)
    }

    /// Reads the rows into `rows`, each to the place that its target numbers.
    pub(crate) fn read_into(
        &self,
        features: &Features,
        reader: &mut PageReader,
        rows: &mut [u8],
    ) -> Result<PagesRead> {
        let copy = |target: u64, at: usize, part: &[u8]| {
            let at = target as usize * features.row_bytes() + at;
            rows[at..at + part.len()].copy_from_slice(part);
        };
        self.read(features, reader, Sharing::Pages, || Ok(false), copy)
    }

    /// Reads their pages, and calls `copy(target, place in the row, bytes)` for each fragment. A page
    /// is read once, or, where `sharing` says so, once for each fragment. `meanwhile` is as for
    /// [`PageReader::read`].
    pub(crate) fn read(
        &self,
        features: &Features,
        reader: &mut PageReader,
        sharing: Sharing,
        meanwhile: impl FnMut() -> Result<bool>,
        mut copy: impl FnMut(u64, usize, &[u8]),
    ) -> Result<PagesRead> {
        let mut pages: Vec<u64> = self.0.iter().map(|fragment| fragment.page).collect();
        if sharing == Sharing::Pages {
            pages.dedup();
        }
        let arrived = |number: u64, page: &[u8]| {
            features.check_page(number, page)?;
            let from = self.0.partition_point(|fragment| fragment.page < number);
            let here = self.0[from..].iter().take_while(|fragment| fragment.page == number);
            for part in here {
                let bytes = &page[usize::from(part.at_in_page)..][..usize::from(part.bytes)];
                copy(part.target, part.at_in_row as usize, bytes);
            }
            Ok(())
        };
        reader.read(features.file(), &pages, meanwhile, arrived)
    }
}
