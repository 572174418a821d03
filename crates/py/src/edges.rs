//! NumPy's columns as a batch of edges.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use tiergraph_ingest::EdgeBatch;

/// Fills `batch` from uint64 columns, 32 bits wide where every id fits.
pub(crate) fn fill(
    batch: &mut EdgeBatch,
    src: &PyReadonlyArray1<'_, u64>,
    dst: &PyReadonlyArray1<'_, u64>,
    weights: Option<&PyReadonlyArray1<'_, f64>>,
) -> PyResult<()> {
    let (src, dst) = (src.as_slice()?, dst.as_slice()?);
    let narrow = |ids: &[u64]| ids.iter().all(|&id| id <= u64::from(u32::MAX));
    if narrow(src) && narrow(dst) {
        let (to_src, to_dst) = batch.as_u32_mut();
        to_src.extend(src.iter().map(|&id| id as u32));
        to_dst.extend(dst.iter().map(|&id| id as u32));
    } else {
        let (to_src, to_dst) = batch.as_u64_mut();
        to_src.extend_from_slice(src);
        to_dst.extend_from_slice(dst);
    }
    match weights {
        Some(weights) => {
            batch.weights.get_or_insert_default().extend_from_slice(weights.as_slice()?);
        }
        None => batch.weights = None,
    }
    Ok(())
}
