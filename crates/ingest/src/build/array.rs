//! Arrays of a number a vertex, on huge pages and counted in the budget.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, Budget, Reservation};

/// `len` elements on huge pages: they are visited in random order, which on pages of 4 KiB costs
/// more in the TLB than in the cache.
#[derive(Debug)]
pub(super) struct Array<T> {
    buffer: AlignedBuf,
    len: usize,
    _held: Option<Reservation>,
    element: PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// `len` zeros.
    pub(super) fn zeroed(len: usize, budget: &Budget, what: &str) -> Result<Self> {
        let held = budget.reserve((len * size_of::<T>()) as u64, what)?;
        Ok(Self { _held: Some(held), ..Self::uncounted(len)? })
    }

    /// `len` zeros that the caller has counted.
    pub(super) fn uncounted(len: usize) -> Result<Self> {
        let buffer = AlignedBuf::zeroed(len * size_of::<T>())?;
        Ok(Self { buffer, len, _held: None, element: PhantomData })
    }

    /// Makes it at least `len` long; what was there is lost then.
    pub(super) fn make_room(&mut self, len: usize) -> Result<()> {
        if self.len < len {
            *self = Self::default();
            *self = Self::uncounted(len)?;
        }
        Ok(())
    }

    /// The elements, and zeros up to `len`.
    pub(super) fn grown(self, len: usize, budget: &Budget, what: &str) -> Result<Self> {
        let mut larger = Self::zeroed(len, budget, what)?;
        larger[..self.len].copy_from_slice(&self);
        Ok(larger)
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self { buffer: AlignedBuf::default(), len: 0, _held: None, element: PhantomData }
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // An empty buffer is at no aligned address.
        if self.len == 0 {
            return &[];
        }
        &bytemuck::cast_slice(&self.buffer)[..self.len]
    }
}

impl<T: Pod> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        &mut bytemuck::cast_slice_mut(&mut self.buffer)[..self.len]
    }
}
