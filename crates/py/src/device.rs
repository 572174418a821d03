//! The device that a graph's algorithms run on: the CPU, or a GPU.

use std::path::PathBuf;

use pyo3::prelude::*;
use tiergraph_analytics::gpu::{Gpu, GpuOptions, Transfers};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::{Device, search_libraries_in, speeds};

use crate::calls::Call;
use crate::errors::to_json;
use crate::reads::duration;

/// The user's choice of a device, and how a GPU is used.
#[derive(FromPyObject)]
pub(crate) struct DeviceOptions {
    /// The device: `cpu`, `cuda` or `cuda:N`. (Python has resolved `auto`.)
    #[pyo3(item)]
    device: String,
    #[pyo3(item)]
    memory: Option<u64>,
    /// The way blocks reach a GPU: `async`, `sync` or `direct`.
    #[pyo3(item)]
    transfers: String,
    #[pyo3(item)]
    residency: bool,
    #[pyo3(item)]
    checksums: bool,
}

impl DeviceOptions {
    /// Whether blocks that are read are compared with their checksums.
    pub(crate) fn checksums(&self) -> bool {
        self.checksums
    }

    /// Opens the chosen GPU; `None` for the CPU.
    pub(crate) fn open(&self) -> Result<Option<Gpu>> {
        let ordinal = match self.device.as_str() {
            "cpu" => return Ok(None),
            "cuda" => 0,
            other => other.strip_prefix("cuda:").and_then(|n| n.parse().ok()).ok_or_else(|| {
                Error::new(ErrorKind::Input, "run on device")
                    .object(other)
                    .expected("`cpu`, `cuda`, `cuda:N` or `auto`")
            })?,
        };
        let transfers = match self.transfers.as_str() {
            "async" => Transfers::Asynchronous,
            "sync" => Transfers::Synchronous,
            "direct" => Transfers::Direct,
            other => {
                return Err(Error::new(ErrorKind::Input, "use transfers")
                    .object(other)
                    .expected("`async`, `sync` or `direct`"));
            }
        };
        let (memory, residency, checksums) = (self.memory, self.residency, self.checksums);
        Gpu::open(GpuOptions { ordinal, memory, transfers, residency, checksums }).map(Some)
    }
}

/// Adds folders in which NVIDIA's libraries are looked for.
#[pyfunction]
pub(crate) fn add_library_folders(folders: Vec<PathBuf>) {
    search_libraries_in(folders);
}

/// What a GPU and its link give bare, measured on tables of `bytes`, as JSON.
#[pyfunction]
pub(crate) fn bench_gpu(
    py: Python<'_>,
    ordinal: usize,
    bytes: usize,
    seconds: f64,
) -> PyResult<String> {
    let work = || speeds::measure(&Device::open(ordinal)?, bytes, duration(seconds)?);
    to_json(py, &Call::new(None).run(py, work)?)
}

/// Every GPU of the machine: its name, its architecture, bytes of free memory and of all memory.
#[pyfunction]
pub(crate) fn cuda_devices(py: Python<'_>) -> PyResult<Vec<(String, String, u64, u64)>> {
    let describe = |ordinal| -> Result<_> {
        let device = Device::open(ordinal)?;
        let memory = device.memory()?;
        let (name, architecture) = (device.name().to_owned(), device.architecture().to_string());
        Ok((name, architecture, memory.free, memory.total))
    };
    let all = || -> Result<Vec<_>> { (0..Device::count()?).map(describe).collect() };
    Call::new(None).run(py, all)
}
