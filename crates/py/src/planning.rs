//! Plans of hardware for training jobs.

use pyo3::prelude::*;
use serde::Deserialize;
use tiergraph_planner::{Job, Measured, Parts, Question, Run, plan as planned};

use crate::errors::{detached, from_json, to_json};

/// A question, as Python asks it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    job: Job,
    machine: String,
    gpu: String,
    drives: Vec<String>,
    device_cache: Option<f64>,
    host_cache: Option<f64>,
    budget: Option<f64>,
    /// The text and the name of a catalogue of parts; the program's own without one.
    parts: Option<(String, String)>,
}

fn catalogue(parts: Option<&(String, String)>) -> tiergraph_core::Result<Parts> {
    match parts {
        Some((text, name)) => Parts::parse(text, name),
        None => Parts::built_in(),
    }
}

/// Plans for a job: question and answer are JSON.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, question: &str) -> PyResult<String> {
    let plan = detached(py, || {
        let Asked { job, machine, gpu, drives, device_cache, host_cache, budget, parts } =
            from_json(question)?;
        let parts = catalogue(parts.as_ref())?;
        planned(&Question {
            job: &job,
            parts: &parts,
            machine: &machine,
            gpu: &gpu,
            drives: &drives,
            device_cache,
            host_cache,
            budget,
        })
    })?;
    to_json(py, &plan)
}

/// The job of which this was measured: both are JSON.
#[pyfunction]
pub(crate) fn measured_job(py: Python<'_>, measured: &str) -> PyResult<String> {
    let job = detached(py, || from_json::<Measured>(measured)?.job())?;
    to_json(py, &job)
}

/// A question of passes, as Python asks it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedOfPasses {
    run: Run,
    drive: Option<String>,
    drives: Vec<u32>,
    shares: Vec<f64>,
    parts: Option<(String, String)>,
}

/// Iterations of a run with other drives and memory: question and answer are JSON.
#[pyfunction]
pub(crate) fn plan_passes(py: Python<'_>, question: &str) -> PyResult<String> {
    let estimates = detached(py, || {
        let AskedOfPasses { run, drive, drives, shares, parts } = from_json(question)?;
        run.estimates(drive.as_deref(), &catalogue(parts.as_ref())?, &drives, &shares)
    })?;
    to_json(py, &estimates)
}
