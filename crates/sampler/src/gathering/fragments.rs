//! Rows by the pages that they are on: whatever a page holds for anybody is copied while it is there.

use tiergraph_graph::Features;
use tiergraph_mem::PAGE_BYTES;

/// The part of a wanted row that is on one page.
#[derive(Debug, Clone, Copy)]
struct Fragment {
    page: u64,
    /// Who wants it.
    target: u64,
    at_in_row: u32,
    at_in_page: u16,
    bytes: u16,
}

/// Fragments of wanted rows, in the order of pages.
#[derive(Debug)]
pub(crate) struct Fragments(Vec<Fragment>);

impl Fragments {
    /// The fragments of `wanted` vertices' rows, each with its target.
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

    /// The different pages, ascending.
    pub(crate) fn pages(&self) -> Vec<u64> {
        let mut pages = self.page_of_each();
        pages.dedup();
        pages
    }

    /// Each fragment's page, ascending: as often as it is wanted.
    pub(crate) fn page_of_each(&self) -> Vec<u64> {
        self.0.iter().map(|fragment| fragment.page).collect()
    }

    /// What lies on `page`, whose bytes these are: for each fragment its target, its place in the
    /// row, and its bytes.
    pub(crate) fn on<'a>(
        &'a self,
        page: u64,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (u64, usize, &'a [u8])> {
        let from = self.0.partition_point(|fragment| fragment.page < page);
        let here = self.0[from..].iter().take_while(move |fragment| fragment.page == page);
        here.map(|part| {
            let source = &bytes[usize::from(part.at_in_page)..][..usize::from(part.bytes)];
            (part.target, part.at_in_row as usize, source)
        })
    }
}
