//! The columns of tables that Python reads, chosen as those of text are.

use pyo3::prelude::*;
use tiergraph_ingest::source::columns::{Asked, Kind, Table};

use crate::errors::{from_json, raise, to_json};

/// Chooses among the columns of the table `path`; `table_json` has their kinds and what is asked for.
#[pyfunction]
pub(crate) fn choose_columns(
    py: Python<'_>,
    path: &str,
    names: Vec<String>,
    table_json: &str,
) -> PyResult<String> {
    let chosen = from_json(table_json).and_then(|(kinds, asked): (Vec<Kind>, Asked)| {
        Table { path, names: &names, kinds: &kinds, third_is_weight: false }.choose(&asked)
    });
    to_json(py, &chosen.map_err(|e| raise(py, &e))?)
}
