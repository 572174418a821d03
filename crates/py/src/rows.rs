//! Feature rows as NumPy arrays, where they are.
#![allow(unsafe_code)]

use numpy::PyArray2;
use numpy::ndarray::ArrayViewMut2;
use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind};
use tiergraph_sampler::Held;

use crate::errors::raise;

/// What an array of features refers to: its memory, and what of the graph's budget that counts
/// for. Both are given back when the last array or tensor over it goes.
#[pyclass(module = "tiergraph._native")]
struct Rows(Held);

/// Features, float32 of shape (rows, D), on whole pages and without a copy.
pub(crate) fn to_array(
    py: Python<'_>,
    held: Option<Held>,
) -> PyResult<Option<Bound<'_, PyArray2<f32>>>> {
    let Some(held) = held else { return Ok(None) };
    let owner = Bound::new(py, Rows(held))?;
    let mut rows = owner.borrow_mut();
    let x = &mut rows.0.matrix;
    let shape = [x.rows, x.dim];
    let Some(floats) = x.floats_mut() else {
        return Ok(Some(PyArray2::zeros(py, shape, false)));
    };
    let view = ArrayViewMut2::from_shape(shape, floats)
        .map_err(|e| raise(py, &Error::new(ErrorKind::Internal, "hand over rows").got(e)))?;
    // SAFETY: `owner` is the array's base, so it outlives the array; nothing but this function
    // touches what it holds, so the memory is neither moved nor reached in another way.
    Ok(Some(unsafe { PyArray2::borrow_from_array(&view, owner.clone().into_any()) }))
}
