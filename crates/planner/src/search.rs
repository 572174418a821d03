//! The number of drives that gives most for a dollar, and what it says about the others.

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Result};

use crate::estimate::Hardware;
use crate::{Bottleneck, Estimate, Job, Parts};

/// What is asked: a job, the hardware that it may have, and the money for it.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The job.
    pub job: &'a Job,
    /// The catalogue of parts.
    pub parts: &'a Parts,
    /// The machine's name in it.
    pub machine: &'a str,
    /// The GPU's name in it: that on which the job's training was timed.
    pub gpu: &'a str,
    /// The drives' name in it, or in the catalogue of drives that are imitated.
    pub drive: &'a str,
    /// Dollars for five years, at most; `None` for any.
    pub budget: Option<f64>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Each number of drives that slots and budget allow, from 1 on.
    pub estimates: Vec<Estimate>,
    /// The index among those of the one that gives most for a dollar.
    pub best: usize,
    /// By how much one drive more than the best raises seeds a second: 0.1 for a tenth; `None` if there is
    /// no slot or money for it.
    pub one_more: Option<f64>,
    /// What limits the best, in a sentence.
    pub limit: String,
}

impl Plan {
    /// The estimate that gives most for a dollar.
    pub fn best(&self) -> &Estimate {
        &self.estimates[self.best]
    }
}

/// Plans for a job.
///
/// # Errors
/// [`ErrorKind::Input`] for parts that no catalogue has or that have no price, a job with impossible figures, and
/// a budget that pays for no machine with one drive.
pub fn plan(question: &Question<'_>) -> Result<Plan> {
    let Question { job, parts, machine, gpu, drive, budget } = *question;
    job.check()?;
    let (machine, gpu, kind) = (parts.machine(machine)?, parts.gpu(gpu)?, parts.drive(drive)?);
    let hardware = Hardware { parts, machine, gpu, kind: &kind };
    let least = hardware.dollars(1)?;
    if let Some(budget) = budget
        && budget < least
    {
        return Err(Error::new(ErrorKind::Input, "plan with a budget")
            .expected(format!("${least:.0} or more: a machine with one drive, for five years"))
            .got(format!("${budget:.0}")));
    }
    let mut estimates = Vec::new();
    for drives in 1..=machine.drive_slots.max(1) {
        let estimate = hardware.estimate(job, drives)?;
        if budget.is_some_and(|budget| estimate.dollars > budget) {
            break;
        }
        estimates.push(estimate);
    }
    let better = |best: usize, next: usize| {
        let worth = |index: usize| estimates[index].seeds_per_second_and_dollar;
        if worth(next) > worth(best) { next } else { best }
    };
    let best = (0..estimates.len()).fold(0, better);
    let one_more = estimates
        .get(best + 1)
        .map(|more| more.seeds_per_second / estimates[best].seeds_per_second - 1.0);
    let is_last = best + 1 == estimates.len();
    let limit = limit(job, &estimates[best], is_last, machine.drive_slots);
    Ok(Plan { estimates, best, one_more, limit })
}

/// What limits an estimate, in a sentence; whether it is the last that slots and budget allow.
fn limit(job: &Job, best: &Estimate, is_last: bool, slots: u32) -> String {
    let said = match best.bottleneck {
        _ if job.drive_reads == 0.0 => {
            "Nothing is read from drives: memory holds all that the job wants, and more drives bring \
             nothing."
        }
        Bottleneck::Drives if is_last && best.drives == slots => {
            "The drives limit it, and every slot has one: more memory for what is hot, or faster drives."
        }
        Bottleneck::Drives if is_last => {
            "The drives limit it, and the budget pays for no more of them."
        }
        Bottleneck::Drives => "The drives limit it, but another one brings less than it costs.",
        Bottleneck::Link => {
            "The link to the GPU limits it: more memory on the GPU for what is hot, or a faster link; \
             more drives bring nothing."
        }
        Bottleneck::Training => {
            "Training limits it: a faster GPU; more drives or memory bring nothing."
        }
    };
    said.into()
}
