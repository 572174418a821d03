//! Least-significant-digit radix sort on the bits that differ.

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
