//! Values of edges, which Python pushes in batches with the edges.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use serde::Deserialize;
use serde_json::Value;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::ValueType;
use tiergraph_format::features::Addition;
use tiergraph_ingest::EdgeBatch;
use tiergraph_ingest::build::{Assembly, Unfinished};
use tiergraph_ingest::edges::{Column, EdgeAddition, NewColumn, NodeTimes};
use tiergraph_mem::Budget;

use super::attach::{Given, edge_features};
use super::edges::{Ids, fill};
use super::names::Names;
use crate::calls::Call;
use crate::errors::{detached, from_json, raise, spoilt, to_json};
use crate::info::of_edges;

#[derive(Deserialize)]
struct Options {
    /// The name of each column, and whether its values are floats or integers.
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

/// Arrays of vertices' times by name, in the user's order.
pub(crate) type Times<'py> = Vec<(String, PyReadonlyArray1<'py, i64>)>;

/// Copies of `all`, which the build keeps.
pub(crate) fn to_times(all: Times<'_>) -> PyResult<Vec<NodeTimes>> {
    let held = |(name, times): (String, PyReadonlyArray1<'_, i64>)| {
        Ok(NodeTimes { name, times: times.as_slice()?.to_vec() })
    };
    all.into_iter().map(held).collect()
}

/// A column of a batch: one value for each of its edges.
#[derive(FromPyObject)]
enum Values<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// Stores values with a graph: takes the graph's edges once more, batch by batch, with their values.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct EdgeValues {
    state: Mutex<State>,
}

struct State {
    /// `None` once it was finished or aborted.
    addition: Option<EdgeAddition>,
    /// The report of the build that these values complete; `None` for a graph that was there.
    report: Option<Unfinished>,
    batch: EdgeBatch,
}

impl Options {
    fn columns(self) -> Vec<NewColumn> {
        let column = |(name, kind)| {
            let kind = match kind {
                Kind::F32 => ValueType::F32,
                Kind::I64 => ValueType::I64,
            };
            NewColumn { name, kind }
        };
        self.columns.into_iter().map(column).collect()
    }
}

#[pymethods]
impl EdgeValues {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options_json: &str,
        node_times: Times<'_>,
        names: Option<PyRef<'_, Names>>,
    ) -> PyResult<Self> {
        let times = to_times(node_times)?;
        let budget = names.and_then(|names| names.0.budget());
        let begun = detached(py, || {
            let options: Options = from_json(options_json)?;
            let existing = match options.overwrite {
                Some(true) => Existing::Replace,
                Some(false) | None => Existing::Refuse,
            };
            let budget = match budget {
                Some(budget) => budget,
                None => Budget::of(options.memory)?,
            };
            let addition = Box::new(Addition::begin(&path, existing)?);
            EdgeAddition::to(addition, options.columns(), times, &budget)
        });
        Ok(Self::begun(begun?, None))
    }

    /// Takes the next edges, and a column of values for each column that was announced.
    fn push(
        &self,
        py: Python<'_>,
        src: Ids<'_>,
        dst: Ids<'_>,
        columns: Vec<Values<'_>>,
    ) -> PyResult<()> {
        let mut locked = self.lock(py)?;
        let State { addition, batch, .. } = &mut *locked;
        fill(py, batch, &src, &dst, None)?;
        let columns = columns
            .iter()
            .map(|column| match column {
                Values::F32(values) => values.as_slice().map(Column::F32),
                Values::I64(values) => values.as_slice().map(Column::I64),
            })
            .collect::<std::result::Result<Vec<_>, _>>()?;
        match addition {
            Some(addition) => detached(py, || addition.push(batch, &columns)),
            None => Err(raise(py, &ended())),
        }
    }

    /// Stores all that was pushed, and features of the edges. Returns the graph's values and features as
    /// JSON, with the statistics of the build that they complete, if any.
    fn finish(
        &self,
        py: Python<'_>,
        given: Vec<Given>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let (addition, report) = {
            let mut state = self.lock(py)?;
            (state.addition.take(), state.report.take())
        };
        let call = Arc::new(Call::new(progress));
        let manifest = call.run(py, || {
            let addition = addition.ok_or_else(ended)?;
            let features = edge_features(given, &call)?;
            addition.finish(features, &*call, &call.cancel)
        })?;
        let mut stored = of_edges(&manifest);
        if let (Value::Object(all), Some(report)) = (&mut stored, report)
            && let Ok(Value::Object(report)) =
                serde_json::to_value(report.finish(&manifest).map_err(|e| raise(py, &e))?)
        {
            all.extend(report);
        }
        to_json(py, &stored)
    }

    /// Drops all that was pushed.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        drop(self.lock(py)?.addition.take());
        Ok(())
    }
}

impl EdgeValues {
    /// Begins to take the edges of a graph that was built but not committed once more, with values for the
    /// options' `columns`; other options are ignored.
    pub(crate) fn of(
        assembly: Assembly,
        options_json: &str,
        node_times: Vec<NodeTimes>,
    ) -> Result<Self> {
        let options: Options = from_json(options_json)?;
        let (addition, report) = assembly.with_values(options.columns(), node_times)?;
        Ok(Self::begun(addition, Some(report)))
    }

    fn begun(addition: EdgeAddition, report: Option<Unfinished>) -> Self {
        let state = State { addition: Some(addition), report, batch: EdgeBatch::default() };
        Self { state: Mutex::new(state) }
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        self.state.lock_py_attached(py).map_err(|_| spoilt(py, "the values of edges"))
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Input, "store values of edges").got("a call after the last")
}
