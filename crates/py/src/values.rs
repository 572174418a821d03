//! Values of edges that Python pushes, batch by batch.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::ValueType;
use tiergraph_ingest::EdgeBatch;
use tiergraph_ingest::edges::{Column, EdgeAddition, NewColumn};

use crate::attach::{Given, edge_features};
use crate::calls::Call;
use crate::edges::{Ids, fill};
use crate::errors::{from_json, raise, to_json};
use crate::info::of_edges;

#[derive(Deserialize)]
struct Options {
    /// Names, and whether the values are floats or integers.
    columns: Vec<(String, Kind)>,
    memory: Option<u64>,
    overwrite: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    F32,
    I64,
}

/// A column of a batch.
#[derive(FromPyObject)]
enum Values<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// Takes the edges of a graph with their values, and adds these to it.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct EdgeValues {
    state: Mutex<State>,
}

struct State {
    /// None once it was finished or dropped.
    addition: Option<EdgeAddition>,
    batch: EdgeBatch,
}

#[pymethods]
impl EdgeValues {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, options_json: &str) -> PyResult<Self> {
        let begun = py.detach(|| {
            let options: Options = from_json(options_json)?;
            let existing = match options.overwrite {
                Some(true) => Existing::Replace,
                Some(false) | None => Existing::Refuse,
            };
            let columns = options.columns.into_iter().map(|(name, kind)| {
                let kind = match kind {
                    Kind::F32 => ValueType::F32,
                    Kind::I64 => ValueType::I64,
                };
                NewColumn { name, kind }
            });
            EdgeAddition::begin(&path, columns.collect(), existing, options.memory)
        });
        let addition = Some(begun.map_err(|e| raise(py, &e))?);
        let state = State { addition, batch: EdgeBatch::default() };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Takes the next edges, and a column for each that was announced.
    fn push(
        &self,
        py: Python<'_>,
        src: Ids<'_>,
        dst: Ids<'_>,
        columns: Vec<Values<'_>>,
    ) -> PyResult<()> {
        let mut locked = self.lock()?;
        let State { addition, batch } = &mut *locked;
        fill(py, batch, &src, &dst, None)?;
        let columns = columns
            .iter()
            .map(|column| match column {
                Values::F32(values) => values.as_slice().map(Column::F32),
                Values::I64(values) => values.as_slice().map(Column::I64),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let pushed = match addition {
            Some(addition) => py.detach(|| addition.push(batch, &columns)),
            None => Err(ended()),
        };
        pushed.map_err(|e| raise(py, &e))
    }

    /// Adds all that was pushed, and features of the edges; what the graph then has, as JSON.
    fn finish(
        &self,
        py: Python<'_>,
        given: Vec<Given>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let addition = self.lock()?.addition.take();
        let call = Arc::new(Call::new(progress));
        let manifest = call.run(py, || {
            let addition = addition.ok_or_else(ended)?;
            let features = edge_features(given, &call)?;
            addition.finish(features, &*call, &call.cancel)
        })?;
        to_json(&of_edges(&manifest))
    }

    /// Drops what was pushed.
    fn abort(&self) -> PyResult<()> {
        drop(self.lock()?.addition.take());
        Ok(())
    }
}

impl EdgeValues {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| PyRuntimeError::new_err("a call on these values panicked"))
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Input, "store values of edges").got("a call after the last")
}
