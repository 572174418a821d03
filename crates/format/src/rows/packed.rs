//! Lists packed to bytes, before it is known on which pages they will lie.
//!
//! To pack lists is most of the work of writing rows and needs no order, so threads do it apart; the
//! owner of the [`RowsWriter`](super::RowsWriter) copies the bytes to pages.

use tiergraph_core::{Error, ErrorKind, Result};

use super::list::{CHUNK, Chunks, pack_short};
use super::page::ROOM;

/// Neighbour lists of ascending vertices, packed to bytes but not on pages yet.
///
/// ```
/// use tiergraph_format::rows::{PackedRows, RowsWriter};
/// use tiergraph_format::sink::VecSink;
///
/// let mut packed = PackedRows::default();
/// packed.push(0, &[1u32, 2, 5], u32::MAX)?;
/// packed.push(3, &[4u32], u32::MAX)?;
/// let mut writer = RowsWriter::new(VecSink::default(), 4096);
/// writer.push_packed(&packed)?;
/// assert_eq!(writer.finish()?.2, 4);
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct PackedRows {
    lists: Vec<List>,
    /// Lists that fit a page, as they lie there.
    bytes: Vec<u8>,
    /// The others.
    long: Vec<Chunks>,
    chunks: Chunks,
}

#[derive(Debug, Clone, Copy)]
struct List {
    vertex: u64,
    arcs: usize,
    /// Where it ends in `bytes`; where the one before ends if it is long.
    end: usize,
}

/// A list to be written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Packed<'a> {
    Short(&'a [u8]),
    Long(&'a Chunks),
}

impl PackedRows {
    /// Packs the list of `vertex`, unless it is empty. Its neighbours are the bits of each word that
    /// `mask` has; they ascend.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if they do not.
    pub fn push<W: Copy + Into<u64>>(&mut self, vertex: u64, words: &[W], mask: W) -> Result<()> {
        let before = self.bytes.len();
        let bits = mask.into();
        let short = words.len() <= CHUNK;
        let ascending = match short {
            true => words.is_empty() || pack_short(words, bits, &mut self.bytes),
            false => self.chunks.pack(words, bits),
        };
        if !ascending {
            self.bytes.truncate(before);
            return Err(unsorted(vertex, words, bits));
        }
        if words.is_empty() {
            return Ok(());
        }
        if !short {
            let all = self.chunks.count();
            if self.chunks.encoded_bytes(0, all, false) + 2 > ROOM {
                self.long.push(std::mem::take(&mut self.chunks));
            } else {
                self.chunks.encode(0, all, false, &mut self.bytes);
            }
        }
        self.lists.push(List { vertex, arcs: words.len(), end: self.bytes.len() });
        Ok(())
    }

    /// Each vertex with a list, and the length of that list.
    pub fn lengths(&self) -> impl Iterator<Item = (u64, u64)> {
        self.lists.iter().map(|list| (list.vertex, list.arcs as u64))
    }

    /// Bytes that the lists take in memory.
    pub fn resident_bytes(&self) -> u64 {
        let long: usize = self.long.iter().map(Chunks::resident_bytes).sum();
        (self.lists.len() * size_of::<List>() + self.bytes.len() + long) as u64
    }

    /// Forgets all lists and keeps the memory.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.bytes.clear();
        self.long.clear();
    }

    /// Calls `visit` with every vertex, the length of its list, and the list.
    pub(super) fn for_each(
        &self,
        mut visit: impl FnMut(u64, usize, Packed<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut begin, mut long) = (0, self.long.iter());
        for list in &self.lists {
            let bytes = &self.bytes[begin..list.end];
            begin = list.end;
            // A list has a byte at least, if it is not empty.
            let packed = match bytes.is_empty().then(|| long.next()).flatten() {
                Some(chunks) => Packed::Long(chunks),
                None => Packed::Short(bytes),
            };
            visit(list.vertex, list.arcs, packed)?;
        }
        Ok(())
    }
}

fn unsorted<W: Copy + Into<u64>>(vertex: u64, words: &[W], mask: u64) -> Error {
    let e = Error::new(ErrorKind::Input, "write the neighbours of vertex").object(vertex);
    let pairs = words.windows(2).map(|pair| (pair[0].into() & mask, pair[1].into() & mask));
    match pairs.into_iter().find(|(before, after)| before > after) {
        Some((before, after)) => {
            e.expected(format!("ascending neighbours after {before}")).got(after)
        }
        None => e.expected("ascending neighbours"),
    }
}
