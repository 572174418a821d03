//! Arrays of numbers as lines of text.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tiergraph_ingest::lines::{Column, lines as text_of};

/// A column of numbers, as NumPy has them.
#[derive(FromPyObject)]
pub(crate) enum Numbers<'py> {
    Unsigned(PyReadonlyArray1<'py, u64>),
    Signed(PyReadonlyArray1<'py, i64>),
    Float(PyReadonlyArray1<'py, f64>),
}

impl Numbers<'_> {
    fn column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            Self::Unsigned(values) => Column::Unsigned(values.as_slice()?),
            Self::Signed(values) => Column::Signed(values.as_slice()?),
            Self::Float(values) => Column::Float(values.as_slice()?),
        })
    }
}

/// The rows of `columns` as text: numbers apart by `separator`, a line a row.
#[pyfunction]
pub(crate) fn lines<'py>(
    py: Python<'py>,
    columns: Vec<Numbers<'py>>,
    separator: char,
) -> PyResult<Bound<'py, PyBytes>> {
    let columns = columns.iter().map(Numbers::column).collect::<PyResult<Vec<_>>>()?;
    let text = py.detach(|| text_of(&columns, separator));
    Ok(PyBytes::new(py, text.as_bytes()))
}
