//! Asking for a cache line before it is needed.
//!
//! Sampling and gathering touch memory at random: each access alone takes a main-memory latency,
//! some 90 ns, while a core can have ten or more lines under way. The loops know their next
//! addresses, so they ask ahead.
#![allow(unsafe_code)]

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches the cache line that holds `slice[index]`; an index past the end does no harm.
///
/// ```
/// let values = vec![1u32; 100];
/// tiergraph_mem::prefetch(&values, 40);
/// tiergraph_mem::prefetch(&values, 4000);
/// ```
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    line(slice.as_ptr().wrapping_add(index).cast());
}

/// Prefetches every cache line of `bytes`.
#[inline(always)]
pub fn prefetch_all(bytes: &[u8]) {
    prefetch_range(bytes.as_ptr(), bytes.len());
}

/// Prefetches every cache line of the `len` bytes from `start` on, to which there is no reference.
#[inline(always)]
pub fn prefetch_range(start: *const u8, len: usize) {
    for at in (0..len).step_by(LINE_BYTES) {
        line(start.wrapping_add(at));
    }
}

#[inline(always)]
fn line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it neither faults nor changes memory, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
