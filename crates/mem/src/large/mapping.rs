//! Mappings of huge pages, and moving pages from one to another.

use std::io;
use std::process;
use std::ptr::{self, NonNull};

use crate::{HUGE_PAGE_BYTES, PAGE_BYTES};

/// Moves `len` bytes of pages to another place, in place of the pages there.
///
/// # Safety
/// Both ranges are blocks of ours, or parts; nobody uses the bytes of either but the caller.
pub(super) unsafe fn move_pages(from: NonNull<u8>, len: usize, to: NonNull<u8>) {
    // One huge page at a time: more may be of several mappings, which kernels before 6.17 do not move at once,
    // and find out when the pages there are gone.
    for offset in (0..len).step_by(HUGE_PAGE_BYTES) {
        // SAFETY: inside the ranges.
        let (from, to) = unsafe { (from.add(offset), to.add(offset)) };
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the caller's promise: both are mapped, are whole huge pages, and do not overlap.
        let moved = unsafe {
            let (from, to) = (from.as_ptr().cast(), to.as_ptr());
            libc::mremap(from, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES, flags, to)
        };
        if moved != libc::MAP_FAILED {
            continue;
        }
        // The process has as many mappings as it may; or the system has no memory for its own tables, and the
        // pages may be gone.
        if !is_mapped(from) || !is_mapped(to) {
            process::abort();
        }
        // SAFETY: both are there, and are the caller's.
        unsafe { to.copy_from_nonoverlapping(from, HUGE_PAGE_BYTES) };
        unmap(from, HUGE_PAGE_BYTES);
    }
}

/// Whether all of a huge page from `start` on is mapped.
fn is_mapped(start: NonNull<u8>) -> bool {
    // SAFETY: of anonymous memory, it changes nothing.
    unsafe { libc::msync(start.as_ptr().cast(), HUGE_PAGE_BYTES, libc::MS_ASYNC) == 0 }
}

/// Maps `len` zero bytes, whole pages, on huge pages from a huge-page boundary on.
pub(crate) fn map(len: usize) -> io::Result<NonNull<u8>> {
    let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
    // One huge page too many, whose ends are given back.
    let span = len.checked_add(HUGE_PAGE_BYTES - PAGE_BYTES).ok_or_else(too_large)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing else.
    let base = unsafe { libc::mmap(ptr::null_mut(), span, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(base.cast::<u8>()).ok_or_else(too_large)?;
    let head = base.align_offset(HUGE_PAGE_BYTES);
    // SAFETY: `head + len <= span`, because `head` is a multiple of a page below a huge page.
    let (start, end) = unsafe { (base.add(head), base.add(head + len)) };
    unmap(base, head);
    unmap(end, span - head - len);
    // SAFETY: `start..start + len` is ours. A refusal leaves ordinary pages, which is correct.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    Ok(start)
}

/// Gives `len` bytes (whole pages, perhaps none) that [`map`] gave back to the system; nobody uses them.
pub(crate) fn unmap(start: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: the callers pass parts of their own mapping that nothing refers to.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}
