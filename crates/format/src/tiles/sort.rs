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
const FEW_WORDS: usize = 256;
const BYTES: usize = size_of::<u32>();

/// Sorts words whose differences are in the `bits` lowest bits. `scratch` is as long as `words`.
///
/// Cost: one pass for the histograms and one for each byte that differs, about 1 ns a word and pass
/// while `words` and `scratch` fit a core's caches; comparisons for few words.
///
/// # Panics
/// If `scratch` is shorter than `words`.
pub fn sort_words(words: &mut [u32], scratch: &mut [u32], bits: u32) {
    if words.len() <= FEW_WORDS {
        return words.sort_unstable();
    }
    let scratch = &mut scratch[..words.len()];
    let digits = bits.div_ceil(u8::BITS).min(BYTES as u32) as usize;
    let mut counts = [[0u32; 256]; BYTES];
    for word in words.iter() {
        for (count, byte) in counts.iter_mut().zip(word.to_le_bytes()) {
            count[usize::from(byte)] += 1;
        }
    }
    let (mut from, mut to, mut moved) = (&mut *words, scratch, false);
    for (digit, count) in counts.iter_mut().enumerate().take(digits) {
        let first = usize::from(from[0].to_le_bytes()[digit]);
        if count[first] as usize == from.len() {
            continue;
        }
        let mut sum = 0;
        for c in count.iter_mut() {
            (*c, sum) = (sum, sum + *c);
        }
        for &word in from.iter() {
            let place = &mut count[usize::from(word.to_le_bytes()[digit])];
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
        for n in [0, 1, 2, FEW_WORDS, FEW_WORDS + 1, 5000] {
            for bits in [1, 8, 9, 17, 24, 32] {
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
