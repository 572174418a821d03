//! Sums over plain lists of ids: codec `raw`.

use crate::single::Single;

/// Ids that are added in float32 before they are added in float64.
const RUN: usize = 64;
/// Sums in flight, so that additions do not wait for one another.
const WIDTH: usize = 8;

/// How many ids ahead values are fetched: what a core has in flight while it waits for memory.
const AHEAD: usize = 32;

/// `Σ x[id]` over the first `len` of `ids`, in float32 by runs of 64 and in float64 over the runs.
///
/// The ids after those are what will be summed next: their values are prefetched.
///
/// # Panics
/// If `ids` are fewer than `len`, or one that is summed is not below `x.len()`.
#[inline]
pub fn sum_of(x: &[f32], ids: &[u32], len: usize) -> f64 {
    let mut sum = 0.0;
    for (i, run) in ids[..len].chunks(RUN).enumerate() {
        let ahead = ids.get(i * RUN + AHEAD..).unwrap_or(&[]);
        sum += f64::from(sum_of_run(x, run, &ahead[..run.len().min(ahead.len())]));
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

/// `Σ x[id]` of one run; the values of `ahead`, as many ids or fewer, are fetched meanwhile.
#[inline(always)]
fn sum_of_run(x: &[f32], ids: &[u32], ahead: &[u32]) -> f32 {
    let (wides, rest) = ids.as_chunks::<WIDTH>();
    let (ahead, ahead_rest) = ahead.as_chunks::<WIDTH>();
    let mut sums = [Single::new(0.0); WIDTH];
    for (i, wide) in wides.iter().enumerate() {
        ahead.get(i).into_iter().flatten().for_each(|&id| prefetch(x, id));
        for (sum, &id) in sums.iter_mut().zip(wide) {
            sum.add(&x[id as usize]);
        }
    }
    ahead_rest.iter().for_each(|&id| prefetch(x, id));
    for (sum, &id) in sums.iter_mut().zip(rest) {
        sum.add(&x[id as usize]);
    }
    if wides.is_empty() {
        return sums[..rest.len()].iter().map(|sum| sum.get()).sum();
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
            for after in [0, 5, 40, 300] {
                let mut all = ids.clone();
                all.extend((0..after).map(|i| i % 1000));
                assert_eq!(sum_of(&x, &all, len as usize), expected, "{len} ids");
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn an_id_outside_is_refused() {
        sum_of(&[0.0; 4], &[1, 4], 2);
    }
}
