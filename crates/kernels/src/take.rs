//! What the walk hands over: the steps of slices, or slices that are unpacked to memory.

use tiergraph_format::tiles::LANES;

use crate::lanes::Lanes;

/// The most steps of a slice that are taken at once: 8 KiB of columns.
pub const MAX_STEPS: usize = 64;

/// Takes the steps of slices, whose columns are in registers.
pub(crate) trait Take<L: Lanes> {
    /// Takes step `k` of a part of a slice: the `columns` of the first `active` lanes, and 0 to 31 others.
    ///
    /// # Safety
    /// The CPU must have the features of `L`; columns are below those of a tile, `k` below [`MAX_STEPS`].
    unsafe fn step(&mut self, k: usize, columns: L, active: usize);

    /// Ends the part: all of its steps came, from 0 on.
    ///
    /// # Safety
    /// The CPU must have the features of `L`; rows are below those of a strip.
    unsafe fn end(&mut self, part: &Part<'_>);
}

/// Up to [`MAX_STEPS`] steps of a slice.
pub(crate) struct Part<'a> {
    pub rows: &'a [u32; LANES],
    /// How many lanes have an arc in the first step.
    pub lanes: usize,
    pub steps: usize,
    pub weights: &'a [u8],
    pub weight_bytes: usize,
}

/// Up to 32 rows and up to [`MAX_STEPS`] of their arcs each, unpacked.
///
/// Lane i has the arcs of row `rows[i]`, one in each step; step k has arcs for the lanes below
/// `active[k]`, which never grows from step to step. A slice with longer rows comes in several parts.
#[derive(Debug)]
pub struct Slice<'a> {
    /// The row of each lane, counted from the strip's first; distinct unless the file is damaged.
    pub rows: &'a [u32; LANES],
    /// For each step, the column of each lane's arc, counted from the tile's first.
    pub columns: &'a [[u32; LANES]],
    /// For each step, how many lanes have an arc.
    pub active: &'a [u8],
    /// Little-endian weights of the arcs of all steps, step by step and lane by lane without gaps; empty
    /// in a file without weights.
    pub weights: &'a [u8],
    /// Bytes of one weight: 4 or 8, or 0 in a file without weights.
    pub weight_bytes: usize,
}

impl Slice<'_> {
    /// The weight of arc `i`, counted step by step and lane by lane; 1 in a file without weights.
    #[inline(always)]
    pub fn weight(&self, i: usize) -> f64 {
        match self.weight_bytes {
            4 => self
                .weights
                .as_chunks::<4>()
                .0
                .get(i)
                .map_or(1.0, |w| f32::from_le_bytes(*w).into()),
            8 => self.weights.as_chunks::<8>().0.get(i).map_or(1.0, |w| f64::from_le_bytes(*w)),
            _ => 1.0,
        }
    }
}

/// What is done with a segment's slices: a closure, or a type whose `slice` is always inlined and
/// so compiled for the instruction set of the walk.
pub(crate) trait Visit {
    fn slice(&mut self, slice: &Slice<'_>);
}

impl<F: FnMut(&Slice<'_>)> Visit for F {
    #[inline(always)]
    fn slice(&mut self, slice: &Slice<'_>) {
        self(slice);
    }
}

/// Unpacks steps into a buffer, and hands each part on as a [`Slice`].
pub(crate) struct Unpack<V> {
    visit: V,
    columns: [[u32; LANES]; MAX_STEPS],
    active: [u8; MAX_STEPS],
}

impl<V: Visit> Unpack<V> {
    #[inline(always)]
    pub(crate) fn new(visit: V) -> Self {
        Self { visit, columns: [[0; LANES]; MAX_STEPS], active: [0; MAX_STEPS] }
    }
}

impl<L: Lanes, V: Visit> Take<L> for Unpack<V> {
    #[inline(always)]
    unsafe fn step(&mut self, k: usize, columns: L, active: usize) {
        // SAFETY: the caller's promise.
        unsafe { columns.store(&mut self.columns[k % MAX_STEPS]) };
        self.active[k % MAX_STEPS] = active as u8;
    }

    #[inline(always)]
    unsafe fn end(&mut self, part: &Part<'_>) {
        let &Part { rows, steps, weights, weight_bytes, .. } = part;
        self.visit.slice(&Slice {
            rows,
            columns: &self.columns[..steps],
            active: &self.active[..steps],
            weights,
            weight_bytes,
        });
    }
}
