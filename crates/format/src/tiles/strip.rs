//! A strip of rows, encoded.

/// A strip's tiles as bytes, with every place where a block may end.
#[derive(Debug, Default)]
pub struct EncodedStrip {
    /// First row of the strip.
    pub row_base: u64,
    /// Rows of the strip.
    pub rows: u32,
    /// Arcs of the strip.
    pub arcs: u64,
    /// The groups of all tiles, one after the other.
    pub bytes: Vec<u8>,
    /// `(offset, column tile, arcs)` of every group, ascending.
    pub groups: Vec<(u32, u32, u32)>,
}

impl EncodedStrip {
    /// Notes that a group of `tile` starts here: a block may end before it.
    pub(super) fn begin_group(&mut self, tile: u32, arcs: u32) {
        let begin = self.bytes.len();
        assert!(u32::try_from(begin).is_ok(), "a strip of 4 GiB");
        self.groups.push((begin as u32, tile, arcs));
    }
}
