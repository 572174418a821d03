//! `tiergraph._native`: the engine as Python sees it. Conversions only, no logic.
//!
//! `python/tiergraph/_native.pyi` is the contract. Work that lasts runs with the GIL released
//! (module `calls`), so other Python threads go on and Ctrl-C stops it.

mod batch;
mod build;
mod calls;
mod check;
mod cut;
mod device;
mod errors;
mod free;
mod gpu_loader;
mod graph;
mod hetero;
mod info;
mod loader;
mod loader_options;
mod of_process;
mod panics;
mod planning;
mod reads;
mod rows;
mod sizes;

use pyo3::prelude::*;
use tiergraph_mem::LargeBlocks;

/// Results are large `Vec`s, whose memory the next run takes again.
#[global_allocator]
static MEMORY: LargeBlocks = LargeBlocks;

/// The module's contents, in the order of its contract.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::build::attach::add_to_graph;
    #[pymodule_export]
    use super::build::checksum::checksum_features;
    #[pymodule_export]
    use super::build::columns::choose_columns;
    #[pymodule_export]
    use super::build::components::Components;
    #[pymodule_export]
    use super::build::edge_reader::EdgeReader;
    #[pymodule_export]
    use super::build::lines::lines;
    #[pymodule_export]
    use super::build::names::Names;
    #[pymodule_export]
    use super::build::reorder::order_features;
    #[pymodule_export]
    use super::build::values::EdgeValues;
    #[pymodule_export]
    use super::build::{Builder, build_file, build_file_with_values, generate};
    #[pymodule_export]
    use super::check::{check_array, verify};
    #[pymodule_export]
    use super::cut::Cut;
    #[pymodule_export]
    use super::device::{add_library_folders, bench_gpu, cuda_devices};
    #[pymodule_export]
    use super::free::free_memory;
    #[pymodule_export]
    use super::gpu_loader::{GpuEpoch, GpuLoader};
    #[pymodule_export]
    use super::graph::checkpoints::LoopCheckpoints;
    #[pymodule_export]
    use super::graph::edges::EdgeBatches;
    #[pymodule_export]
    use super::graph::{Graph, open};
    #[pymodule_export]
    use super::hetero::{HeteroBuilding, hetero_info, is_hetero};
    #[pymodule_export]
    use super::loader::{Epoch, Loader};
    #[pymodule_export]
    use super::panics::panic;
    #[pymodule_export]
    use super::planning::{measured_job, plan, plan_passes};
    #[pymodule_export]
    use super::reads::drives::{drives, release_drive, write_drives};
    #[pymodule_export]
    use super::reads::gpu::GpuReadBench;
    #[pymodule_export]
    use super::reads::{bench_io, why_not};
    #[pymodule_export]
    use super::sizes::{format_size, parse_size, peak_rss_bytes};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        tiergraph_core::panics::keep();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
