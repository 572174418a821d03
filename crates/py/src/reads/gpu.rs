//! Measurements of rows that a GPU asks drives for: `bench/gpu/drives/drive_reads.py`.

use pyo3::prelude::*;
use tiergraph_io::gpu_reads::{BenchTable, GpuReadLoad, link_bandwidth};

use crate::calls::Call;
use crate::errors::{from_json, to_json};

/// A table in host memory, whose rows software controllers give to a GPU.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct GpuReadBench {
    table: BenchTable,
    ordinal: usize,
}

#[pymethods]
impl GpuReadBench {
    #[new]
    fn new(py: Python<'_>, table_bytes: u64, ordinal: usize) -> PyResult<Self> {
        let table = Call::new(None).run(py, || BenchTable::new(table_bytes))?;
        Ok(Self { table, ordinal })
    }

    /// Bytes a second that are copied from pinned host memory to the GPU.
    fn link(&self, py: Python<'_>) -> PyResult<f64> {
        Call::new(None).run(py, || link_bandwidth(self.ordinal))
    }

    /// Measures how many rows a second the GPU reads; takes a load and gives a rate, as JSON.
    fn measure(&self, py: Python<'_>, load_json: &str) -> PyResult<String> {
        let measured = Call::new(None).run(py, || {
            let load: GpuReadLoad = from_json(load_json)?;
            self.table.measure(self.ordinal, &load)
        })?;
        to_json(py, &measured)
    }
}
