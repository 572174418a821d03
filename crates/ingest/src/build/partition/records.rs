//! Records: the form of arcs in buckets.

use tiergraph_format::manifest::Weights;

/// The layout of a bucket's records: a key (row within the bucket, then column) in as few bytes as hold
/// both, then the weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) key_bytes: usize,
    pub(crate) weights: Weights,
}

/// Bytes from a record's first one that its reader and writer may touch.
pub(crate) const RECORD_SPAN: usize = 16;

impl Record {
    /// The layout for rows below `rows` and columns below `columns`.
    pub(crate) fn new(rows: u32, columns: u32, weights: Weights) -> Self {
        let bits = bits_below(rows.into()) + column_bits(columns);
        Self { key_bytes: (bits as usize).div_ceil(8).max(1), weights }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.key_bytes + self.weights.bytes()
    }

    /// Writes the weight of the record at the start of `bytes`, which has [`RECORD_SPAN`] bytes.
    #[inline]
    pub(crate) fn write_weight(&self, bytes: &mut [u8], weight: f64) {
        let at = self.key_bytes;
        match self.weights {
            Weights::None => {}
            Weights::F32 => bytes[at..at + 4].copy_from_slice(&(weight as f32).to_le_bytes()),
            Weights::F64 => bytes[at..at + 8].copy_from_slice(&weight.to_le_bytes()),
        }
    }

    /// The weight of the record at the start of `bytes`.
    #[inline]
    pub(crate) fn weight(&self, bytes: &[u8]) -> f64 {
        let rest = &bytes[self.key_bytes..];
        match self.weights {
            Weights::None => 0.0,
            Weights::F32 => rest.first_chunk().map_or(0.0, |b| f32::from_le_bytes(*b).into()),
            Weights::F64 => rest.first_chunk().map_or(0.0, |b| f64::from_le_bytes(*b)),
        }
    }

    /// A mask of the key's bits in the 64-bit word at a record's start.
    pub(crate) fn mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.key_bytes)
    }
}

/// Records of one layout, one after the other.
pub(crate) struct Records<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) count: usize,
    pub(crate) record: Record,
}

impl Records<'_> {
    /// Calls `visit` with the key and the bytes of each record.
    #[inline(always)]
    pub(crate) fn for_each_key(&self, mut visit: impl FnMut(u64, &[u8])) {
        let (size, mask) = (self.record.bytes(), self.record.mask());
        for i in 0..self.count {
            let bytes = &self.bytes[i * size..];
            let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            visit(word & mask, bytes);
        }
    }
}

/// Bits that a column takes in a key.
pub(crate) fn column_bits(columns: u32) -> u32 {
    bits_below(columns.into())
}

/// Bits that numbers below `n` need.
pub(crate) fn bits_below(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}
