//! The choice of columns in tables that Python reads, by the rules for tables of text.

use pyo3::prelude::*;
use tiergraph_ingest::source::columns::{Asked, Kind, Table};

use crate::errors::{from_json, raise, to_json};

/// Chooses among the columns of the table `path`, as JSON; `table_json` has their kinds and the wishes.
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
