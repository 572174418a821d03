//! Plans of hardware for training jobs.

use pyo3::prelude::*;
use serde::Deserialize;
use tiergraph_planner::{Job, Parts, Question, plan as planned};

use crate::errors::{detached, from_json, to_json};

/// A question, as Python asks it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    job: Job,
    machine: String,
    gpu: String,
    drive: String,
    budget: Option<f64>,
    /// The text and the name of a catalogue of parts; the program's own without one.
    parts: Option<(String, String)>,
}

/// Plans for a job: question and answer are JSON.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, question: &str) -> PyResult<String> {
    let plan = detached(py, || {
        let Asked { job, machine, gpu, drive, budget, parts } = from_json(question)?;
        let parts = match &parts {
            Some((text, name)) => Parts::parse(text, name)?,
            None => Parts::built_in()?,
        };
        planned(&Question {
            job: &job,
            parts: &parts,
            machine: &machine,
            gpu: &gpu,
            drive: &drive,
            budget,
        })
    })?;
    to_json(py, &plan)
}
