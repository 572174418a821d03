//! Reading array files (numbers in checksummed chunks), whole or from the start on, with all of the graph's
//! threads.

use tiergraph_core::Result;
use tiergraph_format::flat::{CHUNK_BYTES, Element, elements, read_chunk_to};
use tiergraph_mem::zeroed_vec;

use crate::Graph;

impl Graph {
    /// Reads the whole array file `name`, comparing each chunk with its checksum.
    pub(crate) fn read_array<T: Element + Send>(&self, name: &str) -> Result<Vec<T>> {
        self.read_first(name, usize::MAX)
    }

    /// As [`read_array`](Self::read_array), but the first `count` elements only, where there are so many.
    pub(crate) fn read_first<T: Element + Send>(&self, name: &str, count: usize) -> Result<Vec<T>> {
        let (path, entry) = (self.dir().path().join(name), self.dir().entry(name)?);
        let (all, of_chunk) = (elements::<T>(&path, entry)?, CHUNK_BYTES / size_of::<T>());
        // Chunks are read whole.
        let mut values = zeroed_vec(count.div_ceil(of_chunk).saturating_mul(of_chunk).min(all));
        let chunks = values.chunks_mut(of_chunk).enumerate();
        let read = self.thread_pool().share(chunks, |_, chunks| -> Result<()> {
            for (number, chunk) in chunks {
                read_chunk_to(&path, entry, number as u64, chunk)?;
            }
            Ok(())
        })?;
        read.into_iter().collect::<Result<()>>()?;
        values.truncate(count);
        Ok(values)
    }
}
