//! The arcs of a slice, one after the other.

use tiergraph_kernels::Slice;

use super::step::Step;

/// Calls `visit(row in the strip, column in the tile, weight)` for each arc of a slice; the weight is
/// 1 if `step` does not use it. `prefetch` is called with the columns of a step before its arcs come.
#[inline(always)]
pub(super) fn each_arc<T, S: Step<T>>(
    _step: S,
    slice: &Slice<'_>,
    prefetch: impl Fn(usize),
    visit: impl FnMut(usize, usize, f64),
) {
    let weights = slice.weights;
    match slice.weight_bytes {
        4 if S::WEIGHTED => weighted::<[u8; 4]>(slice, weights.as_chunks().0, prefetch, visit),
        8 if S::WEIGHTED => weighted::<[u8; 8]>(slice, weights.as_chunks().0, prefetch, visit),
        _ => weighted(slice, &[(); usize::MAX], prefetch, visit),
    }
}

/// A weight as slices hold it.
trait Weight {
    fn value(&self) -> f64;
}

impl Weight for [u8; 4] {
    #[inline(always)]
    fn value(&self) -> f64 {
        f32::from_le_bytes(*self).into()
    }
}

impl Weight for [u8; 8] {
    #[inline(always)]
    fn value(&self) -> f64 {
        f64::from_le_bytes(*self)
    }
}

/// The weight of an arc in a file without weights.
impl Weight for () {
    #[inline(always)]
    fn value(&self) -> f64 {
        1.0
    }
}

#[inline(always)]
fn weighted<W: Weight>(
    slice: &Slice<'_>,
    mut weights: &[W],
    prefetch: impl Fn(usize),
    mut visit: impl FnMut(usize, usize, f64),
) {
    let prefetch_step = |k: usize| {
        let step = slice.columns.get(k).zip(slice.active.get(k));
        let columns = step.map_or(&[][..], |(step, &active)| &step[..usize::from(active)]);
        columns.iter().for_each(|&column| prefetch(column as usize));
    };
    prefetch_step(0);
    for (k, (step, &active)) in slice.columns.iter().zip(slice.active).enumerate() {
        prefetch_step(k + 1);
        let Some((now, later)) = weights.split_at_checked(usize::from(active)) else { return };
        weights = later;
        for ((&row, &column), weight) in slice.rows.iter().zip(step).zip(now) {
            visit(row as usize, column as usize, weight.value());
        }
    }
}
