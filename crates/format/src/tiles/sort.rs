//! Least-significant-digit radix sorts on the bits that differ.

const DIGIT_BITS: u32 = 11;
const BUCKETS: usize = 1 << DIGIT_BITS;

/// Sorts `items` by `key`, stably, looking only at the `bits` lowest bits of the keys.
///
/// Cost: one pass over the items for all histograms, then one for each 11 bits that differ.
/// `scratch` is resized to the items' length and keeps its memory for the next call.
pub fn radix_sort<T: Copy + Default>(
    items: &mut Vec<T>,
    scratch: &mut Vec<T>,
    bits: u32,
    key: impl Fn(&T) -> u64,
) {
    let digits = bits.div_ceil(DIGIT_BITS).max(1) as usize;
    let mut counts = vec![[0u32; BUCKETS]; digits];
    for item in items.iter() {
        let mut k = key(item);
        for count in &mut counts {
            count[k as usize & (BUCKETS - 1)] += 1;
            k >>= DIGIT_BITS;
        }
    }
    scratch.resize(items.len(), T::default());
    for (digit, count) in counts.iter_mut().enumerate() {
        if count.iter().any(|&c| c as usize == items.len()) {
            continue;
        }
        let mut sum = 0;
        for c in count.iter_mut() {
            (*c, sum) = (sum, sum + *c);
        }
        let shift = digit as u32 * DIGIT_BITS;
        for item in items.iter() {
            let place = &mut count[(key(item) >> shift) as usize & (BUCKETS - 1)];
            scratch[*place as usize] = *item;
            *place += 1;
        }
        std::mem::swap(items, scratch);
    }
}

/// Words up to here are sorted by comparisons: a pass over the counters costs more than they do.
const FEW_WORDS: usize = 64;
/// From here on the counters of wide digits cost less than the passes that they save.
const MANY_WORDS: usize = 1 << 11;

/// Sorts words whose differences are in the `bits` lowest bits. `scratch` is as long as `words`.
///
/// Cost: one pass for the histograms and one for each 11 bits (8 where words are not many), about
/// 1 ns a word and pass while `words` and `scratch` fit a core's caches; comparisons for few words.
///
/// # Panics
/// If `scratch` is shorter than `words`.
pub fn sort_words(words: &mut [u32], scratch: &mut [u32], bits: u32) {
    if words.len() <= FEW_WORDS {
        return words.sort_unstable();
    }
    let scratch = &mut scratch[..words.len()];
    match (words.len() >= MANY_WORDS, bits) {
        (_, 0..=8) => sort_digits::<1, 8>(words, scratch),
        (_, 9..=16) => sort_digits::<2, 8>(words, scratch),
        (true, 17..=22) => sort_digits::<2, 11>(words, scratch),
        (_, 17..=24) => sort_digits::<3, 8>(words, scratch),
        (true, _) => sort_digits::<3, 11>(words, scratch),
        (false, _) => sort_digits::<4, 8>(words, scratch),
    }
}

/// By the `N` lowest digits of `BITS` bits.
fn sort_digits<const N: usize, const BITS: u32>(words: &mut [u32], scratch: &mut [u32]) {
    let mut counts = [[0u32; BUCKETS]; N];
    let digit = |word: u32, i: usize| (word >> (i as u32 * BITS)) as usize & ((1 << BITS) - 1);
    for &word in words.iter() {
        for (i, count) in counts.iter_mut().enumerate() {
            count[digit(word, i)] += 1;
        }
    }
    let (mut from, mut to, mut moved) = (&mut *words, scratch, false);
    for (i, count) in counts.iter_mut().enumerate() {
        if count[digit(from[0], i)] as usize == from.len() {
            continue;
        }
        let mut sum = 0;
        for c in &mut count[..1 << BITS] {
            (*c, sum) = (sum, sum + *c);
        }
        for &word in from.iter() {
            let place = &mut count[digit(word, i)];
            to[*place as usize] = word;
            *place += 1;
        }
        (from, to, moved) = (to, from, !moved);
    }
    if moved {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_number_and_width_ascend() {
        for n in [0, 1, 2, FEW_WORDS, FEW_WORDS + 1, MANY_WORDS - 1, MANY_WORDS, 5000] {
            for bits in [1, 8, 9, 16, 17, 22, 23, 24, 25, 32] {
                let high = if bits <= 24 { 0xAB00_0000 } else { 0 };
                let low = |i: u32| i.wrapping_mul(0x9E37_79B1) >> (32 - bits);
                let mut words: Vec<u32> = (0..n as u32).map(|i| low(i) | high).collect();
                let mut expected = words.clone();
                expected.sort_unstable();
                sort_words(&mut words, &mut vec![0; n], bits);
                assert_eq!(words, expected, "{n} words of {bits} bits");
            }
        }
    }
}
