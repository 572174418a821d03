//! Arrays with a number for each vertex, whose memory counts in the build's budget.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_mem::{Budget, Reservation};

/// An array that is accessed in random order, with its reservation.
#[derive(Debug)]
pub(super) struct Array<T> {
    elements: tiergraph_mem::Array<T>,
    _held: Option<Reservation>,
}

impl<T: Zeroable + Copy> Array<T> {
    /// An array of `len` zeros, reserved in `budget` as `what`.
    pub(super) fn zeroed(len: usize, budget: &Budget, what: &str) -> Result<Self> {
        let held = budget.reserve((len * size_of::<T>()) as u64, what)?;
        Ok(Self { _held: Some(held), ..Self::uncounted(len)? })
    }

    /// An array of `len` zeros, whose memory the caller has reserved.
    pub(super) fn uncounted(len: usize) -> Result<Self> {
        Ok(Self { elements: tiergraph_mem::Array::zeroed(len)?, _held: None })
    }

    /// Makes the array at least `len` long; its elements are lost if it grows.
    pub(super) fn make_room(&mut self, len: usize) -> Result<()> {
        if self.elements.len() < len {
            *self = Self::default();
            *self = Self::uncounted(len)?;
        }
        Ok(())
    }

    /// Moves the elements to the beginning of the array `larger`, which replaces this one.
    pub(super) fn move_to(&mut self, mut larger: Self) {
        larger[..self.elements.len()].copy_from_slice(self);
        *self = larger;
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self { elements: tiergraph_mem::Array::default(), _held: None }
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}
