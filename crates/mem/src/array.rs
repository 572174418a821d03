//! Arrays that are read at random: on huge pages, because a gather over 4 KiB pages spends its
//! time in the TLB.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::{align_of, needs_drop, size_of};
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::atomic::AtomicU32;

use bytemuck::Zeroable;
use tiergraph_core::{Result, ThreadPool};

use crate::vec::fill;
use crate::{AlignedBuf, PAGE_BYTES, as_atomic};

/// An array of a fixed number of elements in an [`AlignedBuf`], on huge pages from 2 MiB on.
///
/// ```
/// use tiergraph_mem::Array;
/// let mut ranks = Array::<f32>::zeroed(1 << 20).unwrap();
/// ranks[7] = 0.5;
/// assert_eq!(ranks[6..9], [0.0, 0.5, 0.0]);
/// ```
#[derive(Debug)]
pub struct Array<T> {
    bytes: AlignedBuf,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Zeroable> Array<T> {
    /// Elements are freed with their bytes and lie at page boundaries.
    const FITS: () = assert!(!needs_drop::<T>() && align_of::<T>() <= PAGE_BYTES);

    /// An array of `len` zeroes.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](tiergraph_core::ErrorKind::Budget) when the system has no such amount
    /// of memory to give.
    pub fn zeroed(len: usize) -> Result<Self> {
        let bytes = AlignedBuf::zeroed(len.saturating_mul(size_of::<T>()))?;
        Ok(Self::of(bytes, len))
    }

    /// An array of the `len` elements `element(0)`, `element(1)` and so on, written by `threads`.
    ///
    /// # Errors
    /// As [`zeroed`](Self::zeroed); [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) if the system gives no
    /// threads to start `threads`.
    pub fn from_fn(
        threads: &ThreadPool,
        len: usize,
        element: impl Fn(usize) -> T + Sync,
    ) -> Result<Self>
    where
        T: Send,
    {
        let mut array = Self::zeroed(len)?;
        fill(threads, &mut array, element)?;
        Ok(array)
    }

    /// `count` arrays of `len` zeroes, side by side on huge pages
    /// ([`AlignedBuf::batch`]).
    ///
    /// # Errors
    /// As [`zeroed`](Self::zeroed).
    pub fn batch(count: usize, len: usize) -> Result<Vec<Self>> {
        let buffers = AlignedBuf::batch(count, len.saturating_mul(size_of::<T>()))?;
        Ok(buffers.into_iter().map(|bytes| Self::of(bytes, len)).collect())
    }

    fn of(bytes: AlignedBuf, len: usize) -> Self {
        let () = Self::FITS;
        Self { bytes, len, element: PhantomData }
    }

    /// Bytes that the array takes in memory: whole pages.
    pub fn resident_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Array<u32> {
    /// The elements, to be written by several threads at once.
    pub fn as_atomic(&mut self) -> &[AtomicU32] {
        as_atomic(self)
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the bytes are `len` elements and more, at a page boundary; they were zero, which
        // is a value of T, and have been written as elements only.
        unsafe { slice::from_raw_parts(self.bytes.start().cast().as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.bytes.start().cast().as_ptr(), self.len) }
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self { bytes: AlignedBuf::default(), len: 0, element: PhantomData }
    }
}
