//! The NVMe drives of this machine, and graphs on them.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use tiergraph_graph::write_to_drives;
use tiergraph_io::RawDrives;
use tiergraph_nvme::pci::{Driver, PciDevice};

use crate::calls::Call;
use crate::errors::to_json;

/// The NVMe drives of this machine, as JSON.
#[pyfunction]
pub(crate) fn drives(py: Python<'_>) -> PyResult<String> {
    let describe = |device: &PciDevice| {
        let driver = match device.driver() {
            Driver::None => "none".to_owned(),
            Driver::Kernel => "nvme".to_owned(),
            Driver::Vfio => "vfio-pci".to_owned(),
            Driver::Other(name) => name,
        };
        json!({
            "address": device.address().to_string(),
            "model": device.model(),
            "bytes": device.bytes(),
            "driver": driver,
            "devices": device.block_devices(),
            "partitions": device.partitions(),
            "why_not": device.claim().err().map(|error| error.to_string()),
        })
    };
    to_json(py, &PciDevice::all().iter().map(describe).collect::<Vec<_>>())
}

/// Writes the graph at `path` to the drives at `addresses`, or with these devices; returns the bytes written.
#[pyfunction]
pub(crate) fn write_drives(
    py: Python<'_>,
    path: PathBuf,
    addresses: Vec<String>,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let call = Call::new(progress);
    call.run(py, || {
        let drives = RawDrives::to_be_written(&addresses)?;
        write_to_drives(&path, drives, force, &call, &call.cancel)
    })
}

/// Gives the drive at `address` to the kernel's driver.
#[pyfunction]
pub(crate) fn release_drive(py: Python<'_>, address: &str) -> PyResult<()> {
    Call::new(None).run(py, || PciDevice::at(address.parse()?)?.give_back())
}
