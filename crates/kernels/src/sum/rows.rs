//! `y += A x`: a pull over directed arcs.
//!
//! A lane's few dozen values are added in float32, everything above that in float64: a hub's
//! millions of equal terms would otherwise stop counting. What a lane's sum is for is a type:
//! [`OfRows`] adds it to its row, [`InOrder`] writes it behind the sum before.

use super::{WIDTH, eight, groups, short_rows, tail};
use crate::Slice;
use crate::lanes::Gather;
use crate::single::Single;
use crate::take::{Part, Take, Visit};

/// What is done with a lane's sum.
pub(crate) trait Sums {
    /// # Safety
    /// `row` is one that `walk` masks.
    unsafe fn put(&mut self, row: u32, sum: f32);
}

/// A sum for each of 65,536 rows.
pub(crate) struct OfRows<'a>(pub &'a mut [f64]);

impl Sums for OfRows<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, row: u32, sum: f32) {
        // SAFETY: `Kernel` took a slice of the length that `walk` masks rows below.
        unsafe { *self.0.get_unchecked_mut(row as usize) += f64::from(sum) }
    }
}

/// Sums side by side, in the order in which lanes come.
pub(crate) struct InOrder<'a> {
    pub sums: &'a mut [f32],
    /// How many sums came: more than `sums` holds if there is no room for all.
    pub count: usize,
}

impl Sums for InOrder<'_> {
    #[inline(always)]
    unsafe fn put(&mut self, _: u32, sum: f32) {
        if let Some(to) = self.sums.get_mut(self.count) {
            *to = sum;
        }
        self.count += 1;
    }
}

/// Sums the values of each row's columns, in every slice of a segment.
pub(crate) struct SumRows<'a, S> {
    /// A value for each column of the tile.
    pub x: &'a [f32],
    pub y: S,
}

impl<S: Sums> Visit for &mut SumRows<'_, S> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        // SAFETY: `Kernel` took slices of the lengths that `walk` masks rows and columns below.
        unsafe {
            match short_rows(slice) {
                Some(1) => self.short::<1>(slice),
                Some(2) => self.short::<2>(slice),
                Some(3) => self.short::<3>(slice),
                Some(4) => self.short::<4>(slice),
                _ => self.long(slice),
            }
        }
    }
}

/// `y.put(row, Σ x[column])`.
///
/// # Safety
/// All rows are such as `walk` masks, all columns below `x.len()`.
impl<S: Sums> SumRows<'_, S> {
    /// Rows of `N` arcs, one by one.
    #[inline(always)]
    unsafe fn short<const N: usize>(&mut self, slice: &Slice<'_>) {
        let Some(steps) = slice.columns.first_chunk::<N>() else { return };
        for (lane, &row) in slice.rows.iter().enumerate().take(usize::from(slice.active[0])) {
            // SAFETY: the caller's promise.
            unsafe {
                let sum: f32 = steps.iter().map(|s| self.x.get_unchecked(s[lane] as usize)).sum();
                self.y.put(row, sum);
            }
        }
    }

    /// Rows of any length, in groups of eight.
    #[inline(always)]
    unsafe fn long(&mut self, slice: &Slice<'_>) {
        let x = self.x;
        for group in groups(slice) {
            let mut sums = [Single::new(0.0); WIDTH];
            // SAFETY: the caller's promise.
            unsafe {
                for step in &slice.columns[..group.common] {
                    let columns = eight(step, group.lane);
                    for i in 0..WIDTH {
                        sums[i].add(x.get_unchecked(columns[i]));
                    }
                }
                let mut sums = sums.map(Single::get);
                tail(slice, &group, |i, column| sums[i] += x.get_unchecked(column));
                for (sum, &row) in sums[..group.lanes].iter().zip(&slice.rows[group.lane..]) {
                    self.y.put(row, *sum);
                }
            }
        }
    }
}

/// The same sums, by gathers of a step's values while its columns are in registers.
pub(crate) struct GatherRows<'a, L: Gather, S> {
    x: &'a [f32],
    y: &'a mut S,
    sums: L::Floats,
}

impl<'a, L: Gather, S: Sums> GatherRows<'a, L, S> {
    /// # Safety
    /// The CPU must have the features of `L`; `sums.x` has a value for each column.
    #[inline(always)]
    pub(crate) unsafe fn new(sums: &'a mut SumRows<'_, S>) -> GatherRows<'a, L, S> {
        // SAFETY: the caller's promise.
        GatherRows { x: sums.x, y: &mut sums.y, sums: unsafe { L::zeros() } }
    }
}

impl<L: Gather, S: Sums> Take<L> for GatherRows<'_, L, S> {
    #[inline(always)]
    unsafe fn step(&mut self, _: usize, columns: L, active: usize) {
        // SAFETY: the caller's promise, and that of `new`.
        unsafe { columns.gather_add(self.x, active, &mut self.sums) }
    }

    #[inline(always)]
    unsafe fn end(&mut self, part: &Part<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            let sums = L::floats(self.sums);
            self.sums = L::zeros();
            for (sum, &row) in sums.iter().zip(part.rows).take(part.lanes) {
                self.y.put(row, *sum);
            }
        }
    }
}
