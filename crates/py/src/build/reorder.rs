//! Feature rows in another order: by presampling or by degree.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, Graph, OpenOptions};
use tiergraph_ingest::features::{RowOrder, relay};
use tiergraph_sampler::pipeline::reorder::by_degree;
use tiergraph_sampler::{Loader, LoaderOptions, ReorderedRows, Residency};

use crate::calls::Call;
use crate::errors::{from_json, to_json};
use crate::loader_options::Options;

#[derive(Deserialize)]
struct Order {
    by: By,
}

#[derive(Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Hot,
    Degree,
    None,
}

/// The report of a change of order, for Python.
#[derive(Serialize)]
struct Report {
    by: By,
    /// The result of presampling, where rows are ordered by it.
    hot: Option<ReorderedRows>,
    rows: u64,
    bytes: u64,
    seconds_choose: f64,
    seconds_move: f64,
}

/// Stores the rows of the features `name` in the order that the options name; returns a report as JSON.
#[pyfunction]
pub(crate) fn order_features(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    options_json: &str,
    seeds: PyReadonlyArray1<'_, u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let seeds = seeds.as_slice()?;
    let call = Call::new(progress);
    let report = call.run(py, || {
        let Order { by } = from_json(options_json)?;
        let options: Options = from_json(options_json)?;
        let since = Instant::now();
        let (rows, hot) = choose(by, &path, name, &options, seeds, &call)?;
        let seconds_choose = since.elapsed().as_secs_f64();
        let order = RowOrder { name: order_name(by).into(), rows };
        let manifest = relay(&path, name, &order, options.memory, &call, &call.cancel)?;
        let entry = &manifest.features[name];
        Ok(Report {
            by,
            hot,
            rows: entry.rows,
            bytes: entry.layout.file_bytes(entry.rows),
            seconds_choose,
            seconds_move: since.elapsed().as_secs_f64() - seconds_choose,
        })
    })?;
    to_json(py, &report)
}

/// Chooses the row of each vertex, and reports what presampling found; opens the graph for that only.
fn choose(
    by: By,
    path: &Path,
    name: &str,
    options: &Options,
    seeds: &[u64],
    call: &Call,
) -> Result<(Option<Vec<u32>>, Option<ReorderedRows>)> {
    if by == By::None {
        return Ok((None, None));
    }
    let open = OpenOptions {
        memory: options.memory,
        engine: options.io.as_deref().unwrap_or("auto").parse()?,
        threads: Some(1),
        ..OpenOptions::default()
    };
    let mut graph = Graph::open(path, &open)?;
    graph.set_cancel(call.cancel.clone());
    let loader = options.loader(false)?;
    if by == By::Degree {
        // A vertex is sampled along the arcs that lead the other way.
        let direction = match loader.direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        return Ok((Some(by_degree(&graph.degrees().of(direction)?)), None));
    }
    let Some(layout) = graph.manifest().features.get(name).map(|entry| entry.layout) else {
        return Err(Error::new(ErrorKind::Input, "order the features")
            .object(name)
            .expected("features that the graph has"));
    };
    let seeds = graph.ids().find(seeds)?;
    let graph = Arc::new(graph);
    let keep = Residency::all_within(&graph, loader.direction, graph.memory().budget().left() / 2);
    let loader = Loader::new(graph, LoaderOptions { threads: 1, ..loader }, &keep, [])?;
    let batches = options.presample.unwrap_or(usize::MAX);
    let mut reordered = loader.reorder_rows(layout, 0, &seeds, batches)?;
    Ok((Some(std::mem::take(&mut reordered.rows)), Some(reordered)))
}

fn order_name(by: By) -> &'static str {
    match by {
        By::Hot => "hot",
        By::Degree => "degree",
        By::None => "none",
    }
}
