//! Large `Vec`s on huge pages: of ordinary ones, the first touch takes longer than what is done with
//! them.
#![allow(unsafe_code)]

use bytemuck::Zeroable;

use crate::HUGE_PAGE_BYTES;

/// A `Vec` of `len` zeroes, on huge pages if it is large; none of them is touched yet.
///
/// ```
/// assert_eq!(tiergraph_mem::zeroed_vec::<u32>(3), [0, 0, 0]);
/// ```
pub fn zeroed_vec<T: Zeroable>(len: usize) -> Vec<T> {
    let mut values = bytemuck::zeroed_vec(len);
    advise(&mut values);
    values
}

/// A `Vec`, on huge pages if it is large, of the `len` elements `element(0)`, `element(1)` and so on.
///
/// ```
/// assert_eq!(tiergraph_mem::vec_from_fn(3, |i| i * i), [0, 1, 4]);
/// ```
pub fn vec_from_fn<T>(len: usize, element: impl FnMut(usize) -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(len);
    advise(&mut values);
    values.extend((0..len).map(element));
    values
}

/// Asks for huge pages for what `values` has room for. A refusal leaves ordinary pages, which is
/// correct.
fn advise<T>(values: &mut Vec<T>) {
    let start = values.as_mut_ptr().cast::<u8>();
    let bytes = values.capacity() * size_of::<T>();
    let head = start.align_offset(HUGE_PAGE_BYTES);
    let len = bytes.saturating_sub(head) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if len > 0 {
        // SAFETY: advice about whole huge pages of an allocation that is ours; no byte changes.
        unsafe { libc::madvise(start.add(head).cast(), len, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_ones_hold_what_is_said() {
        for len in [0, 1, 5, HUGE_PAGE_BYTES / 4, 3 * HUGE_PAGE_BYTES + 7] {
            let mut zeroes = zeroed_vec::<u32>(len);
            assert!(zeroes.len() == len && zeroes.iter().all(|&v| v == 0));
            zeroes.iter_mut().zip(0..).for_each(|(v, i)| *v = i);
            assert_eq!(zeroes, vec_from_fn(len, |i| i as u32));
            zeroes.extend([1; 1000]);
            assert_eq!(zeroes.len(), len + 1000);
        }
    }
}
