//! Pages that are kept until a window ends.

use std::collections::HashMap;

use tiergraph_mem::PAGE_BYTES;

/// Pages that were read for a window, some of them kept until it ends.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    /// Every page that was read, and where it lies in `bytes`; `None` if it was not kept.
    pages: HashMap<u64, Option<usize>>,
    bytes: Vec<u8>,
}

impl Retained {
    /// The number of different pages that were read.
    pub(crate) fn distinct_pages(&self) -> u64 {
        self.pages.len() as u64
    }

    pub(crate) fn get(&self, page: u64) -> Option<&[u8]> {
        let at = (*self.pages.get(&page)?)?;
        Some(&self.bytes[at..at + PAGE_BYTES])
    }

    pub(crate) fn put(&mut self, page: u64, bytes: &[u8], limit: usize) {
        let at = self.bytes.len();
        let kept = at + PAGE_BYTES <= limit;
        if kept {
            self.bytes.extend_from_slice(bytes);
        }
        self.pages.insert(page, kept.then_some(at));
    }
}
