//! Large `Vec`s on huge pages: of ordinary ones, the first touch takes longer than what is done with
//! them.
#![allow(unsafe_code)]

use std::slice;
use std::sync::atomic::AtomicU32;

use bytemuck::Zeroable;
use tiergraph_core::{Result, ThreadPool};

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

/// A `Vec`, on huge pages if it is large, of the `len` elements `element(0)`, `element(1)` and so on,
/// written by `threads`.
///
/// ```
/// # use tiergraph_core::ThreadPool;
/// assert_eq!(tiergraph_mem::vec_from_fn(&ThreadPool::new(2), 3, |i| i * i)?, [0, 1, 4]);
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) if the system gives no threads to start `threads`.
pub fn vec_from_fn<T: Zeroable + Send>(
    threads: &ThreadPool,
    len: usize,
    element: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>> {
    let mut values = zeroed_vec(len);
    fill(threads, &mut values, element)?;
    Ok(values)
}

/// Writes `element(i)` to each place `i` of `values`, on `threads`: the first touch of memory, which is
/// most of it, takes one thread much longer where a virtual machine's host has to find the memory.
pub(crate) fn fill<T: Send>(
    threads: &ThreadPool,
    values: &mut [T],
    element: impl Fn(usize) -> T + Sync,
) -> Result<()> {
    let of_part = (HUGE_PAGE_BYTES / size_of::<T>().max(1)).max(1);
    threads.share(values.chunks_mut(of_part).enumerate(), |_, parts| {
        for (number, part) in parts {
            part.iter_mut().zip(number * of_part..).for_each(|(to, i)| *to = element(i));
        }
    })?;
    Ok(())
}

/// Numbers, to be written by several threads at once.
pub fn as_atomic(values: &mut [u32]) -> &[AtomicU32] {
    let (start, len) = (values.as_mut_ptr().cast::<AtomicU32>(), values.len());
    // SAFETY: an `AtomicU32` has the size, the alignment and the bits of a `u32` (asserted below); `&mut`
    // makes this the only way to the numbers while it is borrowed.
    unsafe { slice::from_raw_parts(start, len) }
}

const _: () = assert!(align_of::<AtomicU32>() == align_of::<u32>());

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
        let threads = ThreadPool::new(3);
        for len in [0, 1, 5, HUGE_PAGE_BYTES / 4, 3 * HUGE_PAGE_BYTES + 7] {
            let mut zeroes = zeroed_vec::<u32>(len);
            assert!(zeroes.len() == len && zeroes.iter().all(|&v| v == 0));
            zeroes.iter_mut().zip(0..).for_each(|(v, i)| *v = i);
            assert_eq!(zeroes, vec_from_fn(&threads, len, |i| i as u32).unwrap());
            zeroes.extend([1; 1000]);
            assert_eq!(zeroes.len(), len + 1000);
        }
    }
}
