//! Attachments: what a graph stores beside its edges, added by the build or later.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{Addition, NewFiles, check_name};
use tiergraph_format::manifest::Manifest;
use tiergraph_mem::Budget;

use super::arrays::NewArray;
use super::place::OrderFile;
use super::store::NewFeatures;
use super::target::Target;

/// One thing to be stored with a graph's vertices.
pub enum Attachment {
    /// A matrix of features.
    Features(NewFeatures),
    /// Labels, or a split.
    Array(NewArray),
}

/// Everything to be stored with the vertices of one graph. Clones share it; it is used up by the
/// build, or by [`add`].
#[derive(Clone, Default)]
pub struct Attachments(Arc<Mutex<Vec<Attachment>>>);

impl Attachments {
    /// These attachments, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a name that no file can have, or that occurs twice.
    pub fn new(all: Vec<Attachment>) -> Result<Self> {
        let mut seen = Vec::new();
        for one in &all {
            let (kind, name) = match one {
                Attachment::Features(new) => ("features".to_string(), &new.name),
                Attachment::Array(new) => (new.role.to_string(), &new.name),
            };
            check_name(name)?;
            if seen.contains(&(kind.clone(), name)) {
                let error = Error::new(ErrorKind::Input, format!("store {kind}")).object(name);
                return Err(error.expected("each name once").got("it twice"));
            }
            seen.push((kind, name));
        }
        Ok(Self(Arc::new(Mutex::new(all))))
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The number of vertices that they are for; `None` if it is not known without reading them.
    pub(crate) fn rows(&self) -> Result<Option<u64>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in all.iter_mut() {
            let rows = match one {
                Attachment::Features(new) => new.source.shape()?.rows,
                Attachment::Array(new) => new.rows(),
            };
            if rows.is_some() {
                return Ok(rows);
            }
        }
        Ok(None)
    }

    /// Fails for what cannot belong to a graph of `vertices` vertices, as far as it is known without
    /// reading it all.
    pub(crate) fn check(&self, vertices: usize) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter_mut().try_for_each(|one| match one {
            Attachment::Features(new) => new.check(vertices as u64),
            Attachment::Array(new) => new.check(vertices as u64),
        })
    }

    /// Writes all of them to `target`, which uses them up.
    pub(crate) fn write(
        &self,
        target: &mut Target<'_>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<NewFiles> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut new = NewFiles::default();
        for one in all {
            let NewFiles { files, features, edge_features: _, sources } = match one {
                Attachment::Features(features) => features.write(target, progress, cancel)?,
                Attachment::Array(array) => array.write(target, cancel)?,
            };
            new.files.extend(files);
            new.features.extend(features);
            new.sources.extend(sources);
        }
        Ok(new)
    }
}

impl fmt::Debug for Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "{} attachments", all.len())
    }
}

/// Adds features, labels and splits to the graph at `path`, in `memory` bytes (half of what is
/// available by default): all of them or, after an error, none.
///
/// The graph stays open to readers, who see what they opened. Rows and arrays are in the user's
/// order: the i-th belongs to the i-th smallest id.
///
/// # Errors
/// The sources'; input errors for what does not belong to this graph, and for a name that it has
/// unless `existing` says to replace it; a budget error; I/O errors.
pub fn add(
    path: &Path,
    attachments: &Attachments,
    existing: Existing,
    memory: Option<u64>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Manifest> {
    let mut addition = Addition::begin(path, existing)?;
    let budget = Budget::of(memory)?;
    let (vertices, block_bytes) = {
        let manifest = addition.dir().manifest();
        (manifest.vertices, manifest.block_bytes)
    };
    let order = order_of(addition.dir());
    let to = &mut addition;
    let mut target = Target { to, vertices, block_bytes, order, budget: &budget };
    let new = attachments.write(&mut target, progress, cancel)?;
    Ok(addition.commit(new)?.manifest().clone())
}

/// The file of the graph's order of vertices; `None` if it is the user's.
pub(crate) fn order_of(dir: &GraphDir) -> Option<OrderFile> {
    const ORDER: &str = "order.ids";
    let entry = dir.manifest().files.get(ORDER)?.clone();
    let wide = entry.bytes == dir.manifest().vertices * 8;
    Some(OrderFile { path: dir.path().join(ORDER), entry, wide })
}
