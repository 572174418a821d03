//! Lists on pages of rows: those on storage, of which kernels want some, and a level of a search along them.

mod frontier;
mod stored;

pub use frontier::{Frontier, FrontierKernels};
pub(super) use stored::{Decoding, StoredArguments};
pub use stored::{LIST_PAGE_BYTES, ListPages, ListReads, PiecePages, StoredLists};

use super::{RowRequest, Source, TYPES};

const WANTED: &str = include_str!("wanted.cuh");
const ROW_PAGE: &str = include_str!("row_page.cuh");

/// A source of kernels that want lists on storage, in `parts`.
pub(super) fn of_stored(name: &str, parts: &[&str]) -> Source {
    let shared = [TYPES, super::queue_pairs::ROW_REQUESTS, WANTED, ROW_PAGE];
    Source::new(name, &[&shared[..], parts].concat())
        .sharing::<RowRequest>()
        .sharing::<StoredArguments>()
        .sharing::<Decoding>()
}

pub(super) fn sources() -> Vec<Source> {
    vec![stored::source(), frontier::source()]
}
