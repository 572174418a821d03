//! Removes repeated words.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::Isa;

/// Moves the first of equal ones of the ascending words `words[part]` to `words[to..]`, where `to` is not behind the
/// part's beginning; returns where they end.
///
/// ```
/// let mut words = [9, 9, 1, 1, 2, 5, 5];
/// assert_eq!(tiergraph_kernels::dedup_words(&mut words, 2..7, 1), 4);
/// assert_eq!(words[1..4], [1, 2, 5]);
/// ```
///
/// # Panics
/// If `part` is not of `words`, or `to` is behind its beginning.
pub fn dedup_words(words: &mut [u32], part: Range<usize>, to: usize) -> usize {
    assert!(to <= part.start && part.end <= words.len(), "{part:?} of {} to {to}", words.len());
    let Some(&first) = words.get(part.start).filter(|_| !part.is_empty()) else { return to };
    words[to] = first;
    #[cfg(target_arch = "x86_64")]
    if matches!(Isa::detect(), Isa::Avx512 | Isa::Avx512Gather) {
        // SAFETY: `detect` found the features on this CPU; the part and where it goes were compared above.
        let (next, kept) = unsafe { x86::dedup(words, part.start + 1..part.end, to + 1) };
        return one_by_one(words, next..part.end, kept);
    }
    one_by_one(words, part.start + 1..part.end, to + 1)
}

/// As [`dedup_words`] for words that come behind the one before `to`.
fn one_by_one(words: &mut [u32], part: Range<usize>, mut to: usize) -> usize {
    for i in part {
        // Written in any case: no branch that depends on the words.
        let word = words[i];
        let is_new = words[to - 1] != word;
        words[to] = word;
        to += usize::from(is_new);
    }
    to
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        _mm512_alignr_epi32, _mm512_cmpneq_epi32_mask, _mm512_loadu_si512,
        _mm512_maskz_compress_epi32, _mm512_set1_epi32, _mm512_storeu_si512,
    };
    use std::ops::Range;

    const LANES: usize = 16;

    /// Moves all but fewer than 16 words; returns where the part goes on and where what is kept ends.
    ///
    /// # Safety
    /// The CPU must have AVX-512 F. `0 < to <= part.start`, and `part` is of `words`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
    pub(super) unsafe fn dedup(
        words: &mut [u32],
        part: Range<usize>,
        mut to: usize,
    ) -> (usize, usize) {
        let start = words.as_mut_ptr();
        let mut at = part.start;
        // SAFETY: there is a word before the part.
        let mut before = _mm512_set1_epi32(unsafe { *start.add(at - 1) }.cast_signed());
        while at + LANES <= part.end {
            // SAFETY: `at .. at + 16` and `to .. to + 16` are of `words`, as `to <= at` and `at + 16 <= part.end`.
            // What is written behind what is kept are words that were read.
            unsafe {
                let own = _mm512_loadu_si512(start.add(at).cast());
                // The word before each: the last of the step before, and all but the last of this.
                let shifted = _mm512_alignr_epi32::<15>(own, before);
                let is_new = _mm512_cmpneq_epi32_mask(own, shifted);
                _mm512_storeu_si512(start.add(to).cast(), _mm512_maskz_compress_epi32(is_new, own));
                to += is_new.count_ones() as usize;
                before = own;
            }
            at += LANES;
        }
        (at, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_dedup_leaves() {
        for n in [0, 1, 2, 15, 16, 17, 18, 33, 100, 1000] {
            for repeats in [1, 2, 7, 40, 5000] {
                for shift in [0, 1, 5, 16, 30] {
                    let part: Vec<u32> = (0..n).map(|i| (i / repeats) as u32).collect();
                    let mut words = vec![0xAAAA; shift];
                    words.extend(&part);
                    words.push(7);
                    let mut expected = part;
                    expected.dedup();
                    let end = dedup_words(&mut words, shift..shift + n, 0);
                    assert_eq!(words[..end], expected, "{n} words, {repeats} equal, from {shift}");
                    assert_eq!(words[shift + n], 7);
                }
            }
        }
    }
}
