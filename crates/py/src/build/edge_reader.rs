//! An iterator over the edges of a file, for Python to pair with their values.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tiergraph_core::{Error, ErrorKind};
use tiergraph_ingest::source::open_all;
use tiergraph_ingest::{EdgeBatch, EdgeSource, Endpoints};

use super::names::Names;
use super::options::Options;
use crate::build::open_options;
use crate::errors::{detached, from_json};

/// An iterator over the edges of a file in batches, in the order in which a build numbers them.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct EdgeReader(Mutex<Box<dyn EdgeSource>>);

#[pymethods]
impl EdgeReader {
    #[new]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        options_json: &str,
        names: Option<PyRef<'_, Names>>,
    ) -> PyResult<Self> {
        let names = names.map(|names| names.0.clone());
        let opened = detached(py, || {
            let options: Options = from_json(options_json)?;
            open_all(&paths, &open_options(options_json, &options, names)?)
        });
        opened.map(|source| Self(Mutex::new(source)))
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next batch, `(src, dst)` or `(src, dst, weights)`; None after the last.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut batch = EdgeBatch::default();
        let read = detached(py, || match self.0.lock() {
            Ok(mut source) => source.next_batch(&mut batch),
            Err(_) => Err(Error::new(ErrorKind::Input, "read edges").got("a panic before")),
        });
        if !read? {
            return Ok(None);
        }
        let [src, dst] = match batch.ends {
            Endpoints::U32 { src, dst } => {
                [src.into_pyarray(py).into_any(), dst.into_pyarray(py).into_any()]
            }
            Endpoints::U64 { src, dst } => {
                [src.into_pyarray(py).into_any(), dst.into_pyarray(py).into_any()]
            }
        };
        let weights = batch.weights.map(|weights| weights.into_pyarray(py).into_any());
        PyTuple::new(py, [src, dst].into_iter().chain(weights).collect::<Vec<_>>()).map(Some)
    }
}
