//! Arrays of a number a vertex, counted in the budget.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_mem::{Budget, Reservation};

/// Elements that are visited in random order, and their reservation.
#[derive(Debug)]
pub(super) struct Array<T> {
    elements: tiergraph_mem::Array<T>,
    _held: Option<Reservation>,
}

impl<T: Zeroable + Copy> Array<T> {
    /// `len` zeros.
    pub(super) fn zeroed(len: usize, budget: &Budget, what: &str) -> Result<Self> {
        let held = budget.reserve((len * size_of::<T>()) as u64, what)?;
        Ok(Self { _held: Some(held), ..Self::uncounted(len)? })
    }

    /// `len` zeros that the caller has counted.
    pub(super) fn uncounted(len: usize) -> Result<Self> {
        Ok(Self { elements: tiergraph_mem::Array::zeroed(len)?, _held: None })
    }

    /// Makes it at least `len` long; what was there is lost then.
    pub(super) fn make_room(&mut self, len: usize) -> Result<()> {
        if self.elements.len() < len {
            *self = Self::default();
            *self = Self::uncounted(len)?;
        }
        Ok(())
    }

    /// Moves the elements to the beginning of `larger`.
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
