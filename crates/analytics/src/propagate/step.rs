//! The step that combines the values of an arc's source into its target's, compiled once for each case.

use std::marker::PhantomData;

use bytemuck::cast_slice;
use tiergraph_mem::prefetch_all;

use super::{Reduce, Value};

/// `to[at] ⊕= weight · x[from]` for the values of two vertices.
pub(super) trait Step<T>: Copy + Sync {
    /// Whether a step multiplies the values that go along arcs by their weights.
    const WEIGHTED: bool;

    /// Combines the values of vertex `from`, in `x`, into those of vertex `at`, in `to`.
    fn arc(self, to: &mut [T], at: usize, x: &[T], from: usize, weight: f64);

    /// Prefetches a vertex's values, where the CPU would not by itself.
    fn prefetch(self, _x: &[T], _from: usize) {}
}

/// An operation that makes one value of two.
pub(super) trait Combine: Copy + Sync {
    fn combine<T: Value>(a: T, b: T) -> T;
}

#[derive(Clone, Copy)]
pub(super) struct Sum;

#[derive(Clone, Copy)]
pub(super) struct Min;

#[derive(Clone, Copy)]
pub(super) struct Max;

impl Combine for Sum {
    #[inline(always)]
    fn combine<T: Value>(a: T, b: T) -> T {
        a + b
    }
}

impl Combine for Min {
    #[inline(always)]
    fn combine<T: Value>(a: T, b: T) -> T {
        if b < a || b.is_nan() { b } else { a }
    }
}

impl Combine for Max {
    #[inline(always)]
    fn combine<T: Value>(a: T, b: T) -> T {
        if b > a || b.is_nan() { b } else { a }
    }
}

impl Reduce {
    /// `to ⊕= value`.
    #[inline(always)]
    pub(super) fn apply<T: Value>(self, to: &mut T, value: T) {
        *to = match self {
            Self::Sum => Sum::combine(*to, value),
            Self::Min => Min::combine(*to, value),
            Self::Max => Max::combine(*to, value),
        }
    }
}

/// The step where each vertex has one value.
#[derive(Clone, Copy)]
pub(super) struct Scalar<C, const WEIGHTED: bool>(PhantomData<C>);

impl<C, const WEIGHTED: bool> Scalar<C, WEIGHTED> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Value, C: Combine, const WEIGHTED: bool> Step<T> for Scalar<C, WEIGHTED> {
    const WEIGHTED: bool = WEIGHTED;

    #[inline(always)]
    fn arc(self, to: &mut [T], at: usize, x: &[T], from: usize, weight: f64) {
        let value = if WEIGHTED { T::from_f64(weight) * x[from] } else { x[from] };
        to[at] = C::combine(to[at], value);
    }
}

/// The step where each vertex has a vector of as many values as the field says.
#[derive(Clone, Copy)]
pub(super) struct Vector<C, const WEIGHTED: bool>(usize, PhantomData<C>);

impl<C, const WEIGHTED: bool> Vector<C, WEIGHTED> {
    pub(super) fn new(width: usize) -> Self {
        Self(width, PhantomData)
    }
}

impl<T: Value, C: Combine, const WEIGHTED: bool> Step<T> for Vector<C, WEIGHTED> {
    const WEIGHTED: bool = WEIGHTED;

    #[inline(always)]
    fn prefetch(self, x: &[T], from: usize) {
        if let Some(values) = x.get(from * self.0..(from + 1) * self.0) {
            prefetch_all(cast_slice(values));
        }
    }

    #[inline(always)]
    fn arc(self, to: &mut [T], at: usize, x: &[T], from: usize, weight: f64) {
        let Self(width, _) = self;
        let weight = T::from_f64(weight);
        let from = &x[from * width..][..width];
        for (to, &x) in to[at * width..][..width].iter_mut().zip(from) {
            *to = C::combine(*to, if WEIGHTED { weight * x } else { x });
        }
    }
}
