//! Large arrays that are read at random: on huge pages, because a gather over 4 KiB pages spends
//! its time in the TLB.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

/// `len` elements, zeroed when made.
#[derive(Debug)]
pub struct Array<T> {
    bytes: AlignedBuf,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// # Errors
    /// [`ErrorKind::Budget`](tiergraph_core::ErrorKind::Budget) when the system has no such amount
    /// of memory to give.
    pub fn zeroed(len: usize) -> Result<Self> {
        let bytes = AlignedBuf::zeroed(len.saturating_mul(size_of::<T>()))?;
        Ok(Self { bytes, len, element: PhantomData })
    }

    /// Bytes in memory.
    pub fn resident_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // An empty buffer is aligned to nothing.
        if self.len == 0 {
            return &[];
        }
        bytemuck::cast_slice(&self.bytes[..self.len * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        bytemuck::cast_slice_mut(&mut self.bytes[..self.len * size_of::<T>()])
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self { bytes: AlignedBuf::default(), len: 0, element: PhantomData }
    }
}
