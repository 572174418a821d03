//! Feature rows and edges as NumPy arrays without copies, which keep their share of the budget reserved.
#![allow(unsafe_code)]

use std::sync::Arc;

use numpy::PyArray2;
use numpy::ndarray::ArrayViewMut2;
use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind};
use tiergraph_mem::Reservation;
use tiergraph_sampler::Held;

use crate::errors::raise;

/// The base object of an array of features: it owns their memory and its share of the graph's budget,
/// and frees both when the last array or tensor over it goes.
#[pyclass(module = "tiergraph._native")]
struct Rows(Held);

/// Features as a float32 array of shape (rows, D), on whole pages without a copy; `None` if `held` is.
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

/// The base object of an array of edges: it owns their memory, and the batch's share of the budget.
#[pyclass(module = "tiergraph._native")]
struct Index {
    ends: Vec<i64>,
    _held: Arc<Reservation>,
}

/// Edges as the array `edge_index`, int64 of shape (2, edges): the batch counts in the graph's budget as
/// long as this array, or the batch's features, live.
pub(crate) fn to_index(
    py: Python<'_>,
    ends: Vec<i64>,
    edges: usize,
    held: Arc<Reservation>,
) -> PyResult<Bound<'_, PyArray2<i64>>> {
    if edges == 0 {
        return Ok(PyArray2::zeros(py, [2, 0], false));
    }
    let owner = Bound::new(py, Index { ends, _held: held })?;
    let mut index = owner.borrow_mut();
    let view = ArrayViewMut2::from_shape([2, edges], &mut index.ends)
        .map_err(|e| raise(py, &Error::new(ErrorKind::Internal, "hand over edges").got(e)))?;
    // SAFETY: `owner` is the array's base, so it outlives the array; nothing but this function
    // touches what it holds, so the memory is neither moved nor reached in another way.
    Ok(unsafe { PyArray2::borrow_from_array(&view, owner.clone().into_any()) })
}
