//! Features, labels and splits that Python passes to be stored, as paths of files or as iterators.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::Existing;
use tiergraph_format::features::{ArrayRole, FeatureType};
use tiergraph_ingest::features::{
    Attachment, Attachments, NewArray, NewFeatures, NotFinite, NpyRows, RowSource, Shape, add,
};

use crate::calls::Call;
use crate::errors::{from_json, to_json};
use crate::info::attached;

/// An array to be stored: its description as JSON, and a path or an iterator over its parts; or such an iterator and
/// the position of the vertex of each row.
pub(crate) type Given = (String, Py<PyAny>);

#[derive(Deserialize)]
struct Description {
    role: Role,
    name: String,
    source: String,
    dtype: Option<FeatureType>,
    /// The number of rows, where the maker of an iterator knows it.
    rows: Option<u64>,
    #[serde(default)]
    allow_nan: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Features,
    Labels,
    Split,
}

#[derive(Deserialize)]
struct AddOptions {
    memory: Option<u64>,
    overwrite: Option<bool>,
}

/// Adds features, labels and splits to a graph; returns all that the graph then has, as JSON.
#[pyfunction]
#[pyo3(name = "add")]
pub(crate) fn add_to_graph(
    py: Python<'_>,
    path: PathBuf,
    options_json: &str,
    given: Vec<Given>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let call = Arc::new(Call::new(progress));
    let manifest = call.run(py, || {
        let options: AddOptions = from_json(options_json)?;
        let existing = match options.overwrite {
            Some(true) => Existing::Replace,
            Some(false) | None => Existing::Refuse,
        };
        let all = attachments(given, &call)?;
        add(&path, &all, existing, options.memory, &*call, &call.cancel)
    })?;
    to_json(py, &attached(&manifest))
}

/// Opens the features, labels and splits that Python passed.
pub(crate) fn attachments(given: Vec<Given>, call: &Arc<Call>) -> Result<Attachments> {
    let open = |(text, source): Given| {
        let d: Description = from_json(&text)?;
        let path = Python::attach(|py| source.extract::<PathBuf>(py).ok());
        match d.role {
            Role::Features => features(d, path, source, call).map(Attachment::Features),
            Role::Labels => array(ArrayRole::Labels, d, path, source, call).map(Attachment::Array),
            Role::Split => array(ArrayRole::Split, d, path, source, call).map(Attachment::Array),
        }
    };
    Attachments::new(given.into_iter().map(open).collect::<Result<_>>()?)
}

/// Opens the features of edges that Python passed.
pub(crate) fn edge_features(given: Vec<Given>, call: &Arc<Call>) -> Result<Vec<NewFeatures>> {
    let open = |(text, source): Given| {
        let path = Python::attach(|py| source.extract::<PathBuf>(py).ok());
        features(from_json(&text)?, path, source, call)
    };
    given.into_iter().map(open).collect()
}

fn features(
    d: Description,
    path: Option<PathBuf>,
    batches: Py<PyAny>,
    call: &Arc<Call>,
) -> Result<NewFeatures> {
    let keyed = Python::attach(|py| {
        let (batches, positions) =
            batches.extract::<(Py<PyAny>, PyReadonlyArray1<'_, u32>)>(py).ok()?;
        Some((batches, positions.as_slice().ok()?.to_vec()))
    });
    let (batches, positions) = match keyed {
        Some((batches, positions)) => (batches, Some(positions)),
        None => (batches, None),
    };
    let source: Box<dyn RowSource> = match path {
        Some(path) => Box::new(NpyRows::open(&path)?),
        None => Box::new(Batches {
            described: d.source,
            batches,
            rows: d.rows,
            dim: None,
            first: None,
            call: Arc::clone(call),
        }),
    };
    let (dtype, not_finite) = (d.dtype.unwrap_or_default(), not_finite(d.allow_nan));
    Ok(NewFeatures { name: d.name, dtype, not_finite, rows: None, positions, source })
}

fn array(
    role: ArrayRole,
    d: Description,
    path: Option<PathBuf>,
    pieces: Py<PyAny>,
    call: &Arc<Call>,
) -> Result<NewArray> {
    let mut new = match path {
        Some(path) => NewArray::new(role, &d.name, d.source, open(&path)?)?,
        None => {
            let call = Arc::clone(call);
            NewArray::new(
                role,
                &d.name,
                d.source,
                Pieces { pieces, piece: Vec::new(), read: 0, call },
            )?
        }
    };
    new.not_finite = not_finite(d.allow_nan);
    Ok(new)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| Error::io("open", path.display(), e))
}

fn not_finite(allow_nan: bool) -> NotFinite {
    if allow_nan { NotFinite::Keep } else { NotFinite::Refuse }
}

/// The next item of `iterator`; `None` after the last. An exception that it raises stops the call.
fn next<T>(
    iterator: &Py<PyAny>,
    call: &Call,
    convert: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Result<Option<T>> {
    Python::attach(|py| {
        let item = iterator.bind(py).try_iter().and_then(|mut items| items.next().transpose());
        item.and_then(|item| item.map(|item| convert(&item)).transpose()).map_err(|raised| {
            call.stop(raised);
            Error::new(ErrorKind::Interrupted, "read the next batch")
        })
    })
}

/// A source of feature rows: an iterator over two-dimensional float32 arrays.
struct Batches {
    described: String,
    batches: Py<PyAny>,
    rows: Option<u64>,
    dim: Option<usize>,
    /// The first batch, read to learn its width and not taken yet.
    first: Option<Vec<f32>>,
    call: Arc<Call>,
}

impl Batches {
    fn next(&mut self) -> Result<Option<Vec<f32>>> {
        let next = next(&self.batches, &self.call, |batch| {
            let batch = batch.extract::<PyReadonlyArray2<'_, f32>>()?;
            Ok((batch.as_slice()?.to_vec(), batch.shape()[1]))
        })?;
        let Some((values, dim)) = next else { return Ok(None) };
        if *self.dim.get_or_insert(dim) != dim {
            return Err(Error::new(ErrorKind::Input, "store the features of")
                .object(&self.described)
                .expected("batches of one width")
                .got(format!("one of {dim} columns")));
        }
        Ok(Some(values))
    }
}

impl RowSource for Batches {
    fn describe(&self) -> String {
        self.described.clone()
    }

    fn shape(&mut self) -> Result<Shape> {
        if self.dim.is_none() {
            self.first = self.next()?;
        }
        let dim = self.dim.ok_or_else(|| {
            Error::new(ErrorKind::Input, "store the features of")
                .object(&self.described)
                .expected("batches of rows")
                .got("none")
        })?;
        Ok(Shape { rows: self.rows, dim })
    }

    fn next_rows(&mut self, values: &mut Vec<f32>) -> Result<bool> {
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => self.next()?,
        };
        let more = next.is_some();
        *values = next.unwrap_or_default();
        Ok(more)
    }
}

/// A reader of an iterator over pieces of a file's bytes.
struct Pieces {
    pieces: Py<PyAny>,
    piece: Vec<u8>,
    read: usize,
    call: Arc<Call>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            let bytes = |item: &Bound<'_, PyAny>| Ok(item.cast::<PyBytes>()?.as_bytes().to_vec());
            match next(&self.pieces, &self.call, bytes).map_err(io::Error::other)? {
                Some(piece) => (self.piece, self.read) = (piece, 0),
                None => return Ok(0),
            }
        }
        let count = (&self.piece[self.read..]).read(buffer)?;
        self.read += count;
        Ok(count)
    }
}
