//! Sums over plain lists of ids: codec `raw`.

use crate::single::Single;

/// Ids that are added in float32 before they are added in float64.
const RUN: usize = 64;
/// Sums in flight, so that additions do not wait for one another.
const WIDTH: usize = 8;

/// How many ids ahead values are fetched: what a core has in flight while it waits for memory.
const AHEAD: usize = 32;

/// `Σ x[id]`, in float32 by runs of 64 ids and in float64 over the runs.
///
/// `upcoming` are ids that will be summed next; the values of the first of them are prefetched.
///
/// # Panics
/// If an id is not below `x.len()`.
#[inline]
pub fn sum_of(x: &[f32], ids: &[u32], upcoming: &[u32]) -> f64 {
    let own = ids.get(AHEAD..).unwrap_or(&[]);
    let next = &upcoming[AHEAD.saturating_sub(ids.len()).min(upcoming.len())..];
    let next = &next[..ids.len().min(AHEAD).min(next.len())];
    next.iter().for_each(|&id| prefetch(x, id));
    let mut sum = 0.0;
    for (i, run) in ids.chunks(RUN).enumerate() {
        let own = own.get(i * RUN..).unwrap_or(&[]);
        own.iter().take(RUN).for_each(|&id| prefetch(x, id));
        sum += f64::from(sum_of_run(x, run));
    }
    sum
}

#[inline(always)]
fn prefetch(x: &[f32], id: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(x.as_ptr().wrapping_add(id as usize).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, id);
}

#[inline(always)]
fn sum_of_run(x: &[f32], ids: &[u32]) -> f32 {
    let (wides, rest) = ids.as_chunks::<WIDTH>();
    let mut sums = [Single::new(0.0); WIDTH];
    for wide in wides {
        for i in 0..WIDTH {
            sums[i].add(&x[wide[i] as usize]);
        }
    }
    for (sum, &id) in sums.iter_mut().zip(rest) {
        sum.add(&x[id as usize]);
    }
    let [a, b, c, d, e, f, g, h] = sums.map(Single::get);
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_one_by_one_additions() {
        let x: Vec<f32> = (0..1000).map(|i| (i % 17) as f32).collect();
        for len in (0..200).chain([1000, 5000]) {
            let ids: Vec<u32> = (0..len).map(|i| (i * 7919) % 1000).collect();
            let expected: f64 = ids.iter().map(|&id| f64::from(x[id as usize])).sum();
            assert_eq!(sum_of(&x, &ids, &ids[..ids.len() / 3]), expected, "{len} ids");
        }
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn an_id_outside_is_refused() {
        sum_of(&[0.0; 4], &[1, 4], &[]);
    }
}
