//! NumPy's columns as a batch of edges: each id is cast once, from the caller's memory.

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind};
use tiergraph_ingest::EdgeBatch;

use crate::errors::raise;

/// A column of vertex ids, of any integer type that columnar files have.
#[derive(FromPyObject)]
pub(crate) enum Ids<'py> {
    U32(PyReadonlyArray1<'py, u32>),
    I64(PyReadonlyArray1<'py, i64>),
    U64(PyReadonlyArray1<'py, u64>),
    I32(PyReadonlyArray1<'py, i32>),
}

/// An integer type of ids.
trait Id: Element + Copy {
    const SIGNED: bool;

    /// The id in 64 bits, sign-extended, so that the highest bit is set if it is negative.
    fn widened(self) -> u64;
}

impl Id for u32 {
    const SIGNED: bool = false;

    fn widened(self) -> u64 {
        self.into()
    }
}

impl Id for i32 {
    const SIGNED: bool = true;

    fn widened(self) -> u64 {
        i64::from(self) as u64
    }
}

impl Id for u64 {
    const SIGNED: bool = false;

    fn widened(self) -> u64 {
        self
    }
}

impl Id for i64 {
    const SIGNED: bool = true;

    fn widened(self) -> u64 {
        self as u64
    }
}

/// Fills `batch` from columns of ids, which become 32 bits wide if all fit.
pub(crate) fn fill(
    py: Python<'_>,
    batch: &mut EdgeBatch,
    src: &Ids<'_>,
    dst: &Ids<'_>,
    weights: Option<&PyReadonlyArray1<'_, f64>>,
) -> PyResult<()> {
    let bits = src.bits(py, "src")? | dst.bits(py, "dst")?;
    if bits <= u64::from(u32::MAX) {
        let (to_src, to_dst) = batch.as_u32_mut();
        src.extend(to_src, |id| id as u32)?;
        dst.extend(to_dst, |id| id as u32)?;
    } else {
        let (to_src, to_dst) = batch.as_u64_mut();
        src.extend(to_src, |id| id)?;
        dst.extend(to_dst, |id| id)?;
    }
    match weights {
        Some(weights) => {
            batch.weights.get_or_insert_default().extend_from_slice(weights.as_slice()?);
        }
        None => batch.weights = None,
    }
    Ok(())
}

impl Ids<'_> {
    /// The bits that are set in any id; an error if one is negative.
    fn bits(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        match self {
            Self::U32(ids) => bits(py, ids.as_slice()?, name),
            Self::I64(ids) => bits(py, ids.as_slice()?, name),
            Self::U64(ids) => bits(py, ids.as_slice()?, name),
            Self::I32(ids) => bits(py, ids.as_slice()?, name),
        }
    }

    fn extend<T>(&self, to: &mut Vec<T>, cast: impl Fn(u64) -> T) -> PyResult<()> {
        match self {
            Self::U32(ids) => to.extend(ids.as_slice()?.iter().map(|id| cast(id.widened()))),
            Self::I64(ids) => to.extend(ids.as_slice()?.iter().map(|id| cast(id.widened()))),
            Self::U64(ids) => to.extend(ids.as_slice()?.iter().map(|id| cast(id.widened()))),
            Self::I32(ids) => to.extend(ids.as_slice()?.iter().map(|id| cast(id.widened()))),
        }
        Ok(())
    }
}

/// The bits that are set in any id, by one pass without branches; an error if one is negative.
fn bits<T: Id>(py: Python<'_>, ids: &[T], name: &str) -> PyResult<u64> {
    let bits = ids.iter().fold(0, |bits, id| bits | id.widened());
    if !T::SIGNED || bits >> 63 == 0 {
        return Ok(bits);
    }
    let negative = ids.iter().map(|id| id.widened() as i64).enumerate().find(|(_, id)| *id < 0);
    let (at, id) = negative.unwrap_or_default();
    let error = Error::new(ErrorKind::Input, "use")
        .object(name)
        .expected("vertex ids of 0 or more")
        .got(format!("{id} at position {at}"));
    Err(raise(py, &error))
}
