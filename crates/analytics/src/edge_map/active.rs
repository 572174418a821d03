//! Active tiles: ranges of vertices that a pass looks at; it skips the others.

use std::sync::atomic::{AtomicBool, Ordering};

use tiergraph_format::tiles::TilesIndex;

use crate::bits::Bits;

/// A flag for every `2^log2` vertices, the columns of a tile; any worker sets them.
#[derive(Debug)]
pub(crate) struct ActiveTiles {
    flags: Vec<AtomicBool>,
    log2: u32,
}

impl ActiveTiles {
    /// The flags of `vertices` vertices, none of which is active.
    pub(crate) fn none(vertices: usize, log2: u32) -> Self {
        let tiles = vertices.div_ceil(1 << log2);
        Self { flags: (0..tiles).map(|_| AtomicBool::new(false)).collect(), log2 }
    }

    /// The flags of `vertices` vertices; those in `bits` are active.
    pub(crate) fn of_bits(bits: &Bits, vertices: usize, log2: u32) -> Self {
        let tiles = Self::none(vertices, log2);
        bits.each_64(|v| tiles.set(v));
        tiles
    }

    /// Flags copied from a GPU: a byte for each tile, which is active where the byte is not 0.
    pub(crate) fn of(flags: &[u8], log2: u32) -> Self {
        Self { flags: flags.iter().map(|&flag| AtomicBool::new(flag != 0)).collect(), log2 }
    }

    /// Makes the tile of `vertex` active.
    #[inline]
    pub(crate) fn set(&self, vertex: u32) {
        let flag = &self.flags[(vertex >> self.log2) as usize];
        // Reading first keeps the flag's cache line shared.
        if !flag.load(Ordering::Relaxed) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the tile of `vertex` is active.
    pub(crate) fn has(&self, vertex: u32) -> bool {
        self.flags[(vertex >> self.log2) as usize].load(Ordering::Relaxed)
    }

    /// The flags, for a checkpoint.
    pub(crate) fn flags(&self) -> &[AtomicBool] {
        &self.flags
    }

    /// The flags, for a checkpoint to set.
    pub(crate) fn flags_mut(&mut self) -> &mut [AtomicBool] {
        &mut self.flags
    }

    /// Makes all tiles inactive.
    pub(crate) fn clear(&self) {
        self.flags.iter().for_each(|f| f.store(false, Ordering::Relaxed));
    }

    /// Whether a pass with these flags has any tile to visit.
    pub(crate) fn any(&self) -> bool {
        self.flags.iter().any(|f| f.load(Ordering::Relaxed))
    }

    /// Whether the segment's tile is active: one of its columns is.
    pub(crate) fn column(&self, entry: &TilesIndex) -> bool {
        self.flags[entry.column_tile as usize].load(Ordering::Relaxed)
    }

    /// Whether a row of the segment's strip may be active: it is in an active range.
    pub(crate) fn row(&self, entry: &TilesIndex) -> bool {
        let first = (entry.row_base >> self.log2) as usize;
        let last = ((entry.row_base + u64::from(entry.rows) - 1) >> self.log2) as usize;
        let last = last.min(self.flags.len() - 1);
        self.flags[first..=last].iter().any(|f| f.load(Ordering::Relaxed))
    }
}
