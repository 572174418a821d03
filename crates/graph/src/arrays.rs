//! Reading whole array files (numbers in checksummed chunks) with all of the graph's threads.

use tiergraph_core::Result;
use tiergraph_format::flat::{CHUNK_BYTES, Element, elements, read_chunk_to};
use tiergraph_mem::zeroed_vec;

use crate::Graph;

impl Graph {
    /// Reads the whole array file `name`, comparing each chunk with its checksum.
    pub(crate) fn read_array<T: Element + Send>(&self, name: &str) -> Result<Vec<T>> {
        let (path, entry) = (self.dir().path().join(name), self.dir().entry(name)?);
        let mut values = zeroed_vec(elements::<T>(&path, entry)?);
        let chunks = values.chunks_mut(CHUNK_BYTES / size_of::<T>()).enumerate();
        let read = self.thread_pool().share(chunks, |_, chunks| -> Result<()> {
            for (number, chunk) in chunks {
                read_chunk_to(&path, entry, number as u64, chunk)?;
            }
            Ok(())
        })?;
        read.into_iter().collect::<Result<()>>()?;
        Ok(values)
    }
}
