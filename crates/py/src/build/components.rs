//! Connected components of pairs that Python hands over, or of files.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_ingest::EdgeBatch;
use tiergraph_ingest::components::{Components as Pairs, Found, FoundKeys};
use tiergraph_ingest::source::open_all;
use tiergraph_mem::{Budget, Reservation};

use super::edges::{self, Ids};
use super::names::Names;
use super::open_options;
use super::options::Options;
use crate::calls::Call;
use crate::errors::from_json;

/// Bytes that the process takes beside what is counted.
const PROCESS_BYTES: u64 = 24 << 20;

/// Components of the pairs so far.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Components {
    pairs: Mutex<Option<Pairs>>,
    names: Option<tiergraph_ingest::Names>,
    call: Call,
    /// The reservation for the process, and for pairs on their way.
    _held: Reservation,
}

/// The option that says what pairs hold on their way from Python.
#[derive(Deserialize)]
struct OnTheirWay {
    held_bytes: Option<u64>,
}

type Keys<'py> = (Option<Bound<'py, PyArray1<u64>>>, Option<Bound<'py, PyArray1<u8>>>);

#[pymethods]
impl Components {
    #[new]
    fn new(
        py: Python<'_>,
        options_json: &str,
        names: Option<PyRef<'_, Names>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let names = names.map(|names| names.0.clone());
        let call = Call::new(progress);
        let (pairs, held) = call.run(py, || {
            let options: Options = from_json(options_json)?;
            let OnTheirWay { held_bytes } = from_json(options_json)?;
            let budget = Budget::of(options.memory)?;
            let bytes = PROCESS_BYTES.min(budget.limit() / 2) + held_bytes.unwrap_or(0);
            let held = budget.reserve(bytes, "the process, and pairs on their way")?;
            Ok((Pairs::new(names.clone(), options.threads(), &budget)?, held))
        })?;
        Ok(Self { pairs: Mutex::new(Some(pairs)), names, call, _held: held })
    }

    /// Adds pairs of ids, or of numbers of names.
    fn add(&self, py: Python<'_>, src: Ids<'_>, dst: Ids<'_>) -> PyResult<()> {
        let mut batch = EdgeBatch::default();
        edges::fill(py, &mut batch, &src, &dst, None)?;
        self.call.run(py, || self.with(|pairs| pairs.add(&batch)))
    }

    /// Adds the pairs of files.
    fn add_files(&self, py: Python<'_>, paths: Vec<PathBuf>, options_json: &str) -> PyResult<()> {
        self.call.run(py, || {
            let options: Options = from_json(options_json)?;
            let how = open_options(options_json, &options, self.names.clone())?;
            let mut source = open_all(&paths, &how)?;
            self.with(|pairs| pairs.add_source(&mut *source, &self.call.cancel))
        })
    }

    /// Ids, or names (text, and where each ends), the place of each one's least, and counts: pairs, components,
    /// the largest.
    #[expect(clippy::type_complexity, reason = "Python takes it apart")]
    fn finish<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Keys<'py>,
        Option<Bound<'py, PyArray1<u64>>>,
        Bound<'py, PyArray1<u32>>,
        (u64, u64, u64),
    )> {
        let found: Found = self.call.run(py, || {
            let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner).take();
            pairs.map(Pairs::finish).ok_or_else(ended)
        })?;
        let (ids, text, ends) = match found.keys {
            FoundKeys::Ids(ids) => (Some(ids.into_pyarray(py)), None, None),
            FoundKeys::Names(text, ends) => {
                (None, Some(text.into_pyarray(py)), Some(ends.into_pyarray(py)))
            }
        };
        let counts = (found.pairs, found.components, found.largest);
        Ok(((ids, text), ends, found.least.into_pyarray(py), counts))
    }
}

impl Components {
    fn with(&self, add: impl FnOnce(&mut Pairs) -> Result<()>) -> Result<()> {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        add(pairs.as_mut().ok_or_else(ended)?)
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Input, "find components").expected("one end").got("two")
}
