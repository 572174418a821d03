//! Measurements of rows that a GPU asks drives for: `bench/gpu/drives/drive_reads.py`.

use std::time::Duration;

use pyo3::prelude::*;
use tiergraph_gpu::{Device, speeds};
use tiergraph_io::gpu_reads::{BenchTable, GpuReadLoad};

use crate::calls::Call;
use crate::errors::{from_json, to_json};

/// Bytes of one copy over the link, and the time for which copies are measured.
const LINK_BYTES: usize = 256 << 20;
const LINK_TIME: Duration = Duration::from_millis(100);

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
        Call::new(None).run(py, || {
            let device = Device::open(self.ordinal)?;
            speeds::copy_to_device(&device, LINK_BYTES, LINK_TIME)
        })
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
